"""Writers, watches and what they saw, as the tests of the watch need them."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from runner.host.fanotify import Fanotify
from runner.host.inotify import Inotify, Sighting
from runner.host.watch import Source, Watch
from runner.model.livewatch import WatchMethod, WatchReport


def source(method: WatchMethod) -> Source:
    """A source of that kind."""
    return Fanotify() if method == "fanotify" else Inotify()


@contextmanager
def watching(method: WatchMethod, *roots: Path) -> Iterator[Watch]:
    """A watch of some roots that is stopped at the end."""
    watch = Watch(method, source(method))
    try:
        for root in roots:
            watch.cover(os.fsencode(root))
        yield watch
    finally:
        watch.stop()


def seen(report: WatchReport, root: Path) -> dict[str, set[str]]:
    """Path relative to a root -> what was done there."""
    found: dict[str, set[str]] = {}
    for touch in report.touches:
        place = os.path.relpath(os.fsdecode(touch.path), root)
        found.setdefault(place, set()).update(touch.actions)
    return found


def sightings(kind: Source) -> list[Sighting]:
    """Everything that is to be read now."""
    return list(kind.drain())


class Writer:
    """A process that is nobody's child; it runs Python statements one by one and stays alive."""

    def __init__(self, folder: Path) -> None:
        self._process = subprocess.Popen(
            [
                sys.executable, "-I", "-S", "-c",
                ("import os, sys\n"
                    "if os.fork(): os._exit(0)\n"
                    "print(os.getpid(), flush=True)\n"
                "for line in sys.stdin:\n"
                "    exec(line)\n"
                "    print(flush=True)\n"),
            ],
            cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, bufsize=1,
        )  # fmt: skip
        assert self._process.stdout
        self.pid = int(self._process.stdout.readline())

    def run(self, statement: str) -> None:
        """Run one statement and wait until it is done."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(statement + "\n")
        assert self._process.stdout.readline(), "the writer ended"

    def end(self) -> None:
        """Let it end."""
        self._process.communicate(timeout=30)


@contextmanager
def writer(folder: Path) -> Iterator[Writer]:
    """A writer with this working directory."""
    made = Writer(folder)
    try:
        yield made
    finally:
        made.end()


def until(condition: Callable[[], object], seconds: float = 20.0) -> None:
    """Wait for something that takes an instant on an idle machine."""
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)
