"""What a command exits with, from what it found; the highest ranking wins."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from runner.model.record import RunRecord, Status
from runner.model.scorecard import ContextScorecard, LegSummary, PairedCase
from runner.model.skillscorecard import AnyScorecard, SkillLeg

OK = 0
GATE = 1
INTEGRITY = 5
NO_EVIDENCE = 4
INTERRUPTED = (130, 143)

RANKING = (*INTERRUPTED, 70, 2, 3, INTEGRITY, 6, NO_EVIDENCE, GATE, OK)
"""Most important first (README)."""


class Wanted(NamedTuple):
    """Gates that the caller asked for.

    Attributes:
        delta: Least lower bound of the delta; None for no gate.
        valid: No pair may be degraded.
        passing: The on-leg, or the only leg, must pass.
    """

    delta: float | None = None
    valid: bool = False
    passing: bool = False


def highest(codes: Sequence[int]) -> int:
    """The highest ranking of several exit codes."""
    return min(codes, key=RANKING.index, default=OK)


def of_scorecard(scorecard: AnyScorecard, wanted: Wanted) -> int:
    """Exit code for one comparison.

    A gate on the delta uses its lower bound: what was lost on one side only counts against it.
    The null check is a gate too: with the same root in both legs no pair may differ.
    """
    codes = [OK]
    if scorecard.integrity.verdict == "violated":
        codes.append(INTEGRITY)
    elif scorecard.integrity.verdict != "clean":
        codes.append(NO_EVIDENCE)
    if scorecard.pairing.valid_pairs == 0:
        codes.append(NO_EVIDENCE)
    if wanted.valid and scorecard.pairing.degraded_pairs:
        codes.append(NO_EVIDENCE)
    if wanted.delta is not None:
        bound = scorecard.pairing.delta_lower_bound
        reached = bound is not None and bound >= wanted.delta  # never, when what is wanted is NaN
        if not reached:
            codes.append(GATE)
    if _null_check_failed(scorecard):
        codes.append(GATE)
    if wanted.passing and _on_leg(scorecard).status is not Status.PASS:
        codes.append(GATE)
    return highest(codes)


def _on_leg(scorecard: AnyScorecard) -> LegSummary | SkillLeg:
    return scorecard.context_on if isinstance(scorecard, ContextScorecard) else scorecard.skill_on


def _null_check_failed(scorecard: AnyScorecard) -> bool:
    if not isinstance(scorecard, ContextScorecard) or not scorecard.controls.null_check:
        return False
    return any(_changed(row) for row in scorecard.per_case)


def _changed(row: PairedCase) -> bool:
    return bool(row.score_delta or row.status_delta)


def of_record(record: RunRecord, *, clean: bool, wanted: Wanted) -> int:
    """Exit code for a single leg."""
    codes = [OK]
    degraded = [case for case in record.case_results if case.degraded_reason is not None]
    if not clean:
        codes.append(INTEGRITY)
    if record.degraded_reason is not None or len(degraded) == len(record.case_results):
        codes.append(NO_EVIDENCE)
    if wanted.valid and degraded:
        codes.append(NO_EVIDENCE)
    if wanted.passing and record.status is not Status.PASS:
        codes.append(GATE)
    return highest(codes)
