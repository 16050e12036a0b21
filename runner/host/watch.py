"""The watch of the live roots while legs run: one thread that reads what the kernel tells.

fanotify where it is permitted and every file system of a root supports it, else inotify, else
nothing; which one and why is part of the report. Whatever may be missing is said.
"""

from __future__ import annotations

import os
import queue
import select
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from runner.host.fanotify import Fanotify
from runner.host.inotify import Inotify, Sighting, actions
from runner.host.mounts import within
from runner.model.livewatch import Process, Touch, WatchMethod, WatchReport

MOST_TOUCHES: Final = 10_000
"""Distinct pairs of path and writer that are kept; beyond that the watch is not complete."""

_PATIENCE: Final = 10.0


class Source(Protocol):
    """Where sightings come from."""

    lost: str

    def fileno(self) -> int:
        """To be polled."""

    def cover(self, root: bytes) -> None:
        """Watch one more root."""

    def drain(self) -> Iterator[Sighting]:
        """What has happened since the last call."""

    def close(self) -> None:
        """End."""


@dataclass(slots=True)
class _Tally:
    """A touch in the making."""

    mask: int
    first: int
    last: int
    count: int


@dataclass(slots=True)
class _Task:
    """Something that the thread is asked to do, and word that it did."""

    action: Callable[[], None]
    done: threading.Event
    error: OSError | None = None


class Watch:
    """A running watch. Everything but the construction may be called from any thread.

    Args:
        method: What the source is.
        source: Owned from now on; None for no watch at all.
        note: Why it is not a stronger one.
    """

    def __init__(self, method: WatchMethod, source: Source | None, note: str = "") -> None:
        self.method = method
        self._source = source
        self._note = note
        self._failed = ""
        self._lost = ""
        self._tallies: dict[tuple[bytes, int | None, Process | None], _Tally] = {}
        self._lock = threading.Lock()
        self._tasks: queue.SimpleQueue[_Task] = queue.SimpleQueue()
        self._ending = False
        self._thread: threading.Thread | None = None
        self._wake = -1
        if source is not None:
            self._wake = os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK)
            self._thread = threading.Thread(target=self._run, name="live-watch", daemon=True)
            self._thread.start()

    @property
    def lost(self) -> str:
        """Why events may be missing so far; empty: nothing is known to be."""
        source = self._source.lost if self._source else ""
        return "; ".join(part for part in (source, self._lost) if part)

    def cover(self, root: bytes) -> None:
        """Watch one more root from now on.

        Args:
            root: Absolute path, links resolved on the way to it; need not exist.

        Raises:
            OSError: It cannot be watched by this method.
        """

        def covering(source: Source) -> None:
            self._take(source.drain())  # what is queued already happened before
            source.cover(root)

        self._ask(covering)

    def settle(self) -> bool:
        """Wait until everything that happened before this call has been seen.

        Returns:
            False when there is no watch, or it has ended.
        """
        return self._ask(lambda source: self._take(source.drain()))

    def touches(self, below: bytes) -> tuple[Touch, ...]:
        """What was seen at a path and below it so far."""
        with self._lock:
            return tuple(
                Touch(path, actions(t.mask), t.first, t.last, t.count, pid, writer)
                for (path, pid, writer), t in self._tallies.items()
                if within(path, below)
            )

    def stop(self) -> WatchReport:
        """See what is left to be seen, and end. May be called again."""

        def ending(source: Source) -> None:
            self._take(source.drain())
            self._ending = True

        if self._thread is not None and self._thread.is_alive():
            self._ask(ending)
            self._ending = True
            self._ring()
            self._thread.join(_PATIENCE)
            if self._thread.is_alive():
                self._failed = self._failed or "the watch did not end"
        with self._lock:
            if self._wake >= 0 and not (self._thread and self._thread.is_alive()):
                os.close(self._wake)
                self._wake = -1
        return WatchReport(
            method=self.method,
            touches=self.touches(b"/"),
            lost=self.lost,
            failed=self._failed,
            note=self._note,
        )

    def _ask(self, action: Callable[[Source], None]) -> bool:
        source, thread = self._source, self._thread
        if source is None or thread is None or not thread.is_alive():
            return False
        task = _Task(lambda: action(source), threading.Event())
        self._tasks.put(task)
        self._ring()
        deadline = time.monotonic() + _PATIENCE
        while not task.done.wait(0.05):
            if not thread.is_alive() or time.monotonic() > deadline:
                return False
        if task.error is not None:
            raise task.error
        return True

    def _ring(self) -> None:
        with self._lock:
            if self._wake >= 0:
                os.eventfd_write(self._wake, 1)

    def _run(self) -> None:
        source = self._source
        assert source is not None  # noqa: S101 - the thread exists only with one
        try:
            self._serve(source)
        except Exception as error:  # noqa: BLE001 - whatever it is, the watch is over and says so
            self._failed = f"{type(error).__name__}: {error}"
        finally:
            source.close()

    def _serve(self, source: Source) -> None:
        ready = select.poll()
        ready.register(source.fileno(), select.POLLIN)
        ready.register(self._wake, select.POLLIN)
        while not self._ending:
            for descriptor, _ in ready.poll():
                if descriptor == self._wake:
                    os.eventfd_read(self._wake)
            self._perform()
            if not self._ending:
                self._take(source.drain())

    def _perform(self) -> None:
        while True:
            try:
                task = self._tasks.get_nowait()
            except queue.Empty:
                return
            try:
                task.action()
            except OSError as error:
                task.error = error
            finally:
                task.done.set()

    def _take(self, sightings: Iterable[Sighting]) -> None:
        for path, mask, pid, writer in sightings:
            if not actions(mask):
                continue
            now = time.time_ns()
            with self._lock:
                tally = self._tallies.get((path, pid, writer))
                if tally is not None:
                    tally.mask |= mask
                    tally.last = now
                    tally.count += 1
                elif len(self._tallies) < MOST_TOUCHES:
                    self._tallies[path, pid, writer] = _Tally(mask, now, now, 1)
                else:
                    self._lost = f"more than {MOST_TOUCHES} different writes"


def open_watch(roots: Sequence[bytes]) -> Watch:
    """Watch live roots by the strongest method that can be had.

    Args:
        roots: Absolute paths, links resolved on the way to each; need not exist.

    Returns:
        A running watch; `method` `none` when the kernel gives no watch at all.
    """
    notes = []
    sources: tuple[tuple[WatchMethod, Callable[[], Source]], ...] = (
        ("fanotify", Fanotify),
        ("inotify", Inotify),
    )
    for method, make in sources:
        try:
            source = make()
        except OSError as error:
            notes.append(f"{method}: {error.strerror}")
            continue
        watch = Watch(method, source, "; ".join(notes))
        try:
            for root in roots:
                watch.cover(root)
        except OSError as error:
            watch.stop()
            notes.append(f"{method}: {error.strerror}")
            continue
        return watch
    return Watch("none", None, "; ".join(notes))
