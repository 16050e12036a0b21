"""Two run records -> the paired rows and the delta."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from runner.core import decision
from runner.core.decision import Excerpt
from runner.core.degrade import insufficient, worst
from runner.core.score import aggregate, round_delta
from runner.model.controls import LegName
from runner.model.leg import Degradation
from runner.model.record import CaseResult, RunRecord, Status
from runner.model.scorecard import (
    EvaluatorFact,
    IgnoredContext,
    LegCase,
    LegSummary,
    PairedCase,
    Pairing,
)
from runner.model.suite import Scoring


class Sides(NamedTuple):
    """The two results of one case, and what controls found against the pair."""

    off: CaseResult
    on: CaseResult
    finding: Degradation | None = None

    @property
    def both(self) -> tuple[CaseResult, CaseResult]:
        """Off first."""
        return self.off, self.on

    @property
    def degradation(self) -> Degradation | None:
        """Why the pair is not valid, if it is not."""
        found = worst(
            Degradation(reason=side.degraded_reason, detail=side.degraded_detail or "unspecified")
            for side in self.both
            if side.degraded_reason is not None
        )
        if found is None and not all(_finished(side) for side in self.both):
            return insufficient("unfinished")
        found = found or self.finding
        if found is None and decision.moved(*self.both) and not decision.evidenced(*self.both):
            return insufficient("no_decision_evidence")
        return found


def _finished(side: CaseResult) -> bool:
    return side.status in {Status.PASS, Status.FAIL} and side.score is not None


def sides(
    off: RunRecord, on: RunRecord, findings: Mapping[str, Degradation] | None = None
) -> tuple[Sides, ...]:
    """Pair the cases of two records by id, in the order of the suite.

    Args:
        off: Record of `context_off`.
        on: Record of `context_on`.
        findings: What controls found, by case id.

    Raises:
        ValueError: The records do not hold the same cases; they are not of one run.
    """
    on_by_id = {case.case_id: case for case in on.case_results}
    if set(on_by_id) != {case.case_id for case in off.case_results}:
        raise ValueError("the two records do not hold the same cases")
    against = findings or {}
    return tuple(
        Sides(case, on_by_id[case.case_id], against.get(case.case_id)) for case in off.case_results
    )


def paired_cases(
    off: RunRecord,
    on: RunRecord,
    *,
    excerpt: Excerpt,
    findings: Mapping[str, Degradation] | None = None,
    artifacts: Mapping[str, tuple[str, ...]] | None = None,
    ignored: Mapping[str, tuple[IgnoredContext, ...]] | None = None,
) -> tuple[PairedCase, ...]:
    """A row for every case, degraded or not.

    Args:
        off: Record of `context_off`.
        on: Record of `context_on`.
        excerpt: Reads the head of a stored output.
        findings: What controls found against pairs, by case id.
        artifacts: What decided changed cases, by case id, in the contract's words.
        ignored: Context that had no part, by case id.
    """
    rows = []
    named, vain = artifacts or {}, ignored or {}
    for pair in sides(off, on, findings):
        degradation = pair.degradation
        valid = degradation is None
        score_delta = status_delta = None
        if valid:
            score_delta = round_delta((pair.on.score or 0.0) - (pair.off.score or 0.0))
            status_delta = int(pair.on.status is Status.PASS) - int(pair.off.status is Status.PASS)
        facts = decision.facts(*pair.both)
        changed = [fact for fact in facts if fact.changed]
        rows.append(
            PairedCase(
                case_id=pair.off.case_id,
                context_off=_leg_case(off, pair.off, "context_off"),
                context_on=_leg_case(on, pair.on, "context_on"),
                score_delta=score_delta,
                status_delta=status_delta,
                decision_evidence=(
                    *facts,
                    *decision.sentinel_facts(*pair.both),
                    *decision.outputs(*pair.both, excerpt),
                ),
                ignored_context_evidence=(
                    (*_ignored(pair, changed), *vain.get(pair.off.case_id, ())) if valid else ()
                ),
                token_delta=_usage_delta(pair, "tokens") if valid else None,
                tool_delta=_usage_delta(pair, "tool_calls") if valid else None,
                degraded_reason=degradation.reason if degradation else None,
                degraded_detail=degradation.detail if degradation else None,
                artifact_attribution=(
                    _attributed(pair, named) if valid and decision.moved(*pair.both) else ("none",)
                ),
            )
        )
    return tuple(rows)


def _attributed(pair: Sides, named: Mapping[str, tuple[str, ...]]) -> tuple[str, ...]:
    """What decided a pair; a sentinel that failed one side alone is named before all else."""
    hits = [{hit.artifact for hit in side.sentinels} for side in pair.both]
    alone = hits[0] ^ hits[1]
    if alone:
        return tuple(sorted(alone))
    return named.get(pair.off.case_id, ("decision_output",))


def _leg_case(record: RunRecord, case: CaseResult, leg: LegName) -> LegCase:
    return LegCase(
        variant=leg,
        context_root_label=record.context_root_label or "",
        run_id=record.run_id,
        status=case.status,
        score=case.score,
        degraded_reason=case.degraded_reason,
        degraded_detail=case.degraded_detail,
    )


def _ignored(pair: Sides, changed: Sequence[EvaluatorFact]) -> tuple[IgnoredContext, ...]:
    """What speaks for the context having had no part; nothing when an outcome changed."""
    if changed:
        return ()
    found = [IgnoredContext(kind="same_outcome", detail="every required expectation held steady")]
    streams = [(side.stdout, side.stderr) for side in pair.both]
    if all(out is not None and err is not None for out, err in streams):
        same = [
            name
            for name, (a, b) in zip(("stdout", "stderr"), zip(*streams, strict=True), strict=True)
            if a is not None and b is not None and (a.sha256, a.size) == (b.sha256, b.size)
        ]
        if len(same) == 2:
            found.append(
                IgnoredContext(kind="same_output", detail="stdout and stderr equal in both legs")
            )
    return tuple(found)


def _usage_delta(pair: Sides, name: str) -> int | None:
    if pair.off.usage is None or pair.on.usage is None:
        return None
    if name not in pair.off.usage or name not in pair.on.usage:
        return None
    return pair.on.usage[name] - pair.off.usage[name]


def pairing(
    off: RunRecord,
    on: RunRecord,
    scoring: Scoring,
    findings: Mapping[str, Degradation] | None = None,
) -> tuple[Pairing, float | None]:
    """Aggregates over valid pairs, their difference, and bounds for one-sided losses.

    Returns:
        The pairing block and `aggregate_delta` (None when no pair is valid).
    """
    pairs = sides(off, on, findings)
    valid = [pair for pair in pairs if pair.degradation is None]
    off_score = _over(valid, scoring, [pair.off.score for pair in valid])
    on_score = _over(valid, scoring, [pair.on.score for pair in valid])
    delta = None
    if off_score is not None and on_score is not None:
        delta = round_delta(on_score - off_score)
    # Worst cases: a side that is lost while the other finished could have been anything.
    bounded = [pair for pair in pairs if pair.degradation is None or _one_sided(pair)]
    lower = upper = delta
    if len(bounded) > len(valid):
        # More cases dilute what the valid ones showed, so the delta itself can be the worst case.
        low = _difference(bounded, scoring, lost_off=1.0, lost_on=0.0)
        high = _difference(bounded, scoring, lost_off=0.0, lost_on=1.0)
        lower = low if delta is None else min(low, delta)
        upper = high if delta is None else max(high, delta)
    block = Pairing(
        valid_pairs=len(valid),
        degraded_pairs=len(pairs) - len(valid),
        context_off_aggregate=off_score,
        context_on_aggregate=on_score,
        delta_lower_bound=lower,
        delta_upper_bound=upper,
    )
    return block, delta


def _one_sided(pair: Sides) -> bool:
    clean = [side for side in pair.both if side.degraded_reason is None and _finished(side)]
    return len(clean) == 1


def _over(pairs: Sequence[Sides], scoring: Scoring, scores: Sequence[float | None]) -> float | None:
    named = zip((pair.off.dimensions for pair in pairs), scores, strict=True)
    return aggregate(named, scoring, lost="zero").score


def _difference(
    pairs: Sequence[Sides], scoring: Scoring, *, lost_off: float, lost_on: float
) -> float:
    def score(side: CaseResult, lost: float) -> float:
        known = side.degraded_reason is None and _finished(side)
        return side.score if known and side.score is not None else lost

    off = _over(pairs, scoring, [score(pair.off, lost_off) for pair in pairs])
    on = _over(pairs, scoring, [score(pair.on, lost_on) for pair in pairs])
    return round_delta((on or 0.0) - (off or 0.0))


def leg_summary(record: RunRecord, leg: LegName, entries: int) -> LegSummary:
    """The contract's leg block."""
    return LegSummary(
        variant=leg,
        context_root_label=record.context_root_label or "",
        run_id=record.run_id,
        aggregate_score=record.aggregate_score,
        status=record.status,
        dimension_scores=record.dimension_scores,
        context_root_sha256=record.context_root_sha256,
        context_root_entries=entries,
        degraded_reason=record.degraded_reason,
        degraded_detail=record.degraded_detail,
        cases_total=len(record.case_results),
        cases_degraded=sum(case.degraded_reason is not None for case in record.case_results),
    )
