"""What inotify sees of live roots: all of it, or it says that something is missing."""

from __future__ import annotations

import ctypes
import errno
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.host import inotify
from runner.host.inotify import Inotify
from tests.unit.host.watching import sightings, writer
from tests.unit.host.worlds import fill


@pytest.fixture
def source() -> Iterator[Inotify]:
    made = Inotify()
    yield made
    made.close()


def told(source: Inotify, root: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for item in sightings(source):
        place = os.path.relpath(os.fsdecode(item.path), root)
        found.setdefault(place, set()).update(inotify.actions(item.mask))
    return found


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return fill(tmp_path / "repo" / ".agents", {"a": "one", "sub/deep/b": "two", "c": "three"})


@pytest.mark.parametrize(
    "change, place, action",
    [
        ("open('a', 'r+').write('two')", "a", "modified"),
        ("os.chmod('sub/deep/b', 0o600)", "sub/deep/b", "attributes"),
        ("os.chmod('.', 0o711)", ".", "attributes"),
        ("os.chmod('sub', 0o711)", "sub", "attributes"),
        ("os.utime('c', (1, 1))", "c", "attributes"),
        ("open('sub/new', 'w')", "sub/new", "created"),
        ("os.mkdir('sub/dir')", "sub/dir", "created"),
        ("os.symlink('/etc', 'sub/link')", "sub/link", "created"),
        ("os.mkfifo('fifo')", "fifo", "created"),
        ("os.unlink('c')", "c", "deleted"),
        ("os.rename('a', 'c')", "c", "moved_to"),
        ("os.rename('a', '../out')", "a", "moved_from"),
        ("os.rename('sub', 'bus')", "bus", "moved_to"),
        ("os.truncate('a', 0)", "a", "modified"),
        ("os.setxattr('a', 'user.x', b'1')", "a", "attributes"),
        ("os.rename('../.agents', '../gone')", ".", "moved_from"),
    ],
)
def test_every_call_that_writes_is_seen_at_its_place(
    source: Inotify, live: Path, change: str, place: str, action: str
) -> None:
    source.cover(os.fsencode(live))
    with writer(live) as other:
        other.run(change)
    assert action in told(source, live)[place]
    assert source.lost == ""


@pytest.mark.parametrize(
    "harmless",
    [
        "open('a').read()",
        "os.listdir('sub')",
        "os.stat('a')",
        "open('../beside', 'w').write('x')",
        "os.mkdir('../.agents2')",
        "os.getxattr('a', 'user.x') if os.listxattr('a') else 0",
    ],
)
def test_reading_and_writing_elsewhere_is_no_write_here(
    source: Inotify, live: Path, harmless: str
) -> None:
    source.cover(os.fsencode(live))
    with writer(live) as other:
        other.run(harmless)
    assert told(source, live) == {}


def test_folders_made_in_one_go_are_followed_and_what_is_in_them_is_found(
    source: Inotify, live: Path
) -> None:
    source.cover(os.fsencode(live))
    with writer(live) as other:
        # Written before anybody could have watched the inner folders.
        other.run("os.makedirs('n/m/o'); open('n/m/o/f', 'w').write('x')")
        first = told(source, live)
        assert {"n", "n/m", "n/m/o", "n/m/o/f"} <= set(first)
        other.run("open('n/m/o/f', 'a').write('y')")
        assert "modified" in told(source, live)["n/m/o/f"]


def test_nothing_is_missed_while_folders_are_made_and_read_at_once(
    source: Inotify, live: Path
) -> None:
    source.cover(os.fsencode(live))
    found: set[str] = set()
    done = threading.Event()

    def read() -> None:
        while not done.is_set():
            found.update(told(source, live))
        found.update(told(source, live))

    reader = threading.Thread(target=read)
    reader.start()
    with writer(live) as other:
        other.run("[os.makedirs(f'r{n}/a/b/c') or open(f'r{n}/a/b/c/f', 'w') for n in range(150)]")
    done.set()
    reader.join()
    assert {f"r{n}/a/b/c/f" for n in range(150)} <= found
    assert source.lost == ""


def test_a_folder_that_was_moved_is_told_by_its_new_name(source: Inotify, live: Path) -> None:
    source.cover(os.fsencode(live))
    with writer(live) as other:
        other.run("os.rename('sub', 'bus'); open('bus/deep/b', 'a').write('x')")
        told(source, live)
        other.run("open('bus/deep/b', 'a').write('x')")
        assert "bus/deep/b" in told(source, live)
        other.run("os.rename('bus', '../outside'); open('../outside/deep/b', 'a').write('x')")
        told(source, live)
        other.run("open('../outside/deep/b', 'a').write('x')")
        assert told(source, live) == {}


@pytest.mark.parametrize(
    "change",
    [
        "os.makedirs('x/y/.agents')",
        "os.makedirs('x/y'); open('x/y/.agents', 'w')",
        "os.makedirs('tmp/y/.agents'); os.rename('tmp', 'x')",
        "os.makedirs('x/y'); os.symlink('/etc', 'x/y/.agents')",
    ],
    ids=["folder", "file", "moved into place", "link"],
)
def test_the_creation_of_an_absent_root_is_seen_with_folders_above_it_absent_too(
    source: Inotify, tmp_path: Path, change: str
) -> None:
    root = tmp_path / "x" / "y" / ".agents"
    source.cover(os.fsencode(root))
    with writer(tmp_path) as other:
        other.run(change)
    assert "." in told(source, root)


def test_a_root_that_came_is_watched_like_one_that_was_there(
    source: Inotify, tmp_path: Path
) -> None:
    root = tmp_path / "x" / ".agents"
    source.cover(os.fsencode(root))
    with writer(tmp_path) as other:
        other.run("os.makedirs('x/.agents/in')")
        told(source, root)
        other.run("open('x/.agents/in/f', 'w')")
    assert "in/f" in told(source, root)


def test_a_queue_that_overflowed_is_said(source: Inotify, live: Path) -> None:
    most = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    source.cover(os.fsencode(live))
    with writer(live) as other:
        # Alternating places, so that the kernel merges nothing; nobody reads meanwhile.
        other.run(f"[os.utime('ac'[n % 2], (n, n)) for n in range({most + 10})]")
    told(source, live)
    assert source.lost == "the inotify queue overflowed"


@pytest.mark.parametrize(
    "number, why",
    [
        (errno.ENOSPC, "limit of watches reached (fs.inotify.max_user_watches)"),
        (errno.EACCES, "Permission denied"),
    ],
)
def test_a_folder_that_cannot_be_watched_is_said(
    source: Inotify, live: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    refuse_folder(monkeypatch, live / "sub", number)
    source.cover(os.fsencode(live))
    assert source.lost == f"{live}/sub is not watched: {why}"


def refuse_folder(monkeypatch: pytest.MonkeyPatch, folder: Path, number: int) -> None:
    """The kernel's answer for one folder; its real limit belongs to the whole machine."""
    real: Callable[[int, bytes, int], int] = inotify._libc.inotify_add_watch

    class Libc:
        def __getattr__(self, name: str) -> object:
            return getattr(original, name)

        def inotify_add_watch(self, descriptor: int, path: bytes, mask: int) -> int:
            if path == os.fsencode(folder):
                ctypes.set_errno(number)
                return -1
            return real(descriptor, path, mask)

    original = inotify._libc
    monkeypatch.setattr(inotify, "_libc", Libc())


def test_names_of_any_bytes_are_told_as_they_are(source: Inotify, live: Path) -> None:
    source.cover(os.fsencode(live))
    name = b"new\nline \xff\x1b[31m"
    os.close(os.open(os.fsencode(live) + b"/" + name, os.O_CREAT | os.O_WRONLY))
    assert next(item.path for item in sightings(source)) == os.fsencode(live) + b"/" + name


def test_a_watch_gives_its_descriptor_back(live: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    made = Inotify()
    made.cover(os.fsencode(live))
    made.close()
    assert len(os.listdir("/proc/self/fd")) == before
