"""`ao-eval validate` and `ao-eval schema`."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from runner.cli import schema, validate
from runner.contracts.registry import CONTRACTS, file_name, generate
from runner.errors import InputError
from tests.unit.builders import case, suite_document
from tests.unit.contracts.documents import DOCUMENTS

BUNDLED = sorted((Path(__file__).parents[3] / "fixtures" / "suites").glob("*.json"))
SCHEMAS = Path(__file__).parents[3] / "schemas"


def written(folder: Path, value: object, name: str = "x.json") -> Path:
    path = folder / name
    data = value if isinstance(value, bytes) else json.dumps(value).encode()
    path.write_bytes(data)
    return path


def check(*paths: Path) -> Result:
    """Run `validate`."""
    return CliRunner().invoke(
        validate.command, [str(path) for path in paths], standalone_mode=False
    )


def test_the_bundled_suites_are_valid() -> None:
    assert BUNDLED
    found = check(*BUNDLED)
    assert found.return_value == 0
    assert found.stdout.splitlines() == [f"{path}: valid eval-suite.v1" for path in BUNDLED]


@pytest.mark.parametrize(
    "name, plain", DOCUMENTS, ids=[f"{n}-{i}" for i, (n, _) in enumerate(DOCUMENTS)]
)
def test_any_document_of_ours_is_known_and_valid(tmp_path: Path, name: str, plain: Any) -> None:
    path = written(tmp_path, plain)
    found = check(path)
    assert (found.return_value, found.stdout) == (0, f"{path}: valid {name}\n")


@pytest.mark.parametrize(
    "value, words",
    [
        (suite_document(case("a"), case("a")), "x.json#/cases/1/id: same id as /cases/0"),
        (suite_document(case("A")), "x.json#/cases/0/id: "),
        (suite_document(extra=1), "x.json#/extra: unknown field"),
        (
            suite_document(case("a", {"type": "exit_code", "value": "0"})),
            "x.json#/cases/0/expectations/0/value: ",
        ),
        (b'{"cases": [], "scoring": {}, "cases": []}', "x.json#"),
        (b"{", "x.json: "),
        (b"[]", "x.json: is not a JSON object"),
        (b'{"a": 1, "a": 2}', "x.json: "),
        (b"\xff", "x.json: "),
        ({"a": 1}, "x.json: is neither a suite (`cases` and `scoring`) nor a document of ours"),
        ({"run_id": 1, "case_results": 2}, "x.json#"),
    ],
)
def test_what_is_not_valid_is_one_line_with_a_pointer_and_exit_code_2(
    tmp_path: Path, value: object, words: str
) -> None:
    found = check(written(tmp_path, value))
    assert (found.return_value, found.stdout) == (2, "")
    assert found.stderr.startswith(f"ao-eval: {tmp_path}/")
    assert (found.stderr.count("\n"), words in found.stderr) == (1, True), found.stderr


@pytest.mark.parametrize("name, plain", DOCUMENTS[1:])
def test_a_document_of_ours_that_was_changed_is_refused_with_its_pointer(
    tmp_path: Path, name: str, plain: Any
) -> None:
    # Statements and envelopes have the members that others gave them, and no version among them.
    wrong = {"schema_version": 9}
    if "schema_version" not in plain:
        wrong = {"payload": 9} if "payload" in plain else {"subject": 9}
    (member,) = wrong
    found = check(written(tmp_path, {**plain, **wrong}))
    assert found.return_value == 2
    assert f"x.json#/{member}: " in found.stderr, name


def test_every_file_is_checked_whatever_came_before(tmp_path: Path) -> None:
    good = written(tmp_path, suite_document(), "good.json")
    bad = written(tmp_path, {}, "bad.json")
    found = check(bad, tmp_path / "missing.json", tmp_path, good)
    assert found.return_value == 2
    assert found.stdout == f"{good}: valid eval-suite.v1\n"
    assert found.stderr.count("\n") == 3
    assert "missing.json: cannot be read: No such file or directory" in found.stderr
    assert f"{tmp_path}: cannot be read: Is a directory" in found.stderr


def test_what_has_no_effect_in_a_suite_is_noted(tmp_path: Path) -> None:
    path = written(tmp_path, suite_document(environment={"max_attempts": 3}))
    found = check(path)
    assert found.return_value == 0
    assert found.stderr.startswith(f"{path}: note: environment.max_attempts has no effect")


def test_a_file_name_never_writes_control_characters(tmp_path: Path) -> None:
    good = written(tmp_path, suite_document(), "a\x1b[2J\udcff.json")
    bad = written(tmp_path, {}, "b\x1b[2J\udcff.json")
    found = check(good, bad)
    assert found.return_value == 2
    assert found.stdout.endswith("json: valid eval-suite.v1\n")
    assert "is neither a suite" in found.stderr
    assert "\x1b" not in found.output


# --- schema


def schemas(*arguments: str | Path) -> Result:
    """Run `schema`."""
    return CliRunner().invoke(
        schema.command, [str(item) for item in arguments], standalone_mode=False
    )


def test_the_schemas_are_listed() -> None:
    assert schemas().stdout.splitlines() == [item.name for item in CONTRACTS]


@pytest.mark.parametrize("name", ["eval-run.v1", "eval-run", "eval-run.v1.schema.json"])
def test_a_schema_is_printed_by_any_of_its_names(name: str) -> None:
    assert schemas(name).stdout == (SCHEMAS / "eval-run.v1.schema.json").read_text()


def test_an_unknown_schema_is_refused() -> None:
    error = schemas("eval-run.v2").exception
    assert isinstance(error, InputError)
    assert error.line() == "no schema 'eval-run.v2'; `ao-eval schema` lists them"


def test_schemas_that_were_just_written_are_the_checked_in_ones(tmp_path: Path) -> None:
    folder = tmp_path / "new" / "schemas"
    assert schemas("--write", folder).exception is None
    assert {path.name: path.read_text() for path in folder.iterdir()} == {
        path.name: path.read_text() for path in SCHEMAS.iterdir()
    }
    assert schemas("--check", folder).exception is None
    assert schemas("--check", SCHEMAS).exception is None


def test_a_schema_file_that_drifted_is_missing_or_belongs_to_nothing_fails_the_check(
    tmp_path: Path,
) -> None:
    def refusal() -> str:
        error = schemas("--check", tmp_path).exception
        assert isinstance(error, InputError)
        assert (error.exit_code, "\n" in error.line()) == (2, False)
        return error.line()

    assert "is not what the model generates; run `ao-eval schema --write" in refusal()
    schemas("--write", tmp_path)
    drifted = tmp_path / file_name(CONTRACTS[0])
    drifted.write_text(generate(CONTRACTS[0]).replace("minLength", "minlength", 1) + " ")
    assert str(drifted) in refusal()
    schemas("--write", tmp_path)
    (tmp_path / "old.v1.schema.json").write_text("{}")
    assert "old.v1.schema.json: belongs to no contract; remove it" in refusal()
