"""The watch as a whole: nothing is lost silently, and nobody has to be root."""

from __future__ import annotations

import errno
import os
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.host import watch as module
from runner.host.fanotify import Fanotify
from runner.host.inotify import CREATE, Inotify, Sighting
from runner.host.watch import Watch, open_watch
from runner.host.witness import take_manifest
from runner.model.livewatch import WatchMethod, WatchReport
from tests.unit.host.watching import seen, watching, writer
from tests.unit.host.worlds import IS_ROOT, as_nobody, fill, open_folder

ROOT_ONLY = pytest.mark.skipif(not IS_ROOT, reason="fanotify needs root")
EVERY_METHOD = pytest.mark.parametrize(
    "method", [pytest.param("fanotify", marks=ROOT_ONLY), "inotify"]
)


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return fill(tmp_path / "repo" / ".agents", {"a": "one", "sub/deep/b": "two"})


@EVERY_METHOD
def test_what_happened_between_beginning_and_end_is_reported_and_complete(
    live: Path, method: WatchMethod
) -> None:
    with watching(method, live) as watch, writer(live) as other:
        t0 = time.time_ns()
        other.run("open('a', 'r+').write('two'); os.mkdir('n'); open('n/f', 'w')")
        report = watch.stop()
        t1 = time.time_ns()
    assert (report.complete, report.lost, report.failed) == (True, "", "")
    assert {"a", "n", "n/f"} <= set(seen(report, live))
    for touch in report.touches:
        assert t0 <= touch.first <= touch.last <= t1
        assert touch.count >= 1
        assert (touch.pid == other.pid) is (method == "fanotify")


@EVERY_METHOD
def test_a_live_root_that_holds_still_has_no_events_and_being_witnessed_is_none(
    live: Path, method: WatchMethod
) -> None:
    with watching(method, live) as watch:
        take_manifest(live)
        take_manifest(live)
        assert watch.stop() == WatchReport(method)


@EVERY_METHOD
def test_a_write_that_was_reverted_is_seen(live: Path, method: WatchMethod) -> None:
    revert = (
        "s = os.stat('a'); f = open('a', 'r+b'); f.write(b'x'); f.seek(0); f.write(b'o'); "
        "f.close(); os.utime('a', ns=(s.st_atime_ns, s.st_mtime_ns))"
    )
    with watching(method, live) as watch, writer(live) as other:
        other.run(revert)
        report = watch.stop()
    assert {"modified", "attributes"} <= seen(report, live)["a"]


@EVERY_METHOD
def test_an_absent_root_that_is_made_is_seen(tmp_path: Path, method: WatchMethod) -> None:
    root = tmp_path / "absent" / ".agents"
    with watching(method, root) as watch, writer(tmp_path) as other:
        other.run("os.makedirs('absent/.agents/x')")
        report = watch.stop()
    assert "." in seen(report, root)


@EVERY_METHOD
def test_a_root_of_20_000_files_is_watched_whole(tmp_path: Path, method: WatchMethod) -> None:
    root = tmp_path / ".agents"
    for folder in range(400):
        (root / f"{folder:03}").mkdir(parents=True)
        for name in range(50):
            (root / f"{folder:03}" / f"{name:02}").touch()
    with watching(method, root) as watch, writer(root) as other:
        other.run("[open(f'{n:03}/{n % 50:02}', 'w').write('x') for n in range(400)]")
        report = watch.stop()
    assert report.complete
    assert {f"{n:03}/{n % 50:02}" for n in range(400)} <= set(seen(report, root))


@EVERY_METHOD
def test_a_reader_that_is_held_up_says_that_the_queue_overflowed(
    live: Path, method: WatchMethod
) -> None:
    most = int(Path(f"/proc/sys/fs/{method}/max_queued_events").read_text())
    with watching(method, live) as watch, writer(live) as other:
        hold, held = threading.Event(), threading.Event()

        def holding(_: object) -> None:
            held.set()
            hold.wait(60)

        asking = threading.Thread(target=watch._ask, args=(holding,))
        asking.start()
        held.wait()
        other.run(f"[open(f'f{{n}}', 'w').close() for n in range({most + 10})]")
        hold.set()
        asking.join()
        report = watch.stop()
    assert f"the {method} queue overflowed" in report.lost
    assert not report.complete
    assert report.touches


class Scripted:
    """A source that does as it is told."""

    def __init__(self, *batches: list[Sighting] | Exception) -> None:
        self.lost = ""
        self.closed = False
        self._batches = list(batches)
        self._reader, self._writer = os.pipe()

    def ring(self) -> None:
        os.write(self._writer, b"x")

    def fileno(self) -> int:
        return self._reader

    def cover(self, root: bytes) -> None:
        raise OSError(errno.EXDEV, "Invalid cross-device link")

    def drain(self) -> Iterator[Sighting]:
        batch = self._batches.pop(0) if self._batches else []
        if isinstance(batch, Exception):
            raise batch
        yield from batch

    def close(self) -> None:
        self.closed = True
        os.close(self._reader)
        os.close(self._writer)


def test_a_thread_that_died_is_reported_and_answers_nothing() -> None:
    broken = Scripted(RuntimeError("no more"))
    watch = Watch("inotify", broken)
    broken.ring()
    assert watch._thread
    watch._thread.join(20)
    assert watch.settle() is False
    report = watch.stop()
    assert report.failed == "RuntimeError: no more"
    assert not report.complete
    assert broken.closed


def test_what_cannot_be_kept_is_not_kept_silently(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MOST_TOUCHES", 5)
    sightings = [Sighting(b"/live/%d" % n, CREATE) for n in range(7)]
    watch = Watch("inotify", Scripted(sightings + sightings[:2]))
    assert watch.settle()
    report = watch.stop()
    assert len(report.touches) == 5
    assert report.touches[0].count == 2
    assert report.lost == "more than 5 different writes"


def test_a_refusal_to_cover_reaches_the_caller_and_the_watch_goes_on() -> None:
    watch = Watch("inotify", Scripted())
    with pytest.raises(OSError, match="cross-device"):
        watch.cover(b"/live")
    assert watch.settle()
    assert watch.stop().complete


@ROOT_ONLY
def test_root_gets_the_watch_that_knows_writers(live: Path) -> None:
    watch = open_watch([os.fsencode(live)])
    report = watch.stop()
    assert (report.method, report.note, report.complete) == ("fanotify", "", True)


def test_somebody_without_privileges_gets_inotify_and_is_told_why() -> None:
    with open_folder() as folder:
        live = fill(folder / ".agents", {"a": "one"})
        live.chmod(0o777)

        def attempt() -> str:
            watch = open_watch([os.fsencode(live)])
            (live / "new").write_text("x")
            report = watch.stop()
            return f"{report.method} {report.note} {report.complete} {sorted(seen(report, live))}"

        assert as_nobody(attempt) == ("inotify fanotify: Operation not permitted True ['new']")


@ROOT_ONLY
def test_a_root_where_fanotify_does_not_work_makes_inotify_watch_all(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = Fanotify.cover

    def cover(self: Fanotify, root: bytes) -> None:
        if root.endswith(b"deep"):
            raise OSError(errno.EOPNOTSUPP, "Operation not supported")
        real(self, root)

    monkeypatch.setattr(Fanotify, "cover", cover)
    watch = open_watch([os.fsencode(live), os.fsencode(live / "sub" / "deep")])
    (live / "new").write_text("x")
    report = watch.stop()
    assert (report.method, report.note) == ("inotify", "fanotify: Operation not supported")
    assert "new" in seen(report, live)


def test_no_watch_at_all_is_reported_and_never_complete(
    live: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def none(_: object) -> None:
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(Fanotify, "__init__", none)
    monkeypatch.setattr(Inotify, "__init__", none)
    watch = open_watch([os.fsencode(live)])
    watch.cover(os.fsencode(live))
    assert watch.settle() is False
    report = watch.stop()
    assert (report.method, report.complete) == ("none", False)
    assert report.note == "fanotify: Too many open files; inotify: Too many open files"


def test_a_watch_that_ended_leaves_no_thread_and_no_descriptor(live: Path) -> None:
    threads, descriptors = threading.active_count(), len(os.listdir("/proc/self/fd"))
    for _ in range(20):
        watch = open_watch([os.fsencode(live)])
        watch.stop()
        assert watch.stop().method == watch.method
    assert threading.active_count() == threads
    assert len(os.listdir("/proc/self/fd")) == descriptors
