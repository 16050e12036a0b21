"""The gates of an ingest: what the caller states against what the score claims.

What is stated beats what is claimed, a contradiction is refused, and what nobody stated is taken
from the score with a warning. Refusals quote neither side: a score may hold an answer.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Final, NamedTuple, Protocol, TypeVar

from pydantic import ValidationError

from runner.core.canon import digest
from runner.core.outcomes.score import REF, RUN_ID, Score, canonical_judge_hash, split
from runner.core.outcomes.sealed import sealed
from runner.core.strictjson import StrictJsonError, loads
from runner.errors import HoldoutRefusal, InputError
from runner.model.rubric import Rubric
from runner.model.verdict import Split

T = TypeVar("T")

AGGREGATE_TOLERANCE: Final = Fraction(1, 10**9)
"""Between a claimed aggregate and the one recomputed: graders sum doubles in some order."""

UNCHECKED_PARITY: Final = (
    "the judge content hash was compared with nothing: gate #2 was NOT checked"
)

# Numbers of fewer significant digits equal an answer by chance, and carry next to nothing.
_TELLING_DIGITS: Final = 5


class Stated(NamedTuple):
    """What the caller states. None: not stated; an empty text is never "not stated".

    Attributes:
        judge_hash: Of the active rubric.
        ledger: Whether a burn ledger was named.
    """

    judge_hash: str | None = None
    suite: str | None = None
    split: str | None = None
    gt_version: str | None = None
    threshold: float | None = None
    run_id: str | None = None
    ledger: bool = False


class Resolved(NamedTuple):
    """A score that passed the gates, with what it was settled to be about.

    Attributes:
        burns: Whether it uses up holdout quota; then suite_ref, gt_version and run_id are set.
        score_sha256: Of the bytes of the score file.
        warnings: One line each: what nobody but the score vouches for.
    """

    aggregate: float
    threshold: float
    criterion_scores: dict[str, float] | None
    task_id: str | None
    judge_hash: str | None
    split: Split
    suite_ref: str | None
    gt_version: str | None
    run_id: str | None
    burns: bool
    score_sha256: str
    warnings: tuple[str, ...]

    def __repr__(self) -> str:
        """Nothing of what is in it: it may be an answer."""
        return "Resolved(...)"

    @property
    def grade_sha256(self) -> str:
        """Digest of all that the verdict depends on.

        A score that is ingested again under its run id must have the same one, or else the bar
        could be moved after a holdout was seen, without a burn.
        """
        return digest(
            {
                "format": "ao-eval-grade.v1",
                "score_sha256": self.score_sha256,
                "judge_hash": self.judge_hash,
                "split": self.split.value,
                "suite_ref": self.suite_ref,
                "gt_version": self.gt_version,
                "threshold": self.threshold,
                "run_id": self.run_id,
            }
        )


class Hit(Protocol):
    """A holdout value that was found, without the value."""

    @property
    def value_index(self) -> int:
        """Which value."""

    @property
    def view(self) -> str:
        """In which form."""

    @property
    def pointer(self) -> str:
        """Where in the scanned document."""


@sealed
def read_rubric(data: bytes, where: str) -> Rubric:
    """Read the rubric that a score is bound to, as `outcomes compile` printed it.

    Args:
        data: The file.
        where: Its name in messages.

    Raises:
        InputError: It is no rubric.
    """
    try:
        rubric = Rubric.model_validate(loads(data, fold_keys=True))
    except (StrictJsonError, ValidationError):
        # No reason is given: reasons quote keys, and a file named by mistake may be the holdout.
        raise _no_rubric(where) from None
    if len({criterion.id.casefold() for criterion in rubric.criteria}) < len(rubric.criteria):
        raise _no_rubric(where)
    return rubric


@sealed
def resolve(
    stated: Stated,
    score: Score,
    *,
    rubric: Rubric | None = None,
    strict: bool = False,
    warnings: list[str] | None = None,
) -> Resolved:
    """Pass a score through gate 2 and settle what it is about.

    Args:
        stated: What the caller states.
        score: What the score claims.
        rubric: The rubric it was graded against; the score is bound to it.
        strict: Refuse what would be a warning.
        warnings: The caller's list, to which each warning is added as it comes up, so that they
            outlive a refusal. A refusal by `strict` names them all itself, and leaves it as it was.

    Raises:
        InputError: Something stated is malformed.
        HoldoutRefusal: A gate refuses, the score contradicts the caller or the rubric, or nobody
            says which split it is.
    """
    _check_stated(stated)
    warnings = [] if warnings is None else warnings
    before = len(warnings)
    _check_parity(stated.judge_hash, score, warnings)
    if rubric is None:
        warnings.append("no rubric was given: task, criteria and aggregate are the score's claim")
    else:
        bind(rubric, score)
    found_split = _settle(
        "split", split(stated.split) if stated.split is not None else None, score.split, warnings
    )
    if found_split is None:
        raise HoldoutRefusal(
            "nobody says whether this is the dev or the holdout split", remedy="state --split"
        )
    if found_split is Split.DEV and stated.ledger and stated.split is None:
        warnings.append("the score itself says dev: the burn ledger was NOT charged")
    suite_ref = _settle("suite", stated.suite, score.suite_ref, warnings)
    gt_version = _settle("gt-version", stated.gt_version, score.gt_version, warnings)
    threshold = _settle("threshold", stated.threshold, score.threshold, warnings)
    if threshold is None:
        threshold = 1.0
        warnings.append("nobody states a threshold: 1 was taken; state --threshold")
    run_id = _settle("run-id", stated.run_id, score.run_id, warnings)
    burns = found_split is Split.HOLDOUT and stated.ledger
    if burns and (missing := _unnamed(suite_ref, gt_version, run_id)):
        raise HoldoutRefusal(
            "the burn cannot be recorded: neither the caller nor the score names it",
            remedy=f"state {' and '.join(missing)}",
        )
    if found_split is Split.HOLDOUT and not stated.ledger:
        warnings.append("holdout split without --burn-ledger: gate #3 was NOT checked, no burn")
    if run_id is None and score.task_id is not None:
        run_id = score.task_id
        warnings.append("nobody gives a run id: the task id stands in; state --run-id")
    found = tuple(warnings[before:])
    if strict and found:
        del warnings[before:]
        raise HoldoutRefusal(f"refused by --strict: {'; '.join(found)}")
    return Resolved(
        aggregate=score.aggregate,
        threshold=threshold,
        criterion_scores=score.criterion_scores,
        task_id=score.task_id,
        judge_hash=score.judge_hash,
        split=found_split,
        suite_ref=suite_ref,
        gt_version=gt_version,
        run_id=run_id,
        burns=burns,
        score_sha256=score.sha256,
        warnings=found,
    )


@sealed
def bind(rubric: Rubric, score: Score) -> None:
    """Check that a score grades what a rubric asks for, and adds up.

    Args:
        rubric: The rubric.
        score: The score, or a baseline score.

    Raises:
        HoldoutRefusal: Task, judge, criteria or aggregate differ, or the score does not say.
    """
    remedy = "grade the run again against this rubric"
    if score.task_id != rubric.source_task_id:
        raise HoldoutRefusal("the score is not of the rubric's task", remedy=remedy)
    if score.judge_hash != rubric.judge_content_hash:
        raise HoldoutRefusal("the score is not by the rubric's judge", remedy=remedy)
    scores = score.criterion_scores or {}
    if set(scores) != {criterion.id for criterion in rubric.criteria}:
        raise HoldoutRefusal("the score's criteria are not those of the rubric", remedy=remedy)
    weights = [(criterion.id, Fraction(criterion.weight)) for criterion in rubric.criteria]
    total = sum((weight for _, weight in weights), Fraction(0))
    reached = sum((weight * Fraction(scores[name]) for name, weight in weights), Fraction(0))
    if abs(reached / total - Fraction(score.aggregate)) > AGGREGATE_TOLERANCE:
        raise HoldoutRefusal(
            "the aggregate is not the weighted mean of the criterion scores", remedy=remedy
        )


def carried_text(resolved: Resolved, *others: str | None) -> tuple[str, ...]:
    """Everything from outside that the verdict, the manifest and the record carry as text.

    Constants of ours are left out, so that an answer `PASS` does not refuse every passing score;
    numbers of few digits are left out, so that an answer `0.5` does not refuse half of them.

    Args:
        resolved: What the gates let through.
        others: More texts: the bead, the run id of the baseline.
    """
    scores = resolved.criterion_scores or {}
    texts = (
        resolved.task_id,
        resolved.run_id,
        resolved.suite_ref,
        resolved.gt_version,
        resolved.judge_hash,
        *scores,
        *others,
    )
    numbers = (resolved.aggregate, resolved.threshold, *scores.values())
    return (
        *(text for text in texts if text is not None),
        *(repr(number) for number in numbers if _digits(number) >= _TELLING_DIGITS),
    )


@sealed
def refuse_leaks(texts: Sequence[str], scan: Callable[[bytes], Sequence[Hit]]) -> None:
    """Refuse to show a verdict that carries a holdout value.

    Args:
        texts: From `carried_text`.
        scan: The scan of a JSON document against the holdout values.

    Raises:
        HoldoutRefusal: Names the value's index and its form, never the value or its place: the
            place can be a criterion id, which is then the value.
    """
    # A list has no keys, which could coincide with a value.
    hits = scan(json.dumps(list(texts), ensure_ascii=False).encode())
    if hits:
        first = min(hits, key=lambda hit: hit.value_index)
        raise HoldoutRefusal(
            f"the score carries holdout value #{first.value_index} (view {first.view})",
            remedy="find out how the grader came to see it; treat it as burnt",
        )


def _no_rubric(where: str) -> InputError:
    return InputError(
        "no rubric of schema version 1",
        where=where,
        remedy="name the file that `ao-eval outcomes compile` printed",
    )


def _check_stated(stated: Stated) -> None:
    # An unset shell variable gives an empty text; it must never switch a gate off.
    if stated.judge_hash is not None and canonical_judge_hash(stated.judge_hash) is None:
        raise InputError(
            "empty; an unset variable must not switch gate #2 off"
            if not stated.judge_hash
            else "not `sha256:` and 64 hexadecimal digits",
            where="--expect-judge-hash",
        )
    if stated.split is not None and split(stated.split) is None:
        raise InputError("must be exactly `dev` or `holdout`", where="--split")
    for option, text, pattern in (
        ("--suite", stated.suite, REF),
        ("--gt-version", stated.gt_version, REF),
        ("--run-id", stated.run_id, RUN_ID),
    ):
        if text is not None and not pattern.fullmatch(text):
            raise InputError(
                "not an id: plain ASCII, no blanks at the ends, at most 128 characters",
                where=option,
            )
    threshold = stated.threshold
    if threshold is not None and not (math.isfinite(threshold) and 0 < threshold <= 1):
        raise InputError("not a number in (0, 1]", where="--threshold")


def _check_parity(expected: str | None, score: Score, warnings: list[str]) -> None:
    """Gate 2."""
    if expected is None:
        carries = "" if score.judge_hash else ", and the score carries no hash"
        warnings.append(f"{UNCHECKED_PARITY}{carries}; pass --expect-judge-hash")
    elif score.judge_hash is None:
        raise HoldoutRefusal(
            "gate #2: the score carries no judge content hash",
            remedy="grade the run again with a grader that keeps the rubric's hash",
        )
    elif score.judge_hash != canonical_judge_hash(expected):
        raise HoldoutRefusal(
            "gate #2: the score was graded against another rubric than the active one",
            remedy="grade the run again against the active rubric",
        )


def _settle(option: str, stated: T | None, claimed: T | None, warnings: list[str]) -> T | None:
    if stated is None:
        if claimed is not None:
            warnings.append(f"--{option} was not stated: the score's own claim was taken")
        return claimed
    if claimed is not None and claimed != stated:
        raise HoldoutRefusal(
            f"--{option} contradicts the score", remedy="find out which of them is right"
        )
    return stated


def _unnamed(suite_ref: str | None, gt_version: str | None, run_id: str | None) -> list[str]:
    options = (("--suite", suite_ref), ("--gt-version", gt_version), ("--run-id", run_id))
    return [option for option, value in options if value is None]


def _digits(number: float) -> int:
    mantissa = repr(number).split("e")[0]
    return len(mantissa.replace(".", "").strip("0"))
