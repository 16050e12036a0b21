"""A recursive inotify watch. Needs no privilege, and does not know who wrote.

Every folder of a live root has a watch, and so has the folder above it, for the creation, removal
and replacement of the root itself. A new folder is watched first and listed then: what was put
into it in between is found by the listing.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from runner.host.mounts import within
from runner.model.livewatch import Action, Process
from runner.model.tree import path_text

MODIFY: Final = 0x2
OPEN: Final = 0x20
ATTRIB: Final = 0x4
CLOSE_WRITE: Final = 0x8
MOVED_FROM: Final = 0x40
MOVED_TO: Final = 0x80
CREATE: Final = 0x100
DELETE: Final = 0x200
MOVE_SELF: Final = 0x800
Q_OVERFLOW: Final = 0x4000
IGNORED: Final = 0x8000
ONLYDIR: Final = 0x1000000
DONT_FOLLOW: Final = 0x2000000
ISDIR: Final = 0x40000000

ACTIONS: Final[tuple[tuple[int, Action], ...]] = (
    (MODIFY, "modified"),
    (ATTRIB, "attributes"),
    (CLOSE_WRITE, "closed"),
    (MOVED_FROM, "moved_from"),
    (MOVED_TO, "moved_to"),
    (CREATE, "created"),
    (DELETE, "deleted"),
)
"""Bits of an event -> what was done. fanotify has the same numbers."""

_MASK: Final = (
    MODIFY | ATTRIB | CLOSE_WRITE | MOVED_FROM | MOVED_TO | CREATE | DELETE | MOVE_SELF
    | ONLYDIR | DONT_FOLLOW
)  # fmt: skip
_EVENT: Final = struct.Struct("=iIII")
_BUFFER: Final = 1 << 16
_MOST_READS: Final = 4096
_GONE: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP})

_libc = ctypes.CDLL(None, use_errno=True)


class Sighting(NamedTuple):
    """One event at a path of a live root.

    Attributes:
        path: Absolute.
        mask: Bits of `ACTIONS`.
        pid: None where the kernel does not tell.
        writer: None where nobody tells, or it was gone before it could be looked at.
    """

    path: bytes
    mask: int
    pid: int | None = None
    writer: Process | None = None


def actions(mask: int) -> frozenset[Action]:
    """The words for the bits of an event."""
    return frozenset(word for bit, word in ACTIONS if mask & bit)


def below_any(path: bytes, roots: tuple[bytes, ...]) -> bool:
    """A path is one of the roots or lies in one."""
    return any(within(path, root) for root in roots)


def existing_above(path: bytes) -> bytes:
    """The nearest folder above a path that exists."""
    folder = os.path.dirname(path)
    while folder != b"/" and not os.path.isdir(folder):
        folder = os.path.dirname(folder)
    return folder


def folders(top: bytes) -> Iterator[bytes]:
    """A folder and every folder below it; links are not followed, what vanishes is passed over."""
    pending = [top]
    while pending:
        folder = pending.pop()
        yield folder
        try:
            with os.scandir(folder) as listing:
                pending += [entry.path for entry in listing if entry.is_dir(follow_symlinks=False)]
        except OSError as error:
            if error.errno not in _GONE:
                raise


class Queue:
    """One inotify instance: whatever happens at its watches comes out in the kernel's order."""

    def __init__(self) -> None:
        """Open an instance that never waits.

        Raises:
            OSError: The kernel gives none (`max_user_instances`, or no such system call).
        """
        self._descriptor: int = _libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _last_error()

    def fileno(self) -> int:
        """To be polled."""
        return self._descriptor

    def close(self) -> None:
        """Give every watch back."""
        os.close(self._descriptor)

    def add(self, path: bytes, mask: int) -> int:
        """Watch a path; returns the number that its events carry.

        Raises:
            OSError: It cannot be watched; ENOSPC: `fs.inotify.max_user_watches` is reached.
        """
        watch: int = _libc.inotify_add_watch(self._descriptor, path, mask)
        if watch < 0:
            raise _last_error()
        return watch

    def remove(self, watch: int) -> None:
        """Give a watch back, if it is there."""
        _libc.inotify_rm_watch(self._descriptor, watch)

    def read(self, size: int = _BUFFER) -> Iterator[tuple[int, int, bytes]]:
        """The next events, in order: number of the watch, mask, name in its folder.

        Args:
            size: Most bytes to take.

        Raises:
            BlockingIOError: There are none.
        """
        return _records(os.read(self._descriptor, size))


def _records(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    offset = 0
    while offset < len(data):
        watch, mask, _, length = _EVENT.unpack_from(data, offset)
        offset += _EVENT.size
        yield watch, mask, data[offset : offset + length].rstrip(b"\0")
        offset += length


class Inotify:
    """A source of sightings for `host.watch`; used by one thread.

    Attributes:
        lost: Why events may be missing; empty: nothing is known to be.
    """

    def __init__(self) -> None:
        """Open an instance.

        Raises:
            OSError: The kernel gives none (`max_user_instances`, or no such system call).
        """
        self._queue = Queue()
        self.lost = ""
        self._roots: tuple[bytes, ...] = ()
        self._folders: dict[int, bytes] = {}

    def fileno(self) -> int:
        """To be polled."""
        return self._queue.fileno()

    def close(self) -> None:
        """Give every watch back."""
        self._queue.close()

    def cover(self, root: bytes) -> None:
        """Watch a root, present or not, with everything below it."""
        self._roots += (root,)
        self._watch_above(root)
        for _ in self._watch_tree(root):
            pass

    def drain(self) -> Iterator[Sighting]:
        """What has happened since the last call; never waits."""
        for _ in range(_MOST_READS):
            try:
                events = self._queue.read()
            except BlockingIOError:
                return
            for event in events:
                yield from self._event(*event)
        self.lost = self.lost or "events came faster than they could be read"

    def _event(self, watch: int, mask: int, name: bytes) -> Iterator[Sighting]:
        if mask & Q_OVERFLOW:
            self.lost = "the inotify queue overflowed"
            return
        folder = self._folders.get(watch)
        if folder is None:
            return
        if mask & IGNORED:
            del self._folders[watch]
            return
        path = os.path.join(folder, name) if name else folder
        if below_any(path, self._roots) and not mask & MOVE_SELF:
            yield Sighting(path, mask)
        moved = mask & MOVE_SELF or (mask & ISDIR and mask & (MOVED_FROM | MOVED_TO))
        if moved and any(within(root, path) and root != path for root in self._roots):
            # A folder above a root came or went, and the root with it.
            done = mask & (MOVED_FROM | MOVED_TO) or MOVED_FROM
            yield from (Sighting(root, done) for root in self._roots if within(root, path))
        if mask & ISDIR and mask & MOVED_FROM:
            self._forget(path)
        if mask & ISDIR and mask & (CREATE | MOVED_TO):
            yield from self._arrived(path)

    def _arrived(self, path: bytes) -> Iterator[Sighting]:
        """Watch a new folder that matters; what is in it already came with it or since."""
        if below_any(path, self._roots):
            yield from self._watch_tree(path)
        for root in self._roots:
            if root != path and within(root, path):
                self._watch_above(root)
                yield from self._watch_tree(root)
                if os.path.lexists(root):
                    yield Sighting(root, CREATE)

    def _watch_above(self, root: bytes) -> None:
        """Watch the nearest folder above a root; again if a nearer one was made meanwhile."""
        folder = b""
        while folder != (nearest := existing_above(root)):
            folder = nearest
            self._watch(folder)

    def _watch_tree(self, top: bytes) -> Iterator[Sighting]:
        """Watch first, list then. Yields what the listing finds."""
        pending = [top]
        while pending:
            folder = pending.pop()
            if not self._watch(folder):
                continue
            try:
                with os.scandir(folder) as listing:
                    entries = list(listing)
            except OSError as error:
                self._missed(folder, error)
                continue
            for entry in entries:
                yield Sighting(entry.path, CREATE)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)

    def _watch(self, folder: bytes) -> bool:
        try:
            self._folders[self._queue.add(folder, _MASK)] = folder
        except OSError as error:
            self._missed(folder, error)
            return False
        return True

    def _missed(self, folder: bytes, error: OSError) -> None:
        if error.errno in _GONE:
            return
        reason = error.strerror or "error"
        if error.errno == errno.ENOSPC:
            reason = "limit of watches reached (fs.inotify.max_user_watches)"
        self.lost = self.lost or f"{path_text(folder)} is not watched: {reason}"

    def _forget(self, top: bytes) -> None:
        for watch in [w for w, folder in self._folders.items() if within(folder, top)]:
            self._queue.remove(watch)
            del self._folders[watch]


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
