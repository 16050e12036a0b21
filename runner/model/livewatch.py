"""What the watch of the live roots saw, before anybody judges it: paths as bytes, times as ns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from runner.model.tree import TreeManifest

WatchMethod = Literal["fanotify", "inotify", "none"]

Action = Literal[
    "created", "deleted", "modified", "attributes", "closed", "moved_from", "moved_to"
]  # fmt: skip
"""`closed`: a file that had been opened for writing was closed; by itself no change."""

DIRENT_ACTIONS: frozenset[Action] = frozenset({"created", "deleted", "moved_from", "moved_to"})
"""Those that change the folder that holds the entry, too."""


@dataclass(frozen=True, slots=True)
class Process:
    """A writer, looked at while it was certain that it still lived.

    Attributes:
        pid: In the runner's process namespace.
        parent: Its parent's.
        name: As the kernel has it (`comm`).
        program: Executable file; empty when it cannot be told.
        containers: Container ids in its cgroup paths, 64 hexadecimal digits each.
        same_namespace: It lives in the runner's process namespace.
    """

    pid: int
    parent: int
    name: bytes
    program: bytes
    containers: tuple[str, ...]
    same_namespace: bool


@dataclass(frozen=True, slots=True)
class Touch:
    """What one writer did at one path.

    Attributes:
        path: Absolute, links resolved on the way to it.
        actions: Everything that was done there.
        first: When the first event of it was read, ns since 1970.
        last: The same of the last one.
        count: Events.
        pid: What the kernel said; None where it says nothing.
        writer: None when the process was gone before it could be looked at, or nobody told.
    """

    path: bytes
    actions: frozenset[Action]
    first: int
    last: int
    count: int
    pid: int | None
    writer: Process | None


@dataclass(frozen=True, slots=True)
class WatchReport:
    """What a watch saw from its beginning to its end.

    Attributes:
        method: `none`: no watch could be had.
        touches: In the order of their first events.
        lost: Why events may be missing, in the kernel's own words (overflow, limit); empty: none.
        failed: Why the watch ended early; empty: it did not.
        note: Why the stronger method was not used; empty: it was.
    """

    method: WatchMethod
    touches: tuple[Touch, ...] = ()
    lost: str = ""
    failed: str = ""
    note: str = ""

    @property
    def complete(self) -> bool:
        """Nothing is known to be missing."""
        return self.method != "none" and not self.lost and not self.failed


@dataclass(frozen=True, slots=True)
class Decoy:
    """A decoy tree, looked at before and after its mutations were planted.

    Attributes:
        path: Where it was.
        roots: Live roots that it stands for.
        same_filesystem: It lay on theirs.
        planter: Process that planted the mutations; 0: nobody did.
        before: Manifest before; None when it could not be taken.
        after: Manifest after.
        touches: What the watch saw below it; None without a watch.
        lost: Why the watch may have missed some of it, if the kernel said so.
        note: What went wrong; empty: nothing.
    """

    path: bytes
    roots: tuple[str, ...]
    same_filesystem: bool
    planter: int = 0
    before: TreeManifest | None = None
    after: TreeManifest | None = None
    touches: tuple[Touch, ...] | None = None
    lost: str = ""
    note: str = ""
