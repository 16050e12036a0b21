"""Observations and judged expectations -> case results -> run record numbers.

Scores are rounded as the format's first runner did: four decimals, half away from zero, clamped.
What cannot be scored has no score; it is never a zero.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from runner.core.degrade import insufficient, runtime_unavailable, status_of, worst
from runner.core.sentinels import Search
from runner.model.leg import CasePlan, Degradation
from runner.model.observation import CaseObservation, Execution, StreamObservation
from runner.model.record import (
    CaseResult,
    ExpectationResult,
    FileRecord,
    ProbeRecord,
    Status,
    StreamRecord,
    Verdict,
)
from runner.model.suite import Case, Scoring, Suite


def round4(value: float) -> float:
    """Four decimals, half away from zero, clamped to [0, 1]."""
    return min(1.0, max(0.0, round_delta(value)))


def round_delta(value: float) -> float:
    """Four decimals, half away from zero, any sign; never negative zero."""
    scaled = abs(value) * 10_000
    whole = math.floor(scaled)
    # Adding a half before the floor would itself round, up at 0.49999999999999994.
    rounded = (whole + (scaled - whole >= 0.5)) / 10_000
    return math.copysign(rounded, value) if rounded else 0.0


def case_result(
    case: Case,
    plan: CasePlan,
    observation: CaseObservation | None,
    expectations: Sequence[ExpectationResult],
    sentinels: Search | None = None,
) -> CaseResult:
    """Judge one case of one leg.

    Args:
        case: The case as the suite states it.
        plan: The case as it was planned.
        observation: What was seen; None when the case was never reached.
        expectations: Judged expectations; empty when there was nothing to judge.
        sentinels: What was found of negative controls. It is no expectation: passing changes no
            denominator, failing makes the case fail with score 0.
    """
    execution = observation.execution if observation else None
    required = [item for item in expectations if item.required]
    degradation = worst(
        [plan.degraded, observation.degraded if observation else insufficient("not_reached")]
    ) or _degradation_of(plan, execution, required)
    searched = sentinels or Search()
    if degradation is None and not searched.decided:
        degradation = insufficient("output_truncated")
    passed = sum(item.verdict is Verdict.PASSED for item in required)
    failures = [item.message for item in required if item.verdict is not Verdict.PASSED]
    if degradation is not None:
        status, score = status_of(degradation), None
    elif searched.hits:
        status, score = Status.FAIL, 0.0
        # Its place is in the hit; a path may be what a private holdout asks for.
        named = dict.fromkeys(f"{hit.role} {hit.artifact} shows" for hit in searched.hits)
        failures = [*named, *failures]
    else:
        status = Status.PASS if passed == len(required) else Status.FAIL
        score = round4(passed / len(required))
    return CaseResult(
        case_id=case.id,
        kind=case.kind,
        status=status,
        score=score,
        critical=case.critical is True,
        dimensions=case.dimensions,
        exit_code=execution.exit_code if execution else None,
        signal=execution.signal if execution else None,
        timed_out=execution.timed_out if execution else False,
        oom_killed=execution.oom_killed if execution else None,
        start_error=execution.start_error if execution else None,
        duration_ms=execution.duration_ms if execution else 0,
        container=observation.container if observation else 0,
        expectations=tuple(expectations),
        stdout=_stream(execution.stdout) if execution else None,
        stderr=_stream(execution.stderr) if execution else None,
        probes=_probes(observation.probes if observation else {}),
        files=tuple(
            FileRecord(
                path=file.path,
                state=file.state,
                size=file.size,
                sha256=file.sha256,
                kept=file.kept,
                blob=file.blob,
            )
            for file in (observation.files if observation else ())
        ),
        usage=observation.usage if observation else None,
        wrote_workspace=observation.wrote_workspace if observation else None,
        hooks=observation.hooks if observation else (),
        sentinels=searched.hits,
        failure_message="; ".join(failures)[:2000] or None,
        degraded_reason=degradation.reason if degradation else None,
        degraded_detail=degradation.detail if degradation else None,
    )


def _probes(probes: Mapping[int, Execution]) -> tuple[ProbeRecord, ...]:
    return tuple(
        ProbeRecord(
            expectation=expectation,
            exit_code=probe.exit_code,
            timed_out=probe.timed_out,
            start_error=probe.start_error,
            stdout=_stream(probe.stdout),
            stderr=_stream(probe.stderr),
        )
        for expectation, probe in sorted(probes.items())
    )


def _stream(stream: StreamObservation) -> StreamRecord:
    return StreamRecord(size=stream.size, kept=stream.kept, sha256=stream.sha256, path=stream.blob)


def _degradation_of(
    plan: CasePlan, execution: Execution | None, required: Sequence[ExpectationResult]
) -> Degradation | None:
    """Why the outcome of a case that was reached cannot be believed, if it cannot."""
    if plan.command is not None and execution is None:
        return insufficient("not_reached")
    if execution is not None:
        if execution.start_error is not None:
            return runtime_unavailable("not_startable")
        if execution.oom_killed:
            return insufficient("oom")
        if execution.timed_out:
            return insufficient("timeout")
        if execution.signal is not None or execution.exit_code is None:
            return insufficient("crash")
    if not required:
        return insufficient("no_required_expectation")
    if any(item.verdict is Verdict.UNDECIDED for item in required):
        truncated = execution is not None and (
            execution.stdout.truncated or execution.stderr.truncated
        )
        return insufficient("output_truncated" if truncated else "undecided")
    return None


class Aggregate(NamedTuple):
    """Weighted score of a set of scored cases."""

    score: float | None
    dimensions: dict[str, float | None]


def dimensions_of(case_dimensions: Sequence[str], scoring: Scoring) -> tuple[str, ...]:
    """Dimensions that a case counts for, each once: its own, else all of the suite's."""
    return tuple(dict.fromkeys(case_dimensions or (item.name for item in scoring.dimensions)))


def aggregate(
    scores: Iterable[tuple[Sequence[str], float | None]],
    scoring: Scoring,
    *,
    lost: Literal["unknown", "zero"],
) -> Aggregate:
    """Dimension means and their weighted mean.

    Args:
        scores: For each case its dimensions and score; None: the case has none.
        scoring: Weights of the suite.
        lost: What a dimension counts whose cases all have no score: `unknown` makes the
            aggregate None, `zero` counts 0 (the rule over valid pairs, the same on both sides).

    A dimension that no case names at all counts 0, as the format's first runner had it; the
    reader of the suite is warned of it elsewhere.
    """
    by_dimension: dict[str, list[float | None]] = {item.name: [] for item in scoring.dimensions}
    anything = False
    for names, score in scores:
        anything = anything or score is not None
        for name in dimensions_of(names, scoring):
            if name in by_dimension:
                by_dimension[name].append(score)
    means: dict[str, float | None] = {}
    for name, values in by_dimension.items():
        known = [value for value in values if value is not None]
        if known:
            means[name] = round4(sum(known) / len(known))
        else:
            means[name] = None if values and lost == "unknown" else 0.0
    if not anything or any(value is None for value in means.values()):
        return Aggregate(None, means)
    weight = sum(item.weight for item in scoring.dimensions)
    total = sum(item.weight * (means[item.name] or 0.0) for item in scoring.dimensions)
    return Aggregate(round4(total / weight), means)


def leg_status(suite: Suite, cases: Sequence[CaseResult], result: Aggregate) -> Status:
    """Status of a leg from its cases, by the format's rules; unknown never becomes pass."""
    statuses = {case.status for case in cases}
    if Status.ERROR in statuses:
        return Status.ERROR
    if statuses == {Status.SKIPPED}:
        return Status.SKIPPED
    if statuses & {Status.SKIPPED, Status.INCONCLUSIVE} or result.score is None:
        return Status.INCONCLUSIVE
    if any(case.critical and case.status is not Status.PASS for case in cases):
        return Status.FAIL
    if result.score < suite.scoring.aggregate_threshold:
        return Status.FAIL
    for dimension in suite.scoring.dimensions:
        if (result.dimensions[dimension.name] or 0.0) < dimension.threshold:
            return Status.FAIL
    return Status.PASS


def suite_warnings(suite: Suite) -> tuple[str, ...]:
    """What the suite says that has no effect here, so that silence is not taken for obedience."""
    found: list[str] = []
    named = {name for case in suite.cases for name in dimensions_of(case.dimensions, suite.scoring)}
    for dimension in suite.scoring.dimensions:
        if dimension.name not in named:
            found.append(f"dimension {dimension.name}: no case names it, it counts 0 in both legs")
        if dimension.critical:
            found.append(f"dimension {dimension.name}: critical has no effect beyond its threshold")
    if suite.scoring.critical_threshold is not None:
        found.append("scoring.critical_threshold has no effect")
    environment = suite.environment
    if environment is not None and (environment.max_attempts or 1) > 1:
        found.append("environment.max_attempts has no effect: a case is never tried again")
    if environment is not None and environment.network not in (None, "", "forbidden"):
        found.append(f"environment.network {environment.network!r}: a leg never has a network")
    declared = set(suite.allowed_runtimes)
    found += [
        f"case {case.id}: runtime {case.runtime} is not in allowed_runtimes"
        for case in suite.cases
        if case.runtime is not None and declared and case.runtime not in declared
    ]
    return tuple(found)
