"""Accepted score -> council verdict."""

from __future__ import annotations

from typing import Literal

from runner.core.outcomes.gates import Resolved
from runner.model.burn import BurnHead
from runner.model.verdict import Band, CouncilVerdict

WARN_FRACTION = 0.7
"""Below this part of the threshold a score fails."""

_INSIGHT = {
    Band.PASS: "meets its threshold",
    Band.WARN: "falls short of its threshold, within the warning band",
    Band.FAIL: "fails: it is below the warning band of its threshold",
}
_RECOMMENDATION = {
    Band.PASS: "Accept the run.",
    Band.WARN: "Review the criteria with the lowest scores before accepting the run.",
    Band.FAIL: "Do not accept the run; mend it and grade it again.",
}

GateLevel = Literal["fail", "warn"]


def band(aggregate: float, threshold: float) -> Band:
    """Band of an aggregate.

    Plain comparisons of IEEE doubles without a tolerance, `0.7 * threshold` being computed in
    double as well, so that verdicts equal those of the format's first writer: with a threshold of
    1, 0.7 is WARN.

    Args:
        aggregate: In [0, 1].
        threshold: In (0, 1].
    """
    if aggregate >= threshold:
        return Band.PASS
    return Band.FAIL if aggregate < WARN_FRACTION * threshold else Band.WARN


def council_verdict(resolved: Resolved, head: BurnHead | None = None) -> CouncilVerdict:
    """The council verdict of an accepted score.

    Args:
        resolved: What the gates let through.
        head: Head of the burn ledger after the burn, if one was made.
    """
    found = band(resolved.aggregate, resolved.threshold)
    # No numbers in the sentence: short ones are hard to tell from an answer.
    return CouncilVerdict(
        verdict=found,
        confidence="HIGH",
        key_insight=f"{resolved.task_id or 'The graded run'} {_INSIGHT[found]}.",
        recommendation=_RECOMMENDATION[found],
        schema_version=4,
        satisfaction_score=resolved.aggregate,
        satisfaction_breakdown=resolved.criterion_scores,
        findings=(),
        burn_ledger_head=head,
    )


def refused_by_gate(found: Band, level: GateLevel | None) -> bool:
    """Whether a verdict makes the command exit 1.

    Args:
        found: The verdict.
        level: Worst band that is not let through: `fail` lets WARN pass, `warn` only PASS. None
            lets every verdict pass.
    """
    match level:
        case None:
            return False
        case "fail":
            return found is Band.FAIL
        case "warn":
            return found is not Band.PASS
