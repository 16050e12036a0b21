"""Score files: bytes of a grader in, one checked score out.

A score comes from outside and is not believed. No message quotes it: what it holds may be an
answer, and messages end up in logs. Pointers stop at the fields we know for the same reason.
"""

from __future__ import annotations

import hashlib
import re
from decimal import Decimal
from typing import Final, NamedTuple

from runner.core.outcomes.sealed import sealed
from runner.core.strictjson import StrictJsonError, loads
from runner.errors import InputError
from runner.model.verdict import Split

MAX_BYTES: Final = 1024 * 1024
MAX_DEPTH: Final = 8
MAX_CRITERIA: Final = 1000

# The patterns of model.rubric and model.burn, for messages of our own.
CRITERION_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,127}", re.ASCII)
TASK_ID: Final = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}", re.ASCII)
REF: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:@/+-]{0,127}", re.ASCII)
RUN_ID: Final = re.compile(r"(?=.{1,128}\Z)[!-~]([ -~]*[!-~])?", re.ASCII)

_JUDGE_HASH: Final = re.compile(r"sha256:[0-9a-f]{64}", re.ASCII | re.IGNORECASE)
_FIELDS: Final = (
    "source_task_id",
    "judge_content_hash",
    "aggregate",
    "threshold",
    "criterion_scores",
    "split",
    "suite_ref",
    "ground_truth_version",
    "run_id",
)


class Score(NamedTuple):
    """What a score file claims. Absent fields are None; nothing is defaulted here.

    Attributes:
        aggregate: In [0, 1].
        threshold: In (0, 1].
        criterion_scores: Criterion id -> [0, 1].
        judge_hash: Canonical form, lower case.
        sha256: Of the bytes of the file.
    """

    aggregate: float
    threshold: float | None
    criterion_scores: dict[str, float] | None
    task_id: str | None
    judge_hash: str | None
    split: Split | None
    suite_ref: str | None
    gt_version: str | None
    run_id: str | None
    sha256: str

    def __repr__(self) -> str:
        """Nothing of what is in it: it may be an answer."""
        return "Score(...)"


@sealed
def read_score(data: bytes, where: str) -> Score:
    """Read a score file.

    Args:
        data: The file.
        where: Its name in messages.

    Raises:
        InputError: It is not one score that every reader understands alike.
    """
    fields = _object(data, where)
    return Score(
        aggregate=_aggregate(fields, where),
        threshold=_threshold(fields, where),
        criterion_scores=_criterion_scores(fields, where),
        task_id=_text(fields, "source_task_id", TASK_ID, where),
        judge_hash=_judge_hash(fields, where),
        split=_split(fields, where),
        suite_ref=_text(fields, "suite_ref", REF, where),
        gt_version=_text(fields, "ground_truth_version", REF, where),
        run_id=_text(fields, "run_id", RUN_ID, where),
        sha256=hashlib.sha256(data).hexdigest(),
    )


def canonical_judge_hash(text: str) -> str | None:
    """Canonical form of a judge content hash; None when it is none.

    Args:
        text: `sha256:` and 64 hexadecimal digits in any letter case, nothing around them.
    """
    return text.lower() if _JUDGE_HASH.fullmatch(text) else None


def in_unit(value: object) -> float | None:
    """A JSON number in [0, 1] as the nearest double; None when it is something else.

    The range is checked on the number as written: 1.00000000000000000001 is out of it.
    """
    if isinstance(value, bool) or not isinstance(value, int | Decimal):
        return None
    # abs: a negative zero is a zero.
    return abs(float(value)) if 0 <= value <= 1 else None


def split(value: object) -> Split | None:
    """The split of exactly that name; None for anything else, other letter case and blanks too."""
    return next((item for item in Split if item.value == value), None)


def _object(data: bytes, where: str) -> dict[str, object]:
    try:
        value = loads(data, max_bytes=MAX_BYTES, max_depth=MAX_DEPTH, fold_keys=True)
    except StrictJsonError as error:
        place = "" if error.line is None else f" (line {error.line}, column {error.column})"
        raise InputError(
            f"not an acceptable score: {error.message}{place}",
            where=where + _known_part(error.pointer),
        ) from None
    if not isinstance(value, dict):
        raise InputError("a score is a JSON object", where=where)
    if unknown := sum(key not in _FIELDS for key in value):
        raise InputError(
            f"{unknown} unknown field(s)",
            where=where,
            remedy=f"a score has only {', '.join(_FIELDS)}",
        )
    return value


def _known_part(pointer: str) -> str:
    first = pointer.split("/", 2)[1:2]
    return f" /{first[0]}" if first and first[0] in _FIELDS else ""


def _aggregate(fields: dict[str, object], where: str) -> float:
    if "aggregate" not in fields:
        raise InputError("the score has no aggregate", where=where, remedy="grade the run again")
    number = in_unit(fields["aggregate"])
    if number is None:
        raise InputError("not a number in [0, 1]", where=f"{where} /aggregate")
    return number


def _threshold(fields: dict[str, object], where: str) -> float | None:
    if "threshold" not in fields:
        return None
    number = in_unit(fields["threshold"])
    if not number:
        raise InputError("not a number in (0, 1]", where=f"{where} /threshold")
    return number


def _criterion_scores(fields: dict[str, object], where: str) -> dict[str, float] | None:
    # Null is how the format's first writer wrote an absent table.
    value = fields.get("criterion_scores")
    if value is None:
        return None
    pointer = f"{where} /criterion_scores"
    if not isinstance(value, dict):
        raise InputError("not an object of criterion ids and numbers", where=pointer)
    if not 0 < len(value) <= MAX_CRITERIA:
        raise InputError(f"between 1 and {MAX_CRITERIA} criteria are needed", where=pointer)
    scores: dict[str, float] = {}
    for index, (name, item) in enumerate(value.items()):
        if not CRITERION_ID.fullmatch(name):
            raise InputError(
                f"the name of entry {index} is not a criterion id",
                where=pointer,
                remedy="ids are ASCII letters, digits and ._- and start with a letter or digit",
            )
        number = in_unit(item)
        if number is None:
            raise InputError(f"entry {index} is not a number in [0, 1]", where=pointer)
        scores[name] = number
    return scores


def _judge_hash(fields: dict[str, object], where: str) -> str | None:
    if "judge_content_hash" not in fields:
        return None
    value = fields["judge_content_hash"]
    found = canonical_judge_hash(value) if isinstance(value, str) else None
    if found is None:
        raise InputError(
            "not `sha256:` and 64 hexadecimal digits", where=f"{where} /judge_content_hash"
        )
    return found


def _split(fields: dict[str, object], where: str) -> Split | None:
    if "split" not in fields:
        return None
    value = fields["split"]
    found = split(value)
    if found is None:
        raise InputError("must be exactly `dev` or `holdout`", where=f"{where} /split")
    return found


def _text(fields: dict[str, object], name: str, pattern: re.Pattern[str], where: str) -> str | None:
    if name not in fields:
        return None
    value = fields[name]
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise InputError(
            "not an id: plain ASCII, no blanks at the ends, at most 128 characters",
            where=f"{where} /{name}",
            remedy="leave the field out if there is none",
        )
    return value
