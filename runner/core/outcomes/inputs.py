"""Reader of compile inputs: bytes in, one value or one refusal that quotes nothing out.

Every part of the input may be holdout, keys included. Messages name places by the field names of
the format and by position; pointers stop where the input chose a name.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, StringConstraints, ValidationError

from runner.core import strictjson
from runner.core.outcomes.sealed import sealed
from runner.errors import InputError
from runner.model.base import Items
from runner.model.rubric import CriterionId, JudgeHash, TaskId, Unseen

MAX_BYTES: Final = 16 * 1024 * 1024
MAX_DEPTH: Final = 64
MAX_CRITERIA: Final = 10_000
MAX_DIGITS: Final = 6
"""Significant digits, and decimals, of a weight: more would be a channel and mean nothing."""
MAX_WEIGHT: Final = Decimal(1_000_000)

_HASH = re.compile(r"sha256:[0-9a-fA-F]{64}")


def _canonical_hash(value: object) -> object:
    if isinstance(value, str) and _HASH.fullmatch(value):
        return value.lower()
    raise ValueError("must be `sha256:` and 64 hexadecimal digits")


def _weight(value: object) -> Decimal:
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        raise ValueError("must be a number")  # noqa: TRY004  # pydantic passes on ValueError only
    number = Decimal(value)
    if not 0 < number <= MAX_WEIGHT:
        raise ValueError(f"must be above 0 and at most {MAX_WEIGHT}")
    _, digits, exponent = number.normalize().as_tuple()
    if len(digits) > MAX_DIGITS or int(exponent) < -MAX_DIGITS:
        raise ValueError(f"must have at most {MAX_DIGITS} significant digits and decimals")
    return number


def _none_is_empty(value: object) -> object:
    return () if value is None else value


def _none_is_no_map(value: object) -> object:
    return {} if value is None else value


NotBlank = Annotated[str, StringConstraints(pattern=r"\S")]


class DecisionRuleInput(Unseen):
    """How the task's statistics decide; not projected."""

    kind: str = ""
    confidence: int | Decimal | None = None
    min_delta: int | Decimal | None = None


class StatsInput(Unseen):
    """The task's statistics; not projected."""

    metric: str = ""
    paired: bool = False
    min_n_samples: int | None = None
    decision_rule: DecisionRuleInput | None = None


class TaskInput(Unseen):
    """A locked task of the eval substrate."""

    schema_version: Literal[1] = 1
    id: TaskId
    domain: str = ""
    description: str = ""
    harness_ref: str = ""
    stats: StatsInput | None = None
    samples: Annotated[dict[str, Any], BeforeValidator(_none_is_no_map)] = Field(
        default_factory=dict
    )


class CriterionInput(Unseen):
    """One criterion as it is written."""

    id: CriterionId
    description: NotBlank
    weight: Annotated[Decimal, BeforeValidator(_weight)]


class CompileInput(Unseen):
    """What `outcomes compile` reads. Its representation is empty."""

    task: TaskInput
    criteria: Annotated[Items[CriterionInput], Field(min_length=1, max_length=MAX_CRITERIA)]
    judge_content_hash: Annotated[JudgeHash, BeforeValidator(_canonical_hash)]
    holdout_values: Annotated[Items[Any], BeforeValidator(_none_is_empty)] = ()
    split: Literal["dev", "holdout"] | None = None


_FIELDS: Final = frozenset(
    name
    for model in (CompileInput, TaskInput, StatsInput, DecisionRuleInput, CriterionInput)
    for name in model.model_fields
)
_FREE: Final = frozenset({"samples", "holdout_values"})
_WORDING: Final = {
    "missing": "missing",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "tuple_type": "must be a list",
    "string_pattern_mismatch": "not of the form that ids have, or blank",
}


@sealed
def read_compile_input(data: bytes, where: str) -> CompileInput:
    """Read a compile input.

    Args:
        data: Bytes of the file, at most 16 MiB.
        where: Its name for messages.

    Returns:
        The input; the judge content hash in lower case, weights exact.

    Raises:
        InputError: The input is refused; `where` is `<where>#<JSON pointer>`. Nothing of the input
            is quoted.
    """
    try:
        document = strictjson.loads(data, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH, fold_keys=True)
    except strictjson.StrictJsonError as error:
        raise InputError(str(error), where=f"{where}#{_safe_pointer(error.pointer)}") from None
    if not isinstance(document, dict):
        raise InputError("a compile input is a JSON object", where=f"{where}#")
    try:
        parsed = CompileInput.model_validate(document)
    except ValidationError as error:
        pointer, message = _first_problem(error, document)
        raise InputError(message, where=f"{where}#{pointer}") from None
    _check_unique(parsed, where)
    return parsed


def _check_unique(parsed: CompileInput, where: str) -> None:
    first: dict[str, int] = {}
    for index, criterion in enumerate(parsed.criteria):
        earlier = first.setdefault(criterion.id.casefold(), index)
        if earlier != index:
            raise InputError(
                f"same id as /criteria/{earlier}, letter case ignored",
                where=f"{where}#/criteria/{index}/id",
            )


def _first_problem(error: ValidationError, document: dict[str, object]) -> tuple[str, str]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    # An inner problem before the list that only says its items were refused.
    detail = max(details, key=lambda item: (item["type"] != "too_short", -details.index(item)))
    location, kind = detail["loc"], detail["type"]
    if kind == "extra_forbidden":
        ordinal = _ordinal(document, location)
        return _pointer(location[:-1]), f"unknown key (key {ordinal} of this object)"
    message = _WORDING.get(kind) or detail["msg"]
    message = message.removeprefix("Value error, ").removeprefix("Input ")
    return _pointer(location), message[:1].lower() + message[1:]


def _ordinal(document: object, location: tuple[str | int, ...]) -> int:
    holder: Any = document
    for part in location[:-1]:
        holder = holder[part]
    return list(holder).index(location[-1]) + 1


def _pointer(location: tuple[str | int, ...]) -> str:
    """JSON pointer as far as every step is a name of ours or a position."""
    steps: list[str | int] = []
    for step in location:
        if isinstance(step, str) and step not in _FIELDS:
            break
        steps.append(step)
        if step in _FREE:
            break
    return strictjson.pointer(tuple(steps))


def _safe_pointer(pointer: str) -> str:
    steps = [
        int(step) if step.isascii() and step.isdigit() and len(step) < 9 else step
        for step in pointer.split("/")[1:]
    ]
    return _pointer(tuple(steps))
