"""A fresh copy-on-write workspace for one container, from the staged view.

An overlay volume of the `local` driver where it can serve, else a volume that is filled by copy.
"""

from __future__ import annotations

import secrets
import tarfile
import tempfile
from pathlib import Path
from typing import IO, NamedTuple

from runner.app.session import Session, WorkspaceMode
from runner.core.confine import Placement, leg_container
from runner.host.caseuser import give
from runner.model.container import EngineInfo, Mount, VolumeSpec

_OPTION_BREAKERS = frozenset(":,\\")
"""Characters that overlay's mount options cannot hold in a path."""

_NO_UPPER = frozenset({"overlay", "overlayfs", "tmpfs", "nfs", "nfs4", "cifs", "fuse"})
"""File systems on which an upper layer does not work, or not everywhere."""

_FILL, _TOP = "/fill", "workspace"
"""The container that fills a volume has it as a folder in a folder."""


class Workspace(NamedTuple):
    """The workspace of one container.

    Attributes:
        volume: Volume name.
        upper: Upper layer on the host; None when the volume was copied.
    """

    volume: str
    upper: Path | None


def choose_mode(
    stage: Path,
    filesystem: str,
    info: EngineInfo,
    *,
    local: bool,
) -> WorkspaceMode:
    """How workspaces are made in this run, whatever the runtime: gVisor shows overlays, too.

    Args:
        stage: Folder of the staged view.
        filesystem: Type of the file system it lies on.
        info: The engine.
        local: Whether the engine sees this machine's paths.
    """
    broken = _OPTION_BREAKERS & set(str(stage))
    if not local or info.rootless or broken or filesystem in _NO_UPPER:
        return "copy"
    return "overlay"


def make_workspace(session: Session) -> Workspace:
    """Create the volume of one container; the session removes it.

    Raises:
        EngineFailure: The engine cannot make it.
    """
    name = session.volume_name()
    session.own_volume(name)
    if session.mode == "overlay":
        return _overlay(session, name)
    return _copy(session, name)


def _overlay(session: Session, name: str) -> Workspace:
    layers = session.stage.home / secrets.token_hex(8)
    upper, work = layers / "u", layers / "w"
    for folder in (layers, upper, work):
        folder.mkdir(mode=0o700)
    give(upper)
    upper.chmod(0o755)
    session.engine.create_volume(
        VolumeSpec(
            name=name,
            options={
                "type": "overlay",
                "device": "overlay",
                "o": f"lowerdir={session.stage.workspace},upperdir={upper},workdir={work}",
            },
            labels=dict(session.labels),
        )
    )
    return Workspace(name, upper)


def _copy(session: Session, name: str) -> Workspace:
    session.engine.create_volume(VolumeSpec(name=name, options={}, labels=dict(session.labels)))
    # An engine leaves the folder itself alone into which it unpacks, and the top of a new volume is
    # root's. So it unpacks one level higher, where the top is an entry like any other.
    above = session.stage.home / secrets.token_hex(8)
    above.mkdir(mode=0o700)
    carrier = leg_container(
        name=f"{name}-fill",
        image_id=session.image.id,
        env={},
        labels=session.labels,
        placement=Placement(agent=str(session.stage.agent), workspace_volume=name),
        case_user=session.case_user,
        resources=session.resources,
        runtime=None,
    ).model_copy(
        update={
            "mounts": (
                Mount(kind="bind", source=str(above), target=_FILL, read_only=False),
                Mount(kind="volume", source=name, target=f"{_FILL}/{_TOP}", read_only=False),
            )
        }
    )
    with _archive(session) as archive:
        session.engine.fill_volume(carrier, _FILL, archive)
    return Workspace(name, None)


def _archive(session: Session) -> IO[bytes]:
    """The staged view as a tar file that is gone when it is closed."""
    uid, gid = session.case_user

    def owned(entry: tarfile.TarInfo) -> tarfile.TarInfo:
        entry.uid, entry.gid = uid, gid
        entry.uname = entry.gname = ""
        return entry

    spool = tempfile.TemporaryFile(dir=session.stage.home)  # noqa: SIM115  the caller closes it
    with tarfile.open(fileobj=spool, mode="w", format=tarfile.PAX_FORMAT) as tar:
        tar.add(session.stage.workspace, arcname=_TOP, filter=owned)
    spool.seek(0)
    return spool
