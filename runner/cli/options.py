"""Options that several commands share; each is also read from `AO_EVAL_*` and the configuration."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from pydantic import ValidationError

from runner import settings
from runner.app.request import (
    Gates,
    LiveOptions,
    RunRequest,
    Sandbox,
    Surroundings,
    WorkspaceOptions,
)
from runner.core.confine import Resources
from runner.errors import InputError

F = TypeVar("F", bound=Callable[..., Any])

_SIZE = re.compile(r"^(\d+)([kmg]?)b?$", re.IGNORECASE)


class Size(click.ParamType[int]):
    """Bytes, with `k`, `m` or `g`."""

    name = "size"

    def convert(self, value: Any, param: Any, ctx: Any) -> int:
        """`512m` -> 536870912."""
        if isinstance(value, int):
            return value
        match = _SIZE.match(str(value).strip())
        if match is None:
            self.fail(f"{value!r} is not a size; write 512m or 2g", param, ctx)
        return int(match[1]) << 10 * " kmg".index(match[2].lower() or " ")


class Variable(click.ParamType[tuple[str, str]]):
    """`NAME=value`, or `NAME` to take the invoker's value."""

    name = "NAME[=VALUE]"

    def convert(self, value: Any, param: Any, ctx: Any) -> tuple[str, str]:
        """Split, and look a bare name up."""
        if isinstance(value, tuple):
            return value
        name, equals, text = str(value).partition("=")
        if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            self.fail(f"{name!r} is not a variable name", param, ctx)
        if equals:
            return name, text
        environment = settings.environment()
        if name not in environment:
            self.fail(f"{name} is not set; write {name}=VALUE", param, ctx)
        return name, environment[name]


def option(*names: str, **attributes: Any) -> Callable[[F], F]:
    """An option that is also read from `AO_EVAL_<NAME>`."""
    long = next(name for name in names if name.startswith("--")).split("/")[0]
    variable = settings.PREFIX + long.removeprefix("--").replace("-", "_").upper()
    attributes.setdefault("envvar", variable)
    attributes.setdefault("show_default", not attributes.get("multiple", False))
    return click.option(*names, **attributes)


_PATH: Any = click.Path(path_type=Path)

_SHARED = (
    option("--out-dir", type=_PATH, default=Path("runs"), help="Where evidence directories go."),
    option("--run-id", help="Run id; the default holds the time and the suite."),
    option("--image", help="Leg image; the default is the one of this version."),
    option("--runtime", help="OCI runtime, e.g. runsc; the default is the engine's."),
    option("--memory", type=Size(), default="1g", help="Memory of a container, no swap."),
    option("--cpus", type=click.FloatRange(min=0.01), default=1.0, help="CPUs of a container."),
    option("--pids", type=click.IntRange(min=8), default=256, help="Processes of a container."),
    option(
        "--timeout",
        type=click.IntRange(min=1),
        default=900,
        help="Seconds for a whole leg.",
    ),
    option("--workspace", type=_PATH, help="Folder that legs see instead of the repository."),
    option("--include", multiple=True, metavar="GLOB", help="Also files that git ignores."),
    option("--with-git", is_flag=True, help="Add a synthetic one-commit .git."),
    option("--share-workspace", is_flag=True, help="One tree a leg, whatever cases write."),
    option("--env", type=Variable(), multiple=True, help="One more variable for both legs."),
    option("--hooks-dir", type=_PATH, help="Folder with the hooks.json to run around each case."),
    option("--live-agents-dir", type=_PATH, multiple=True, help="One more live root to watch."),
    option("--strict-live", is_flag=True, help="A change of ~/.agents is fatal too."),
    option(
        "--allow-external-live-changes",
        is_flag=True,
        help="Tolerate changes of live state that are positively somebody else's (needs root).",
    ),
    option("--require-pass", is_flag=True, help="Exit 1 unless the on-leg passes."),
    option("--json", "as_json", is_flag=True, envvar=None, help="One JSON document on stdout."),
    option("--quiet", "-q", is_flag=True, envvar=None, help="No progress."),
    option("--verbose", "-v", count=True, envvar=None, help="More log lines; twice for all."),
)


def shared(function: F) -> F:
    """Add the options that `ab` and `run` have in common."""
    for decorate in reversed(_SHARED):
        function = decorate(function)
    return function


def surroundings() -> Surroundings:
    """The invoker's side, read once."""
    environment = settings.environment()
    return Surroundings(
        cwd=Path.cwd(),
        home=settings.home(),
        environment=environment,
        staging_base=settings.staging_base(environment),
        epoch=settings.source_date_epoch(environment),
    )


def _resources(options: dict[str, Any]) -> Resources:
    try:
        return Resources(
            memory=options["memory"],
            cpus=options["cpus"],
            pids=options["pids"],
            timeout_seconds=options["timeout"],
        )
    except ValidationError as error:
        first = error.errors()[0]
        name = str(first["loc"][0]).removesuffix("_seconds")
        message = str(first["msg"]).removeprefix("Input ")
        raise InputError(message, where=f"--{name}") from error


def request(
    suites: tuple[Path, ...], options: dict[str, Any], gates: Gates, **more: Any
) -> RunRequest:
    """Turn shared options into a request."""
    return RunRequest(
        suites=suites,
        surroundings=surroundings(),
        out_dir=options["out_dir"],
        sandbox=Sandbox(
            image=options["image"],
            runtime=options["runtime"],
            resources=_resources(options),
            extra_env=dict(options["env"]),
        ),
        workspace=WorkspaceOptions(
            top=options["workspace"],
            include=tuple(options["include"]),
            with_git=options["with_git"],
            shared=options["share_workspace"],
        ),
        live=LiveOptions(
            extra=tuple(options["live_agents_dir"]),
            strict=options["strict_live"],
            allow_external=options["allow_external_live_changes"],
        ),
        hooks_dir=options["hooks_dir"],
        gates=gates,
        run_id=options["run_id"],
        **more,
    )
