"""The skill axis: hooks off against hooks on, and nothing else differs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.container.projects import EXIT_0, NEEDS_HINT, Project, Result, case

pytestmark = pytest.mark.container

LEGS = ("skill_off", "skill_on")
SWITCH = "AGENTOPS_HOOKS_DISABLED"
HOOKS_ON = f'test "${{{SWITCH}:-0}}" != 1'
SEEN = (
    'env | LC_ALL=C sort | grep -v "^_="; ls -A / /context /hooks "$PWD" 2>&1; '
    'cut -d" " -f2,3 /proc/self/mounts | sort'
)


def ab(project: Project, path: Path, *more: object, **env: str) -> Result:
    return project.ao_eval("ab", "--axis", "skill", path, *more, **env)


def test_legs_differ_in_the_switch_alone_and_neither_has_a_context_root(project: Project) -> None:
    path = project.suite(
        case("hooks-on", HOOKS_ON), case("needs-hint", NEEDS_HINT), case("seen", SEEN)
    )
    result = ab(project, path, AO_PROFILE="ci", AO_CONTEXT_VARIANT="context_on", AO_AGENTS_DIR="/x")
    assert result.code == 0, result.stderr
    card = result.card
    assert [row["delta"] for row in card["per_case"]] == [1, 0, 0]
    # The roots that a context run would use lie beside the suite, and are nowhere to be seen.
    assert [card["per_case"][1][f"{leg}_status"] for leg in LEGS] == ["fail", "fail"]
    off, on = (result.output("seen", leg).splitlines() for leg in LEGS)
    assert off == [f"{SWITCH}=1", *on]
    assert "AO_PROFILE=ci" in on
    assert not [line for line in on if line.startswith(("AO_CONTEXT_VARIANT", "AO_AGENTS_DIR"))]
    assert "ls: cannot access '/context': No such file or directory" in on
    assert card["integrity"]["hooks"]["equal_in_both_legs"]
    assert card["integrity"]["hooks"]["preserved"]
    for leg in LEGS:
        record = result.record(leg)
        assert (record["axis"], record["variant"]) == ("skill", leg)
        assert record["context_root_sha256"] is None
        assert record["environment"]["hooks_disabled"] is (leg == "skill_off")


def test_everything_is_written_that_a_comparison_writes(project: Project, tmp_path: Path) -> None:
    path = project.suite(case("hooks-on", HOOKS_ON))
    copies = ("--out", tmp_path / "run.json", "--delta-out", tmp_path / "delta.json")
    result = ab(project, path, *copies, "--run-id", "r1", "--json")
    assert result.code == 0, result.stderr
    found = {str(item.relative_to(result.evidence)) for item in result.evidence.rglob("*")}
    assert {
        "scorecard.json", "report.html", "junit.xml", "summary.md", "suite.json",
        "attestation.dsse.json", "test-result.dsse.json", "evidence/live-state.json",
        "evidence/sandbox.json", "evidence/hooks.json",
        "legs/skill_off/record.json", "legs/skill_on/record.json",
    } <= found  # fmt: skip
    assert not [name for name in found if "context" in name]
    assert result.document == result.card == json.loads((tmp_path / "delta.json").read_bytes())
    for leg in LEGS:
        copy = tmp_path / f"run-{leg.replace('_', '-')}.json"
        assert json.loads(copy.read_bytes()) == result.record(leg)
        assert result.record(leg)["run_id"] == f"r1-{leg.replace('_', '-')}"
        assert result.card[f"{leg}_run_id"] == f"r1-{leg.replace('_', '-')}"
    assert project.ao_eval("validate", result.evidence / "scorecard.json").stdout.endswith(
        "valid skill-scorecard.v1\n"
    )
    sandbox = result.read("evidence/sandbox.json")
    targets = {m["target"] for item in sandbox["containers"] for m in item["profile"]["mounts"]}
    assert not [target for target in targets if target.startswith("/context")]


def test_hooks_of_a_directory_run_in_the_on_leg_only_and_that_is_no_difference(
    project: Project,
) -> None:
    hooks: dict[str, Any] = {
        event: [{"hooks": [{"type": "command", "command": command}]}]
        for event, command in (("SessionStart", "echo on > ~/receipt"), ("SessionEnd", "exit 3"))
    }
    project.write({"hooks.json": json.dumps({"hooks": hooks})}, below="around")
    path = project.suite(case("with-receipt", "test -e ~/receipt"))
    result = ab(project, path, "--hooks-dir", "around")
    assert result.code == 0, result.stderr
    (row,) = result.card["per_case"]
    assert (row["delta"], row["degraded_reason"]) == (1, None)
    receipts = {leg: result.case("with-receipt", leg)["hooks"] for leg in LEGS}
    assert [item["exit_code"] for item in receipts["skill_on"]] == [0, 3]
    assert receipts["skill_off"] == []
    proof = result.card["integrity"]["hooks"]
    assert len(proof["hooks"]) == 2
    assert proof["preserved"]
    assert proof["receipts_equal"] is None
    assert "2 hooks around every command case of skill_on, none in skill_off" in " ".join(
        result.stdout.split()
    )


def test_a_hook_that_does_not_complete_degrades_its_case(project: Project) -> None:
    hooks = {"SessionStart": [{"hooks": [{"type": "command", "command": "nosuchprogram"}]}]}
    project.write({"hooks.json": json.dumps({"hooks": hooks})}, below="around")
    result = ab(project, project.suite(case("one", "true")), "--hooks-dir", "around")
    assert result.code == 4, result.stderr
    (row,) = result.card["per_case"]
    assert (row["degraded_reason"], row["degraded_detail"]) == ("hooks_disabled", "hook_incomplete")
    assert row["degraded_legs"] == ["skill_on"]


@pytest.mark.parametrize(
    "detail, how",
    [
        ("inherited", {"env": {SWITCH: "1"}}),
        ("inherited", {"env": {"AGENTOPS_SESSION_START_DISABLED": "1"}}),
        ("option_env", {"arguments": ("--env", f"{SWITCH}=1")}),
        ("suite_env", {"suite": {"environment": {"disable_hooks": True}}}),
        ("case_env", {"case": {SWITCH: "1"}}),
    ],
)
def test_suppression_from_elsewhere_makes_both_legs_alike_and_degrades_them(
    project: Project, detail: str, how: dict[str, Any]
) -> None:
    only = case("hooks-on", HOOKS_ON)
    only["inputs"]["env"] = how.get("case", {})
    path = project.suite(only, **how.get("suite", {}))
    result = ab(project, path, *how.get("arguments", ()), **how.get("env", {}))
    assert result.code == 4, result.stderr
    for leg in LEGS:
        summary = result.card[leg]
        assert (summary["degraded_reason"], summary["degraded_detail"]) == (
            "hooks_disabled", detail,
        )  # fmt: skip
    assert result.card["aggregate_delta"] is None
    (row,) = result.card["per_case"]
    assert (row["delta"], row["degraded_detail"]) == (None, detail)


def test_an_empty_switch_in_a_case_does_not_switch_hooks_on_in_the_off_leg(
    project: Project,
) -> None:
    only = case("hooks-on", HOOKS_ON)
    only["inputs"]["env"] = {SWITCH: ""}
    result = ab(project, project.suite(only), **{SWITCH: ""})
    assert result.code == 0, result.stderr
    assert [row["delta"] for row in result.card["per_case"]] == [1]
    assert result.card["integrity"]["hooks"]["preserved"]


@pytest.mark.parametrize(
    "shell, gate, code",
    [
        (HOOKS_ON, ("--require-delta", "0.5"), 0),
        ("true", ("--require-delta", "0.5"), 1),
        (f"! {HOOKS_ON}", ("--require-pass",), 1),
        ("sleep 30", ("--require-valid",), 4),
    ],
)
def test_gates_hold_on_this_axis_too(
    project: Project, shell: str, gate: tuple[str, ...], code: int
) -> None:
    path = project.suite(case("one", shell, EXIT_0, timeout_seconds=1))
    assert ab(project, path, *gate).code == code


def test_a_coin_that_is_tossed_wins_nothing_under_the_default_controls(project: Project) -> None:
    coin = "test $(od -An -N1 -tu1 /dev/urandom) -lt 128"
    path = project.suite(*[case(f"coin-{number}", coin) for number in range(12)])
    result = ab(project, path, "--controls", "standard")
    assert result.code in {0, 4}, result.stderr
    assert {row["delta"] for row in result.card["per_case"]} <= {None, 0}
