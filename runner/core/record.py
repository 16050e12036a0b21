"""Leg outcome -> run record."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

from runner.core.degrade import degrade_record, status_of
from runner.core.score import aggregate, leg_status
from runner.model.leg import Degradation, LegPlan
from runner.model.observation import InsideEnd, InsideReport
from runner.model.record import (
    CaseResult,
    EnvironmentRef,
    GitRef,
    LegTimings,
    RunRecord,
    RuntimeRef,
    Status,
    SuiteRef,
)
from runner.model.suite import SuiteFile


class Circumstances(NamedTuple):
    """What a record states beside its results.

    Attributes:
        started_at: RFC 3339, UTC.
        completed_at: RFC 3339, UTC.
        git: Commit of the suite's repository.
        runtime: What ran the leg.
        environment: Its surroundings.
        timings: Milliseconds.
        folder: Folder of the suite inside the container.
    """

    started_at: str
    completed_at: str
    git: GitRef
    runtime: RuntimeRef
    environment: EnvironmentRef
    timings: LegTimings
    folder: str


def run_record(
    suite: SuiteFile,
    plan: LegPlan,
    results: Sequence[CaseResult],
    *,
    degraded: Degradation | None,
    inside: InsideReport | None,
    inside_end: InsideEnd | None,
    circumstances: Circumstances,
) -> RunRecord:
    """Build the record of one leg.

    Args:
        suite: The suite.
        plan: The leg as it was planned.
        results: One for every case of the plan.
        degraded: Why the whole leg cannot be believed.
        inside: What the agent saw at the start.
        inside_end: What it saw at the end.
        circumstances: Everything else that is stated.
    """
    scored = [(case.dimensions, case.score) for case in results]
    # Cases that were left out (`--case`) have no score either: their dimensions are unknown, not 0.
    run = {case.case_id for case in results}
    scored += [(case.dimensions, None) for case in suite.suite.cases if case.id not in run]
    score = aggregate(scored, suite.suite.scoring, lost="unknown")
    status = leg_status(suite.suite, results, score)
    if degraded is not None and all(case.score is None for case in results):
        status = status_of(degraded)
    record = RunRecord(
        schema_version=1,
        run_id=plan.run_id,
        leg=plan.leg,
        axis=plan.axis,
        variant=plan.variant,
        role=plan.role,
        context_root_label=plan.root.label if plan.root else None,
        context_root_sha256=plan.root.sha256 if plan.root else None,
        suite=SuiteRef(
            id=suite.suite.id,
            path=suite.path,
            sha256=suite.sha256,
            visibility=suite.suite.visibility,
            tier=suite.suite.tier,
            folder=circumstances.folder,
        ),
        started_at=circumstances.started_at,
        completed_at=circumstances.completed_at,
        status=status,
        verdict=_verdict(status, degraded),
        git=circumstances.git,
        runtime=circumstances.runtime,
        environment=circumstances.environment,
        case_results=tuple(results),
        aggregate_score=score.score,
        dimension_scores=score.dimensions,
        degraded_reason=None,
        degraded_detail=None,
        inside=inside,
        inside_end=inside_end,
        timings=circumstances.timings,
    )
    return record if degraded is None else degrade_record(record, degraded)


def _verdict(
    status: Status, degraded: Degradation | None
) -> Literal["pass", "fail", "inconclusive"]:
    if degraded is not None:
        return "inconclusive"
    match status:
        case Status.PASS:
            return "pass"
        case Status.FAIL:
            return "fail"
        case _:
            return "inconclusive"
