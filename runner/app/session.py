"""One run on one engine: what all its legs share, and what has to be gone when it ends."""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from runner.app.insist import insist
from runner.core.confine import LABEL, Resources
from runner.errors import EngineFailure
from runner.logs import log
from runner.model.container import Difference, ImageInfo
from runner.model.leg import ContextRoot
from runner.ports import Engine

WorkspaceMode = Literal["overlay", "copy"]


@dataclass(frozen=True, slots=True)
class StagedRoot:
    """A staged context root: its identity, and where it lies."""

    root: ContextRoot
    path: Path | None
    """None when it could not be staged."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Everything that was staged for a run."""

    home: Path
    agent: Path
    agent_sha256: str
    workspace: Path
    workspace_sha256: str
    suite_dir: str
    """Folder of the suite inside the container."""
    hooks: Path | None = None
    """The hooks directory, if there is one."""


@dataclass(frozen=True, slots=True)
class Readback:
    """What the engine said of one container before its start."""

    leg: str
    ordinal: int
    profile: Mapping[str, object]
    differences: tuple[Difference, ...]
    mounts: tuple[str, ...]


@dataclass
class Session:
    """Shared by the legs of a run; its registry is what clean-up and interruption work on.

    Attributes:
        engine: The engine.
        token: Random name of this run on the engine and on disk.
        image: The leg image.
        image_env: Its `ENV`.
        runtime: OCI runtime of the legs, the engine's default by its name; None when the engine
            names none.
        resources: Limits.
        case_user: Uid and gid of the case user.
        stage: What was staged.
        mode: How workspaces are made.
        shared: One workspace for a whole leg.
        live_roots: Real paths of live roots, for the check of mounts.
        cancelled: Set when the run was interrupted.
    """

    engine: Engine
    api: tuple[int, int]
    token: str
    image: ImageInfo
    runtime: str | None
    resources: Resources
    case_user: tuple[int, int]
    stage: Stage
    mode: WorkspaceMode
    shared: bool
    live_roots: tuple[Path, ...]
    labels: Mapping[str, str]
    keep_seconds: int = 0
    cancelled: threading.Event = field(default_factory=threading.Event)
    readbacks: list[Readback] = field(default_factory=list)
    reaching: list[str] = field(default_factory=list)
    created: set[str] = field(default_factory=set)
    """Ids of all containers of the run, removed ones too: writers are told by them."""
    kept: list[str] = field(default_factory=list)
    """Names of containers left for inspection."""
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _containers: dict[str, None] = field(default_factory=dict)
    _volumes: dict[str, None] = field(default_factory=dict)

    def name(self, leg: str, ordinal: int) -> str:
        """A container name that no other attempt has."""
        return f"{LABEL}-{self.token}-{leg.replace('_', '-')}-{ordinal}-{secrets.token_hex(3)}"

    def volume_name(self) -> str:
        """A volume name that no other attempt has, and that says nothing.

        The mount table of a container shows it where the volume is a plain folder of the engine.
        """
        return f"{LABEL}-{self.token}-{secrets.token_hex(8)}"

    def own_container(self, container_id: str) -> None:
        """Remember a container until it is removed."""
        with self._lock:
            self.created.add(container_id)
            self._containers[container_id] = None

    def own_volume(self, name: str) -> None:
        """Remember a volume until it is removed; before its creation, so that none is missed."""
        with self._lock:
            self._volumes[name] = None

    def record(self, readback: Readback, reaching: tuple[str, ...]) -> None:
        """Keep what was read back, for the evidence."""
        with self._lock:
            self.readbacks.append(readback)
            self.reaching.extend(reaching)

    def keep(self, container_id: str, volume: str, name: str) -> None:
        """Take a container and its volume out of the clean-up."""
        with self._lock:
            self._containers.pop(container_id, None)
            self._volumes.pop(volume, None)
            self.kept.append(name)

    def release(self, container_id: str | None, volume: str | None) -> None:
        """Remove a container and its workspace volume now."""
        if container_id is not None:
            insist(self.engine.remove, container_id)
            with self._lock:
                self._containers.pop(container_id, None)
        if volume is not None:
            insist(self.engine.remove_volume, volume)
            with self._lock:
                self._volumes.pop(volume, None)

    def cancel(self) -> None:
        """Stop every leg: their containers die, their streams end, their threads return."""
        self.cancelled.set()
        with self._lock:
            containers = list(self._containers)
        for container_id in containers:
            try:
                self.engine.kill(container_id)
            except EngineFailure as error:
                log.warning("could not kill a container", error=error.line())

    def clean(self) -> None:
        """Remove whatever is left of this run on the engine."""
        with self._lock:
            containers, volumes = list(self._containers), list(self._volumes)
        for container_id in containers:
            self._try(self.release, container_id, None)
        for volume in volumes:
            self._try(self.release, None, volume)

    @staticmethod
    def _try(action: Callable[..., None], *arguments: object) -> None:
        try:
            action(*arguments)
        except EngineFailure as error:
            log.warning("left on the engine", error=error.line(), remedy="run `ao-eval reap`")
