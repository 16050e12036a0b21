"""Two legs of the skill axis -> the scorecard."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pydantic import ValidationError

from runner.core.canon import document
from runner.core.degrade import hooks_disabled, insufficient
from runner.core.exitcode import Wanted, of_scorecard
from runner.model.skillscorecard import SkillCase, SkillFact, SkillOutput
from tests.unit.builders import FAILED, PASSED, case, result, suite_file
from tests.unit.report import builders as report
from tests.unit.skill import hooks_evidence, skill_card, skill_record

SUITE = suite_file(case("one"), case("two"))
OFF = skill_record(
    SUITE, [result(SUITE, "one", [FAILED]), result(SUITE, "two", [PASSED])], "skill_off"
)
ON = skill_record(
    SUITE, [result(SUITE, "one", [PASSED]), result(SUITE, "two", [PASSED])], "skill_on"
)


def test_the_fields_of_the_formats_first_runner_are_there_under_its_names() -> None:
    plain = document(skill_card(SUITE, OFF, ON))
    assert {name: plain[name] for name in plain if name.startswith(("skill_", "agg", "suite"))} == {
        "suite_id": "demo",
        "suite_path": "suites/demo.json",
        "skill_on_run_id": "r1-skill-on",
        "skill_off_run_id": "r1-skill-off",
        "skill_on_aggregate": 1.0,
        "skill_off_aggregate": 0.5,
        "aggregate_delta": 0.5,
        "skill_on": plain["skill_on"],
        "skill_off": plain["skill_off"],
    }
    names = ("case_id", "skill_on_status", "skill_off_status", "skill_on_score", "skill_off_score")
    assert [[row[name] for name in (*names, "delta")] for row in plain["per_case"]] == [
        ["one", "pass", "fail", 1.0, 0.0, 1],
        ["two", "pass", "pass", 1.0, 1.0, 0],
    ]


def test_nothing_in_it_speaks_of_context() -> None:
    assert "context_" not in skill_card(SUITE, OFF, ON).model_dump_json()


def test_a_changed_case_has_the_fact_and_the_outputs_it_rests_on() -> None:
    first, second = skill_card(SUITE, OFF, ON).per_case
    (fact,) = [item for item in first.decision_evidence if isinstance(item, SkillFact)]
    assert (fact.skill_off, fact.skill_on, fact.changed) == (FAILED, PASSED, True)
    outputs = [item for item in first.decision_evidence if isinstance(item, SkillOutput)]
    assert [(item.leg, item.excerpt) for item in outputs] == [
        ("skill_off", "skill_off one stdout"),
        ("skill_on", "skill_on one stdout"),
    ]
    assert all(isinstance(item, SkillFact) for item in second.decision_evidence)


def test_skills_that_do_harm_are_a_negative_delta_and_no_degradation() -> None:
    off = skill_record(SUITE, ON.case_results, "skill_off")
    on = skill_record(SUITE, OFF.case_results, "skill_on")
    card = skill_card(SUITE, off, on)
    assert (card.aggregate_delta, card.per_case[0].delta) == (-0.5, -1)
    assert of_scorecard(card, Wanted()) == 0
    assert of_scorecard(card, Wanted(delta=0.0)) == 1
    assert of_scorecard(card, Wanted(passing=True)) == 1


def test_a_lost_side_is_no_zero_and_bounds_say_what_it_could_have_been() -> None:
    lost = [result(SUITE, "one", [PASSED], insufficient("timeout")), ON.case_results[1]]
    card = skill_card(SUITE, OFF, skill_record(SUITE, lost, "skill_on"))
    row = card.per_case[0]
    assert (row.delta, row.score_delta, row.degraded_detail) == (None, None, "timeout")
    assert row.degraded_legs == ("skill_on",)
    assert card.aggregate_delta == 0
    assert (card.pairing.delta_lower_bound, card.pairing.delta_upper_bound) == (0.0, 0.5)
    assert card.resolution.degraded == (0, 1)
    assert of_scorecard(card, Wanted(valid=True)) == 4


def test_legs_without_hooks_in_either_claim_nothing() -> None:
    why = hooks_disabled("inherited")
    off = skill_record(SUITE, OFF.case_results, "skill_off", degraded=why)
    on = skill_record(SUITE, ON.case_results, "skill_on", degraded=why)
    card = skill_card(SUITE, off, on)
    assert card.aggregate_delta is None
    assert [row.degraded_detail for row in card.per_case] == ["inherited"] * 2
    assert of_scorecard(card, Wanted()) == 4


@pytest.mark.parametrize(
    "off, on, equal",
    [
        (None, None, True),
        ({"AGENTOPS_HOOKS_DISABLED": "1"}, {"AO_PROFILE": "ci"}, False),
        ({"AO_PROFILE": "other", "AGENTOPS_HOOKS_DISABLED": "1"}, None, False),
    ],
)
def test_the_hook_environment_is_equal_but_for_the_switch(off: Any, on: Any, equal: bool) -> None:
    card = skill_card(SUITE, OFF, ON, hooks=hooks_evidence(off, on))
    assert card.integrity.hooks.equal_in_both_legs is equal


def test_a_violated_measurement_exits_5_whatever_the_delta() -> None:
    changed = report.live(report.root(after_sha256=report.sha("b")))
    card = skill_card(SUITE, OFF, ON, live=changed)
    assert card.integrity.verdict == "violated"
    assert of_scorecard(card, Wanted()) == 5


@pytest.mark.parametrize(
    "change",
    [
        {"delta": None},
        {"score_delta": None},
        {"decision_evidence": ()},
        {"degraded_legs": ("skill_on",)},
        {"degraded_reason": "hooks_disabled"},
        {"degraded_reason": "hooks_disabled", "degraded_detail": "x"},
    ],
)
def test_a_row_that_says_more_than_was_shown_cannot_be_made(change: dict[str, Any]) -> None:
    plain = document(skill_card(SUITE, OFF, ON))["per_case"][0]
    SkillCase.model_validate_json(json.dumps(plain))
    with pytest.raises(ValidationError, match=r"pair|together"):
        SkillCase.model_validate_json(json.dumps({**plain, **change}))


def test_records_of_different_cases_are_no_comparison() -> None:
    with pytest.raises(ValueError, match="same cases"):
        skill_card(SUITE, OFF, skill_record(SUITE, ON.case_results[:1], "skill_on"))
