"""Controls of the skill axis, against worlds in which it is known what decides an outcome."""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from runner.core.controls import REPLICATES
from runner.core.degrade import insufficient
from runner.core.skillcontrols import Mode, controls_block, findings, next_rounds
from runner.model.record import RunRecord
from tests.unit.builders import FAILED, PASSED, case, result, suite_file
from tests.unit.skill import skill_card, skill_record

World = Callable[[str, str, int], bool | None]
"""(case id, variant, number of the leg) -> whether the case passes; None: the leg cannot say."""

SUITE = suite_file(case("one"), case("two"))
LOST = insufficient("timeout")


def run(world: World, mode: Mode = "standard") -> list[RunRecord]:
    """Run legs until the controls ask for no more, exactly as the use case does it."""
    done: list[RunRecord] = []
    while rounds := next_rounds(mode, done):
        for orders in rounds:
            for order in orders:
                found = []
                for case_id in order.cases or ("one", "two"):
                    passes = world(case_id, order.variant, order.role.ordinal)
                    verdict = PASSED if passes else FAILED
                    why = LOST if passes is None else None
                    found.append(result(SUITE, case_id, [verdict], why))
                done.append(skill_record(SUITE, found, order.variant, ordinal=order.role.ordinal))
    return done


def follows_the_switch(case_id: str, variant: str, _: int) -> bool:
    return case_id == "two" or variant == "skill_on"


def test_without_controls_two_legs_are_all_there_is() -> None:
    done = run(follows_the_switch, "none")
    assert [record.leg for record in done] == ["skill_off", "skill_on"]
    assert findings("none", done) == {}
    assert controls_block("none", done).legs == 2


def test_a_case_that_follows_the_switch_stands_and_is_run_ten_times() -> None:
    done = run(follows_the_switch)
    assert len(done) == 2 * REPLICATES
    assert [record.leg for record in done[:4]] == [
        "skill_off", "skill_on", "skill_off_r2", "skill_on_r2",
    ]  # fmt: skip
    assert findings("standard", done) == {}
    block = controls_block("standard", done)
    assert (block.legs, block.replicates, block.extra_replicates) == (20, 2, 8)
    (row,) = block.cases
    assert (row.case_id, row.runs_off, row.runs_on, row.finding) == ("one", 10, 10, None)
    assert skill_card(SUITE, *done, controls="standard").aggregate_delta == 0.5


def test_a_suite_in_which_nothing_differs_costs_one_replicate_of_each_leg() -> None:
    done = run(lambda *_: True)
    assert len(done) == 4
    assert controls_block("standard", done).cases == ()


@pytest.mark.parametrize("odd", [("skill_off", 2), ("skill_on", 2), ("skill_on", 7)])
def test_one_other_outcome_of_the_same_variant_takes_the_claim_away(odd: tuple[str, int]) -> None:
    def world(case_id: str, variant: str, ordinal: int) -> bool:
        return follows_the_switch(case_id, variant, ordinal) != (
            case_id == "one" and (variant, ordinal) == odd
        )

    done = run(world)
    assert findings("standard", done) == {"one": insufficient("nondeterministic")}
    card = skill_card(SUITE, *done, controls="standard")
    assert (card.per_case[0].delta, card.per_case[0].degraded_detail) == (None, "nondeterministic")
    assert card.per_case[0].degraded_legs == ()
    assert card.aggregate_delta == 0


@pytest.mark.parametrize("lost", [("one", 2), ("two", 2), ("one", 5)])
def test_a_control_that_could_not_be_run_takes_the_claim_away(lost: tuple[str, int]) -> None:
    def world(case_id: str, variant: str, ordinal: int) -> bool | None:
        if (case_id, ordinal) == lost and variant == "skill_on":
            return None
        return follows_the_switch(case_id, variant, ordinal)

    done = run(world)
    assert findings("standard", done) == {lost[0]: insufficient("control_incomplete")}


def test_a_case_that_one_first_leg_lost_is_not_run_again() -> None:
    done = run(lambda case_id, variant, _: None if case_id == "one" else True)
    assert [[case.case_id for case in record.case_results] for record in done[2:]] == [["two"]] * 2
    done = run(lambda *_: None)
    assert len(done) == 2


def test_cases_that_toss_a_coin_win_and_lose_nothing() -> None:
    coin = random.Random(7)
    for _ in range(100):
        done = run(lambda *_: coin.random() < 0.5)
        card = skill_card(SUITE, *done, controls="standard")
        assert all(not row.is_valid or row.score_delta == 0 for row in card.per_case)
