"""A full document of every contract, as it is written."""

from __future__ import annotations

import json
from typing import Any

from runner.core.canon import document
from runner.core.degrade import hooks_disabled, insufficient
from runner.core.hookenv import digest
from runner.core.suitefile import read_suite
from runner.model.base import Value
from runner.model.container import Difference, EngineInfo
from runner.model.evidence import (
    ContainerEvidence,
    ContextArtifact,
    ContextFile,
    HooksEvidence,
    LegHooks,
    LegInside,
    SandboxEvidence,
)
from runner.model.liveproof import LiveChange, LiveStateEvidence
from tests.unit import builders as b
from tests.unit.builders import FAILED, PASSED, case, record, result, suite_document
from tests.unit.report import builders as report


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
        legs=(
            LegHooks(
                leg="context_on",
                inside_at_start=seen,
                inside_at_end=seen,
                created_configuration=("AO_PROFILE",),
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


def context_file() -> ContextFile:
    """`context.json` with one artifact."""
    return ContextFile(
        schema_version=1,
        label="context-on",
        artifacts=(ContextArtifact(path="learnings/x.md", role="helpful", tokens=("X",)),),
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

VALUES: tuple[tuple[str, Value], ...] = (
    ("eval-run.v1", OFF),
    ("eval-run.v1", record(SUITE, ON.case_results, degraded=hooks_disabled("inherited"))),
    ("context-scorecard.v1", b.scorecard(SUITE, OFF, ON)),
    ("context-scorecard.v1", report.violated()),
    ("context-scorecard.v1", report.partly_degraded()),
    ("live-state.v1", live_state_evidence()),
    ("sandbox.v1", sandbox_evidence()),
    ("hooks.v1", hooks_evidence()),
    ("context-file.v1", context_file()),
)
"""Contract and value."""

DOCUMENTS: tuple[tuple[str, Any], ...] = (
    ("eval-suite.v1", STATED),
    *((name, document(value)) for name, value in VALUES),
)
"""Contract and plain JSON. Suites are read and never written."""
