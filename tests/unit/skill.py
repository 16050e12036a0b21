"""Skill comparisons to start from, built by the product's own functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from runner.core.canon import digest
from runner.core.hookenv import digest as value_digest
from runner.core.plan import LegRequest, plan_leg
from runner.core.record import run_record
from runner.core.skillcontrols import SkillOrder
from runner.core.skillpair import SkillObserved, assemble_skill
from runner.model.container import EngineInfo
from runner.model.evidence import HooksEvidence, LegHooks, LegInside, SandboxEvidence
from runner.model.leg import Axis, Degradation, LegPlan, LegRole
from runner.model.record import CaseResult, RunRecord
from runner.model.scorecard import Inputs
from runner.model.skillscorecard import SkillScorecard
from runner.model.suite import SuiteFile
from tests.unit.builders import SUITE_DIR, circumstances, inside_end, inside_report, sha
from tests.unit.report import builders as report

Hooked = dict[str, str]


def skill_plan(
    suite: SuiteFile,
    variant: str,
    *,
    environment: Mapping[str, str] | None = None,
    suppressed: Degradation | None = None,
    **more: Any,
) -> LegPlan:
    """A leg of the skill axis."""
    return plan_leg(
        suite.suite,
        LegRequest(variant, None, role=more.pop("role", None), leg=more.pop("leg", None)),
        axis=Axis.SKILL,
        run_id=f"r1-{variant.replace('_', '-')}",
        suite_dir=SUITE_DIR,
        environment=environment or {"AO_PROFILE": "ci"},
        suppressed=suppressed,
        **more,
    )


def skill_record(
    suite: SuiteFile,
    results: Sequence[CaseResult],
    variant: Literal["skill_off", "skill_on"],
    *,
    ordinal: int = 1,
    degraded: Degradation | None = None,
) -> RunRecord:
    """The record of a leg of the skill axis with these results."""
    role = LegRole(purpose="first" if ordinal == 1 else "replicate", root=variant, ordinal=ordinal)
    name = SkillOrder(role, variant, None).name
    return run_record(
        suite,
        skill_plan(suite, variant, role=role, leg=name),
        results,
        degraded=degraded,
        inside=inside_report(),
        inside_end=inside_end(),
        circumstances=circumstances(),
    )


def hooks_evidence(off: Hooked | None = None, on: Hooked | None = None) -> HooksEvidence:
    """What both legs had of the hook environment."""
    both = {
        "skill_off": off or {"AO_PROFILE": "ci", "AGENTOPS_HOOKS_DISABLED": "1"},
        "skill_on": on or {"AO_PROFILE": "ci"},
    }
    return HooksEvidence(
        schema_version=1,
        host={"AO_PROFILE": value_digest("ci")},
        dropped=(),
        scrub_prefixes_without_effect=(),
        legs=tuple(
            LegHooks(
                leg=leg,
                inside_at_start={k: value_digest(v) for k, v in seen.items()},
                inside_at_end={k: value_digest(v) for k, v in seen.items()},
                created_configuration=tuple(sorted(seen)),
                preserved=True,
            )
            for leg, seen in both.items()
        ),
    )


def skill_card(
    suite: SuiteFile,
    *records: RunRecord,
    controls: Literal["none", "standard"] = "none",
    **more: Any,
) -> SkillScorecard:
    """The scorecard of these legs, as the use case puts it together."""
    values: dict[str, Any] = {
        "suite": suite,
        "records": records,
        "live": report.integrity().live_state,
        "sandbox": SandboxEvidence(
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
                security=(),
                rootless=False,
                operating_system="Debian GNU/Linux 12",
            ),
            containers=(),
            inside=tuple(
                LegInside(leg=record.leg, start=inside_report(), end=inside_end())
                for record in records
            ),
            problems=(),
        ),
        "hooks": hooks_evidence(),
        "inputs": Inputs(
            suite_sha256=suite.sha256,
            workspace_sha256=sha("2"),
            workspace_mode="overlay",
            image="ao-eval/leg:0123abcd",
            image_id=f"sha256:{sha('3')}",
            agent_sha256=sha("4"),
            hook_environment_sha256=digest({"AO_PROFILE": value_digest("ci")}),
            oci_runtime="runc",
            engine="docker 20.10.24",
            runner_version="0.1.0",
        ),
        "controls": controls,
        "run_id": "r1",
        "generated_at": "2026-11-30T12:00:03Z",
    }
    return assemble_skill(
        SkillObserved(**(values | more)), lambda leg, case_id, stream: f"{leg} {case_id} {stream}"
    )
