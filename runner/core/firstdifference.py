"""Where two JSON values differ first, as a pointer and a few words."""

from __future__ import annotations

from typing import Any, NamedTuple

from runner.core.jsonvalue import shown
from runner.core.strictjson import pointer


class Difference(NamedTuple):
    """The first place at which two values differ.

    Attributes:
        pointer: JSON pointer; empty for the whole value.
        words: What is there, and what would have to be.
    """

    pointer: str
    words: str


def first_difference(found: Any, wanted: Any) -> Difference | None:
    """Compare two JSON values; numbers by value, members whatever their order.

    Args:
        found: What is there.
        wanted: What would have to be there.
    """
    return _compare(found, wanted, ())


def _compare(found: Any, wanted: Any, path: tuple[str | int, ...]) -> Difference | None:
    if isinstance(found, dict) and isinstance(wanted, dict):
        return _members(found, wanted, path)
    if isinstance(found, list) and isinstance(wanted, list):
        return _items(found, wanted, path)
    # In Python `True == 1`, and 1.0 is what canonical JSON writes as 1.
    if isinstance(found, bool) is isinstance(wanted, bool) and found == wanted:
        return None
    return Difference(pointer(path), f"is {shown(found)}, the evidence gives {shown(wanted)}")


def _members(
    found: dict[str, Any], wanted: dict[str, Any], path: tuple[str | int, ...]
) -> Difference | None:
    for name in sorted(found.keys() | wanted.keys()):
        if name not in found:
            return Difference(pointer((*path, name)), "is missing")
        if name not in wanted:
            return Difference(pointer((*path, name)), "is there, and the evidence does not give it")
        inner = _compare(found[name], wanted[name], (*path, name))
        if inner is not None:
            return inner
    return None


def _items(found: list[Any], wanted: list[Any], path: tuple[str | int, ...]) -> Difference | None:
    for index, (mine, theirs) in enumerate(zip(found, wanted, strict=False)):
        inner = _compare(mine, theirs, (*path, index))
        if inner is not None:
            return inner
    if len(found) != len(wanted):
        words = f"has {len(found)} items, the evidence gives {len(wanted)}"
        return Difference(pointer(path), words)
    return None
