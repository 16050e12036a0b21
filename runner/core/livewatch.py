"""What the watch and the decoys saw -> who changed a live root, and whether the proof can fail."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Final, Literal, NamedTuple

from runner.core.treediff import differences
from runner.model.liveproof import DecoyProof, LiveWrite, LiveWriter, WatchProof
from runner.model.livewatch import DIRENT_ACTIONS, Action, Decoy, Touch, WatchReport
from runner.model.tree import Change, LiveRoot, TreeManifest, path_text, unpack_row

WriterKind = Literal["leg", "outsider", "runner", "engine", "unknown"]

BY_LEG: Final = "by_leg"
BY_OUTSIDER: Final = "by_outsider"
UNKNOWN: Final = "writer_unknown"
WORST: Final = (BY_LEG, UNKNOWN, BY_OUTSIDER)

# Path in a decoy, how the manifests have to show it, what the watch has to say. A write and its
# reversal is shown by the change time alone, the replacement by the inode.
_PLANTED: Final[tuple[tuple[str, str, frozenset[str], Action], ...]] = (
    ("content", "modified", frozenset({"content"}), "modified"),
    ("mode", "modified", frozenset({"mode"}), "attributes"),
    ("reverted", "modified", frozenset({"ctime"}), "modified"),
    ("empty", "added", frozenset(), "created"),
    ("replaced", "recreated", frozenset({"inode"}), "moved_to"),
)
PLANTED: Final = len(_PLANTED)

# They act for whoever asked them, so a write of theirs is nobody's until more is known.
_ENGINES: Final = frozenset(
    {b"dockerd", b"containerd", b"docker-init", b"docker-proxy", b"runc", b"crun", b"runsc"}
    | {b"podman", b"conmon", b"runsc-sandbox", b"runsc-gofer"}
)
_SHIM: Final = b"containerd-shim"

# What the creation or removal of an entry changes of the folder that holds it.
_FOLDER_ATTRIBUTES: Final = frozenset({"mtime", "ctime", "nlink", "size"})


class Watching(NamedTuple):
    """Everything that is known beyond the manifests.

    Attributes:
        report: What the watch saw.
        decoys: What the positive control found.
        legs: Ids of all containers of this run.
        runner: Process id of this program.
        since: When the first manifests were complete, ns since 1970.
        links: Name of a root that is a link -> where that link lies, links on the way resolved.
    """

    report: WatchReport
    decoys: tuple[Decoy, ...]
    legs: frozenset[str]
    runner: int
    since: int
    links: Mapping[str, bytes]


def kind_of(touch: Touch, watching: Watching) -> WriterKind:
    """Who wrote. An outsider is one only where that is positively known."""
    process = touch.writer
    if process is None:
        return "unknown"
    if not watching.legs.isdisjoint(process.containers):
        return "leg"
    if watching.runner in (process.pid, process.parent):
        return "runner"
    names = {process.program.rpartition(b"/")[2], process.name.split(b":")[0]}
    if names & _ENGINES or any(name.startswith(_SHIM) for name in names):
        return "engine"
    # A container of ours could hide its cgroup (an engine without cgroups), not its namespace.
    return "outsider" if process.same_namespace or process.containers else "unknown"


# ------------------------------------------------------------------------------ positive control


def judge_decoy(decoy: Decoy, watching: Watching) -> DecoyProof:
    """Whether the detectors flagged what was planted.

    The witness must have; so must the watch where there is one, unless the kernel itself said by
    then that events were lost, which the watch reports as incomplete.
    """
    witnessed = _witnessed(decoy)
    watched: int | None = None
    excused = watching.report.method == "none"
    if not excused and (decoy.touches is not None or decoy.same_filesystem):
        watched = _watched(decoy, watching)
    fired = witnessed == PLANTED and (watched in (None, PLANTED) or bool(decoy.lost))
    return DecoyProof(
        roots=decoy.roots,
        same_filesystem=decoy.same_filesystem,
        planted=PLANTED,
        witnessed=witnessed,
        watched=watched,
        verdict="fired" if fired else "void",
        note="; ".join(part for part in (decoy.note, decoy.lost) if part),
    )


def _witnessed(decoy: Decoy) -> int:
    if decoy.before is None or decoy.after is None:
        return 0
    found = {item.path: item for item in differences(decoy.before, decoy.after).changes}
    return sum(
        name in found and found[name].kind == kind and needed <= set(found[name].attributes)
        for name, kind, needed, _ in _PLANTED
    )


def _watched(decoy: Decoy, watching: Watching) -> int:
    seen = {
        (path_text(touch.path[len(decoy.path) + 1 :]), action)
        for touch in decoy.touches or ()
        if watching.report.method != "fanotify" or _by_planter(touch, decoy, watching)
        for action in touch.actions
    }
    return sum((name, action) in seen for name, _, _, action in _PLANTED)


def _by_planter(touch: Touch, decoy: Decoy, watching: Watching) -> bool:
    # Where the runner is the first process of its namespace, orphans become its children.
    right = touch.writer is not None and touch.writer.pid == decoy.planter
    return right and kind_of(touch, watching) in ("outsider", "runner")


def summary(watching: Watching, roots: Iterable[LiveRoot]) -> WatchProof:
    """The watch in a few words, without times and writers."""
    report = watching.report
    touches = {touch for root in roots for _, touch in inside(root, watching)}
    return WatchProof(
        method=report.method,
        complete=report.complete,
        events_total=sum(touch.count for touch in touches),
        note="; ".join(part for part in (report.lost, report.failed, report.note) if part),
    )


# ------------------------------------------------------------------------------------- one root


def inside(root: LiveRoot, watching: Watching) -> list[tuple[str, Touch]]:
    """What was done in a root, by relative path as changes name it."""
    real, link = os.fsencode(root.real), watching.links.get(root.path)
    found = []
    for touch in watching.report.touches:
        if touch.path == real:
            found.append((".", touch))
        elif touch.path.startswith(real + b"/"):
            found.append((path_text(touch.path[len(real) + 1 :]), touch))
        elif touch.path == link:
            found.append(("", touch))
    return found


def seen_only(
    seen: Sequence[tuple[str, Touch]], changed: Iterable[str], since: int
) -> tuple[str, ...]:
    """Paths that the watch saw written after the first manifests and that do not differ."""
    known = set(changed)
    return tuple(
        sorted(
            {
                path
                for path, touch in seen
                if path not in known and touch.actions - {"closed"} and touch.last >= since
            }
        )
    )


def changed_by(
    seen: Sequence[tuple[str, Touch]],
    changes: Sequence[Change],
    watching: Watching,
    *,
    fired: bool,
) -> str:
    """Who changed a root: the worst that is not excluded.

    Args:
        seen: What the watch saw in it.
        changes: All differences of its manifests.
        watching: The rest.
        fired: The control of this root flagged all writers.

    Returns:
        `by_outsider` only if the watch knows writers, missed nothing, explains every difference,
        and every single writer is positively an outsider.
    """
    kinds = {kind_of(touch, watching) for _, touch in seen}
    if "leg" in kinds:
        return BY_LEG
    report = watching.report
    trusted = fired and report.method == "fanotify" and report.complete
    if trusted and kinds == {"outsider"} and _explained(seen, changes):
        return BY_OUTSIDER
    return UNKNOWN


def _explained(seen: Sequence[tuple[str, Touch]], changes: Sequence[Change]) -> bool:
    touched = {path for path, _ in seen}
    moved = {path for path, touch in seen if touch.actions & {"moved_from", "moved_to"}}
    holders = {_parent(path) for path, touch in seen if touch.actions & DIRENT_ACTIONS}
    return all(
        change.path in touched
        or (change.path in holders and set(change.attributes) <= _FOLDER_ATTRIBUTES)
        or not moved.isdisjoint(_above(change.path))
        for change in changes
    )


def _parent(path: str) -> str:
    head, slash, _ = path.rpartition("/")
    return head if slash else "."


def _above(path: str) -> list[str]:
    parts = path.split("/")
    return [".", *("/".join(parts[:count]) for count in range(1, len(parts)))]


# ------------------------------------------------------------------------------------- evidence


def writes(
    root: LiveRoot,
    seen: Sequence[tuple[str, Touch]],
    changes: Sequence[Change],
    after: TreeManifest | None,
    watching: Watching,
) -> list[LiveWrite]:
    """Every write to a root with time and writer, and every difference that nobody was seen at."""
    found = [
        LiveWrite(
            root=root.path,
            path=path,
            actions=tuple(sorted(touch.actions)),
            first=timestamp(touch.first),
            last=timestamp(touch.last),
            count=touch.count,
            writer=_writer(touch, watching),
        )
        for path, touch in seen
    ]
    touched = {path for path, _ in seen}
    holders = {_parent(path) for path, touch in seen if touch.actions & DIRENT_ACTIONS}
    missing = [item.path for item in changes if item.path not in touched | holders]
    times = _change_times(missing, after)
    nobody = LiveWriter(kind="unknown", pid=None, name=None, program=None, container=None)
    for path in missing:
        at = timestamp(times[path]) if path in times else None
        found.append(
            LiveWrite(
                root=root.path, path=path, actions=(), first=at, last=at, count=0, writer=nobody
            )
        )
    return found


def _writer(touch: Touch, watching: Watching) -> LiveWriter:
    process = touch.writer
    return LiveWriter(
        kind=kind_of(touch, watching),
        pid=touch.pid or None,
        name=None if process is None else path_text(process.name),
        program=path_text(process.program) if process and process.program else None,
        container=process.containers[0] if process and process.containers else None,
    )


def _change_times(paths: Iterable[str], after: TreeManifest | None) -> dict[str, int]:
    wanted = set(paths)
    if after is None or not wanted:
        return {}
    return {
        path_text(path): unpack_row(path, row).ctime
        for path, row in zip(after.paths, after.rows, strict=True)
        if path_text(path) in wanted
    }


def timestamp(nanoseconds: int) -> str:
    """Nanoseconds since 1970 as RFC 3339 in UTC, with all nine digits."""
    seconds, rest = divmod(nanoseconds, 1_000_000_000)
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}.{rest:09d}Z"


def told(write: LiveWrite) -> str:
    """One write on one line: where, when, who, what."""
    writer = write.writer
    who = {
        "leg": f"a container of this run ({(writer.container or '')[:12]})",
        "outsider": "an outsider",
        "runner": "this program",
        "engine": "the engine",
        "unknown": "an unknown writer",
    }[writer.kind]
    if writer.pid is not None:
        named = f"{writer.name}, " if writer.name else ""
        who += f" ({named}pid {writer.pid})"
    what = ", ".join(write.actions) or "seen by the manifests"
    when = write.first or "an unknown time"
    place = write.root if write.path in ("", ".") else f"{write.root}/{write.path}"
    return f"live state changed: {place} at {when} by {who}: {what}"
