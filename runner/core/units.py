"""The difference between two context roots as units, and roots in which only some are changed.

A unit is an entry that the roots do not share. Directories are none, unless they hold nothing:
they come and go with what lies below them.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Sequence
from typing import Literal, NamedTuple

from runner.core.treehash import TreeRecord
from runner.model.contextfile import ContextFile, Role
from runner.model.contextroots import RootEntry
from runner.model.controls import Unit
from runner.model.tree import path_bytes, path_text

Side = Literal["context_off", "context_on"]
Records = Sequence[TreeRecord]


class Placed(NamedTuple):
    """An entry of a mixed root, and the root that it is taken from."""

    record: TreeRecord
    source: Side


def entries(records: Iterable[TreeRecord]) -> tuple[RootEntry, ...]:
    """Records as evidence, in their order."""
    return tuple(
        RootEntry(
            path=path_text(record.path),
            kind=record.kind,
            executable=record.executable,
            sha256=record.sha256 or None,
        )
        for record in records
    )


def records(found: Iterable[RootEntry]) -> tuple[TreeRecord, ...]:
    """The records that `entries` wrote.

    Raises:
        ValueError: A path is not escaped as ours are.
    """
    return tuple(
        TreeRecord(path_bytes(item.path), item.kind, item.executable, item.sha256 or "")
        for item in found
    )


def units(
    off: Records, on: Records, contexts: Sequence[ContextFile | None] = ()
) -> tuple[Unit, ...]:
    """Entries that the roots do not share, by path.

    Args:
        off: Records of the off-root.
        on: Records of the on-root.
        contexts: `context.json` of each, the one that wins first.
    """
    before, after = _leaves(off), _leaves(on)
    roles: dict[str, Role] = {}
    for context in reversed(contexts):
        if context is not None:
            roles |= {artifact.path: artifact.role for artifact in context.artifacts}
    found = []
    for path in sorted(before.keys() | after.keys()):
        if before.get(path) == after.get(path):
            continue
        text = path_text(path)
        change: Literal["added", "changed", "removed"] = (
            "added" if path not in before else "removed" if path not in after else "changed"
        )
        found.append(Unit(path=text, change=change, role=roles.get(text)))
    return tuple(found)


def _leaves(tree: Records) -> dict[bytes, TreeRecord]:
    """Files, links and directories that hold nothing."""
    holding = {record.path.rpartition(b"/")[0] for record in tree}
    return {
        record.path: record for record in tree if record.kind != "d" or record.path not in holding
    }


def groups(found: Sequence[Unit], most: int) -> tuple[tuple[str, ...], ...]:
    """Units to be varied together, so that there are at most `most` groups.

    Fine groups are merged folder by folder, the deepest first. What cannot lie in one tree side by
    side (a file here, a folder of that name there) is always one group.

    Args:
        found: Units, by path.
        most: At least 1.
    """
    paths = [unit.path.split("/") for unit in found]
    deepest = max(map(len, paths), default=0)
    for depth in range(deepest, 0, -1):
        made = _together(paths, depth)
        if len(made) <= most:
            return made
    return (tuple("/".join(path) for path in paths),)


def _together(paths: Sequence[list[str]], depth: int) -> tuple[tuple[str, ...], ...]:
    """Groups of the paths that begin with the same `depth` components."""
    found: list[list[str]] = []
    last: list[str] | None = None
    for path in sorted(paths):
        # One that lies below the last one belongs to it, whatever the depth.
        if last is None or path[: len(last)] != last:
            found.append([])
            last = path[:depth]
        found[-1].append("/".join(path))
    return tuple(map(tuple, found))


def mixed(off: Records, on: Records, on_units: Collection[str]) -> tuple[Placed, ...]:
    """The root in which the named units have their on-version and all others their off-version.

    Args:
        off: Records of the off-root.
        on: Records of the on-root.
        on_units: Paths of units, as `units` gives them.

    Returns:
        Entries by path. With no unit they are those of the off-root, with every unit those of the
        on-root.

    Raises:
        ValueError: Two entries cannot lie in one tree side by side.
    """
    before, after = _leaves(off), _leaves(on)
    chosen: dict[bytes, Placed] = {}
    for path in before.keys() | after.keys():
        ours = before.get(path) != after.get(path) and path_text(path) in on_units
        side: Side = "context_on" if ours else "context_off"
        record = (after if ours else before).get(path)
        if record is not None:
            chosen[path] = Placed(record, side)
    trees: dict[Side, dict[bytes, TreeRecord]] = {
        "context_off": {record.path: record for record in off},
        "context_on": {record.path: record for record in on},
    }
    folders: dict[bytes, Placed] = {}
    for path, placed in chosen.items():
        for folder in _above(path):
            if folder in chosen and chosen[folder].record.kind != "d":
                raise ValueError(f"a file and a folder of one name: {folder!r}")
            folders[folder] = Placed(trees[placed.source][folder], placed.source)
    # A folder that held nothing may have been given something to hold.
    return tuple(sorted((chosen | folders).values(), key=lambda item: item.record.path))


def _above(path: bytes) -> Iterable[bytes]:
    parts = path.split(b"/")[:-1]
    return (b"/".join(part) for part in itertools.accumulate([item] for item in parts))
