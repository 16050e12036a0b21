"""Mistakes of users: one clear line, the right exit code, and nothing was started."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.container.projects import Project, case, suite

pytestmark = pytest.mark.container

DUPLICATE = '{"schema_version": 1, "cases": [], "scoring": {}, "cases": []}'

MISTAKES: dict[str, tuple[tuple[str, ...], int, tuple[str, ...]]] = {
    "missing file": (("ab", "evals/none.json"), 2, ("evals/none.json", "No such file")),
    "not a suite": (("ab", "evals/notes.json"), 2, ("evals/notes.json",)),
    "not JSON": (("ab", "evals/text.md"), 2, ("evals/text.md",)),
    "duplicate key": (("ab", "evals/twice.json"), 2, ("evals/twice.json", "cases")),
    "deep in a suite": (("ab", "evals/bad.json"), 2, ("evals/bad.json#/cases/1/expectations/0",)),
    "folder without a suite": (("ab", "docs"), 2, ("docs", "holds no suite")),
    "no argument": (("ab",), 2, ("SUITES", "--help")),
    "unknown command": (("frobnicate",), 2, ("frobnicate",)),
    "unknown option": (("ab", "evals/demo.json", "--fast"), 2, ("--fast", "--help")),
    "bad size": (("ab", "evals/demo.json", "--memory", "lots"), 2, ("--memory", "512m")),
    "bad number": (("ab", "evals/demo.json", "--cpus", "none"), 2, ("--cpus",)),
    "bad time": (("ab", "evals/demo.json", "--timeout", "0"), 2, ("--timeout",)),
    "bad variable": (("ab", "evals/demo.json", "--env", "1=2"), 2, ("--env",)),
    "unset variable": (("ab", "evals/demo.json", "--env", "NOT_SET"), 2, ("NOT_SET", "=VALUE")),
    "unknown case": (("run", "evals/demo.json", "--case", "two"), 2, ("'two'", "evals/demo.json")),
    "keep without case": (("run", "evals/demo.json", "--keep"), 2, ("--keep", "--case")),
    "root without variant": (
        ("run", "evals/demo.json", "--agents-dir", "x"),
        2,
        ("--agents-dir", "--variant"),
    ),
    "folder to run": (("run", "evals"), 2, ("evals", "one suite file")),
    "unsafe run id": (("ab", "evals/demo.json", "--run-id", "../up"), 2, ("--run-id", "../up")),
    "unsafe run id of a leg": (("run", "evals/demo.json", "--run-id", "a b"), 2, ("--run-id",)),
    "run id too long": (("ab", "evals/demo.json", "--run-id", "x" * 161), 2, ("--run-id", "160")),
    "copy of several": (("ab", "evals", "more", "--out", "r.json"), 2, ("--out",)),
    "copy into nowhere": (
        ("ab", "evals/demo.json", "--delta-out", "no/d.json"),
        2,
        ("--delta-out",),
    ),
    "two copies in one": (
        ("ab", "evals/demo.json", "--out", "x.json", "--delta-out", "x.json"),
        2,
        ("--out", "--delta-out"),
    ),
    "workspace elsewhere": (("ab", "evals/demo.json", "--workspace", "docs"), 2, ("workspace",)),
    "bad glob": (("ab", "evals/demo.json", "--include", "/etc/*"), 2, ("/etc/*",)),
    "missing image": (
        ("ab", "evals/demo.json", "--image", "no/such:image"),
        3,
        ("no/such:image", "pull or build"),
    ),
    "nothing to validate": (("validate", "evals/notes.json"), 2, ("evals/notes.json",)),
    "unknown schema": (("schema", "nothing"), 2, ("nothing",)),
}


@pytest.fixture
def mistaken(project: Project) -> Project:
    """A repository with a good suite and several files that are none."""
    project.suite(case("one", "true"))
    project.write(
        {
            "evals/notes.json": '{"notes": []}',
            "evals/text.md": "# text\n",
            "evals/twice.json": DUPLICATE,
            "docs/readme.md": "text\n",
            "more/other.json": json.dumps(suite("other", [case("one", "true")])),
        }
    )
    bad = suite("bad", [case("one", "true"), case("two", "true", {"type": "exit_code"})])
    project.write({"evals/bad.json": json.dumps(bad)})
    return project


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_mistake_is_told_in_one_line_and_starts_nothing(mistaken: Project, mistake: str) -> None:
    arguments, code, words = MISTAKES[mistake]
    if mistake == "copy of several":
        (mistaken.repo / "evals" / "twice.json").unlink()
        (mistaken.repo / "evals" / "bad.json").unlink()
    result = mistaken.ao_eval(*arguments)
    assert (result.code, result.stdout) == (code, ""), result.stderr
    (line,) = result.stderr.splitlines()
    assert line.startswith("ao-eval: ")
    for word in words:
        assert word in line
    assert result.directories == ()


@pytest.mark.parametrize(
    "host", ["unix:///nowhere/docker.sock", "tcp://127.0.0.1:1", "not-an-address"]
)
@pytest.mark.parametrize("command", ["ab", "reap"])
def test_an_engine_that_does_not_answer_is_a_missing_prerequisite(
    project: Project, command: str, host: str
) -> None:
    path = project.suite(case("one", "true"))
    arguments = ("ab", path) if command == "ab" else (command,)
    result = project.ao_eval(*arguments, DOCKER_HOST=host)
    assert (result.code, result.stdout) == (3, ""), result.stderr
    (line,) = result.stderr.splitlines()
    assert "DOCKER_HOST" in line
    assert host.rpartition("//")[2].split(":")[0] in line
    assert result.directories == ()


def test_the_image_that_is_missing_is_named_with_the_command_that_builds_it(
    project: Project,
) -> None:
    # A recipe of its own gives the default image another tag, which nobody has built.
    path = project.suite(case("one", "true"))
    result = project.ao_eval("ab", path, AO_EVAL_IMAGE="", BASE_IMAGE="no/such-base:1")
    assert (result.code, result.stdout) == (3, ""), result.stderr
    assert "ao-eval images build" in result.stderr


def test_validate_and_schema_need_no_engine(project: Project) -> None:
    path = project.suite(case("one", "true"))
    nowhere = {"DOCKER_HOST": "unix:///nowhere/docker.sock"}
    assert project.ao_eval("validate", path, **nowhere).code == 0
    assert project.ao_eval("schema", "eval-suite.v1", **nowhere).code == 0


def test_the_doctor_reports_what_is_there_and_what_is_missing(project: Project) -> None:
    result = project.ao_eval("doctor", "--json")
    assert result.code in {0, 3}
    checks = {check["name"]: check for check in json.loads(result.stdout)}
    assert checks["engine"]["state"] == "ok"
    assert checks["seccomp"]["state"] == "ok"
    assert {check["state"] for check in checks.values()} <= {"ok", "note", "missing"}
    assert (result.code == 3) == any(c["state"] == "missing" for c in checks.values())

    blind = project.ao_eval("doctor", DOCKER_HOST="unix:///nowhere/docker.sock")
    assert blind.code == 3
    assert "missing" in blind.stdout
    assert blind.stderr == ""


def test_options_come_from_the_environment_and_the_configuration_file_too(
    project: Project, tmp_path: Path
) -> None:
    path = project.suite(case("one", "true"))
    project.write({"ao-eval.toml": 'memory = "many"\n'})
    assert "many" in project.ao_eval("ab", path).stderr
    # The variable beats the file, the option beats the variable.
    assert "few" in project.ao_eval("ab", path, AO_EVAL_MEMORY="few").stderr
    result = project.ao_eval("ab", path, "--memory", "100m", "--pids", "no", AO_EVAL_MEMORY="few")
    assert "--pids" in result.stderr
    assert tmp_path.is_dir()
