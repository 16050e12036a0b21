"""The process environment and the configuration files."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import pytest

from runner import settings
from runner.errors import InputError


def test_the_environment_is_a_copy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AO_PROFILE", "ci")
    found = settings.environment()
    assert found["AO_PROFILE"] == "ci"
    found["AO_PROFILE"] = "changed"
    assert settings.environment()["AO_PROFILE"] == "ci"


def test_the_home_directory_is_that_of_the_invoker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/dev")
    assert settings.home() == Path("/home/dev")


@pytest.mark.parametrize("unset", [{}, {"AO_EVAL_STAGING_DIR": ""}])
def test_staging_lies_where_it_is_told_to_or_where_temporary_files_do(
    unset: dict[str, str],
) -> None:
    assert settings.staging_base({"AO_EVAL_STAGING_DIR": "/srv/stage"}) == Path("/srv/stage")
    assert settings.staging_base(unset) == Path(tempfile.gettempdir())


@pytest.mark.parametrize(
    "text, seconds",
    [
        (None, None),
        ("", None),
        ("0", 0),
        ("1700000000", 1_700_000_000),
        ("000000000000000042", 42),
        ("253402300799", 253_402_300_799),
    ],
)
def test_the_declared_clock_is_a_number_of_seconds(text: str | None, seconds: int | None) -> None:
    environment = {} if text is None else {"SOURCE_DATE_EPOCH": text}
    assert settings.source_date_epoch(environment) == seconds


@pytest.mark.parametrize(
    "text", ["-1", "1.5", "now", " 1", "1\n", "\uff11", "\u00b2", "253402300800", "9" * 5000]
)
def test_a_declared_clock_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="SOURCE_DATE_EPOCH: is"):
        settings.source_date_epoch({"SOURCE_DATE_EPOCH": text})


# --- configuration files


def write(folder: Path, **files: str) -> Path:
    names = {"ours": "ao-eval.toml", "project": "pyproject.toml"}
    for name, text in files.items():
        (folder / names[name]).write_text(text)
    return folder


@pytest.mark.parametrize(
    "files, found",
    [
        ({}, {}),
        ({"ours": 'out-dir = "x"\npids = 9\n'}, {"out_dir": "x", "pids": 9}),
        ({"project": '[tool.ao-eval]\nout-dir = "y"\n'}, {"out_dir": "y"}),
        ({"ours": "pids = 9", "project": "[tool.ao-eval]\npids = 10\nquiet = true"}, {"pids": 9}),
        ({"ours": "# nothing", "project": "[tool.ao-eval]\npids = 10"}, {"pids": 10}),
        ({"project": '[project]\nname = "x"'}, {}),
        ({"project": "[tool.other]\npids = 1"}, {}),
    ],
)
def test_options_come_from_our_file_or_from_the_projects(
    tmp_path: Path, files: dict[str, str], found: dict[str, Any]
) -> None:
    assert settings.configured(write(tmp_path, **files)) == found


def test_a_file_above_the_working_directory_is_not_looked_for(tmp_path: Path) -> None:
    write(tmp_path, ours="pids = 9")
    (tmp_path / "sub").mkdir()
    assert settings.configured(tmp_path / "sub") == {}


def test_a_folder_with_the_name_of_the_file_is_passed_over(tmp_path: Path) -> None:
    (tmp_path / "ao-eval.toml").mkdir()
    assert settings.configured(tmp_path) == {}


@pytest.mark.parametrize(
    "files, name, words",
    [
        ({"ours": "pids ="}, "ao-eval.toml", "is not valid TOML"),
        ({"project": "tool = 3"}, "pyproject.toml", "is not a table"),
        ({"project": "[tool]\nao-eval = 3"}, "pyproject.toml", "is not a table"),
    ],
)
def test_a_configuration_that_cannot_be_understood_is_refused(
    tmp_path: Path, files: dict[str, str], name: str, words: str
) -> None:
    with pytest.raises(InputError, match=words) as caught:
        settings.configured(write(tmp_path, **files))
    assert caught.value.where == str(tmp_path / name)
    assert "\n" not in caught.value.line()


def test_a_configuration_that_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "ao-eval.toml").write_bytes(b"x = '\xff'")
    with pytest.raises(InputError, match="is not valid TOML"):
        settings.configured(tmp_path)


def test_a_configuration_that_cannot_be_read_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_: Any, **__: Any) -> str:
        raise PermissionError(13, "Permission denied")

    write(tmp_path, ours="pids = 9")
    # The superuser may read everything, so the system cannot be made to refuse.
    monkeypatch.setattr(Path, "read_text", refuse)
    with pytest.raises(InputError, match="cannot be read: Permission denied"):
        settings.configured(tmp_path)
