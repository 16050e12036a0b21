"""The positive control: it is flagged, a broken detector is found out, nothing stays."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from runner.core.livewatch import Watching, judge_decoy
from runner.errors import IntegrityError
from runner.host import decoy as module
from runner.host.decoy import PREFIX, places, run_control
from runner.host.inotify import Inotify, Sighting
from runner.host.watch import Watch
from runner.host.witness import take_manifest
from runner.model.liveproof import DecoyProof
from runner.model.livewatch import WatchMethod
from runner.model.tree import TreeManifest, pack_row, unpack_row
from tests.unit.host.watching import Writer, source, until
from tests.unit.host.worlds import IS_ROOT, as_nobody, fill, in_mount_namespace, open_folder

ROOT_ONLY = pytest.mark.skipif(not IS_ROOT, reason="fanotify needs root")
EVERY_METHOD = pytest.mark.parametrize(
    "method", [pytest.param("fanotify", marks=ROOT_ONLY), "inotify"]
)


@pytest.fixture
def live(tmp_path: Path) -> Path:
    return fill(tmp_path / "repo" / ".agents", {"a": "one"})


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Path]:
    """Where decoys are made; whatever happens, none may be left."""
    folder = tmp_path / "home"
    folder.mkdir()
    yield folder
    assert os.listdir(folder) == []


def control(
    live: Path,
    home: Path,
    watch: Watch,
    witness: Callable[[Path], TreeManifest] = take_manifest,
    legs: frozenset[str] = frozenset(),
) -> DecoyProof:
    """Run the control of one root, and judge it."""
    (found,) = run_control(places([(str(live), os.fsencode(live))], [home]), watch, witness)
    report = watch.stop()
    assert {touch.path for touch in report.touches} <= {
        touch.path for touch in report.touches if PREFIX.encode() in touch.path
    }
    return judge_decoy(found, Watching(report, (found,), legs, os.getpid(), 0, {}))


def watched(method: WatchMethod, live: Path) -> Watch:
    watch = Watch(method, source(method))
    watch.cover(os.fsencode(live))
    return watch


@EVERY_METHOD
def test_all_five_mutations_are_flagged_by_the_witness_and_by_the_watch(
    live: Path, home: Path, method: WatchMethod
) -> None:
    assert control(live, home, watched(method, live)) == DecoyProof(
        roots=(str(live),),
        same_filesystem=True,
        planted=5,
        witnessed=5,
        watched=5,
        verdict="fired",
        note="",
    )
    assert sorted(os.listdir(live)) == ["a"]


def test_without_a_watch_the_witness_is_tested_alone(live: Path, home: Path) -> None:
    found = control(live, home, Watch("none", None))
    assert (found.witnessed, found.watched, found.verdict) == (5, None, "fired")


def blind_to(*fields: str) -> Callable[[Path], TreeManifest]:
    """A witness that leaves attributes out."""

    def take(root: Path) -> TreeManifest:
        true = take_manifest(root)
        rows = []
        for path, row in zip(true.paths, true.rows, strict=True):
            e = unpack_row(path, row)
            mode, inode, ctime = (
                0 if name in fields else value
                for name, value in (("mode", e.mode), ("inode", e.inode), ("ctime", e.ctime))
            )
            numbers = (mode, e.uid, e.gid, e.size, e.device, inode, e.mtime, ctime, e.nlink)
            rows.append(pack_row(e.kind.encode(), numbers, e.content, e.xattrs))
        return replace(true, rows=tuple(rows))

    return take


def sees_no_folders(root: Path) -> TreeManifest:
    """A witness of files alone."""
    true = take_manifest(root)
    kept = [
        (path, row)
        for path, row in zip(true.paths, true.rows, strict=True)
        if unpack_row(path, row).kind != "d"
    ]
    return replace(true, paths=tuple(p for p, _ in kept), rows=tuple(r for _, r in kept))


def sees_no_contents(root: Path) -> TreeManifest:
    """A witness that does not hash."""
    true = take_manifest(root)
    rows = []
    for path, row in zip(true.paths, true.rows, strict=True):
        e = unpack_row(path, row)
        numbers = (e.mode, e.uid, e.gid, e.size, e.device, e.inode, e.mtime, e.ctime, e.nlink)
        rows.append(pack_row(e.kind.encode(), numbers, b"", b""))
    return replace(true, rows=tuple(rows))


@pytest.mark.parametrize(
    "witness, flagged",
    [
        (blind_to("ctime"), 4),
        (blind_to("inode"), 4),
        (blind_to("mode"), 4),
        (sees_no_folders, 4),
        (sees_no_contents, 4),
    ],
    ids=["no ctime", "no inode", "no mode", "no empty folders", "no contents"],
)
def test_a_witness_that_is_blind_to_anything_makes_the_proof_void(
    live: Path, home: Path, witness: Callable[[Path], TreeManifest], flagged: int
) -> None:
    found = control(live, home, watched("inotify", live), witness)
    assert (found.witnessed, found.watched, found.verdict) == (flagged, 5, "void")


def test_a_witness_that_fails_makes_the_proof_void(live: Path, home: Path) -> None:
    def fails(root: Path) -> TreeManifest:
        raise IntegrityError("live state keeps changing while it is read")

    found = control(live, home, watched("inotify", live), fails)
    assert (found.witnessed, found.watched, found.verdict) == (0, 0, "void")
    assert found.note == "IntegrityError: live state keeps changing while it is read"


class Deaf(Inotify):
    """Leaves something out without saying so."""

    def __init__(self, mask: int) -> None:
        super().__init__()
        self._deaf = mask

    def drain(self) -> Iterator[Sighting]:
        for item in super().drain():
            if not item.mask & self._deaf:
                yield item


@pytest.mark.parametrize(
    "mask, flagged", [(0x2, 3), (0x4, 4), (0x80, 4), (0x100, 4), (0xFFFFFFF, 0)]
)
def test_a_watch_that_leaves_anything_out_makes_the_proof_void(
    live: Path, home: Path, mask: int, flagged: int
) -> None:
    found = control(live, home, Watch("inotify", Deaf(mask)))
    assert (found.witnessed, found.watched, found.verdict) == (5, flagged, "void")


def test_a_watch_whose_thread_died_makes_the_proof_void(live: Path, home: Path) -> None:
    class Dying(Inotify):
        def drain(self) -> Iterator[Sighting]:
            raise RuntimeError("no more")

    watch = Watch("inotify", Dying())
    found = control(live, home, watch)
    assert (found.witnessed, found.watched, found.verdict) == (5, 0, "void")
    assert watch.stop().failed == "RuntimeError: no more"


@ROOT_ONLY
def test_a_watch_that_takes_everybody_for_a_leg_makes_the_proof_void(
    live: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def in_a_leg(pid: int, descriptor: int) -> object:
        found = real(pid, descriptor)
        return None if found is None else replace(found, containers=("a" * 64,))

    from runner.host import fanotify

    real = fanotify.look_at
    monkeypatch.setattr(fanotify, "look_at", in_a_leg)
    found = control(live, home, watched("fanotify", live), legs=frozenset({"a" * 64}))
    assert (found.watched, found.verdict) == (0, "void")


@pytest.mark.parametrize("program", ["", "import os; os.write(1, b'no number\\n')", "nonsense("])
def test_a_planter_that_does_not_do_its_work_makes_the_proof_void(
    live: Path, home: Path, monkeypatch: pytest.MonkeyPatch, program: str
) -> None:
    monkeypatch.setattr(module, "_PROGRAM", program)
    found = control(live, home, watched("inotify", live))
    assert (found.witnessed, found.verdict) == (0, "void")
    assert found.note.startswith("ValueError: ")


def test_a_planter_that_does_not_answer_makes_the_proof_void(
    live: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "_PATIENCE", 0.2)
    monkeypatch.setattr(module, "_PROGRAM", "import os; os.read(0, 1)")
    found = control(live, home, watched("inotify", live))
    assert found.verdict == "void"
    assert "does not answer" in found.note


def test_a_planter_that_cannot_be_started_makes_the_proof_void(
    live: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", "/nonexistent/python")
    found = control(live, home, watched("inotify", live))
    assert found.verdict == "void"
    assert found.note.startswith("FileNotFoundError")


def test_when_the_runner_is_killed_the_planter_takes_the_decoys_away(home: Path) -> None:
    """In every state: made, and mutated."""
    for answers in (1, 2):
        place = home / f"{PREFIX}x"
        runner = Writer(home)
        runner.run(
            "import subprocess; p = subprocess.Popen([sys.executable, '-I', '-S', '-c', "
            f"{module._PROGRAM!r}, {str(place)!r}], stdin=-1, stdout=-1, start_new_session=True)"
        )
        runner.run("line = p.stdout.readline()")
        if answers == 2:
            runner.run("p.stdin.write(b'x'); p.stdin.flush(); p.stdout.readline()")
        assert place.is_dir()
        os.kill(runner.pid, signal.SIGKILL)
        until(lambda: not place.exists())  # noqa: B023
        runner.end()


def test_an_interruption_of_the_terminal_does_not_reach_the_planter(live: Path, home: Path) -> None:
    seen: list[int] = []

    def witness(root: Path) -> TreeManifest:
        for entry in Path("/proc").iterdir():
            try:
                if PREFIX in (entry / "cmdline").read_text():
                    seen.append(os.getsid(int(entry.name)))
            except (OSError, ValueError):
                continue
        return take_manifest(root)

    assert control(live, home, watched("inotify", live), witness).verdict == "fired"
    assert seen
    assert os.getsid(0) not in seen


def test_git_does_not_see_a_decoy(tmp_path: Path) -> None:
    subprocess.run(["git", "init", "-q", tmp_path], check=True)
    statuses: list[str] = []

    def witness(root: Path) -> TreeManifest:
        done = subprocess.run(
            ["git", "-C", tmp_path, "status", "--porcelain", "--untracked-files=all"],
            capture_output=True, text=True, check=True,
        )  # fmt: skip
        statuses.append(done.stdout)
        return take_manifest(root)

    root = tmp_path / ".agents"
    assert control(root, tmp_path, Watch("none", None), witness).verdict == "fired"
    assert statuses == ["", ""]


# ---------------------------------------------------------------------------------------- places


def test_a_decoy_lies_in_the_first_place_on_the_file_system_of_its_roots(tmp_path: Path) -> None:
    live, home, out = tmp_path / ".agents", tmp_path / "home", tmp_path / "out"
    for folder in (live, home, out):
        folder.mkdir()
    roots = [(str(live), os.fsencode(live)), ("absent", os.fsencode(tmp_path / "no" / "no"))]
    (found,) = places(roots, [tmp_path / "missing", home, out])
    assert found.path.startswith(os.fsencode(home / PREFIX))
    assert (found.roots, found.same_filesystem) == ((str(live), "absent"), True)


def test_a_decoy_never_lies_in_a_live_root(tmp_path: Path) -> None:
    live = fill(tmp_path / ".agents", {"home/x": ""})
    (tmp_path / "link").symlink_to(live / "home")
    (found,) = places([("live", os.fsencode(live))], [live, live / "home", tmp_path / "link"])
    assert os.path.dirname(found.path) == os.fsencode(tmp_path)


def test_without_any_place_nothing_has_fired(tmp_path: Path) -> None:
    # The folder above the inner root is live state itself.
    (tmp_path / "inner").mkdir()
    roots = [("/", b"/"), ("inner", os.fsencode(tmp_path / "inner"))]
    for found in run_control(places(roots, [tmp_path]), Watch("none", None), take_manifest):
        assert (found.path, found.note) == (b"", "no place is writable")


@ROOT_ONLY
@pytest.mark.parametrize("candidate", ["home", "beside"])
def test_each_file_system_has_its_own_decoy_and_one_that_has_none_is_stated(
    tmp_path: Path, candidate: str
) -> None:
    script = f"""
import os, subprocess, sys
from pathlib import Path
sys.path.insert(0, os.getcwd())
from runner.host.decoy import places
folder = Path(sys.argv[1])
mounted = folder / "mounted"
subprocess.run(["mount", "-t", "tmpfs", "none", mounted], check=True)
live = mounted if {candidate!r} == "home" else mounted / ".agents"
live.mkdir(exist_ok=True)
roots = [("one", os.fsencode(folder / ".agents")), ("two", os.fsencode(live))]
for found in places(roots, [folder / "home"]):
    print(*found.roots, found.same_filesystem, os.fsdecode(os.path.dirname(found.path)))
"""
    for name in ("home", "mounted", ".agents"):
        (tmp_path / name).mkdir()
    home, beside = tmp_path / "home", tmp_path / "mounted"
    second = f"two False {home}" if candidate == "home" else f"two True {beside}"
    assert in_mount_namespace(script, tmp_path).splitlines() == [f"one True {home}", second]


def test_it_works_for_somebody_without_privileges() -> None:
    with open_folder() as folder:
        live = fill(folder / ".agents", {"a": "one"})
        home = folder / "home"
        home.mkdir()
        home.chmod(0o777)

        def attempt() -> str:
            # Ours may lie in a folder of root's.
            if not os.access(sys.executable, os.X_OK):
                sys.executable = "/usr/bin/python3"
            found = control(live, home, watched("inotify", live))
            return f"{found.witnessed} {found.watched} {found.verdict}"

        assert as_nobody(attempt) == "5 5 fired"
        assert os.listdir(home) == []
