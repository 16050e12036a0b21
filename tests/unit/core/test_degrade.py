"""The closed set of degraded reasons: which one wins, and what becomes of a status or record."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.degrade import (
    degrade_record,
    hooks_disabled,
    insufficient,
    runtime_unavailable,
    status_of,
    worst,
)
from runner.model.leg import Degradation, DegradedReason
from runner.model.record import RunRecord, Status
from tests.unit.builders import FAILED, PASSED, case, record, result, suite_file

WORST_FIRST = (
    DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE,
    DegradedReason.HOOKS_DISABLED,
    DegradedReason.CONTEXT_VARIANT_UNSUPPORTED,
    DegradedReason.CONTEXT_ROOT_UNAVAILABLE,
    DegradedReason.RUNTIME_UNAVAILABLE,
    DegradedReason.INSUFFICIENT_DECISION_EVIDENCE,
)
DEGRADATIONS = st.builds(
    Degradation, reason=st.sampled_from(WORST_FIRST), detail=st.sampled_from(["a", "b", "timeout"])
)


def of(reason: DegradedReason, detail: str = "x") -> Degradation:
    return Degradation(reason=reason, detail=detail)


def test_every_reason_has_its_place_in_the_order() -> None:
    assert sorted(WORST_FIRST) == sorted(DegradedReason)


@pytest.mark.parametrize("better, worse", list(itertools.combinations(reversed(WORST_FIRST), 2)))
def test_the_worse_reason_is_reported_whichever_comes_first(
    better: DegradedReason, worse: DegradedReason
) -> None:
    assert worst([of(better), None, of(worse)]) == of(worse)
    assert worst([of(worse), of(better)]) == of(worse)


def test_among_equals_the_first_is_reported_and_of_nothing_nothing() -> None:
    assert worst([insufficient("timeout"), insufficient("oom")]) == insufficient("timeout")
    assert worst([None, None]) is None
    assert worst([]) is None


@given(st.lists(st.none() | DEGRADATIONS))
def test_the_worst_is_one_of_those_given_and_nothing_is_worse(
    given_ones: list[Degradation | None],
) -> None:
    present = [item for item in given_ones if item is not None]
    chosen = worst(given_ones)
    assert (chosen is None) == (not present)
    if chosen is not None:
        rank = WORST_FIRST.index(chosen.reason)
        assert chosen in present
        assert all(rank <= WORST_FIRST.index(item.reason) for item in present)


@pytest.mark.parametrize(
    "degradation, status",
    [
        (runtime_unavailable("live_runtime"), Status.SKIPPED),
        (runtime_unavailable("tier_not_deterministic"), Status.SKIPPED),
        (runtime_unavailable("not_startable"), Status.ERROR),
        (runtime_unavailable("engine_lost"), Status.ERROR),
        (of(DegradedReason.CONTEXT_ROOT_UNAVAILABLE, "missing"), Status.ERROR),
        (insufficient("timeout"), Status.ERROR),
        (insufficient("oom"), Status.ERROR),
        (insufficient("crash"), Status.ERROR),
        (insufficient("protocol_violation"), Status.ERROR),
        (insufficient("output_truncated"), Status.INCONCLUSIVE),
        (insufficient("undecided"), Status.INCONCLUSIVE),
        (insufficient("a_detail_of_tomorrow"), Status.INCONCLUSIVE),
        (hooks_disabled("inherited"), Status.INCONCLUSIVE),
        (of(DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE, "by_leg"), Status.INCONCLUSIVE),
        (of(DegradedReason.CONTEXT_VARIANT_UNSUPPORTED, "x"), Status.INCONCLUSIVE),
    ],
)
def test_what_did_not_run_or_cannot_be_believed_is_neither_pass_nor_fail(
    degradation: Degradation, status: Status
) -> None:
    assert status_of(degradation) is status


@given(DEGRADATIONS)
def test_no_degradation_makes_a_pass_or_a_failure(degradation: Degradation) -> None:
    assert status_of(degradation) not in {Status.PASS, Status.FAIL}


# --- a whole leg

SUITE = suite_file(case("a"), case("b"), case("c"))


def leg() -> RunRecord:
    """A clean leg with one pass, one failure and one timeout."""
    return record(
        SUITE,
        [
            result(SUITE, "a", [PASSED]),
            result(SUITE, "b", [FAILED]),
            result(SUITE, "c", [PASSED], insufficient("timeout")),
        ],
    )


def valid(value: RunRecord) -> RunRecord:
    """The record, all of its own rules checked anew (a copy is not checked)."""
    return RunRecord.model_validate(value.model_dump())


def test_a_degraded_leg_degrades_every_row_and_has_no_verdict() -> None:
    # Once a leg without hooks had clean rows, and handed the other one a win.
    degraded = valid(degrade_record(leg(), hooks_disabled("inherited")))
    assert degraded.degradation == hooks_disabled("inherited")
    assert degraded.verdict == "inconclusive"
    for case_of_leg in degraded.case_results:
        assert case_of_leg.degraded_reason is DegradedReason.HOOKS_DISABLED
        assert case_of_leg.degraded_detail == "inherited"


def test_a_degraded_leg_still_reports_what_happened() -> None:
    before, after = leg(), degrade_record(leg(), hooks_disabled("inherited"))
    kept = [(case_.status, case_.score) for case_ in after.case_results]
    assert kept == [(case_.status, case_.score) for case_ in before.case_results]
    assert (after.status, after.aggregate_score) == (before.status, before.aggregate_score)


def test_a_row_keeps_its_own_reason_when_that_is_the_worse_one() -> None:
    suite = suite_file(case("a"))
    lost = record(suite, [result(suite, "a", [PASSED], runtime_unavailable("not_startable"))])
    degraded = degrade_record(lost, insufficient("leg_timeout"))
    (row,) = degraded.case_results
    assert row.degraded_reason is DegradedReason.RUNTIME_UNAVAILABLE
    assert degraded.degradation == insufficient("leg_timeout")


@given(DEGRADATIONS, DEGRADATIONS)
def test_degrading_twice_reports_the_worse_of_both(one: Degradation, other: Degradation) -> None:
    both = valid(degrade_record(degrade_record(leg(), one), other))
    chosen = worst([one, other])
    assert both.degradation == chosen
    rows = [
        Degradation(reason=row.degraded_reason, detail=row.degraded_detail)
        for row in both.case_results
        if row.degraded_reason is not None and row.degraded_detail is not None
    ]
    assert rows == [chosen, chosen, worst([insufficient("timeout"), chosen])]
