"""Whether cases wrote to the workspace, told from the upper layer of its overlay."""

from __future__ import annotations

import os

from .link import Fatal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .spawn import CaseUser

DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Workspace:
    """Remembers the upper layer as it is before the first case, and then after each."""

    def __init__(self, user: CaseUser, upper: str | None, *, shared: bool) -> None:
        self._fd = -1
        self._seen: tuple[int, int, int] | None = None
        self._touched = False
        if upper is None:
            return
        with user:
            self._fd = os.open(upper, DIRECTORY)
            self._seen = stamp(self._fd)
            with os.scandir(self._fd) as entries:
                self._touched = any(True for _ in entries)
        if self._touched and not shared:
            raise Fatal("workspace_not_clean", "the workspace was written to before the first case")

    def written(self) -> bool | None:
        """Whether it was written to since the last look; None when that cannot be told.

        Every change of an overlay shows in its upper layer's root: a new entry, or for a change
        that was taken back the folder's own times and mode. Once there are entries, a write
        below them does not, so after the first write of a shared workspace only True is certain.
        """
        if self._fd < 0:
            return None
        now = stamp(self._fd)
        changed = now != self._seen
        self._seen = now
        if changed:
            self._touched = True
            return True
        return None if self._touched else False


def stamp(fd: int) -> tuple[int, int, int]:
    """What changes when anything is done to a folder or its entries."""
    seen = os.fstat(fd)
    return seen.st_mtime_ns, seen.st_ctime_ns, seen.st_mode
