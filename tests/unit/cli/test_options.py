"""Options that several commands share: what they accept, and what becomes of them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner

from runner.app.request import Gates, RunRequest
from runner.cli import options
from runner.errors import InputError


def asked(*arguments: str, env: dict[str, str] | None = None) -> RunRequest:
    """The request that these options make."""
    made: list[RunRequest] = []

    @click.command()
    @options.shared
    def command(**given: Any) -> None:
        made.append(options.request((Path("s.json"),), given, Gates()))

    result = CliRunner().invoke(command, arguments, standalone_mode=False, env=env)
    if result.exception is not None:
        raise result.exception
    return made[0]


def test_without_options_everything_has_its_documented_default(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "42")
    request = asked()
    limits = request.sandbox.resources
    assert (limits.memory, limits.cpus, limits.pids) == (1 << 30, 1.0, 256)
    assert limits.timeout_seconds == 900
    assert (request.out_dir, request.run_id) == (Path("runs"), None)
    assert (request.sandbox.image, request.sandbox.runtime) == (None, None)
    flags = (request.workspace.with_git, request.workspace.shared, request.live.strict)
    assert flags == (False, False, False)
    assert request.surroundings.epoch == 42
    assert request.surroundings.cwd == Path.cwd()


def test_every_option_arrives_where_it_belongs() -> None:
    request = asked(
        *("--out-dir", "o", "--run-id", "r1", "--image", "i", "--runtime", "runsc"),
        *("--memory", "2g", "--cpus", "0.5", "--pids", "64", "--timeout", "60"),
        *("--workspace", "w", "--include", "a*", "--include", "b", "--with-git"),
        *("--share-workspace", "--env", "A=1=2", "--env", "B=", "--live-agents-dir", "l"),
        "--strict-live",
    )
    assert (request.out_dir, request.run_id) == (Path("o"), "r1")
    assert (request.sandbox.image, request.sandbox.runtime) == ("i", "runsc")
    limits = request.sandbox.resources
    assert (limits.memory, limits.cpus, limits.pids, limits.timeout_seconds) == (
        2 << 30,
        0.5,
        64,
        60,
    )
    assert request.sandbox.extra_env == {"A": "1=2", "B": ""}
    assert request.workspace.top == Path("w")
    assert request.workspace.include == ("a*", "b")
    assert request.workspace.with_git
    assert request.workspace.shared
    assert (request.live.extra, request.live.strict) == ((Path("l"),), True)


@pytest.mark.parametrize(
    "text, size",
    [
        ("7340033", 7_340_033),
        ("512m", 512 << 20),
        ("512M", 512 << 20),
        ("512mb", 512 << 20),
        ("2G", 2 << 30),
        ("2GB", 2 << 30),
        ("65536k", 64 << 20),
        (" 1g ", 1 << 30),
    ],
)
def test_sizes_have_units(text: str, size: int) -> None:
    assert asked("--memory", text).sandbox.resources.memory == size


@pytest.mark.parametrize("text", ["", "g", "-1g", "1.5g", "1t", "1 g", "0x10", "1gg"])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a size"):
        asked("--memory", text)


@pytest.mark.parametrize(
    "option, value", [("--memory", "6m"), ("--memory", "0"), ("--cpus", "inf"), ("--cpus", "nan")]
)
def test_a_limit_that_is_none_is_refused_by_the_name_of_its_option(option: str, value: str) -> None:
    with pytest.raises(InputError) as caught:
        asked(option, value)
    assert caught.value.where == option


def test_a_size_may_be_a_number_as_a_configuration_file_has_it() -> None:
    assert options.Size().convert(1 << 30, None, None) == 1 << 30
    assert options.Variable().convert(("A", "1"), None, None) == ("A", "1")


def test_a_variable_without_a_value_is_taken_from_the_invoker(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FROM_OUTSIDE", "x=y")
    assert asked("--env", "FROM_OUTSIDE").sandbox.extra_env == {"FROM_OUTSIDE": "x=y"}
    monkeypatch.delenv("FROM_OUTSIDE")
    with pytest.raises(click.BadParameter, match="FROM_OUTSIDE is not set"):
        asked("--env", "FROM_OUTSIDE")


@pytest.mark.parametrize("name", ["", "1A", "A-B", "A B", "\u00c4", "A\n"])
def test_what_is_no_variable_name_is_refused(name: str) -> None:
    with pytest.raises(click.BadParameter, match="is not a variable name"):
        asked("--env", f"{name}=1")


def test_options_are_read_from_the_environment_but_not_those_of_the_terminal() -> None:
    found = asked(env={"AO_EVAL_PIDS": "99", "AO_EVAL_INCLUDE": "a b", "AO_EVAL_STRICT_LIVE": "1"})
    assert found.sandbox.resources.pids == 99
    assert found.workspace.include == ("a", "b")
    assert found.live.strict
    names = {item.name: item.envvar for item in _parameters()}
    assert (names["as_json"], names["quiet"], names["verbose"]) == (None, None, None)
    assert names["out_dir"] == "AO_EVAL_OUT_DIR"


def _parameters() -> list[click.Parameter]:
    @click.command()
    @options.shared
    def command(**_: Any) -> None:
        """Only its parameters are looked at."""

    return command.params
