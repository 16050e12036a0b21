"""Numbers that are known beforehand, from real pairs of containers."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from tests.container.conftest import Bundled
from tests.container.projects import TOP, Json, Project

pytestmark = pytest.mark.container

EXPECTED: Json = json.loads((TOP / "fixtures" / "expected.json").read_bytes())["suites"]
COMPAT = Path(os.environ.get("AO_EVAL_COMPAT") or TOP.parent / "shared" / "compat" / "suites")
"""Data kept beside the checkout, never in it."""

WAVE0 = "context-packet-ab-wave0"
LID = "lid-primitives-demo"
SIDES = ("context_off", "context_on")


@pytest.mark.parametrize("suite_id", EXPECTED)
def test_a_bundled_suite_gives_the_numbers_that_were_computed_by_hand(
    bundled: Bundled, suite_id: str
) -> None:
    wanted = EXPECTED[suite_id]
    card = json.loads((bundled.directory(suite_id) / "scorecard.json").read_bytes())
    assert card["aggregate_delta"] == wanted["aggregate_delta"]
    for side in SIDES:
        found = card[side]
        assert {name: found[name] for name in wanted[side]} == wanted[side]
    rows = [
        {
            "case_id": row["case_id"],
            **{side: {name: row[side][name] for name in ("status", "score")} for side in SIDES},
            "score_delta": row["score_delta"],
            "status_delta": row["status_delta"],
        }
        for row in card["per_case"]
    ]
    assert rows == wanted["per_case"]
    assert card["integrity"]["verdict"] == "clean"
    assert card["pairing"]["degraded_pairs"] == 0


def test_the_bundled_suites_are_all_there_and_exit_0(bundled: Bundled) -> None:
    assert bundled.result.code == 0
    assert {card["suite_id"] for card in bundled.result.document["runs"]} == set(EXPECTED)


def test_every_change_names_the_expectation_and_the_output_it_rests_on(bundled: Bundled) -> None:
    changed = [
        row
        for card in bundled.result.document["runs"]
        for row in card["per_case"]
        if row["score_delta"] != 0
    ]
    assert len(changed) == 10
    for row in changed:
        evidence = row["decision_evidence"]
        facts = [item for item in evidence if item["kind"] == "evaluator_fact" and item["changed"]]
        outputs = [item for item in evidence if item["kind"] != "evaluator_fact"]
        assert facts
        assert {item["leg"] for item in outputs} == set(SIDES)
        assert all(item["sha256"] or item["state"] == "absent" for item in outputs)
        named = row["artifact_attribution"]
        assert named
        assert all(name.startswith("learnings/") for name in named)


def wave0(project: Project) -> str:
    """The public suite in which a script compares the name of the leg, put into a project."""
    if not COMPAT.is_dir():
        pytest.skip("compat suites are not beside this checkout")
    folder = project.repo / "evals"
    shutil.copytree(COMPAT / "fixtures" / WAVE0, folder / "fixtures" / WAVE0)
    shutil.copy(COMPAT / f"{WAVE0}.json", folder)
    for script in (Path(__file__).parents[1] / "data" / "wave0").iterdir():
        shutil.copy(script, folder / "fixtures" / WAVE0)
    return f"evals/{WAVE0}.json"


def test_the_public_wave0_suite_gives_its_known_result(project: Project) -> None:
    result = project.ao_eval("ab", wave0(project), "--json")
    assert result.code == 0, result.stderr
    card = result.document
    summary = [(card[side]["aggregate_score"], card[side]["status"]) for side in SIDES]
    assert summary == [(0.5333, "fail"), (1.0, "pass")]
    assert card["aggregate_delta"] == 0.4667
    assert [row["status_delta"] for row in card["per_case"]] == [1, 0]
    assert [row["degraded_reason"] for row in card["per_case"]] == [None, None]


@pytest.mark.parametrize("controls", ["none", "standard"])
def test_the_public_skill_suite_gives_its_known_result(project: Project, controls: str) -> None:
    if not COMPAT.is_dir():
        pytest.skip("compat suites are not beside this checkout")
    (project.repo / "evals").mkdir()
    shutil.copy(COMPAT / f"{LID}.json", project.repo / "evals")
    result = project.ao_eval(
        "ab", "--axis", "skill", f"evals/{LID}.json", "--controls", controls, "--json"
    )
    assert result.code == 0, result.stderr
    card = result.document
    assert (card["skill_on_aggregate"], card["skill_off_aggregate"]) == (1.0, 0.5)
    assert card["aggregate_delta"] == 0.5
    assert [row["delta"] for row in card["per_case"]] == [1, 0]
    assert [row["degraded_reason"] for row in card["per_case"]] == [None, None]
    assert card["integrity"]["verdict"] == "clean"
    assert card["controls"]["legs"] == (2 if controls == "none" else 20)
