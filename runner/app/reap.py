"""Remove what dead runs left behind, and nothing of a live one."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from runner.app.insist import insist
from runner.core.confine import LABEL
from runner.errors import EngineFailure
from runner.host.locks import is_live, leftovers
from runner.host.removal import remove
from runner.host.rundir import abandoned
from runner.ports import Engine

_HOME = f"{LABEL}.home"


class Reaped(NamedTuple):
    """What was removed, by kind, and what was left to live runs."""

    containers: int
    volumes: int
    directories: int
    live: int
    failures: tuple[str, ...]


class _Sweep:
    """Goes over the objects of all runs on an engine.

    Attributes:
        homes: Run homes of what was removed.
        stuck: Run homes of what could not be: what it shows is not taken away from under it.
        live: Objects of live runs, and those of which it cannot be told.
        failures: One line for each object that could not be removed.
    """

    def __init__(self) -> None:
        self.homes: set[Path] = set()
        self.stuck: set[Path] = set()
        self.live = 0
        self.failures: list[str] = []

    def remove(
        self, objects: Iterable[Mapping[str, Any]], name: str, action: Callable[[str], None]
    ) -> int:
        """Remove those whose run is dead; returns how many."""
        removed = 0
        for item in objects:
            home = _home_of(item.get("Labels"))
            if home is None or is_live(home):
                self.live += 1
                continue
            try:
                insist(action, str(item[name]))
            except EngineFailure as failure:
                self.stuck.add(home)
                self.failures.append(failure.line())
                continue
            self.homes.add(home)
            removed += 1
        return removed


def reap(engine: Engine, staging_base: Path, out_dirs: Sequence[Path] = ()) -> Reaped:
    """Remove containers, volumes, run homes and unfinished evidence whose run is dead.

    A run lives as long as its process holds the locks in its home and on its evidence; the home is
    named by the labels, so nothing is decided by age or by name.

    Args:
        engine: The engine to clean.
        staging_base: Folder of run homes.
        out_dirs: Folders of evidence directories.

    Raises:
        EngineFailure: The engine does not tell what it has.
    """
    sweep = _Sweep()
    containers = sweep.remove(engine.owned_containers(), "Id", engine.remove)
    volumes = sweep.remove(engine.owned_volumes(), "Name", engine.remove_volume)
    homes = (sweep.homes | set(leftovers(staging_base))) - sweep.stuck
    dead = [home for home in sorted(homes) if home.is_dir() and not is_live(home)]
    dead += [path for out_dir in out_dirs for path in abandoned(out_dir)]
    failures = sweep.failures
    directories = 0
    for path in dead:
        failed = remove(path)
        failures += failed
        directories += not failed
    return Reaped(containers, volumes, directories, sweep.live, tuple(failures))


def _home_of(labels: Mapping[str, Any] | None) -> Path | None:
    """Run home that an object belongs to; None: not one of a run, or not to be told."""
    text = (labels or {}).get(_HOME)
    return Path(text) if isinstance(text, str) and text.startswith("/") else None
