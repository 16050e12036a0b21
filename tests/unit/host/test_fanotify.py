"""What fanotify sees of live roots, and whom it takes for the writer."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.host.fanotify import Fanotify, look_at
from runner.host.inotify import Sighting, actions
from runner.model.livewatch import Action
from tests.unit.host.watching import Writer, sightings, until, writer
from tests.unit.host.worlds import IS_ROOT, as_nobody, fill, in_mount_namespace

pytestmark = pytest.mark.skipif(not IS_ROOT, reason="fanotify marks of file systems need root")


@pytest.fixture
def source() -> Iterator[Fanotify]:
    made = Fanotify()
    yield made
    made.close()


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return fill(tmp_path / "repo" / ".agents", {"a": "one", "sub/deep/b": "two", "c": "three"})


@pytest.fixture
def other(live: Path) -> Iterator[Writer]:
    with writer(live) as made:
        yield made


def told(source: Fanotify, root: Path) -> dict[str, list[Sighting]]:
    found: dict[str, list[Sighting]] = {}
    for item in sightings(source):
        found.setdefault(os.path.relpath(os.fsdecode(item.path), root), []).append(item)
    return found


@pytest.mark.parametrize(
    "change, place, action",
    [
        ("open('a', 'r+').write('two')", "a", "modified"),
        ("os.chmod('sub/deep/b', 0o600)", "sub/deep/b", "attributes"),
        ("os.chmod('.', 0o711)", ".", "attributes"),
        ("os.chmod('sub', 0o711)", "sub", "attributes"),
        ("os.mkdir('sub/dir')", "sub/dir", "created"),
        ("os.symlink('/etc', 'sub/link')", "sub/link", "created"),
        ("os.unlink('c')", "c", "deleted"),
        ("os.rename('a', 'c')", "c", "moved_to"),
        ("os.rename('a', '../out')", "a", "moved_from"),
        ("os.setxattr('a', 'user.x', b'1')", "a", "attributes"),
        ("os.rename('../.agents', '../gone')", ".", "moved_from"),
        ("os.rename('../../repo', '../../gone')", ".", "moved_from"),
        ("os.makedirs('n/m/o'); open('n/m/o/f', 'w')", "n/m/o/f", "created"),
        ("os.unlink('sub/deep/b'); os.removedirs('sub/deep')", "sub/deep/b", "deleted"),
    ],
)
def test_every_write_is_seen_at_its_place_with_its_writer(
    source: Fanotify, live: Path, other: Writer, change: str, place: str, action: Action
) -> None:
    source.cover(os.fsencode(live))
    other.run(change)
    found = told(source, live)[place]
    assert action in {word for item in found for word in actions(item.mask)}
    for item in found:
        assert item.pid == other.pid
        assert item.writer is not None
        assert item.writer.pid == other.pid
        assert item.writer.parent == int(Path(f"/proc/{other.pid}/stat").read_text().split()[3])
        assert item.writer.same_namespace
        assert item.writer.program == os.fsencode(os.path.realpath(sys.executable))
    assert source.lost == ""


def test_reading_and_writing_elsewhere_is_no_write_here(
    source: Fanotify, live: Path, other: Writer
) -> None:
    source.cover(os.fsencode(live))
    other.run("open('a').read(); os.listdir('sub'); os.mkdir('../.agents2')")
    other.run("open('../beside', 'w').write('x'); open('../.agents2/f', 'w')")
    assert told(source, live) == {}


@pytest.mark.parametrize(
    "change", ["os.makedirs('../x/y/.agents')", ("os.makedirs('../t/y/.agents'); "
               "os.rename('../t', '../x')")],
)  # fmt: skip
def test_the_creation_of_an_absent_root_is_seen(
    source: Fanotify, live: Path, other: Writer, change: str
) -> None:
    root = live.parent / "x" / "y" / ".agents"
    source.cover(os.fsencode(root))
    other.run(change)
    (item, *_) = told(source, root)["."]
    assert item.pid == other.pid


def test_folders_that_were_elsewhere_before_are_known_once_they_are_moved_in(
    source: Fanotify, live: Path, other: Writer
) -> None:
    source.cover(os.fsencode(live))
    other.run("os.makedirs('../out/in'); open('../out/in/f', 'w')")
    assert told(source, live) == {}
    other.run("os.rename('../out', 'moved'); open('moved/in/f', 'a').write('x')")
    told(source, live)
    other.run("open('moved/in/f', 'a').write('x')")
    assert "moved/in/f" in told(source, live)


def test_a_write_through_another_mount_is_seen(live: Path) -> None:
    script = """
import os, subprocess, sys
from pathlib import Path
sys.path.insert(0, os.getcwd())
from runner.host.fanotify import Fanotify
live, other = map(Path, sys.argv[1:])
subprocess.run(["mount", "--bind", live, other], check=True)
source = Fanotify()
source.cover(os.fsencode(live))
(other / "sub" / "new").write_text("x")
print(*{os.fsdecode(item.path) for item in source.drain()})
"""
    other = live.parent / "other"
    other.mkdir()
    assert in_mount_namespace(script, live, other) == str(live / "sub" / "new")


@pytest.mark.parametrize("kind", ["tmpfs", "bind"])
def test_what_is_mounted_in_a_root_is_live_state_too(live: Path, kind: str) -> None:
    script = f"""
import os, subprocess, sys
from pathlib import Path
sys.path.insert(0, os.getcwd())
from runner.host.fanotify import Fanotify
live, data = map(Path, sys.argv[1:])
options = ["--bind", data] if {kind!r} == "bind" else ["-t", "tmpfs", "none"]
subprocess.run(["mount", *options, live / "sub"], check=True)
source = Fanotify()
source.cover(os.fsencode(live))
(live / "sub" / "new").write_text("x")
print(*{{os.fsdecode(item.path) for item in source.drain()}})
"""
    data = live.parent / "data"
    data.mkdir()
    assert in_mount_namespace(script, live, data) == str(live / "sub" / "new")


def test_a_writer_that_is_gone_is_unknown_and_nobody_else(source: Fanotify, live: Path) -> None:
    source.cover(os.fsencode(live))
    subprocess.run(["touch", live / "new"], check=True)  # gone and reaped
    (item,) = {(item.pid, item.writer) for item in told(source, live)["new"]}
    assert item[0]
    assert item[1] is None


def test_a_writer_that_ended_but_was_not_reaped_is_unknown(source: Fanotify, live: Path) -> None:
    source.cover(os.fsencode(live))
    dead = subprocess.Popen(["touch", live / "new"])
    until(lambda: Path(f"/proc/{dead.pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z")
    found = told(source, live)["new"]
    dead.wait()
    # On some kernels the dead are in no cgroup: one of ours would look like an outsider.
    assert {(item.pid, item.writer) for item in found} == {(dead.pid, None)}


def test_a_number_that_names_another_process_by_now_is_not_believed() -> None:
    first = subprocess.Popen(["sleep", "60"])
    descriptor = os.pidfd_open(first.pid)
    try:
        assert look_at(first.pid, descriptor) is not None
        first.kill()
        first.wait()
        # As if the number had been given to us since.
        assert look_at(os.getpid(), descriptor) is None
    finally:
        os.close(descriptor)
    assert look_at(os.getpid(), -1) is None
    assert look_at(0, 0) is None


def test_a_kernel_thread_writes_for_somebody_else() -> None:
    if not Path("/proc/2/comm").exists() or Path("/proc/2/comm").read_text() != "kthreadd\n":
        pytest.skip("no kernel thread is shown in this process namespace")
    descriptor = os.pidfd_open(2)
    try:
        assert look_at(2, descriptor) is None
    finally:
        os.close(descriptor)


def test_a_process_in_another_process_namespace_is_told_as_that(
    source: Fanotify, live: Path
) -> None:
    source.cover(os.fsencode(live))
    code = f"open({str(live / 'new')!r}, 'w'); print(flush=True); input()"
    inner = subprocess.Popen(
        ["unshare", "--pid", "--fork", sys.executable, "-c", code],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, start_new_session=True,
    )  # fmt: skip
    assert inner.stdout
    inner.stdout.readline()
    found = told(source, live)["new"]
    os.killpg(inner.pid, signal.SIGKILL)
    inner.communicate()
    assert found[0].writer is not None
    assert not found[0].writer.same_namespace


def test_a_queue_that_overflowed_is_said(source: Fanotify, live: Path, other: Writer) -> None:
    most = int(Path("/proc/sys/fs/fanotify/max_queued_events").read_text())
    source.cover(os.fsencode(live))
    other.run(f"[open(f'f{{n}}', 'w').close() for n in range({most + 10})]")
    told(source, live)
    assert source.lost == "the fanotify queue overflowed"


def test_descriptors_of_writers_are_given_back(source: Fanotify, live: Path, other: Writer) -> None:
    source.cover(os.fsencode(live))
    before = len(os.listdir("/proc/self/fd"))
    other.run("[open(f'f{n}', 'w') for n in range(500)]; [os.mkdir(f'../{n}') for n in range(500)]")
    assert len(told(source, live)) == 500
    assert len(os.listdir("/proc/self/fd")) == before


def test_closing_gives_every_descriptor_back(live: Path) -> None:
    before = len(os.listdir("/proc/self/fd"))
    made = Fanotify()
    made.cover(os.fsencode(live))
    made.close()
    assert len(os.listdir("/proc/self/fd")) == before


def test_it_is_not_for_everybody() -> None:
    def attempt() -> str:
        with pytest.raises(PermissionError):
            Fanotify()
        return "refused"

    assert as_nobody(attempt) == "refused"


def test_a_file_system_without_handles_is_refused_and_not_watched_half(source: Fanotify) -> None:
    with pytest.raises(OSError):  # noqa: PT011 - which one is the kernel's choice
        source.cover(b"/proc/self")
