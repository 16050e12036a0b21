"""Valid values to start from, built by the product's own functions wherever it has one.

Scorecards and records made up for reading are in `tests.unit.report.builders`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from runner.core.confine import (
    Placement,
    Resources,
    base_environment,
    leg_container,
    leg_variables,
)
from runner.core.hookenv import digest
from runner.core.pair import leg_summary, paired_cases, pairing
from runner.core.plan import LegRequest, as_token, plan_leg
from runner.core.record import Circumstances, run_record
from runner.core.score import case_result
from runner.core.stats import differences, resolution
from runner.core.suitefile import read_suite
from runner.model.container import ContainerSpec
from runner.model.hooks import HooksDirectory
from runner.model.leg import Axis, CasePlan, Command, ContextRoot, Degradation, LegPlan
from runner.model.observation import (
    CaseObservation,
    Execution,
    FileObservation,
    InsideEnd,
    InsideReport,
    StreamObservation,
)
from runner.model.record import (
    CaseResult,
    EnvironmentRef,
    ExpectationResult,
    GitRef,
    LegTimings,
    RunRecord,
    RuntimeRef,
    Verdict,
)
from runner.model.scorecard import ContextScorecard, Inputs
from runner.model.suite import ExpectationType, SuiteFile
from tests.unit.report import builders as report

Json = dict[str, Any]

GOLDEN = Path(__file__).parent / "golden"
SUITE_DIR = "/workspace/suites"
PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.UNDECIDED
sha = report.sha


# --- suites


def case(case_id: str = "one", *expectations: Json, **fields: Any) -> Json:
    """A command case; without expectations it must exit 0."""
    return {
        "id": case_id,
        "title": "t",
        "kind": "command",
        "objective": "o",
        "inputs": {"shell": "true"},
        "expectations": list(expectations) or [{"type": "exit_code", "value": 0}],
        **fields,
    }


def suite_document(*cases: Json, weights: Mapping[str, float] | None = None, **fields: Any) -> Json:
    """A suite as JSON; one dimension unless `weights` names others."""
    named = weights or {"correctness": 1}
    return {
        "schema_version": 1,
        "id": "demo",
        "name": "Demo",
        "visibility": "public_canary",
        "tier": "deterministic",
        "scoring": {
            "aggregate_threshold": 1,
            "dimensions": [
                {"name": name, "weight": weight, "threshold": 1} for name, weight in named.items()
            ],
        },
        "baseline_policy": {"mode": "none"},
        "cases": list(cases) or [case()],
        **fields,
    }


def suite_file(
    *cases: Json, weights: Mapping[str, float] | None = None, **fields: Any
) -> SuiteFile:
    """The same, read by the reader."""
    document = suite_document(*cases, weights=weights, **fields)
    return read_suite(json.dumps(document).encode(), "suites/demo.json")


# --- plans


def root(**fields: Any) -> ContextRoot:
    """A staged context root."""
    values: Json = {
        "label": "context-on",
        "sha256": sha("d"),
        "path": "fixtures/demo/context-on/agents",
        "entries": 3,
        "size": 120,
    }
    return ContextRoot(**(values | fields))


def leg_plan(
    suite: SuiteFile | None = None,
    variant: str = "context_on",
    *,
    staged: ContextRoot | None = None,
    root_degraded: Degradation | None = None,
    suppressed: Degradation | None = None,
    axis: Axis = Axis.CONTEXT,
    hooks: Mapping[str, str] | None = None,
    only: Sequence[str] = (),
    directory: HooksDirectory | None = None,
) -> LegPlan:
    """A plan for a leg of a suite."""
    return plan_leg(
        (suite or suite_file()).suite,
        LegRequest(variant, staged or root(), root_degraded),
        axis=axis,
        run_id=f"r1-{as_token(variant)}",
        suite_dir=SUITE_DIR,
        environment=base_environment(hooks or {"AO_PROFILE": "ci"}, {}),
        suppressed=suppressed,
        only=only,
        hooks=directory,
    )


def case_plan(**fields: Any) -> CasePlan:
    """A planned command case."""
    values: Json = {
        "index": 0,
        "case_id": "one",
        "command": Command(argv=("true",), cwd=SUITE_DIR),
        "timeout_seconds": 30,
    }
    return CasePlan(**(values | fields))


# --- observations


def stream(size: int = 3, kept: int | None = None, digit: str = "5") -> StreamObservation:
    """An output stream, whole unless `kept` is given."""
    return StreamObservation(size=size, kept=size if kept is None else kept, sha256=sha(digit))


def execution(**fields: Any) -> Execution:
    """An execution that exited 0."""
    values: Json = {
        "exit_code": 0,
        "duration_ms": 12,
        "stdout": stream(),
        "stderr": stream(0, digit="6"),
    }
    return Execution(**(values | fields))


def observation(case_id: str = "one", **fields: Any) -> CaseObservation:
    """A case that ran."""
    values: Json = {
        "index": 0,
        "case_id": case_id,
        "execution": execution(),
        "files": (FileObservation(path="/workspace/out.json", state="absent"),),
        "usage": {"tokens": 100, "tool_calls": 2},
        "wrote_workspace": False,
    }
    return CaseObservation(**(values | fields))


def judged(
    verdict: Verdict = PASSED,
    index: int = 0,
    *,
    required: bool = True,
    rests_on: str | None = "stdout",
) -> ExpectationResult:
    """One judged expectation."""
    return ExpectationResult(
        index=index,
        type=ExpectationType.STDOUT_CONTAINS,
        required=required,
        verdict=verdict,
        message=f"expectation {index} {verdict}",
        rests_on=rests_on,
        fingerprint=sha("9"),
    )


def result(
    suite: SuiteFile,
    case_id: str,
    verdicts: Sequence[Verdict],
    degraded: Degradation | None = None,
    seen: CaseObservation | None = None,
) -> CaseResult:
    """What scoring makes of these verdicts on the required expectations of a case."""
    index, stated = next(
        (index, item) for index, item in enumerate(suite.suite.cases) if item.id == case_id
    )
    command = Command(argv=("true",), cwd=SUITE_DIR) if stated.is_command else None
    ran = execution() if stated.is_command else None
    return case_result(
        stated,
        case_plan(index=index, case_id=case_id, degraded=degraded, command=command),
        seen or observation(case_id, index=index, execution=ran),
        [judged(verdict, place) for place, verdict in enumerate(verdicts)],
    )


# --- records and scorecards


def circumstances() -> Circumstances:
    """What a record states beside its results."""
    return Circumstances(
        started_at="2026-11-30T12:00:00Z",
        completed_at="2026-11-30T12:00:02Z",
        git=GitRef(commit="0123456789abcdef0123456789abcdef01234567", dirty=False),
        runtime=RuntimeRef(
            name="shell",
            engine="docker 20.10.24",
            oci_runtime="runc",
            image="ao-eval/leg:0123abcd",
            image_id=f"sha256:{sha('3')}",
            agent_sha256=sha("4"),
            workspace_mode="overlay",
        ),
        environment=EnvironmentRef(
            network_access="none",
            isolated_home=True,
            hook_environment={"AO_PROFILE": digest("ci")},
            dropped=("AO_API_KEY",),
            hooks_disabled=False,
        ),
        timings=LegTimings(staging_ms=1, create_ms=2, start_ms=3, run_ms=4, teardown_ms=5),
        folder=SUITE_DIR,
    )


def record(
    suite: SuiteFile,
    results: Sequence[CaseResult],
    variant: str = "context_on",
    degraded: Degradation | None = None,
) -> RunRecord:
    """The record of a leg with these results."""
    return run_record(
        suite,
        leg_plan(suite, variant),
        results,
        degraded=degraded,
        inside=inside_report(),
        inside_end=inside_end(),
        circumstances=circumstances(),
    )


def inside_report(**fields: Any) -> InsideReport:
    """What the agent sees in a container as it must be."""
    values: Json = {
        "agent_sha256": sha("4"),
        "uid": 0,
        "case_uid": 65532,
        "capabilities": "00000000000000e0",
        "case_capabilities": "0000000000000000",
        "no_new_privs": True,
        "seccomp": 2,
        "interfaces": ("lo",),
        "routes": 0,
        "mounts": ("/ overlay ro", "/ao ext4 ro"),
        "writable": ("/dev/mqueue", "/dev/shm", "/home/case", "/tmp", "/workspace"),
        "context_root_sha256": sha("d"),
        "environment_sha256": {"AO_PROFILE": digest("ci")},
        "kernel": "6.1.0",
        "python": "3.11.2",
    }
    return InsideReport(**(values | fields))


def inside_end(**fields: Any) -> InsideEnd:
    """What it sees after the last case."""
    values: Json = {
        "context_root_sha256": sha("d"),
        "environment_sha256": {"AO_PROFILE": digest("ci")},
        "cases_done": 1,
    }
    return InsideEnd(**(values | fields))


def scorecard(
    suite: SuiteFile,
    off: RunRecord,
    on: RunRecord,
    *,
    null_check: bool = False,
    verdict: Literal["clean", "violated", "unknown"] = "clean",
) -> ContextScorecard:
    """The scorecard of two records, as the main job puts it together."""
    rows = paired_cases(off, on, excerpt=lambda leg, case_id, stream: f"{leg} {case_id} {stream}")
    block, delta = pairing(off, on, suite.suite.scoring)
    return ContextScorecard(
        schema_version=1,
        suite_id=suite.suite.id,
        suite_path=suite.path,
        generated_at="2026-11-30T12:00:03Z",
        context_off=leg_summary(off, "context_off", 1),
        context_on=leg_summary(on, "context_on", 3),
        aggregate_delta=delta,
        per_case=rows,
        run_id="r1",
        pairing=block,
        resolution=resolution(differences(rows, {}), seed=""),
        controls=report.no_controls(null_check=null_check),
        attribution=report.no_attribution(),
        inputs=Inputs(
            suite_sha256=suite.sha256,
            workspace_sha256=sha("2"),
            workspace_mode="overlay",
            image="ao-eval/leg:0123abcd",
            image_id=f"sha256:{sha('3')}",
            agent_sha256=sha("4"),
            hook_environment_sha256=sha("8"),
            oci_runtime="runc",
            engine="docker 20.10.24",
            runner_version="0.1.0",
        ),
        integrity=report.integrity(verdict),
        warnings=(),
    )


# --- containers


def container_spec(**fields: Any) -> ContainerSpec:
    """The container of the golden files: every kind of mount, one hook variable."""
    values: Json = {
        "name": "ao-eval-golden",
        "image_id": f"sha256:{sha('3')}",
        "env": {**base_environment({"AO_PROFILE": "ci"}, {}), **leg_variables("context_on")},
        "labels": {"ao-eval": "1", "ao-eval.leg": "context_on"},
        "placement": Placement(
            agent="/srv/stage/agent",
            workspace_volume="ao-eval-golden-workspace",
            context_root="/srv/stage/context",
            upper="/srv/stage/upper",
        ),
        "case_user": (65532, 65532),
        "resources": Resources(),
        "runtime": None,
    }
    return leg_container(**(values | fields))


def inspected() -> Json:
    """What Docker 20.10.24 said of `container_spec` when it was created, unchanged but for ids,
    host paths, names and the storage driver's own paths."""
    found: Json = json.loads((GOLDEN / "inspect-20.10.json").read_text(encoding="utf-8"))
    return found
