"""A full document of every contract, as it is written."""

from __future__ import annotations

import json
from typing import Any

from runner.attest.dsse import wrap
from runner.attest.statement import measurement, tested
from runner.core.canon import document
from runner.core.degrade import hooks_disabled, insufficient
from runner.core.hookenv import digest
from runner.core.suitefile import read_suite
from runner.model.attestation import DsseEnvelope, DsseSignature
from runner.model.base import Value
from runner.model.burn import BurnHead
from runner.model.container import Difference, EngineInfo
from runner.model.contextfile import ContextArtifact, ContextFile
from runner.model.contextroots import ContextRoots, RootContent, RootEntry
from runner.model.evidence import (
    CaseReceipts,
    ContainerEvidence,
    HooksDirectoryEvidence,
    HooksEvidence,
    LegHooks,
    LegInside,
    SandboxEvidence,
)
from runner.model.hooks import HookEvent, HookRef
from runner.model.liveproof import LiveChange, LiveStateEvidence
from runner.model.reads import CaseReads, ContextReads, LegReads
from runner.model.rubric import Criterion, Rubric
from runner.model.verdict import (
    Band,
    CouncilVerdict,
    Kind,
    ManifestVerdict,
    RunManifest,
    Split,
)
from runner.model.verification import CheckDone, FailedCheck, Verification
from tests.unit import builders as b
from tests.unit.builders import FAILED, PASSED, case, record, result, suite_document
from tests.unit.report import builders as report
from tests.unit.skill import skill_card, skill_record


def sandbox_evidence() -> SandboxEvidence:
    """`evidence/sandbox.json` of one leg."""
    return SandboxEvidence(
        schema_version=1,
        engine=EngineInfo(
            endpoint="unix:///var/run/docker.sock",
            daemon_id="id",
            version="20.10.24",
            api_version="1.41",
            kernel="6.1.0",
            cgroup_version="2",
            storage_driver="overlay2",
            runtimes=("runc",),
            default_runtime="runc",
            security=("name=seccomp,profile=default",),
            rootless=False,
            operating_system="Debian GNU/Linux 12",
        ),
        containers=(
            ContainerEvidence(
                leg="context_on",
                ordinal=0,
                profile={"user": "0:0"},
                differences=(Difference(field="Image", asked="a", found=None),),
            ),
        ),
        inside=(LegInside(leg="context_on", start=b.inside_report(), end=b.inside_end()),),
        problems=(),
    )


def hooks_evidence() -> HooksEvidence:
    """`evidence/hooks.json` of one leg."""
    seen = {"AO_PROFILE": digest("ci")}
    return HooksEvidence(
        schema_version=1,
        host=seen,
        dropped=("AO_API_KEY",),
        scrub_prefixes_without_effect=("AO_PROFILE",),
        directory=HooksDirectoryEvidence(
            sha256=b.sha("e"),
            entries=2,
            size=120,
            hooks=(
                HookRef(
                    event=HookEvent.SESSION_START,
                    index=0,
                    command_sha256=b.sha("1"),
                    timeout_seconds=60,
                ),
            ),
            not_run=("/hooks/PreToolUse",),
            cases=(CaseReceipts(case_id="one", complete=True, equal=None),),
        ),
        legs=(
            LegHooks(
                leg="context_on",
                inside_at_start=seen,
                inside_at_end=seen,
                created_configuration=("AO_PROFILE",),
                directory_at_start=b.sha("e"),
                directory_at_end=b.sha("e"),
                preserved=True,
            ),
        ),
    )


def live_state_evidence() -> LiveStateEvidence:
    """`evidence/live-state.json` of a clean run."""
    return LiveStateEvidence(
        schema_version=1,
        proof=report.live(
            report.root(changes=(LiveChange(path="x", kind="modified", attributes=("ctime",)),))
        ),
        t0="2026-11-30T12:00:00Z",
        t1="2026-11-30T12:00:02.5Z",
        writes=(),
        writes_total=0,
    )


def context_roots() -> ContextRoots:
    """One root with all kinds of entries, one that is missing."""
    content = RootContent(
        leg="context_on",
        label="context-on",
        sha256="d" * 64,
        refusal=None,
        entries=(
            RootEntry(path="learnings", kind="d", executable=False, sha256=None),
            RootEntry(path="learnings/a.md", kind="f", executable=True, sha256="e" * 64),
            RootEntry(path="link", kind="l", executable=False, sha256="f" * 64),
        ),
        context=context_file(),
    )
    missing = RootContent(
        leg="context_off", label="off", sha256=None, refusal=None, entries=(), context=None
    )
    return ContextRoots(schema_version=1, roots=(missing, content))


def context_reads() -> ContextReads:
    """One leg traced, one without a root."""
    return ContextReads(
        schema_version=1,
        legs=(
            LegReads(
                leg="context_on",
                state="complete",
                detail=None,
                granularity="case",
                cases=(CaseReads(case_id="one", opened=("learnings/a.md",), by_hooks=()),),
            ),
            LegReads(leg="none", state="unavailable", detail="no_root", granularity=None, cases=()),
        ),
    )


def context_file() -> ContextFile:
    """`context.json` with one artifact."""
    return ContextFile(
        schema_version=1,
        label="context-on",
        artifacts=(ContextArtifact(path="learnings/x.md", role="helpful", tokens=("X",)),),
    )


def rubric() -> Rubric:
    """A rubric with one criterion."""
    return Rubric(
        schema_version=1,
        source_task_id="task-1",
        judge_content_hash=f"sha256:{b.sha('1')}",
        instructions="Do it.",
        criteria=(Criterion(id="clear", description="It is clear.", weight=1.0),),
    )


def council_verdict() -> CouncilVerdict:
    """A verdict after a burn."""
    return CouncilVerdict(
        verdict=Band.PASS,
        confidence="HIGH",
        key_insight="k",
        recommendation="r",
        schema_version=4,
        satisfaction_score=0.9,
        satisfaction_breakdown={"clear": 0.9},
        findings=(),
        burn_ledger_head=BurnHead(count=1, sha256=b.sha("2")),
    )


def run_manifest() -> RunManifest:
    """The manifest of an ingested grade."""
    return RunManifest(
        schema_version=1,
        id="run-1",
        kind="outcomes",
        status="complete",
        started_at="2026-11-30T12:00:00Z",
        finished_at="2026-11-30T12:00:01Z",
        started_at_unix_ms=1,
        finished_at_unix_ms=2,
        suite_ref="suite-1",
        task_ref="task-1",
        sample_split=Split.DEV,
        ground_truth_ref="v1",
        ground_truth_hash=None,
        judge_content_hash=f"sha256:{b.sha('1')}",
        diff_from="run-0",
        verdict=ManifestVerdict(
            kind=Kind.IMPROVED,
            delta_point=0.1,
            utility=0.9,
            applicable_artifacts=("learnings/x.md",),
            notes="n",
        ),
        score_sha256=b.sha("3"),
        grade_sha256=b.sha("4"),
        captured_by="ao-eval outcomes ingest",
        notes="n",
    )


def envelope() -> DsseEnvelope:
    """With a signature of no meaning."""
    unsigned = wrap(tested(report.violated(), b.sha("2")), None)
    return unsigned.model_copy(
        update={"signatures": (DsseSignature(keyid=b.sha("5"), sig="c2ln"),)}
    )


def verification() -> Verification:
    """A rejected directory."""
    return Verification(
        schema_version=1,
        directory="runs/1",
        run_id="run-1",
        verdict="rejected",
        authorship="refuted",
        key_id=b.sha("5"),
        signed_by=(b.sha("6"),),
        checks=(CheckDone(check="signature", state="failed", looked_at=2, shows="who made it"),),
        problems=(FailedCheck(check="signature", where="attestation.dsse.json", problem="other"),),
        not_shown=("that the machine observed truthfully",),
    )


# --- one or more of each contract

STATED: Any = suite_document(
    case("a", {"type": "stdout_contains", "value": "x", "required": True}),
    case("b", timeout_seconds=5, critical=True, tags=["t"], dimensions=["correctness"]),
    case("c", {"type": "score_at_least", "target": "stdout:$.n", "threshold": 0.5}),
    environment={"scrub_env_prefixes": ["X_"], "disable_hooks": False, "timeout_seconds": 9},
    fixtures=[{"path": "fixtures/x.txt", "purpose": "p", "sha256": "A" * 64}],
    owners=["me"],
)
SUITE = read_suite(json.dumps(STATED).encode(), "suites/demo.json")


OFF, ON = (
    record(
        SUITE,
        [
            result(SUITE, "a", [verdict, PASSED]),
            result(SUITE, "b", [PASSED]),
            result(SUITE, "c", [PASSED], lost),
        ],
        variant,
    )
    for variant, verdict, lost in (
        ("context_off", FAILED, None),
        ("context_on", PASSED, insufficient("timeout")),
    )
)

SKILL_LEGS = (
    skill_record(SUITE, OFF.case_results, "skill_off"),
    skill_record(SUITE, ON.case_results, "skill_on"),
)

VALUES: tuple[tuple[str, Value], ...] = (
    ("eval-run.v1", OFF),
    ("eval-run.v1", record(SUITE, ON.case_results, degraded=hooks_disabled("inherited"))),
    ("context-scorecard.v1", b.scorecard(SUITE, OFF, ON)),
    ("context-scorecard.v1", report.violated()),
    ("context-scorecard.v1", report.partly_degraded()),
    ("skill-scorecard.v1", skill_card(SUITE, *SKILL_LEGS)),
    ("live-state.v1", live_state_evidence()),
    ("sandbox.v1", sandbox_evidence()),
    ("hooks.v1", hooks_evidence()),
    ("context-roots.v1", context_roots()),
    ("context-reads.v1", context_reads()),
    ("context-file.v1", context_file()),
    ("outcomes-rubric.v1", rubric()),
    ("council-verdict.v4", council_verdict()),
    ("run-manifest.v1", run_manifest()),
    ("attestation.v1", measurement(report.violated(), sandbox_evidence(), {"a": b.sha("1")})),
    ("test-result.v1", tested(report.partly_degraded(), b.sha("2"))),
    ("attestation.v1", measurement(skill_card(SUITE, *SKILL_LEGS), sandbox_evidence(), {})),
    ("test-result.v1", tested(skill_card(SUITE, *SKILL_LEGS), b.sha("2"))),
    ("dsse-envelope.v1", wrap(tested(report.violated(), b.sha("2")), None)),
    ("dsse-envelope.v1", envelope()),
    ("verification.v1", verification()),
)
"""Contract and value."""

DOCUMENTS: tuple[tuple[str, Any], ...] = (
    ("eval-suite.v1", STATED),
    *((name, document(value)) for name, value in VALUES),
)
"""Contract and plain JSON. Suites are read and never written."""
