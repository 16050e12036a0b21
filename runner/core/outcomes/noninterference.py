"""Non-interference: what is not allow-listed must have no influence on the rubric.

The rubric is compiled again from an input whose other values were all replaced by random ones of
the same shape, and must come out byte for byte the same. This finds what no search for values can:
a projection that carries a sample, an encoding of one, its length or its digest.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Sequence
from decimal import Decimal
from typing import Any, Final, Protocol, TypeVar

from runner.core.outcomes.inputs import CompileInput
from runner.core.outcomes.project import project, rubric_bytes
from runner.core.outcomes.sealed import sealed
from runner.errors import HoldoutRefusal
from runner.model.rubric import Rubric

T = TypeVar("T")

ROUNDS: Final = 4
_DIGITS: Final = "0123456789"
_LOWER: Final = "abcdefghijklmnopqrstuvwxyz"
_PUNCTUATION: Final = "!#%&*,-./:;?@_~"
_WIDE: Final = "éßжшλçñøאبणค東京語あア한글"


class Randomness(Protocol):
    """The part of `random.Random` that is used."""

    def choice(self, seq: Sequence[T], /) -> T:
        """One element of a non-empty sequence."""
        ...


@sealed
def check_noninterference(
    compile_input: CompileInput,
    randomness: Randomness,
    projection: Callable[[CompileInput], Rubric] = project,
) -> None:
    """Refuse a projection that values outside the allow-list can influence.

    Args:
        compile_input: The input.
        randomness: Source of the replacements.
        projection: What is checked.

    Raises:
        HoldoutRefusal: Two compilations differ.
    """
    expected = rubric_bytes(projection(compile_input))
    for number in range(ROUNDS):
        other = scrambled(compile_input, randomness, keys=number % 2 == 1)
        if _projected(projection, other) != expected:
            raise HoldoutRefusal(
                "the rubric depends on a value that must not reach it",
                remedy="this is a defect of the projection; nothing was written",
            )


def _projected(
    projection: Callable[[CompileInput], Rubric], compile_input: CompileInput
) -> bytes | None:
    """The rubric of a scrambled input; None where the projection needed what was scrambled."""
    try:
        return rubric_bytes(projection(compile_input))
    except Exception:  # noqa: BLE001  # it worked on the input itself: the difference is the finding
        return None


def scrambled(
    compile_input: CompileInput, randomness: Randomness, *, keys: bool = False
) -> CompileInput:
    """The input with every value that is not allow-listed replaced by another of its shape.

    With `keys` the names that the input chose itself are replaced too.

    Shape: types, lengths of lists and objects, and for text its length and the kind of each
    character. Every character but white space is replaced by another one.
    """
    task = compile_input.task
    stats = task.stats
    if stats is not None:
        rule = stats.decision_rule
        if rule is not None:
            rule = rule.model_copy(update=_others(rule.model_dump(), randomness))
        update = _others(stats.model_dump(exclude={"decision_rule"}), randomness)
        stats = stats.model_copy(update={**update, "decision_rule": rule})
    return compile_input.model_copy(
        update={
            "task": task.model_copy(
                update={
                    "domain": _other(task.domain, randomness),
                    "harness_ref": _other(task.harness_ref, randomness),
                    "stats": stats,
                    "samples": _other(task.samples, randomness, keys=keys),
                }
            ),
            "holdout_values": tuple(
                _other(value, randomness, keys=keys) for value in compile_input.holdout_values
            ),
            "split": {"dev": "holdout", "holdout": "dev"}.get(compile_input.split or ""),
        }
    )


def _others(values: dict[str, Any], randomness: Randomness) -> dict[str, Any]:
    return {key: _other(value, randomness) for key, value in values.items()}


def _other(value: Any, randomness: Randomness, *, keys: bool = False) -> Any:
    """Another value of the same shape. The nesting is bounded by the reader."""
    if isinstance(value, dict):
        return {
            _other(key, randomness) if keys else key: _other(member, randomness, keys=keys)
            for key, member in value.items()
        }
    if isinstance(value, list):
        return [_other(item, randomness, keys=keys) for item in value]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(_other_number(str(value), randomness))
    if isinstance(value, Decimal):
        return Decimal(_other_number(str(value), randomness))
    if isinstance(value, str):
        return "".join(_other_char(char, randomness) for char in value)
    return value


def _other_number(text: str, randomness: Randomness) -> str:
    # The exponent stays: it bounds how much memory the number takes.
    mantissa, mark, exponent = text.partition("E")
    return (
        "".join(_other_char(char, randomness) if char.isdigit() else char for char in mantissa)
        + mark
        + exponent
    )


def _other_char(char: str, randomness: Randomness) -> str:
    kind = unicodedata.category(char)
    if kind == "Nd":
        pool = _DIGITS
    elif char.isspace():
        return char
    elif kind.startswith("P") or char.isascii():
        pool = _PUNCTUATION if not char.isalpha() else _LOWER
        pool = pool.upper() if char.isupper() else pool
    else:
        pool = _WIDE
    return randomness.choice([other for other in pool if other != char])
