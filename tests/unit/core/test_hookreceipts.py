"""Receipts of hooks, compared between legs."""

from __future__ import annotations

from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.degrade import hooks_disabled, insufficient
from runner.core.hookreceipts import complete, completed, equal, settle, settle_round
from runner.core.record import run_record
from runner.model.hooks import HookEvent, HookReceipt, HookStream
from runner.model.leg import Axis, Degradation, DegradedReason
from runner.model.record import CaseResult, Status
from tests.unit.builders import (
    PASSED,
    circumstances,
    inside_end,
    inside_report,
    leg_plan,
    observation,
    result,
    scorecard,
    sha,
    suite_file,
)

SUITE = suite_file()
DIFFER = hooks_disabled("receipts_differ")
INCOMPLETE = hooks_disabled("hook_incomplete")


def stream(size: int = 0, digit: str = "1") -> HookStream:
    return HookStream(size=size, kept=size, sha256=sha(digit))


def receipt(**change: Any) -> HookReceipt:
    values: dict[str, Any] = {
        "event": HookEvent.SESSION_START,
        "index": 0,
        "command_sha256": sha("a"),
        "exit_code": 0,
        "signal": None,
        "timed_out": False,
        "oom_killed": False,
        "start_error": None,
        "duration_ms": 3,
        "stdout": stream(),
        "stderr": stream(),
    }
    return HookReceipt(**(values | change))


def side(*receipts: HookReceipt, degraded: Degradation | None = None) -> CaseResult:
    return result(SUITE, "one", [PASSED], degraded, observation(hooks=receipts))


def reason(case: CaseResult) -> Degradation | None:
    if case.degraded_reason is None or case.degraded_detail is None:
        return None
    return Degradation(reason=case.degraded_reason, detail=case.degraded_detail)


FAILED: dict[str, dict[str, Any]] = {
    "timed out": {"exit_code": None, "signal": 9, "timed_out": True},
    "timed out, yet exited": {"timed_out": True},
    "killed": {"exit_code": None, "signal": 9},
    "out of memory": {"oom_killed": True},
    "not started": {"exit_code": None, "start_error": "bad_cwd"},
    "program missing": {"exit_code": 127},
    "program not executable": {"exit_code": 126},
}


@pytest.mark.parametrize("code", [0, 1, 2, 125, 128, 255])
@pytest.mark.parametrize("oom", [False, None])
def test_a_hook_that_came_to_its_end_completed_whatever_its_code(
    code: int, oom: bool | None
) -> None:
    assert completed(receipt(exit_code=code, oom_killed=oom))


@pytest.mark.parametrize("how", FAILED)
def test_a_hook_that_did_not_complete_degrades_the_case_in_both_legs(how: str) -> None:
    bad = receipt(**FAILED[how])
    assert not completed(bad)
    settled = settle([[side(receipt(), bad)], [side(receipt(), bad)]])
    for (case,) in settled:
        assert reason(case) == INCOMPLETE
        assert (case.status, case.score) == (Status.INCONCLUSIVE, None)
    ((alone,),) = settle([[side(bad)]])
    assert reason(alone) == INCOMPLETE


@pytest.mark.parametrize("how", FAILED)
def test_a_hook_that_failed_in_one_leg_only_is_a_difference(how: str) -> None:
    good, bad = side(receipt()), side(receipt(**FAILED[how]))
    for pair in ([[good], [bad]], [[bad], [good]]):
        assert [reason(case) for (case,) in settle(pair)] == [DIFFER, DIFFER]


def test_equal_codes_other_than_zero_are_fine() -> None:
    legs = [[side(receipt(exit_code=3))], [side(receipt(exit_code=3))]]
    assert settle(legs) == tuple(map(tuple, legs))


@pytest.mark.parametrize(
    "change",
    [
        {"exit_code": 1},
        {"command_sha256": sha("b")},
        {"event": HookEvent.SESSION_END},
        {"index": 1},
        {"oom_killed": None},
    ],
    ids=str,
)
def test_receipts_that_differ_degrade_both(change: dict[str, Any]) -> None:
    legs = [[side(receipt())], [side(receipt(**change))]]
    assert [reason(case) for (case,) in settle(legs)] == [DIFFER, DIFFER]


def test_a_hook_that_only_one_leg_ran_is_a_difference() -> None:
    # Without receipts and not degraded: nothing explains why the hooks are missing.
    legs = [[side(receipt())], [side()]]
    assert [reason(case) for (case,) in settle(legs)] == [DIFFER, DIFFER]
    legs = [[side(receipt(), receipt(index=1))], [side(receipt())]]
    assert [reason(case) for (case,) in settle(legs)] == [DIFFER, DIFFER]


def test_output_and_duration_are_never_compared() -> None:
    other = receipt(duration_ms=999, stdout=stream(5, "7"), stderr=stream(9, "8"))
    legs = [[side(receipt())], [side(other)]]
    assert settle(legs) == tuple(map(tuple, legs))
    assert equal([legs[0][0], legs[1][0]]) is True


def test_a_leg_that_did_not_reach_the_case_keeps_its_own_reason() -> None:
    lost = insufficient("leg_timeout")
    pair = [side(receipt()), side(degraded=lost)]
    assert equal(pair) is None
    reached, missing = (case for (case,) in settle([[pair[0]], [pair[1]]]))
    assert (reason(reached), reason(missing)) == (None, lost)
    # Further legs are compared all the same.
    third = side(receipt(exit_code=1))
    told = [reason(case) for (case,) in settle([[pair[0]], [pair[1]], [third]])]
    assert told == [DIFFER, lost, DIFFER]


def test_a_case_degraded_otherwise_is_still_told_to_differ() -> None:
    timeout = insufficient("timeout")
    legs = [[side(receipt(exit_code=1), degraded=timeout)], [side(receipt())]]
    assert [reason(case) for (case,) in settle(legs)] == [DIFFER, DIFFER]
    live = Degradation(reason=DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE, detail="by_leg")
    legs = [[side(receipt(exit_code=1), degraded=live)], [side(receipt())]]
    assert [reason(case) for (case,) in settle(legs)] == [live, DIFFER]


def test_without_hooks_nothing_changes() -> None:
    legs = [[side()], [side()]]
    assert settle(legs) == tuple(map(tuple, legs))
    assert settle([[], []]) == ((), ())


def test_a_pair_whose_hooks_differ_takes_no_part_in_the_delta() -> None:
    settled = settle([[side(receipt())], [side(receipt(exit_code=1))]])
    off, on = (
        run_record(
            SUITE,
            leg_plan(SUITE, variant),
            results,
            degraded=None,
            inside=inside_report(),
            inside_end=inside_end(),
            circumstances=circumstances(),
        )
        for variant, results in zip(("context_off", "context_on"), settled, strict=True)
    )
    assert (off.status, off.aggregate_score, off.verdict) == ("inconclusive", None, "inconclusive")
    card = scorecard(SUITE, off, on)
    assert card.aggregate_delta is None
    assert card.pairing.valid_pairs == 0
    assert card.per_case[0].degraded_detail == "receipts_differ"


_RECEIPTS = st.lists(
    st.builds(
        receipt,
        exit_code=st.sampled_from([0, 1, 127]),
        duration_ms=st.integers(0, 9),
        oom_killed=st.sampled_from([False, None, True]),
    ),
    max_size=3,
)


@given(st.lists(_RECEIPTS, min_size=1, max_size=3))
def test_a_case_stays_clean_only_if_all_legs_agree_and_completed(
    legs: list[list[HookReceipt]],
) -> None:
    sides = [side(*receipts) for receipts in legs]
    settled = [case for (case,) in settle([[item] for item in sides])]
    facts = [[(r.exit_code, r.oom_killed) for r in receipts] for receipts in legs]
    agree = all(one == other for one, other in product(facts, facts))
    whole = all(map(complete, sides))
    clean = [reason(case) is None for case in settled]
    assert clean == [agree and whole] * len(legs)
    assert [case.hooks for case in settled] == [tuple(receipts) for receipts in legs]
    if len(legs) > 1:
        assert equal(sides) is agree


CONTEXT = [(Axis.CONTEXT, "context_off"), (Axis.CONTEXT, "context_on")]
SKILL = [(Axis.SKILL, "skill_off"), (Axis.SKILL, "skill_on")]


def test_the_off_leg_of_the_skill_axis_has_no_receipts_which_is_no_difference() -> None:
    legs = [[side()], [side(receipt())]]
    assert [reason(leg[0]) for leg in settle_round(legs, CONTEXT)] == [DIFFER, DIFFER]
    assert [reason(leg[0]) for leg in settle_round(legs, SKILL)] == [None, None]


def test_a_hook_that_did_not_complete_degrades_the_on_leg_of_the_skill_axis_alone() -> None:
    legs = [[side()], [side(receipt(timed_out=True))]]
    assert [reason(leg[0]) for leg in settle_round(legs, SKILL)] == [None, INCOMPLETE]


def test_legs_of_one_variant_of_the_skill_axis_are_held_against_each_other() -> None:
    legs = [[side(receipt())], [side()], [side(receipt(exit_code=3))]]
    variants = [SKILL[1], SKILL[0], SKILL[1]]
    assert [reason(leg[0]) for leg in settle_round(legs, variants)] == [DIFFER, None, DIFFER]
