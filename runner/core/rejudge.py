"""A stored run record, made again from the outputs that were stored with it.

What a leg was observed to do is taken from the record: which case ended how, what its outputs are.
Everything that follows from it is derived: verdicts, statuses, scores, degraded reasons of cases,
aggregates. Whoever verifies compares the two.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from runner.core import hookreceipts, liveproof
from runner.core.confine import is_gvisor
from runner.core.degrade import degrade_record, worst
from runner.core.expect import evaluate
from runner.core.material import EMPTY, Captured, CapturedFile, CapturedProbe, Material
from runner.core.plan import LegRequest, plan_leg
from runner.core.record import Circumstances, run_record
from runner.core.score import case_result
from runner.core.sentinels import Search, leg_sentinels, search
from runner.model.contextroots import ContextRoots
from runner.model.leg import CasePlan, ContextRoot, Degradation, LegPlan
from runner.model.liveproof import LiveStateProof
from runner.model.observation import (
    CaseObservation,
    Execution,
    FileObservation,
    StreamObservation,
)
from runner.model.record import CaseResult, ProbeRecord, RunRecord, StreamRecord
from runner.model.suite import Case, SuiteFile

Blob = Callable[[str], bytes]
"""Path below the evidence directory -> the stored output."""

_BLAMED = frozenset({"oom", "agent_died"})


class NotJudged(ValueError):
    """The record cannot be of this suite, or says too little; the message says how."""


class Derived(NamedTuple):
    """A record as it follows from its observations.

    Attributes:
        record: To be compared with what is stored.
        taken: Statements that had to be taken as observed, one line each.
    """

    record: RunRecord
    taken: tuple[str, ...]


def derive(
    suite: SuiteFile,
    rounds: Sequence[Sequence[RunRecord]],
    live: LiveStateProof,
    blob: Blob,
    roots: ContextRoots | None = None,
) -> tuple[Derived, ...]:
    """Make the records of a run again.

    Args:
        suite: The suite. Of a private holdout the verdicts are taken: its outputs are stored
            nowhere.
        rounds: Stored records of the legs that ran side by side, in order.
        live: The live state, which degrades every leg when it changed.
        blob: Reads a stored output.
        roots: Both context roots with their sentinels; None where there was none.

    Raises:
        NotJudged: A record and the suite do not belong together.
    """
    changed = liveproof.degradation(live)
    found = []
    for stored in rounds:
        plans = [_plan(suite, record, roots) for record in stored]
        own = [_own_degradation(record, changed) for record in stored]
        judged = [
            tuple(
                _case(suite, record, plan, case, why, root=planned.root, blob=blob)
                for plan, case in zip(planned.cases, record.case_results, strict=True)
            )
            for record, planned, why in zip(stored, plans, own, strict=True)
        ]
        settled = hookreceipts.settle_round(
            judged, [(record.axis, record.variant) for record in stored]
        )
        for record, planned, why, results in zip(stored, plans, own, settled, strict=True):
            made = _record(suite, record, planned, results, why)
            if changed is not None:
                made = degrade_record(made, changed)
                made = _unknown_statuses(made, record)
            found.append(Derived(made, tuple(_taken(record, why, results))))
    return tuple(found)


def _plan(suite: SuiteFile, record: RunRecord, roots: ContextRoots | None) -> LegPlan:
    """The plan that the leg must have had, as far as judging needs it."""
    ids = [case.case_id for case in record.case_results]
    known = {case.id for case in suite.suite.cases}
    strangers = [case_id for case_id in ids if case_id not in known]
    if strangers:
        raise NotJudged(f"the suite has no case {strangers[0]!r}")
    if not ids:
        raise NotJudged("there is no case")
    root = None
    if record.context_root_label is not None:
        root = ContextRoot(
            label=record.context_root_label,
            sha256=record.context_root_sha256,
            path="",
            sentinels=leg_sentinels(roots, record.role) if roots and record.role else (),
        )
    plan = plan_leg(
        suite.suite,
        LegRequest(record.variant, root),
        axis=record.axis,
        run_id=record.run_id,
        suite_dir=record.suite.folder or "/",
        environment={},
        suppressed=None,
        only=ids,
    )
    if [case.case_id for case in plan.cases] != ids:
        raise NotJudged("the cases are not those of the suite in its order, each once")
    return plan.model_copy(update={"leg": record.leg, "role": record.role})


def _own_degradation(record: RunRecord, changed: Degradation | None) -> Degradation | None:
    """Why the leg by itself was degraded; unknown where a changed live state took its place."""
    return None if changed is not None else record.degradation


def _case(
    suite: SuiteFile,
    record: RunRecord,
    plan: CasePlan,
    stored: CaseResult,
    leg: Degradation | None,
    *,
    root: ContextRoot | None,
    blob: Blob,
) -> CaseResult:
    case = suite.suite.cases[plan.index]
    if not stored.expectations:
        blamed = plan.model_copy(update={"degraded": _unreached(record, plan, stored, leg)})
        result = case_result(case, blamed, None, ())
        # Which container it would have run in is no judgement.
        return result.model_copy(update={"container": stored.container})
    execution = _execution(stored)
    if plan.command is None and execution is not None:
        raise NotJudged(f"{stored.case_id}: a static case runs nothing")
    if suite.suite.is_holdout:
        return _withheld(case, plan, stored)
    material = Material(
        exit_code=0 if execution is None else stored.exit_code,
        stdout=_captured(stored.stdout, blob),
        stderr=_captured(stored.stderr, blob),
        files={
            file.path: CapturedFile(
                file.state,
                None
                if file.state != "regular"
                else Captured(
                    b"" if file.blob is None else blob(file.blob), file.size, file.sha256 or ""
                ),
            )
            for file in stored.files
        },
        probes={probe.expectation: _probe(probe, blob) for probe in stored.probes},
    )
    judged = [
        evaluate(case, index, material, suite_dir=record.suite.folder or "/", holdout=False)
        for index in range(len(case.expectations))
    ]
    found = search(material, root.sentinels if root is not None else ())
    return case_result(case, plan, _observation(plan, stored, execution), judged, found)


def _withheld(case: Case, plan: CasePlan, stored: CaseResult) -> CaseResult:
    """A case of a private holdout: its outputs are stored nowhere, its verdicts are taken."""
    execution = _execution(stored)
    if execution is not None and execution.exit_code is None and execution.signal is None:
        # Withheld, and known to be there: without one the case would have crashed.
        execution = execution.model_copy(update={"exit_code": 0})
    observation = _observation(plan, stored, execution)
    found = Search(stored.sentinels, decided=stored.degraded_detail != "output_truncated")
    result = case_result(case, plan, observation, stored.expectations, found)
    return result.model_copy(update={"exit_code": stored.exit_code})


def _observation(
    plan: CasePlan, stored: CaseResult, execution: Execution | None
) -> CaseObservation:
    return CaseObservation(
        index=plan.index,
        case_id=stored.case_id,
        container=stored.container,
        execution=execution,
        probes={
            probe.expectation: Execution(
                exit_code=probe.exit_code,
                timed_out=probe.timed_out,
                start_error=probe.start_error,
                stdout=_observed(probe.stdout),
                stderr=_observed(probe.stderr),
            )
            for probe in stored.probes
        },
        files=tuple(
            FileObservation(
                path=file.path,
                state=file.state,
                size=file.size,
                kept=file.kept,
                sha256=file.sha256,
                blob=file.blob,
            )
            for file in stored.files
        ),
        usage=stored.usage,
        wrote_workspace=stored.wrote_workspace,
        hooks=stored.hooks,
    )


def _unreached(
    record: RunRecord, plan: CasePlan, stored: CaseResult, leg: Degradation | None
) -> Degradation | None:
    """Why a case was not reached: known beforehand, its leg's reason, or its container's end."""
    stated = _degradation(stored)
    gvisor = record.runtime is not None and is_gvisor(record.runtime.oci_runtime)
    if stated is not None and gvisor and stated.detail in _BLAMED:
        return stated
    return plan.degraded or leg


def _degradation(case: CaseResult) -> Degradation | None:
    if case.degraded_reason is None or case.degraded_detail is None:
        return None
    return Degradation(reason=case.degraded_reason, detail=case.degraded_detail)


def _execution(stored: CaseResult) -> Execution | None:
    if stored.stdout is None or stored.stderr is None:
        return None
    return Execution(
        exit_code=stored.exit_code,
        signal=stored.signal,
        timed_out=stored.timed_out,
        oom_killed=stored.oom_killed,
        start_error=stored.start_error,
        duration_ms=stored.duration_ms,
        stdout=_observed(stored.stdout),
        stderr=_observed(stored.stderr),
    )


def _observed(stream: StreamRecord) -> StreamObservation:
    return StreamObservation(
        size=stream.size, kept=stream.kept, sha256=stream.sha256, blob=stream.path
    )


def _captured(stream: StreamRecord | None, blob: Blob) -> Captured:
    if stream is None:
        return EMPTY
    data = b"" if stream.path is None else blob(stream.path)
    return Captured(data, stream.size, stream.sha256)


def _probe(probe: ProbeRecord, blob: Blob) -> CapturedProbe:
    return CapturedProbe(
        exit_code=probe.exit_code,
        timed_out=probe.timed_out,
        start_error=probe.start_error,
        stdout=_captured(probe.stdout, blob),
        stderr=_captured(probe.stderr, blob),
    )


def _record(
    suite: SuiteFile,
    stored: RunRecord,
    plan: LegPlan,
    results: Sequence[CaseResult],
    degraded: Degradation | None,
) -> RunRecord:
    if stored.runtime is None or stored.environment is None or stored.timings is None:
        raise NotJudged("a record of a leg states runtime, environment and timings")
    return run_record(
        suite,
        plan,
        results,
        degraded=degraded,
        inside=stored.inside,
        inside_end=stored.inside_end,
        circumstances=Circumstances(
            started_at=stored.started_at,
            completed_at=stored.completed_at,
            git=stored.git,
            runtime=stored.runtime,
            environment=stored.environment,
            timings=stored.timings,
            folder=stored.suite.folder or "/",
        ),
    )


def _unknown_statuses(made: RunRecord, stored: RunRecord) -> RunRecord:
    """Where the live state changed, why a leg stopped before is no longer known; nor its status."""
    lost: Mapping[str, CaseResult] = {
        case.case_id: case for case in stored.case_results if not case.expectations
    }
    if not lost:
        return made
    cases = tuple(
        case.model_copy(update={"status": lost[case.case_id].status})
        if case.case_id in lost
        else case
        for case in made.case_results
    )
    return made.model_copy(update={"case_results": cases, "status": stored.status})


def _taken(record: RunRecord, leg: Degradation | None, results: Sequence[CaseResult]) -> list[str]:
    found = []
    if leg is not None:
        found.append(f"{record.leg}: that the leg ended as {leg.reason.value}/{leg.detail}")
    gone = sum(not case.expectations for case in results)
    if gone and worst([leg]) is None:
        found.append(f"{record.leg}: that {gone} cases were not reached")
    return found
