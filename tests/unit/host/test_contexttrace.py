"""What the kernel tells of opens in a staged root, and who can open a mark."""

from __future__ import annotations

import errno
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from runner.core.readtrace import MARK_FILES, Mark
from runner.host import inotify
from runner.host.contexttrace import ContextTrace, Untraceable, make_marks, seal_marks
from runner.host.removal import remove
from tests.unit.host.worlds import fill

UNPRIVILEGED = 65532
CASE_USER = 65533
FLAGS = os.O_RDONLY | os.O_CLOEXEC


@pytest.fixture
def root(tmp_path: Path) -> Path:
    return fill(tmp_path / "staged", {"a": "one", "sub/deep/b": "two", "c": "three"})


@pytest.fixture
def trace(root: Path, tmp_path: Path) -> Iterator[ContextTrace]:
    made = ContextTrace(root, tmp_path / "marks")
    yield made
    if made._thread.is_alive():
        made.end()


def touch(path: Path) -> None:
    os.close(os.open(path, FLAGS))


def test_opens_and_marks_come_in_one_order(root: Path, tmp_path: Path) -> None:
    made = ContextTrace(root, tmp_path / "marks")
    wanted: list[Mark | bytes] = []
    for number in range(2000):
        mark = (Mark.CASE, Mark.LOOK, Mark.END)[number % 3]
        touch(made.marks / mark.value)
        wanted.append(mark)
        for name in ("a", "sub/deep/b", "c")[: number % 4]:
            touch(root / name)
            wanted.append(name.encode())
    seen = made.end()
    assert list(seen.opens) == wanted
    assert seen.files == {b"a", b"sub/deep/b", b"c"}
    assert seen.lapse is None


def test_a_program_that_is_run_from_the_root_was_opened(
    root: Path, trace: ContextTrace, tmp_path: Path
) -> None:
    script = root / "c"
    script.write_text("#!/bin/sh\n:\n")
    script.chmod(0o755)
    touch(trace.marks / "case")
    subprocess.run([script], check=True)
    opens = trace.end().opens
    assert opens[opens.index(Mark.CASE) + 1 :] == (b"c",)


def test_listing_looking_and_failing_are_no_opens(root: Path, trace: ContextTrace) -> None:
    os.listdir(root)
    os.listdir(root / "sub" / "deep")
    os.stat(root / "a")
    os.access(root / "c", os.R_OK)
    os.close(os.open(root / "a", os.O_PATH))
    with pytest.raises(FileNotFoundError):
        touch(root / "absent")
    with pytest.raises(NotADirectoryError):
        touch(root / "a" / "b")
    assert trace.end().opens == ()


def test_an_open_through_a_link_is_one_of_the_file_itself(root: Path, tmp_path: Path) -> None:
    (root / "link").symlink_to("sub/deep/b")
    made = ContextTrace(root, tmp_path / "marks")
    touch(root / "link")
    seen = made.end()
    assert seen.opens == (b"sub/deep/b",)
    assert b"link" not in seen.files


def test_names_of_any_bytes_are_told_as_they_are(root: Path, tmp_path: Path) -> None:
    name = b"new\nline \xff\x1b[31m"
    path = os.path.join(os.fsencode(root), name)
    os.close(os.open(path, os.O_WRONLY | os.O_CREAT))
    made = ContextTrace(root, tmp_path / "marks")
    os.close(os.open(path, FLAGS))
    seen = made.end()
    assert seen.opens == (name,)
    assert name in seen.files


def test_memory_does_not_grow_with_the_number_of_opens(root: Path, trace: ContextTrace) -> None:
    touch(trace.marks / "case")
    for _ in range(3000):
        touch(root / "a")
        touch(root / "c")
    assert trace.end().opens == (Mark.CASE, b"a", b"c")


class Held(ContextTrace):
    """A trace whose reader is kept from reading."""

    def __init__(self, root: Path, marks: Path, gate: threading.Event) -> None:
        self._gate = gate
        super().__init__(root, marks)

    def _drain(self) -> int:
        self._gate.wait()
        return super()._drain()


def test_a_queue_that_overflowed_says_so_at_its_place(root: Path, tmp_path: Path) -> None:
    gate = threading.Event()
    made = Held(root, tmp_path / "marks", gate)
    touch(made.marks / "case")
    limit = int(Path("/proc/sys/fs/inotify/max_queued_events").read_text())
    for _ in range(limit // 2 + 10):
        touch(root / "a")
        touch(root / "c")
    touch(made.marks / "look")
    gate.set()
    assert made.end().opens == (Mark.CASE, b"a", b"c", Mark.LOST)


@pytest.mark.parametrize(
    "number, why", [(errno.ENOSPC, "too_many_folders"), (errno.EACCES, "unreadable_root")]
)
def test_a_folder_that_cannot_be_watched_leaves_no_trace_and_nothing_open(
    root: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, why: str
) -> None:
    real: Callable[[inotify.Queue, bytes, int], int] = inotify.Queue.add

    def add(queue: inotify.Queue, path: bytes, mask: int) -> int:
        if path == os.fsencode(root / "sub"):
            raise OSError(number, "as the kernel has it: its real limit is the whole machine's")
        return real(queue, path, mask)

    monkeypatch.setattr(inotify.Queue, "add", add)
    before = len(os.listdir("/proc/self/fd"))
    with pytest.raises(Untraceable, match=why):
        ContextTrace(root, tmp_path / "marks")
    assert len(os.listdir("/proc/self/fd")) == before


def test_without_inotify_there_is_no_trace(root: Path, tmp_path: Path) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free, hard))
    try:
        with pytest.raises(Untraceable, match="no_inotify"):
            ContextTrace(root, tmp_path / "marks")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_root_that_is_taken_away_is_said(root: Path, trace: ContextTrace) -> None:
    remove(root / "sub")
    assert trace.end().lapse == "watch_lost"


def test_a_defect_of_the_reader_is_said(root: Path, trace: ContextTrace) -> None:
    os.close(os.open(trace.marks / "unknown", os.O_WRONLY | os.O_CREAT))
    seen = trace.end()
    assert seen.lapse == "reader_failed"
    assert "unknown" in str(seen.problem)


def test_a_trace_that_ended_leaves_no_thread_and_no_descriptor(root: Path, tmp_path: Path) -> None:
    before = len(os.listdir("/proc/self/fd")), threading.active_count()
    ContextTrace(root, tmp_path / "marks").end()
    assert (len(os.listdir("/proc/self/fd")), threading.active_count()) == before


# ----------------------------------------------------------------------------- who opens a mark

OPEN_ALL = """
import os, sys
uid, folder, *names = sys.argv[1:]
os.setgroups([])
os.setresgid(int(uid), int(uid), int(uid))
os.setresuid(int(uid), int(uid), int(uid))
for name in names:
    try:
        os.close(os.open(folder + "/" + name, os.O_RDONLY))
        print("opened")
    except OSError as error:
        print(error.errno)
"""


def opened_by(uid: int, folder: Path) -> set[str]:
    """What opening every mark as a user without capabilities comes to."""
    names = [mark.value for mark in MARK_FILES]
    done = subprocess.run(
        [sys.executable, "-c", OPEN_ALL, str(uid), str(folder), *names],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return set(done.stdout.split())


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A folder that every user can reach, unlike pytest's own."""
    for folder in (tmp_path, *tmp_path.parents[:2]):
        folder.chmod(0o755)
    made = tmp_path / "shared"
    made.mkdir()
    made.chmod(0o777)
    return made


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_marks_of_root_are_closed_to_the_case_user(shared: Path) -> None:
    marks = shared / "marks"
    make_marks(marks)
    seal_marks(marks)
    assert (marks.stat().st_uid, marks.stat().st_mode & 0o777) == (0, 0o500)
    assert {(marks / mark.value).stat().st_mode & 0o777 for mark in MARK_FILES} == {0o400}
    assert opened_by(CASE_USER, marks) == {str(errno.EACCES)}


MAKE_AS_INVOKER = """
import os, sys
from pathlib import Path
from runner.host.contexttrace import ContextTrace
from runner.host.removal import remove
uid, root, marks = int(sys.argv[1]), Path(sys.argv[2]), Path(sys.argv[3])
os.setgroups([])
os.setresgid(uid, uid, uid)
os.setresuid(uid, uid, uid)
trace = ContextTrace(root, marks)
print("ready", flush=True)
input()
print([str(item) for item in trace.end().opens], flush=True)
input()
print(remove(marks), marks.exists(), flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs another user")
def test_marks_of_an_invoker_are_closed_to_cases_that_run_as_the_same_user_and_open_to_others(
    shared: Path,
) -> None:
    # The agent is root without a capability over files: as anybody else.
    root, marks = fill(shared / "root", {"a": "x"}), shared / "marks"
    process = subprocess.Popen(
        [sys.executable, "-c", MAKE_AS_INVOKER, str(UNPRIVILEGED), str(root), str(marks)],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    with process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
        assert (marks.stat().st_uid, marks.stat().st_mode & 0o777) == (UNPRIVILEGED, 0o001)
        assert opened_by(UNPRIVILEGED, marks) == {str(errno.EACCES)}
        assert opened_by(CASE_USER, marks) == {"opened"}
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == f"{[mark.value for mark in MARK_FILES]}\n"
        process.stdin.write("\n")
        process.stdin.flush()
        assert process.stdout.readline() == "() False\n"
