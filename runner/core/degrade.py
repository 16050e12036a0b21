"""The closed set of degraded reasons: which one wins, and what it makes of a status."""

from __future__ import annotations

from collections.abc import Iterable

from runner.model.leg import Degradation, DegradedReason
from runner.model.record import CaseResult, RunRecord, Status

# Worst first: what makes the measurement itself unclean, then what kept it from being made.
_PRECEDENCE = (
    DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE,
    DegradedReason.HOOKS_DISABLED,
    DegradedReason.CONTEXT_VARIANT_UNSUPPORTED,
    DegradedReason.CONTEXT_ROOT_UNAVAILABLE,
    DegradedReason.RUNTIME_UNAVAILABLE,
    DegradedReason.INSUFFICIENT_DECISION_EVIDENCE,
)


def worst(degradations: Iterable[Degradation | None]) -> Degradation | None:
    """The one that is reported when several apply; first come among equals."""
    present = [item for item in degradations if item is not None]
    return min(present, key=lambda item: _PRECEDENCE.index(item.reason), default=None)


def insufficient(detail: str) -> Degradation:
    """`insufficient_decision_evidence` with a detail."""
    return Degradation(reason=DegradedReason.INSUFFICIENT_DECISION_EVIDENCE, detail=detail)


def runtime_unavailable(detail: str) -> Degradation:
    """`runtime_unavailable` with a detail."""
    return Degradation(reason=DegradedReason.RUNTIME_UNAVAILABLE, detail=detail)


def hooks_disabled(detail: str) -> Degradation:
    """`hooks_disabled` with a detail."""
    return Degradation(reason=DegradedReason.HOOKS_DISABLED, detail=detail)


def status_of(degradation: Degradation) -> Status:
    """Status of something that did not run, or ran but cannot be believed."""
    if degradation.detail in {"live_runtime", "tier_not_deterministic"}:
        return Status.SKIPPED
    match degradation.reason:
        case DegradedReason.RUNTIME_UNAVAILABLE | DegradedReason.CONTEXT_ROOT_UNAVAILABLE:
            return Status.ERROR
        case DegradedReason.INSUFFICIENT_DECISION_EVIDENCE:
            errors = {"timeout", "oom", "crash", "protocol_violation"}
            return Status.ERROR if degradation.detail in errors else Status.INCONCLUSIVE
        case _:
            return Status.INCONCLUSIVE


def degrade_record(record: RunRecord, degradation: Degradation) -> RunRecord:
    """The record with the whole leg degraded: every row too, scores kept as what happened.

    The contract lets a degraded leg still report what happened; it takes no part in any delta.
    """
    chosen = worst([record.degradation, degradation]) or degradation
    return record.model_copy(
        update={
            "degraded_reason": chosen.reason,
            "degraded_detail": chosen.detail,
            "verdict": "inconclusive",
            "case_results": tuple(_degrade_case(case, chosen) for case in record.case_results),
        }
    )


def _degrade_case(case: CaseResult, degradation: Degradation) -> CaseResult:
    own = None
    if case.degraded_reason is not None and case.degraded_detail is not None:
        own = Degradation(reason=case.degraded_reason, detail=case.degraded_detail)
    chosen = worst([own, degradation]) or degradation
    return case.model_copy(
        update={"degraded_reason": chosen.reason, "degraded_detail": chosen.detail}
    )
