"""Remove what dead runs left behind, and nothing of a live one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runner.core.confine import LABEL
from runner.host.locks import is_live, leftovers
from runner.host.removal import remove
from runner.ports import Engine

_HOME = f"{LABEL}.home"


class Reaped(NamedTuple):
    """What was removed, by kind, and what was left to live runs."""

    containers: int
    volumes: int
    directories: int
    live: int
    failures: tuple[str, ...]


def reap(engine: Engine, staging_base: Path) -> Reaped:
    """Remove containers, volumes and run homes whose run is dead.

    A run lives as long as its process holds the lock in its home; both are named by the labels, so
    nothing is decided by age or by name.

    Args:
        engine: The engine to clean.
        staging_base: Folder of run homes.
    """
    containers, volumes, live = 0, 0, 0
    homes: set[Path] = set()
    for container in engine.owned_containers():
        home = _home_of(container.get("Labels"))
        if home is None or is_live(home):
            live += 1
            continue
        engine.remove(str(container["Id"]))
        homes.add(home)
        containers += 1
    for volume in engine.owned_volumes():
        home = _home_of(volume.get("Labels"))
        if home is None or is_live(home):
            live += 1
            continue
        engine.remove_volume(str(volume["Name"]))
        homes.add(home)
        volumes += 1
    homes |= set(leftovers(staging_base))
    failures: list[str] = []
    directories = 0
    for home in sorted(homes):
        if not home.is_dir() or is_live(home):
            continue
        failed = remove(home)
        failures += failed
        directories += not failed
    return Reaped(containers, volumes, directories, live, tuple(failures))


def _home_of(labels: Mapping[str, Any] | None) -> Path | None:
    """Run home that an object belongs to; None: not one of a run, or not to be told."""
    text = (labels or {}).get(_HOME)
    return Path(text) if isinstance(text, str) and text.startswith("/") else None
