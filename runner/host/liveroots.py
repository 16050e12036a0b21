"""Which directories are live state."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Final

from runner.errors import InputError
from runner.host.git import is_repository
from runner.host.mounts import within
from runner.host.repository import repository_of
from runner.model.tree import LiveRoot, LiveRoots, path_text

AGENTS: Final = ".agents"


def discover(
    suite: Path,
    cwd: Path,
    env: Mapping[str, str],
    extra: Sequence[Path],
    home: Path,
) -> LiveRoots:
    """Every live root of a run.

    - `suite`, `cwd`: the nearest `.agents` in or above the suite's folder and the working
      directory; where there is none, the place where it would be made (top of the repository,
      else the folder itself), watched as absent. The home directory's `.agents` is nobody's
      project, unless home is a repository: the search ends there.
    - `AO_AGENTS_DIR`: the directory it names.
    - `AO_HOME`: the agents directory itself, as the variable is documented; but a directory that
      is not called `.agents` and holds one stands for that one.
    - `CLAUDE_PLUGIN_DATA`: the `.agents` in it, which is used where `AO_HOME` is not set.
    - `option`: what `--live-agents-dir` names.
    - `home`: the home directory's `.agents`.

    Args:
        suite: Suite file or folder of suites.
        cwd: Working directory of the invoker; relative values count from it.
        env: The invoker's environment; blank values are not set.
        extra: Values of `--live-agents-dir`.
        home: The invoker's home directory.

    Returns:
        One root for each real path, in the order above; `home=True` only where nothing else names
        it. A root inside another one is kept: either may be a link tomorrow.

    Raises:
        InputError: A variable or option names the root directory of the machine.
    """
    named: list[tuple[str, Path]] = []
    absolute = cwd / suite
    for origin, start in (("suite", absolute), ("cwd", cwd)):
        project = _project(start if start.is_dir() else start.parent, home)
        if project is not None:
            named.append((origin, project))
    for variable in ("AO_AGENTS_DIR", "AO_HOME", "CLAUDE_PLUGIN_DATA"):
        value = env.get(variable, "").strip()
        if value:
            named.append((variable, _from_variable(variable, cwd / value)))
    named += [("option", cwd / path) for path in extra]
    named.append(("home", home / AGENTS))
    return LiveRoots(roots=tuple(_merged(named)))


def _project(folder: Path, home: Path) -> Path | None:
    """The nearest `.agents` in or above a folder, or the place where it would be.

    None when that is the home directory's and home is not a repository.
    """
    personal = Path(os.path.realpath(home))
    start = Path(os.path.realpath(folder))
    for candidate in (start, *start.parents):
        if candidate == personal and not is_repository(personal):
            break
        if os.path.lexists(candidate / AGENTS):
            return candidate / AGENTS
    top = repository_of(start)
    return None if top == personal and not is_repository(personal) else top / AGENTS


def _from_variable(variable: str, path: Path) -> Path:
    if variable == "AO_AGENTS_DIR":
        return path
    inner = path / AGENTS
    if variable == "CLAUDE_PLUGIN_DATA":
        return inner
    return inner if path.name != AGENTS and os.path.lexists(inner) else path


def _merged(named: Iterable[tuple[str, Path]]) -> list[LiveRoot]:
    origins: dict[str, list[str]] = {}
    names: dict[str, str] = {}
    for origin, path in named:
        absolute = os.path.abspath(path)
        real = os.path.realpath(absolute)
        if within(b"/", os.fsencode(real)):
            raise InputError(
                "the whole machine cannot be live state",
                where=origin,
                remedy="name an agents directory",
            )
        origins.setdefault(real, []).append(origin)
        # A name that is a link says more: that the link itself is watched too.
        if real not in names or (os.path.islink(absolute) and not os.path.islink(names[real])):
            names[real] = absolute
    return [
        LiveRoot(
            path=_text(names[real]),
            real=_text(real),
            origins=tuple(found),
            home=found == ["home"],
        )
        for real, found in origins.items()
    ]


def _text(path: str) -> str:
    """A path that JSON can carry, or a refusal: the roots are opened by what is recorded."""
    try:
        path.encode("utf-8")
    except UnicodeEncodeError as error:
        raise InputError(
            "the path of a live root must be UTF-8",
            where=path_text(os.fsencode(path)),
            remedy="rename the directory",
        ) from error
    return path
