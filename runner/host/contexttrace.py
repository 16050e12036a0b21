"""Who opens what of a staged context root, told by the kernel, outside the container.

One inotify instance watches every folder of the root and the folder of marks, so that all opens
come in one order. `runner.core.readtrace` says what they mean.
"""

from __future__ import annotations

import contextlib
import errno
import os
import select
import threading
import time
from pathlib import Path
from typing import Final, NamedTuple

from runner.core.readtrace import MARK_FILES, Mark, Open
from runner.host.inotify import DONT_FOLLOW, IGNORED, ISDIR, ONLYDIR, OPEN, Q_OVERFLOW, Queue

_MASK: Final = OPEN | ONLYDIR | DONT_FOLLOW
_WHOLE_QUEUE: Final = 1 << 20
"""Bytes: one read empties a queue of the usual length (16,384 events) of short names."""
_FEW: Final = 1000
"""Events in one read. After fewer the reader rests: waking for every open would cost the cases a
context switch each, and the queue holds many more than come in this time."""
_REST: Final = 0.002


class Traced(NamedTuple):
    """What was seen of one leg.

    Attributes:
        opens: In the kernel's order.
        files: All regular files of the root, as paths below it.
        lapse: Bare token, if the watch itself broke.
        problem: Our own defect behind it, for the log.
    """

    opens: tuple[Open, ...]
    files: frozenset[bytes]
    lapse: str | None
    problem: str | None = None


class Untraceable(Exception):
    """There can be no trace; the argument is a bare token that says why."""


class ContextTrace:
    """Watches one staged root from before the first container until after the last.

    Memory grows with the marks and with the different files opened between two of them, not with
    the number of opens.

    Args:
        root: Staged context root, which no other leg uses meanwhile.
        marks: Folder of the marks; it must not exist yet.

    Raises:
        Untraceable: `too_many_folders`, `no_inotify` or `unreadable_root`.
    """

    def __init__(self, root: Path, marks: Path) -> None:
        self.marks = marks
        self._opens: list[Open] = []
        self._lapse: str | None = None
        self._problem: str | None = None
        self._since_mark: set[bytes] = set()
        self._names: dict[tuple[int, bytes], bytes] = {}
        self._folders: dict[int, bytes] = {}
        self._files: set[bytes] = set()
        self._ending = False
        try:
            self._queue = Queue()
        except OSError as error:
            raise Untraceable("no_inotify") from error
        with contextlib.ExitStack() as undo:
            undo.callback(self._queue.close)
            self._watch(os.fsencode(root))
            make_marks(marks)
            self._marks = self._add(os.fsencode(marks))
            seal_marks(marks)
            reader, self._waker = os.pipe2(os.O_CLOEXEC)
            self._wake = reader
            self._thread = threading.Thread(target=self._read, name="reads", daemon=True)
            self._thread.start()
            undo.pop_all()

    def end(self) -> Traced:
        """Stop watching. Every open up to now is told, since every container is gone."""
        self._ending = True
        os.close(self._waker)
        self._thread.join()
        os.close(self._wake)
        self._queue.close()
        return Traced(tuple(self._opens), frozenset(self._files), self._lapse, self._problem)

    def _watch(self, root: bytes) -> None:
        waiting = [b""]
        while waiting:
            folder = waiting.pop()
            self._folders[self._add(os.path.join(root, folder))] = folder
            try:
                with os.scandir(os.path.join(root, folder)) as listing:
                    for entry in listing:
                        path = os.path.join(folder, entry.name)
                        if entry.is_dir(follow_symlinks=False):
                            waiting.append(path)
                        elif entry.is_file(follow_symlinks=False):
                            self._files.add(path)
            except OSError as error:
                raise Untraceable("unreadable_root") from error

    def _add(self, folder: bytes) -> int:
        try:
            return self._queue.add(folder, _MASK)
        except OSError as error:
            many = error.errno == errno.ENOSPC
            raise Untraceable("too_many_folders" if many else "unreadable_root") from error

    def _read(self) -> None:
        """Take opens out of the queue until the end; the thread's body."""
        poll = select.poll()
        poll.register(self._queue.fileno(), select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        try:
            while not self._ending:
                poll.poll()
                if self._drain() < _FEW:
                    time.sleep(_REST)
            while self._drain():
                pass
        except Exception as error:  # noqa: BLE001  # it has not seen what came later, and says so
            self._lapse, self._problem = "reader_failed", repr(error)

    def _drain(self) -> int:
        """Take what the queue holds; how many events that was."""
        try:
            events = self._queue.read(_WHOLE_QUEUE)
        except BlockingIOError:
            return 0
        count = 0
        for watch, mask, name in events:
            self._take(watch, mask, name)
            count += 1
        return count

    def _take(self, watch: int, mask: int, name: bytes) -> None:
        if mask & ISDIR:
            return  # a folder was listed
        if mask & Q_OVERFLOW:
            self._opens.append(Mark.LOST)
        elif mask & IGNORED:
            self._lapse = "watch_lost"
        elif watch == self._marks:
            self._opens.append(Mark(name.decode("ascii")))
            self._since_mark.clear()
        else:
            self._opened(watch, name)

    def _opened(self, watch: int, name: bytes) -> None:
        path = self._names.get((watch, name))
        if path is None:
            path = os.path.join(self._folders[watch], name)
            self._names[watch, name] = path
        if path not in self._since_mark:
            self._since_mark.add(path)
            self._opens.append(path)


def make_marks(folder: Path) -> None:
    """Make the folder of marks, as only the invoker can see it."""
    folder.mkdir(mode=0o700)
    for mark in MARK_FILES:
        os.close(os.open(folder / mark.value, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))


def seal_marks(folder: Path) -> None:
    """Leave the marks to the agent: root in its container, without a capability over files.

    When we are root, they are root's. When we are not, cases run as us: the owner may do nothing,
    and cannot change that through a read-only mount; the agent is one of the others.
    """
    file_mode, folder_mode = (0o400, 0o500) if os.geteuid() == 0 else (0o004, 0o001)
    for mark in MARK_FILES:
        os.chmod(folder / mark.value, file_mode)
    os.chmod(folder, folder_mode)
