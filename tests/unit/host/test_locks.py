"""Run homes: live ones are never taken for dead, dead ones are found."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from runner.errors import PrerequisiteError
from runner.host.locks import RunHome, is_live, leftovers
from tests.unit.host.worlds import as_nobody, fill, open_folder

HOLDER = """
import sys, time
from pathlib import Path
from runner.host.locks import RunHome
home = RunHome.create(Path(sys.argv[1]))
(home.path / "staged").mkdir()
print(home.path, flush=True)
time.sleep(60)
"""


def hold(base: Path) -> tuple[subprocess.Popen[str], Path]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(base)],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    return process, Path(process.stdout.readline().strip())


def test_a_run_home_is_private_and_its_name_is_random(tmp_path: Path) -> None:
    with RunHome.create(tmp_path / "base") as one, RunHome.create(tmp_path / "base") as other:
        assert one.path != other.path
        assert one.path.name == f"ao-eval-{one.token}"
        assert one.path.stat().st_mode & 0o777 == 0o700
        assert is_live(one.path)
        assert leftovers(tmp_path / "base") == []
    assert os.listdir(tmp_path / "base") == []


def test_the_home_of_a_killed_run_is_left_over_and_that_of_a_living_one_is_not(
    tmp_path: Path,
) -> None:
    process, path = hold(tmp_path)
    try:
        assert is_live(path)
        assert leftovers(tmp_path) == []
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert not is_live(path)
        assert leftovers(tmp_path) == [path]
    finally:
        process.kill()
        process.communicate()


def test_asking_whether_a_run_lives_does_not_make_others_think_so(tmp_path: Path) -> None:
    home = RunHome.create(tmp_path)
    os.close(home._lock)
    home._lock = -1
    assert not is_live(home.path)
    assert not is_live(home.path)


def test_folders_of_other_names_are_never_left_over(tmp_path: Path) -> None:
    fill(tmp_path, {"ao-eval-main/x": "", "ao-eval-" + "0" * 31 + "/x": "", "other/x": ""})
    (tmp_path / ("ao-eval-" + "0" * 32)).symlink_to(tmp_path / "other")
    assert leftovers(tmp_path) == []
    assert leftovers(tmp_path / "nothing") == []


def test_a_home_that_never_got_its_name_is_left_over_after_a_minute(tmp_path: Path) -> None:
    unborn = tmp_path / (".new-ao-eval-" + "0" * 32)
    unborn.mkdir()
    assert leftovers(tmp_path) == []
    os.utime(unborn, (time.time() - 100, time.time() - 100))
    assert leftovers(tmp_path) == [unborn]


def test_homes_of_another_user_are_left_alone() -> None:
    with open_folder() as folder:
        folder.chmod(0o777)
        made = as_nobody(lambda: _abandon(folder))
        assert leftovers(folder) == ([] if os.geteuid() == 0 else [Path(made)])


def _abandon(folder: Path) -> str:
    home = RunHome.create(folder)
    os.close(home._lock)
    return str(home.path)


def test_a_base_that_cannot_be_written_is_one_clear_line() -> None:
    with open_folder() as folder:
        folder.chmod(0o555)

        def attempt() -> str:
            try:
                RunHome.create(folder)
            except PrerequisiteError as error:
                return error.line()
            return "made"

        assert "AO_EVAL_STAGING_DIR" in as_nobody(attempt)


def test_closing_twice_is_closing_once(tmp_path: Path) -> None:
    home = RunHome.create(tmp_path)
    assert home.close() == ()
    assert home.close() == ()
    with pytest.raises(FileNotFoundError):
        os.stat(home.path)
