"""Holdout values: where they come from, and how they are named without being shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from runner.core import strictjson
from runner.core.outcomes.inputs import MAX_BYTES, MAX_DEPTH, CompileInput
from runner.core.outcomes.sealed import sealed
from runner.errors import InputError

HOLDOUT_KEYS: Final = frozenset({"target", "ground_truth", "expected_output", "value"})
"""Keys whose values are holdout in a holdout file, at any depth, in any letter case."""
MAX_VALUES: Final = 1_000_000


@dataclass(frozen=True)
class HoldoutValue:
    """One holdout value. Its representation shows where it came from only.

    Attributes:
        index: Position among all values of this run, from 0.
        source: Where it came from, without quoting it.
        text: The value as text; numbers and Booleans as in JSON.
    """

    index: int
    source: str
    text: str = field(repr=False)


@sealed
def collect_holdout(
    compile_input: CompileInput, files: Sequence[tuple[str, bytes]]
) -> tuple[HoldoutValue, ...]:
    """Collect the holdout values of a compilation.

    They come from the input's `holdout_values`, then from the holdout files in the order given,
    then from the answers among the input's samples unless its split is `dev`. Lists and objects
    contribute their leaves, null nothing.

    Args:
        compile_input: The input.
        files: Name and bytes of each holdout file (JSONL).

    Raises:
        InputError: A line is not JSON, a file has no value, or there are too many.
    """
    found: list[tuple[str, str]] = []
    for position, value in enumerate(compile_input.holdout_values):
        found.extend((f"/holdout_values/{position}", text) for text in _leaves(value))
    for name, data in files:
        found.extend(_from_file(name, data))
    if compile_input.split != "dev":
        found.extend(("/task/samples", text) for text in _marked(compile_input.task.samples))
    if len(found) > MAX_VALUES:
        raise InputError(f"more than {MAX_VALUES} holdout values")
    return tuple(HoldoutValue(index, *item) for index, item in enumerate(found))


@sealed
def read_holdout_files(files: Sequence[tuple[str, bytes]]) -> tuple[HoldoutValue, ...]:
    """Collect the values of holdout files alone; see `collect_holdout`."""
    found = [item for name, data in files for item in _from_file(name, data)]
    return tuple(HoldoutValue(index, *item) for index, item in enumerate(found))


def _from_file(name: str, data: bytes) -> list[tuple[str, str]]:
    if len(data) > MAX_BYTES:
        raise InputError(f"more than {MAX_BYTES} bytes", where=name)
    found: list[tuple[str, str]] = []
    for number, line in enumerate(data.split(b"\n"), 1):
        if not line.strip():
            continue
        try:
            record = strictjson.loads(line, max_depth=MAX_DEPTH, fold_keys=True)
        except strictjson.StrictJsonError as error:
            raise InputError(error.message, where=f"{name} line {number}") from None
        found.extend((f"{name} line {number}", text) for text in _marked(record))
    if not found:
        raise InputError(
            "no holdout value in this file",
            where=name,
            remedy="one JSON object a line, with the answer under `target`, `ground_truth`, "
            "`expected_output` or `value`",
        )
    return found


def _marked(value: object) -> Iterator[str]:
    """Leaves under a holdout key, in document order."""
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            rest = []
            for key, member in item.items():
                if key.casefold() in HOLDOUT_KEYS:
                    yield from _leaves(member)
                else:
                    rest.append(member)
            stack.extend(reversed(rest))
        elif isinstance(item, list):
            stack.extend(reversed(item))


def _leaves(value: object) -> Iterator[str]:
    stack: list[object] = [value]
    while stack:
        item = stack.pop()
        if isinstance(item, dict):
            stack.extend(reversed(item.values()))
        elif isinstance(item, list):
            stack.extend(reversed(item))
        elif isinstance(item, bool):
            yield "true" if item else "false"
        elif item is not None:
            yield str(item)
