"""Small valid scorecards and run records."""

from __future__ import annotations

from typing import Any, Literal

from runner.model.controls import Attribution, Controls, LegName, TraceSummary
from runner.model.leg import Axis, DegradedReason
from runner.model.liveproof import (
    DecoyProof,
    LiveChange,
    LiveRootProof,
    LiveStateProof,
    WatchProof,
)
from runner.model.observation import Count
from runner.model.record import (
    CaseResult,
    EnvironmentRef,
    ExpectationResult,
    GitRef,
    RunRecord,
    RuntimeRef,
    Status,
    SuiteRef,
    Verdict,
)
from runner.model.scorecard import (
    CheckedFile,
    CommandOutput,
    ContextScorecard,
    DecisionEvidence,
    EvaluatorFact,
    HooksProof,
    IgnoredContext,
    Inputs,
    Integrity,
    LegCase,
    LegSummary,
    PairedCase,
    Pairing,
    Resolution,
    SandboxProof,
)
from runner.model.suite import ExpectationType, Tier, Visibility

# Everything a subject could try on a reader: colours and cursor movement, rich markup, HTML, XML,
# NUL, right-to-left override, a zero-width space, a lone surrogate, Markdown, a bell, C1 controls.
HOSTILE = (
    "\x1b[31mX\x1b[2J [red]Y[/red] </script><script>alert(1)</script> \x00 \u202egnp.exe \u200b"
    " \udcff | `code` [a](http://b.c) @user <img src=x onerror=z> ]]> & \x07 \x9b1m \r\n www.d.e"
)

RAW = (
    "\x1b", "\x00", "\x07", "\x9b", "\u202e", "\u200b", "\udcff", "\r",
)  # fmt: skip
"""What must never come out of any format."""


def sha(char: str) -> str:
    """A digest that is recognised by eye."""
    return char * 64


def fact(
    index: Count = 1,
    off: Verdict = Verdict.FAILED,
    on: Verdict = Verdict.PASSED,
    *,
    kind: str = "stdout_contains",
    target: str | None = None,
) -> EvaluatorFact:
    return EvaluatorFact(
        kind="evaluator_fact",
        expectation=index,
        type=kind,
        target=target,
        context_off=off,
        context_on=on,
        changed=off is not on,
        fingerprint_off=sha("5"),
        fingerprint_on=sha("6"),
    )


def output(leg: LegName = "context_on", excerpt: str | None = "retries=3") -> CommandOutput:
    return CommandOutput(
        kind="command_output", leg=leg, stream="stdout", excerpt=excerpt, sha256=sha("5"), size=9
    )


def checked(path: str = "/workspace/out.json") -> CheckedFile:
    return CheckedFile(
        kind="checked_file", leg="context_on", path=path, state="regular", sha256=sha("6")
    )


def side(
    variant: LegName,
    status: Status,
    score: float | None,
    why: tuple[DegradedReason, str] | None = None,
    label: str | None = None,
) -> LegCase:
    return LegCase(
        variant=variant,
        context_root_label=variant.replace("_", "-") if label is None else label,
        run_id="r1",
        status=status,
        score=score,
        degraded_reason=why[0] if why else None,
        degraded_detail=why[1] if why else None,
    )


def pair(
    case_id: str,
    off: tuple[Status, float],
    on: tuple[Status, float],
    evidence: tuple[DecisionEvidence, ...] = (),
    *,
    ignored: str | None = None,
    attribution: tuple[str, ...] = (),
) -> PairedCase:
    """A valid pair; the deltas follow from both sides."""
    rank = {Status.PASS: 1, Status.FAIL: 0}
    return PairedCase(
        case_id=case_id,
        context_off=side("context_off", *off),
        context_on=side("context_on", *on),
        score_delta=round(on[1] - off[1], 4),
        status_delta=rank[on[0]] - rank[off[0]],
        decision_evidence=evidence,
        ignored_context_evidence=(
            (IgnoredContext(kind="same_output", detail=ignored),) if ignored else ()
        ),
        token_delta=None,
        tool_delta=None,
        degraded_reason=None,
        degraded_detail=None,
        artifact_attribution=attribution,
    )


def improved(case_id: str = "timeouts") -> PairedCase:
    return pair(
        case_id,
        (Status.FAIL, 0.5),
        (Status.PASS, 1.0),
        (fact(), output("context_off", "retries=10"), output(), checked()),
        attribution=("learnings/retries.md",),
    )


def regressed(case_id: str = "rollback") -> PairedCase:
    return pair(
        case_id,
        (Status.PASS, 1.0),
        (Status.FAIL, 0.0),
        (fact(0, Verdict.PASSED, Verdict.FAILED, kind="exit_code"), output(excerpt="exit 1")),
    )


def tied(case_id: str = "greeting") -> PairedCase:
    row = pair(case_id, (Status.PASS, 1.0), (Status.PASS, 1.0), ignored="stdout equal in both legs")
    why = IgnoredContext(kind="same_outcome", detail="every required expectation held steady")
    return row.model_copy(update={"ignored_context_evidence": (why, *row.ignored_context_evidence)})


def degraded(
    case_id: str = "slow",
    reason: DegradedReason = DegradedReason.INSUFFICIENT_DECISION_EVIDENCE,
    detail: str = "timeout",
    status: Status = Status.INCONCLUSIVE,
) -> PairedCase:
    """Lost in `context_on` only."""
    return PairedCase(
        case_id=case_id,
        context_off=side("context_off", Status.PASS, 1.0),
        context_on=side("context_on", status, None, (reason, detail)),
        score_delta=None,
        status_delta=None,
        decision_evidence=(),
        ignored_context_evidence=(),
        token_delta=None,
        tool_delta=None,
        degraded_reason=reason,
        degraded_detail=detail,
        artifact_attribution=(),
    )


def root(
    path: str = "/home/dev/shop/.agents", changes: tuple[LiveChange, ...] = (), **more: Any
) -> LiveRootProof:
    values: dict[str, Any] = {
        "path": path,
        "origin": ("suite",),
        "fatal": True,
        "present_before": True,
        "present_after": True,
        "entries": 140,
        "size": 40_960,
        "before_sha256": sha("a"),
        "after_sha256": sha("b") if changes else sha("a"),
        "changes": changes,
        "changes_total": len(changes),
        "changed_by": "writer_unknown" if changes else None,
        "allowed": False,
    }
    return LiveRootProof(**(values | more))


def live(*roots: LiveRootProof, reaching: tuple[str, ...] = (), mounts: int = 14) -> LiveStateProof:
    changed = any(not item.unchanged for item in roots)
    return LiveStateProof(
        claim=(
            "no difference in these attributes between the two manifests of the run, and no mount "
            "reached it"
        ),
        attributes=("path", "type", "mode", "uid", "gid", "size", "sha256", "mtime", "ctime"),
        roots=roots,
        mounts_checked=mounts,
        mounts_reaching=reaching,
        changed_by="writer_unknown" if changed else None,
        watch=WatchProof(method="fanotify", complete=True, events_total=0, note=""),
        decoys=(decoy(*roots),) if roots else (),
    )


def decoy(*roots: LiveRootProof, witnessed: int = 5, watched: int | None = 5) -> DecoyProof:
    """The control of these roots; it has fired when all five mutations were flagged."""
    return DecoyProof(
        roots=tuple(item.path for item in roots),
        same_filesystem=True,
        planted=5,
        witnessed=witnessed,
        watched=watched,
        verdict="fired" if witnessed == 5 and watched in (None, 5) else "void",
        note="",
    )


def sandbox(
    containers: int = 2, differences: int = 0, interfaces: tuple[str, ...] = ("lo",)
) -> Any:
    return SandboxProof(
        containers=containers,
        differences=differences,
        network="none",
        interfaces=interfaces,
        capabilities=("KILL", "SETGID", "SETUID"),
        no_new_privs=True,
        profile_sha256=sha("7"),
    )


def integrity(
    verdict: Literal["clean", "violated", "unknown"] = "clean",
    problems: tuple[str, ...] = (),
    live_state: LiveStateProof | None = None,
    box: SandboxProof | None = None,
) -> Integrity:
    home = root("/home/dev/.agents", entries=3, origin=("home",), fatal=False, size=12)
    return Integrity(
        verdict=verdict,
        live_state=live_state or live(root(), home),
        sandbox=box or sandbox(),
        hooks=HooksProof(
            names=("AGENTOPS_HOME", "AO_PROFILE"),
            dropped=("CLAUDE_API_KEY",),
            equal_in_both_legs=True,
            preserved=True,
        ),
        problems=problems,
    )


def leg(variant: LegName, score: float | None, status: Status, **more: Any) -> LegSummary:
    values: dict[str, Any] = {
        "variant": variant,
        "context_root_label": variant.replace("_", "-"),
        "run_id": "r1",
        "aggregate_score": score,
        "status": status,
        "dimension_scores": {"correctness": score},
        "context_root_sha256": sha("c" if variant == "context_off" else "d"),
        "context_root_entries": 4,
        "degraded_reason": None,
        "degraded_detail": None,
        "cases_total": 2,
        "cases_degraded": 0,
    }
    return LegSummary(**(values | more))


def card(
    *pairs: PairedCase,
    off: float | None = 0.5333,
    on: float | None = 1.0,
    proof: Integrity | None = None,
    null_check: bool = False,
    **more: Any,
) -> ContextScorecard:
    """A scorecard over `pairs`; the aggregates are given, not derived."""
    valid = [item for item in pairs if item.is_valid]
    delta = round(on - off, 4) if valid and off is not None and on is not None else None
    deltas = [item.score_delta or 0 for item in valid]
    values: dict[str, Any] = {
        "schema_version": 1,
        "suite_id": "shop-learnings",
        "suite_path": "fixtures/suites/shop-learnings.json",
        "generated_at": "2026-11-30T12:00:00Z",
        "context_off": leg("context_off", off, Status.FAIL),
        "context_on": leg("context_on", on, Status.PASS),
        "aggregate_delta": delta,
        "per_case": pairs,
        "run_id": "r1",
        "pairing": Pairing(
            valid_pairs=len(valid),
            degraded_pairs=len(pairs) - len(valid),
            context_off_aggregate=off if valid else None,
            context_on_aggregate=on if valid else None,
            delta_lower_bound=delta,
            delta_upper_bound=delta,
        ),
        "resolution": Resolution(
            valid_pairs=len(valid),
            improved=sum(item > 0 for item in deltas),
            regressed=sum(item < 0 for item in deltas),
            tied=sum(item == 0 for item in deltas),
            newly_passing=0,
            newly_failing=0,
            mcnemar_exact_p=1.0,
            sign_flip=None,
            mean_difference=None,
            interval=None,
            least_net_improvement=None,
            degraded_context_off=0,
            degraded_context_on=0,
            note="cannot resolve: 5 or fewer discordant pairs",
        ),
        "controls": no_controls(null_check=null_check),
        "attribution": no_attribution(),
        "inputs": Inputs(
            suite_sha256=sha("1"),
            workspace_sha256=sha("2"),
            workspace_mode="overlay",
            image="ao-eval-leg:0123abcd",
            image_id=f"sha256:{sha('3')}",
            agent_sha256=sha("4"),
            hook_environment_sha256=sha("8"),
            oci_runtime="runc",
            engine="docker 20.10.24",
            runner_version="0.1.0",
        ),
        "integrity": proof or integrity(),
        "warnings": (),
    }
    return ContextScorecard(**(values | more))


def helped() -> ContextScorecard:
    return card(improved(), tied())


def harmed() -> ContextScorecard:
    return card(regressed(), tied(), off=1.0, on=0.5)


def no_difference() -> ContextScorecard:
    return card(tied("a"), tied("b"), off=1.0, on=1.0)


def partly_degraded() -> ContextScorecard:
    """One pair lost in `context_on` only: the bounds are apart."""
    base = card(improved(), tied(), degraded())
    pairing = base.pairing.model_copy(
        update={"delta_lower_bound": -0.0222, "delta_upper_bound": 0.3111}
    )
    return base.model_copy(update={"pairing": pairing})


def all_degraded() -> ContextScorecard:
    why = DegradedReason.HOOKS_DISABLED
    rows = (degraded("a", why, "inherited"), degraded("b", why, "inherited"), degraded("c"))
    return card(
        *rows,
        context_on=leg(
            "context_on",
            None,
            Status.INCONCLUSIVE,
            degraded_reason=why,
            degraded_detail="inherited",
            cases_degraded=3,
        ),
    )


def violated() -> ContextScorecard:
    """The live root was written and reverted: only the ctime tells."""
    change = LiveChange(path="learnings/retries.md", kind="modified", attributes=("ctime",))
    why = DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE
    return card(
        degraded("timeouts", why, "writer_unknown"),
        proof=integrity(
            "violated",
            ("live state changed: /home/dev/shop/.agents/learnings/retries.md: modified (ctime)",),
            live(root(changes=(change,))),
        ),
    )


def hostile() -> ContextScorecard:
    """Every free text is `HOSTILE`."""
    change = LiveChange(path=HOSTILE, kind="modified", attributes=("ctime", HOSTILE))
    rows = (
        pair(
            "one",
            (Status.FAIL, 0.0),
            (Status.PASS, 1.0),
            (
                fact(target=HOSTILE, kind=HOSTILE),
                output(excerpt=HOSTILE),
                checked(HOSTILE),
            ),
            attribution=(HOSTILE,),
        ),
        pair("two", (Status.PASS, 1.0), (Status.PASS, 1.0), ignored=HOSTILE),
        pair("three", (Status.FAIL, 0.0), (Status.FAIL, 0.0), (fact(0, on=Verdict.FAILED),)),
    )
    proof = integrity(
        "violated",
        (HOSTILE,),
        live(
            root(f"{HOSTILE}/.agents", (change,), origin=(HOSTILE,)),
            reaching=(f"{HOSTILE} -> /live: inside",),
        ),
        sandbox(interfaces=("lo", HOSTILE)),
    )
    legs: dict[str, Any] = {
        name: leg(
            name, 0.5, Status.FAIL, context_root_label=HOSTILE, dimension_scores={HOSTILE: 1.0}
        )
        for name in ("context_off", "context_on")
    }
    base = card(
        *rows, proof=proof, suite_id=HOSTILE, suite_path=HOSTILE, warnings=(HOSTILE,), **legs
    )
    inputs = base.inputs.model_copy(
        update={
            "image": HOSTILE,
            "engine": HOSTILE,
            "oci_runtime": HOSTILE,
            "runner_version": HOSTILE,
        }
    )
    resolution = base.resolution.model_copy(update={"note": HOSTILE})
    return base.model_copy(update={"inputs": inputs, "resolution": resolution})


def result(
    case_id: str,
    status: Status,
    score: float | None,
    *,
    message: str = "standard output does not contain the value",
    why: tuple[DegradedReason, str] | None = None,
) -> CaseResult:
    verdict = Verdict.PASSED if status is Status.PASS else Verdict.FAILED
    return CaseResult(
        case_id=case_id,
        kind="command",
        status=status,
        score=score,
        critical=False,
        dimensions=("correctness",),
        exit_code=0,
        signal=None,
        timed_out=False,
        duration_ms=1500,
        container=0,
        expectations=(
            ExpectationResult(
                index=0,
                type=ExpectationType.STDOUT_CONTAINS,
                required=True,
                verdict=verdict,
                message=message,
            ),
        ),
        stdout=None,
        stderr=None,
        files=(),
        usage=None,
        wrote_workspace=False,
        failure_message=None,
        degraded_reason=why[0] if why else None,
        degraded_detail=why[1] if why else None,
    )


def record(
    *results: CaseResult,
    status: Status = Status.FAIL,
    why: tuple[DegradedReason, str] | None = None,
    **more: Any,
) -> RunRecord:
    values: dict[str, Any] = {
        "schema_version": 1,
        "run_id": "r1",
        "leg": "context_on",
        "axis": Axis.CONTEXT,
        "variant": "context_on",
        "context_root_label": "context-on",
        "context_root_sha256": sha("d"),
        "suite": SuiteRef(
            id="shop-learnings",
            path="fixtures/suites/shop-learnings.json",
            sha256=sha("1"),
            visibility=Visibility.PUBLIC_CANARY,
            tier=Tier.DETERMINISTIC,
        ),
        "started_at": "2026-11-30T12:00:00Z",
        "completed_at": "2026-11-30T12:00:02Z",
        "status": status,
        "verdict": "inconclusive" if why else "pass" if status is Status.PASS else "fail",
        "git": GitRef(commit=None, dirty=None),
        "runtime": RuntimeRef(
            name="shell",
            engine="docker 20.10.24",
            oci_runtime="runc",
            image="ao-eval-leg:0123abcd",
            image_id=f"sha256:{sha('3')}",
            agent_sha256=sha("4"),
            workspace_mode="overlay",
        ),
        "environment": EnvironmentRef(
            network_access="none",
            isolated_home=True,
            hook_environment={},
            dropped=(),
            hooks_disabled=False,
        ),
        "case_results": results,
        "aggregate_score": None if why else 0.5,
        "dimension_scores": {"correctness": None if why else 0.5},
        "degraded_reason": why[0] if why else None,
        "degraded_detail": why[1] if why else None,
        "inside": None,
        "inside_end": None,
        "timings": None,
    }
    return RunRecord(**(values | more))


def no_controls(*, null_check: bool = False) -> Controls:
    """The block of a comparison with `--controls none`."""
    return Controls(
        mode="none",
        null_check=null_check,
        legs=2,
        replicates=1,
        extra_replicates=0,
        cases=(),
        trace=TraceSummary(state="unavailable", detail="not_traced", granularity=None),
        sentinels=(),
    )


def no_attribution() -> Attribution:
    """The block of a comparison that attributes nothing."""
    return Attribution(
        mode="none", units_total=0, units=(), ablation_legs=0, ablation_limit=40, cases=()
    )
