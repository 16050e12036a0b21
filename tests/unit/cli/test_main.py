"""The entry point: errors become one line and an exit code, commands are imported on use."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import click
import pytest

from runner import __version__
from runner.cli import main as entry
from runner.errors import (
    AoEvalError,
    EngineFailure,
    HoldoutRefusal,
    InputError,
    IntegrityError,
    InternalError,
    PrerequisiteError,
    ProtocolViolation,
    StagingRefused,
)

Boom = Callable[[Callable[[], Any]], None]


@pytest.fixture(autouse=True)
def _somewhere_without_configuration(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[None]:
    """No configuration file, no setting, and the handlers of before."""
    monkeypatch.chdir(tmp_path)
    for name in [name for name in os.environ if name.startswith("AO_EVAL_")]:
        monkeypatch.delenv(name)
    numbers = signal.SIGINT, signal.SIGTERM, signal.SIGALRM
    handlers = {number: signal.getsignal(number) for number in numbers}
    hook = sys.unraisablehook
    yield
    sys.unraisablehook = hook
    for number, handler in handlers.items():
        signal.signal(number, handler)


@pytest.fixture
def boom(monkeypatch: pytest.MonkeyPatch) -> Boom:
    """Adds a command `boom` that does what it is given."""

    def add(action: Callable[[], Any]) -> None:
        module: Any = ModuleType("runner.cli.boom")
        module.command = click.command("boom")(action)
        monkeypatch.setitem(sys.modules, "runner.cli.boom", module)
        monkeypatch.setitem(entry.COMMANDS, "boom", "Goes wrong.")

    return add


def raising(error: BaseException) -> Callable[[], None]:
    def action() -> None:
        raise error

    return action


def run(*arguments: str) -> int:
    """Exit code of the command line."""
    with pytest.raises(SystemExit) as caught:
        entry.main(list(arguments))
    assert isinstance(caught.value.code, int)
    return caught.value.code


ERRORS: tuple[tuple[AoEvalError, int], ...] = (
    (AoEvalError("x"), 70),
    (InternalError("x"), 70),
    (InputError("x"), 2),
    (PrerequisiteError("x"), 3),
    (EngineFailure("x", detail="engine_lost"), 3),
    (IntegrityError("x"), 5),
    (StagingRefused("x", detail="unsafe_entry"), 5),
    (ProtocolViolation("x"), 5),
    (HoldoutRefusal("x"), 6),
)


def subclasses(kind: type[AoEvalError]) -> set[type[AoEvalError]]:
    return {kind}.union(*(subclasses(item) for item in kind.__subclasses__()))


def test_every_error_class_has_its_exit_code_in_the_table() -> None:
    ours = {item for item in subclasses(AoEvalError) if item.__module__ == "runner.errors"}
    assert {type(error) for error, _ in ERRORS} == ours


@pytest.mark.parametrize("error, code", ERRORS, ids=lambda value: type(value).__name__)
def test_an_error_is_one_line_on_standard_error_and_its_exit_code(
    error: AoEvalError, code: int, boom: Boom, capsys: pytest.CaptureFixture[str]
) -> None:
    error = type(error)(
        "went\nwrong",
        where="file#/x",
        remedy="mend it",
        **({"detail": "d"} if hasattr(error, "detail") else {}),
    )
    boom(raising(error))
    assert run("boom") == code
    out, err = capsys.readouterr()
    assert (out, err) == ("", "ao-eval: file#/x: went wrong; mend it\n")


def test_control_characters_never_reach_the_terminal(
    boom: Boom, capsys: pytest.CaptureFixture[str]
) -> None:
    boom(raising(InputError("a\x1b[31mb\x00c\u202ed\x9be\udcfff\tg\r\nh")))
    assert run("boom") == 2
    assert capsys.readouterr().err == "ao-eval: a?[31mb?c?d?e?f g h\n"


def test_a_defect_is_one_line_without_a_traceback(
    boom: Boom, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    boom(raising(ValueError("first\nsecond" + "x" * 600)))
    assert run("boom") == 70
    err = capsys.readouterr().err
    assert err.startswith("ao-eval: internal error: ValueError: first second")
    assert err.endswith("set AO_EVAL_TRACEBACK=1 to see where\n")
    assert (err.count("\n"), len(err) < 700) == (1, True)
    monkeypatch.setenv("AO_EVAL_TRACEBACK", "1")
    with pytest.raises(ValueError, match="first"):
        entry.main(["boom"])


@pytest.mark.parametrize("result, code", [(0, 0), (None, 0), ("text", 0), (1, 1), (4, 4), (5, 5)])
def test_what_a_command_returns_is_the_exit_code(result: Any, code: int, boom: Boom) -> None:
    boom(lambda: result)
    assert run("boom") == code


def test_a_command_may_exit_by_itself(boom: Boom) -> None:
    boom(raising(click.exceptions.Exit(7)))
    assert run("boom") == 7


@pytest.mark.parametrize(
    "error, code, name",
    [
        (entry.Interrupted(signal.SIGINT), 130, "SIGINT"),
        (entry.Interrupted(signal.SIGTERM), 143, "SIGTERM"),
        (KeyboardInterrupt(), 130, "SIGINT"),
    ],
)
def test_an_interruption_has_the_code_of_its_signal(
    error: BaseException, code: int, name: str, boom: Boom, capsys: pytest.CaptureFixture[str]
) -> None:
    boom(raising(error))
    assert run("boom") == code
    assert capsys.readouterr().err == f"ao-eval: interrupted by {name}; nothing is left running\n"


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_after_its_clean_up(
    number: signal.Signals, code: int, boom: Boom
) -> None:
    cleaned = []

    def action() -> None:
        try:
            signal.raise_signal(number)
            time.sleep(30)
        finally:
            cleaned.append(number)

    boom(action)
    assert run("boom") == code
    assert cleaned == [number]


def test_a_signal_that_comes_twice_at_once_is_one_wish(boom: Boom) -> None:
    cleaned = []

    def action() -> None:
        try:
            signal.raise_signal(signal.SIGTERM)
        finally:
            signal.raise_signal(signal.SIGTERM)
            signal.raise_signal(signal.SIGINT)
            cleaned.append("all of it")

    boom(action)
    assert run("boom") == 143
    assert cleaned == ["all of it"]


# --- usage


@pytest.mark.parametrize(
    "arguments, words",
    [
        ([], "Missing command; see `ao-eval --help`"),
        (["nosuch"], "No such command 'nosuch'; see `ao-eval --help`"),
        (["--nosuch"], "No such option '--nosuch'"),
        (["ab"], "Missing argument 'SUITES...'; see `ao-eval ab --help`"),
        (["ab", "--nosuch", "x"], "No such option '--nosuch'"),
        (["ab", "--axis", "both", "x"], "'both' is not one of 'context', 'skill'"),
        (["ab", "--memory", "lots", "x"], "'lots' is not a size; write 512m or 2g"),
        (["ab", "--memory", "1k", "x"], "--memory: should be greater than 6291456"),
        (["ab", "--cpus", "nan", "x"], "--cpus: should be"),
        (["ab", "--cpus", "inf", "x"], "--cpus: should be a finite number"),
        (["ab", "--pids", "1", "x"], "Invalid value for '--pids'"),
        (["ab", "--timeout", "0", "x"], "Invalid value for '--timeout'"),
        (["ab", "--env", "1A=x", "x"], "'1A' is not a variable name"),
        (["ab", "--env", "AO_NOT_SET", "x"], "AO_NOT_SET is not set; write AO_NOT_SET=VALUE"),
        (["ab", "--out", "f", "--delta-out", "f", "x"], "--out and --delta-out name the same file"),
        (["run", "--keep", "x"], "--keep needs exactly one --case"),
        (["run", "--agents-dir", "d", "x"], "--agents-dir needs --variant"),
        (["schema", "nosuch"], "no schema 'nosuch'"),
        (["validate"], "Missing argument 'FILES...'"),
    ],
)
def test_a_usage_error_is_one_line_and_exit_code_2(
    arguments: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(*arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("ao-eval: ")
    assert (err.count("\n"), words in err) == (1, True), err


@pytest.mark.parametrize(
    "arguments, named",
    [
        (("--context-on-agents-dir", "x"), "--context-on-agents-dir"),
        (("--context-off-agents-dir", "x"), "--context-off-agents-dir"),
        (("--aa",), "--aa"),
        (("--attribute", "ablate"), "--attribute ablate"),
        (("--env", "AO_AGENTS_DIR=/x"), "--env AO_AGENTS_DIR"),
        (("--env", "AO_CONTEXT_VARIANT=context_on"), "--env AO_CONTEXT_VARIANT"),
    ],
)
def test_both_axes_in_one_run_are_refused_before_suite_or_engine_are_looked_at(
    arguments: tuple[str, ...],
    named: str,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent.sock")
    assert run("ab", "--axis", "skill", "nosuch.json", *arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        f"ao-eval: {named} with --axis skill: is about context, and one run varies one axis; "
        "leave it out, or compare context in a run of its own\n"
    )


def test_a_setting_for_context_runs_is_refused_in_a_skill_run_and_not_passed_over(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("AO_EVAL_ATTRIBUTE", "ablate")
    assert run("ab", "--axis", "skill", "nosuch.json") == 2
    assert "--attribute ablate with --axis skill" in capsys.readouterr().err


def test_help_lists_every_command_without_importing_it(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.import_module", None)
    assert run("--help") == 0
    out = capsys.readouterr().out
    for name, about in entry.COMMANDS.items():
        assert name in out
        assert about.split()[0] in out


@pytest.mark.parametrize("name", entry.COMMANDS)
def test_every_command_has_help_of_its_own(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(name, "--help") == 0
    assert f"Usage: ao-eval {name}" in capsys.readouterr().out


def test_the_version_is_that_of_the_package(capsys: pytest.CaptureFixture[str]) -> None:
    assert run("--version") == 0
    assert capsys.readouterr().out == f"ao-eval, version {__version__}\n"


def test_a_configuration_that_cannot_be_read_is_a_usage_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ao-eval.toml").write_text("x =")
    assert run("schema") == 2
    assert "ao-eval.toml: is not valid TOML" in capsys.readouterr().err


def test_options_come_from_the_configuration_the_environment_and_the_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "ao-eval.toml").write_text('memory = "1k"\n')
    assert run("ab", "x") == 2
    assert "--memory: should be greater" in capsys.readouterr().err
    monkeypatch.setenv("AO_EVAL_MEMORY", "lots")
    assert run("ab", "x") == 2
    assert "'lots' is not a size" in capsys.readouterr().err
    assert run("ab", "--memory", "1g", "x") == 2
    assert "x: cannot be read" in capsys.readouterr().err


# --- as a process


def python(code: str, **more: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, **more
    )


def test_the_entry_point_imports_nothing_slow() -> None:
    slow = "docker", "jsonschema", "jsonschema_rs", "rich", "jinja2", "pydantic", "structlog"
    code = f"import sys, runner.cli.main; print([n for n in {slow!r} if n in sys.modules])"
    assert python(code).stdout == "[]\n"


BOOM = """
import signal, sys, time, types
import click
from runner.cli import main as entry

@click.command("boom")
def boom():
    {body}

module = types.ModuleType("runner.cli.boom")
module.command = boom
sys.modules["runner.cli.boom"] = module
entry.COMMANDS["boom"] = "Goes wrong."
entry._ONE_WISH_SECONDS = 0.0
entry.main(["boom"])
"""


def test_a_second_signal_does_not_wait_for_a_clean_up_that_hangs() -> None:
    body = """
    try:
        signal.raise_signal(signal.SIGINT)
    finally:
        time.sleep(0.01)
        signal.raise_signal(signal.SIGTERM)
        time.sleep(60)
"""
    ran = python(BOOM.format(body=body), timeout=50)
    assert ran.returncode == 143
    assert "interrupted again; run `ao-eval reap`" in ran.stderr


def test_a_signal_that_was_swallowed_is_not_lost() -> None:
    body = """
    class Last:
        def __del__(self):
            signal.raise_signal(signal.SIGTERM)
    last = Last()
    del last
    time.sleep(60)
"""
    ran = python(BOOM.format(body=body), timeout=50)
    assert ran.returncode == 143
    assert ran.stderr == "ao-eval: interrupted by SIGTERM; nothing is left running\n"


def test_another_error_that_python_swallows_is_told_as_it_always_is() -> None:
    body = """
    class Last:
        def __del__(self):
            raise ValueError("at the end")
    last = Last()
    del last
"""
    ran = python(BOOM.format(body=body), timeout=50)
    assert (ran.returncode, "ValueError: at the end" in ran.stderr) == (0, True)


def test_a_closed_pipe_is_no_error_message() -> None:
    code = "from runner.cli.main import main; main(['schema', 'context-scorecard.v1'])"
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(
        [sys.executable, "-c", code], stdout=writer, stderr=subprocess.PIPE, check=False
    )
    os.close(writer)
    assert (ran.returncode, ran.stderr) == (128 + signal.SIGPIPE, b"")


def test_the_package_is_a_program() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "runner", "--version"], capture_output=True, text=True, check=False
    )
    assert (ran.returncode, ran.stdout) == (0, f"ao-eval, version {__version__}\n")
