"""Evidence directories and atomic files: whole or not there."""

from __future__ import annotations

import fcntl
import os
import time
from pathlib import Path

import pytest

from runner.errors import InputError, PrerequisiteError
from runner.host.atomic import write_atomic
from runner.host.rundir import RunDirectory, abandoned, check_out_dir, safe_name
from tests.unit.host.worlds import as_nobody, fill, names_below, open_folder


def test_nothing_has_its_name_before_it_is_complete(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "runs", "one") as run:
        run.write_json("legs/off/record.json", b"{}")
        written = run.write_blob(("legs", "off", "cases", "a", "stdout"), b"bytes")
        assert written == "legs/off/cases/a/stdout"
        assert not (tmp_path / "runs" / "one").exists()
        final = run.finalize()
    assert final == tmp_path / "runs" / "one"
    assert (final / "legs/off/cases/a/stdout").read_bytes() == b"bytes"
    assert os.listdir(tmp_path / "runs") == ["one"]
    assert (final / "legs/off/record.json").stat().st_mode & 0o777 == 0o644


def test_a_failed_run_leaves_nothing(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "runs", "one") as run:
        run.write_json("a.json", b"{}")
        assert len(os.listdir(tmp_path / "runs")) == 1
    assert os.listdir(tmp_path / "runs") == []


def test_an_existing_directory_is_never_overwritten(tmp_path: Path) -> None:
    mine = fill(tmp_path / "runs" / "one", {"mine": "mine"})
    with pytest.raises(InputError, match="exists already"):
        RunDirectory(tmp_path / "runs", "one")
    with RunDirectory(tmp_path / "runs", "two") as run:
        fill(tmp_path / "runs" / "two", {"late": "late"})
        with pytest.raises(InputError, match="exists already"):
            run.finalize()
    assert names_below(mine) == {"mine"}
    assert sorted(os.listdir(tmp_path / "runs")) == ["one", "two"]


def test_the_temporary_directory_of_a_dead_run_is_found_and_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    fill(tmp_path, {".tmp-mine/x": "", "finished/x": "", ".new-mine/x": ""})
    with RunDirectory(tmp_path, "one") as alive:
        assert abandoned(tmp_path) == []
        alive.write_json("a.json", b"{}")
        assert abandoned(tmp_path) == []
    dead = tmp_path / ".tmp-one-0123abcd"
    dead.mkdir()
    assert abandoned(tmp_path) == [dead]
    assert abandoned(tmp_path / "nothing") == []


def test_a_directory_that_never_got_its_name_is_left_over_after_a_minute(tmp_path: Path) -> None:
    unborn = fill(tmp_path / ".new-one-0123abcd", {"x": ""})
    assert abandoned(tmp_path) == []  # its lock may be about to come
    old = time.time() - 100
    os.utime(unborn, (old, old))
    assert abandoned(tmp_path) == [unborn]


def test_no_directory_is_ever_seen_under_its_name_without_its_lock(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[list[Path]] = []

    def looking(descriptor: int, operation: int) -> None:
        seen.append(abandoned(tmp_path))
        flock(descriptor, operation)

    flock = fcntl.flock
    with monkeypatch.context() as patch:
        # Looked at in the moment in which a directory exists and is not locked.
        patch.setattr(
            fcntl, "flock", lambda d, o: looking(d, o) if o & fcntl.LOCK_EX else flock(d, o)
        )
        run = RunDirectory(tmp_path, "one")
    with run:
        assert seen == [[]]
        assert abandoned(tmp_path) == []


def test_two_runs_of_one_name_at_once_end_in_one_directory(tmp_path: Path) -> None:
    with RunDirectory(tmp_path, "one") as first, RunDirectory(tmp_path, "one") as second:
        first.write_json("a.json", b"1")
        second.write_json("a.json", b"2")
        first.finalize()
        with pytest.raises(InputError):
            second.finalize()
    assert (tmp_path / "one" / "a.json").read_bytes() == b"1"


@pytest.mark.parametrize(
    "name",
    ["", ".", "..", "a/b", "/etc", "a\\b", "a\nb", "a\0b", "x" * 201, ".tmp-x", ".new-x", "\udcff"],
)
def test_unsafe_names_are_refused(tmp_path: Path, name: str) -> None:
    with pytest.raises(InputError) as caught:
        safe_name(name)
    assert "\n" not in caught.value.line()
    with pytest.raises(InputError):
        RunDirectory(tmp_path / "runs", name)


@pytest.mark.parametrize("path", ["../x", "a/../../x", "/etc/x", "", "a/\nb"])
def test_paths_out_of_the_directory_are_refused(tmp_path: Path, path: str) -> None:
    with RunDirectory(tmp_path / "runs", "one") as run:
        with pytest.raises(InputError):
            run.write_json(path, b"{}")
        with pytest.raises(InputError):
            run.write_blob(tuple(path.split("/")), b"")


def test_a_document_is_written_once(tmp_path: Path) -> None:
    with RunDirectory(tmp_path / "runs", "one") as run:
        run.write_json("a.json", b"1")
        with pytest.raises(InputError):
            run.write_json("a.json", b"2")
        with pytest.raises(InputError):
            run.write_blob(("a.json",), b"")


def test_an_out_dir_that_cannot_be_written_is_one_clear_line() -> None:
    with open_folder() as folder:

        def attempt() -> str:
            try:
                RunDirectory(folder / "runs", "one")
            except PrerequisiteError as error:
                return error.line()
            return "made"

        folder.chmod(0o555)
        assert "--out-dir" in as_nobody(attempt)


@pytest.mark.parametrize("where, refused", [("in", True), ("equal", True), ("above", False)])
def test_an_out_dir_inside_a_live_root_is_a_usage_error(
    tmp_path: Path, where: str, refused: bool
) -> None:
    live = fill(tmp_path / ".agents", {"x": ""})
    out = {"in": live / "deep" / "runs", "equal": live, "above": tmp_path}[where]
    if refused:
        with pytest.raises(InputError) as caught:
            check_out_dir(out, [live])
        assert caught.value.exit_code == 2
    else:
        check_out_dir(out, [live])
    (tmp_path / "alias").symlink_to(live)
    with pytest.raises(InputError):
        check_out_dir(tmp_path / "alias" / "runs", [live])


def test_an_atomic_write_replaces_the_whole_file_and_not_what_a_link_points_to(
    tmp_path: Path,
) -> None:
    target = fill(tmp_path, {"real": "old"}) / "real"
    (tmp_path / "link").symlink_to(target)
    write_atomic(tmp_path / "link", b"new", mode=0o600)
    assert target.read_text() == "old"
    assert (tmp_path / "link").read_bytes() == b"new"
    assert (tmp_path / "link").lstat().st_mode & 0o777 == 0o600
    assert names_below(tmp_path) == {"real", "link"}


def test_a_failed_atomic_write_leaves_the_old_file_and_no_temporary(tmp_path: Path) -> None:
    folder = fill(tmp_path / "taken", {"inside": "x"})
    with pytest.raises(IsADirectoryError):
        write_atomic(folder, b"new")
    assert names_below(tmp_path) == {"taken", "taken/inside"}
