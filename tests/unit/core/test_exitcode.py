"""What a command exits with: the ranking, and each finding that has a code."""

from __future__ import annotations

import itertools
from typing import Literal

import pytest

from runner.core.degrade import degrade_record, hooks_disabled, insufficient
from runner.core.exitcode import RANKING, Wanted, highest, of_record, of_scorecard
from runner.model.record import RunRecord, Verdict
from runner.model.scorecard import ContextScorecard
from tests.unit import builders as b
from tests.unit.builders import FAILED, PASSED, case, record, result, suite_file

ORDER = (130, 143, 70, 2, 3, 5, 6, 4, 1, 0)
"""Design section 10, most important first."""

NAN = float("nan")


def test_the_ranking_is_the_documented_one() -> None:
    assert RANKING == ORDER


@pytest.mark.parametrize("size", range(1, len(ORDER) + 1))
def test_the_highest_ranking_of_every_subset_wins_in_any_order(size: int) -> None:
    for codes in itertools.combinations(ORDER, size):
        assert highest(codes) == codes[0]
        assert highest(codes[::-1]) == codes[0]
        assert highest([*codes, *codes]) == codes[0]


def test_of_nothing_the_code_is_0_and_an_unknown_code_is_a_defect() -> None:
    assert highest([]) == 0
    with pytest.raises(ValueError, match="index"):
        highest([0, 99])


# --- scorecards

SUITE = suite_file(case("a"), case("b"))


def leg(variant: str, *verdicts: Verdict | None) -> RunRecord:
    """A leg; None: the case timed out."""
    return record(
        SUITE,
        [
            result(SUITE, name, [verdict or PASSED], None if verdict else insufficient("timeout"))
            for name, verdict in zip("ab", verdicts, strict=True)
        ],
        variant,
    )


def card(
    off: tuple[Verdict | None, ...],
    on: tuple[Verdict | None, ...],
    *,
    null_check: bool = False,
    verdict: Literal["clean", "violated", "unknown"] = "clean",
) -> ContextScorecard:
    return b.scorecard(
        SUITE,
        leg("context_off", *off),
        leg("context_on", *on),
        null_check=null_check,
        verdict=verdict,
    )


BETTER = card((FAILED, PASSED), (PASSED, PASSED))
WORSE = card((PASSED, PASSED), (FAILED, PASSED))
PARTLY = card((FAILED, None), (PASSED, PASSED))
NOTHING = card((FAILED, None), (None, PASSED))


@pytest.mark.parametrize("found", [BETTER, WORSE, PARTLY, card((FAILED, FAILED), (FAILED, FAILED))])
def test_a_result_is_a_result_whatever_it_says(found: ContextScorecard) -> None:
    assert of_scorecard(found, Wanted()) == 0


def test_without_a_valid_pair_there_is_no_evidence() -> None:
    assert of_scorecard(NOTHING, Wanted()) == 4
    assert of_scorecard(NOTHING, Wanted(delta=-1.0, passing=True)) == 4


@pytest.mark.parametrize("verdict, code", [("violated", 5), ("unknown", 4)])
def test_a_measurement_that_was_not_shown_to_be_clean_has_a_code(
    verdict: Literal["violated", "unknown"], code: int
) -> None:
    for off in (FAILED, None):
        found = card((off, off), (PASSED, PASSED), verdict=verdict)
        assert of_scorecard(found, Wanted(delta=2.0, valid=True, passing=True)) == code


@pytest.mark.parametrize(
    "found, delta, code",
    [
        (BETTER, 0.5, 0),
        (BETTER, 0.5001, 1),
        (WORSE, -0.5, 0),
        (WORSE, 0.0, 1),
        # Delta 1, but at worst the lost case passed without context too: 0.5.
        (PARTLY, 0.5, 0),
        (PARTLY, 0.6, 1),
        (BETTER, NAN, 1),
        (BETTER, float("-inf"), 0),
    ],
)
def test_a_gate_on_the_delta_uses_the_lower_bound(
    found: ContextScorecard, delta: float, code: int
) -> None:
    assert of_scorecard(found, Wanted(delta=delta)) == code


def test_a_gate_on_the_delta_says_no_when_there_is_no_bound() -> None:
    pairing = BETTER.pairing.model_copy(update={"delta_lower_bound": None})
    assert of_scorecard(BETTER.model_copy(update={"pairing": pairing}), Wanted(delta=-1.0)) == 1


def test_a_gate_on_valid_pairs_says_no_to_one_degraded_pair() -> None:
    assert of_scorecard(PARTLY, Wanted(valid=True)) == 4
    assert of_scorecard(BETTER, Wanted(valid=True)) == 0


def test_a_gate_on_passing_looks_at_the_context_on_leg() -> None:
    assert of_scorecard(BETTER, Wanted(passing=True)) == 0
    assert of_scorecard(WORSE, Wanted(passing=True)) == 1


@pytest.mark.parametrize(
    "off, on, code",
    [
        ((PASSED, FAILED), (PASSED, FAILED), 0),
        ((PASSED, FAILED), (PASSED, PASSED), 1),
        # The aggregate is the same, the pairs are not.
        ((PASSED, FAILED), (FAILED, PASSED), 1),
        ((None, FAILED), (PASSED, FAILED), 0),
    ],
)
def test_the_null_check_says_no_to_any_pair_that_differs(
    off: tuple[Verdict | None, ...], on: tuple[Verdict | None, ...], code: int
) -> None:
    assert of_scorecard(card(off, on, null_check=True), Wanted()) == code
    assert of_scorecard(card(off, on), Wanted()) == 0


# --- single legs

PASSING = leg("context_on", PASSED, PASSED)
FAILING = leg("context_on", PASSED, FAILED)
HALF = leg("context_on", PASSED, None)
LOST = leg("context_on", None, None)


@pytest.mark.parametrize(
    "found, wanted, code",
    [
        (PASSING, Wanted(), 0),
        (FAILING, Wanted(), 0),
        (FAILING, Wanted(passing=True), 1),
        (PASSING, Wanted(passing=True, valid=True), 0),
        (HALF, Wanted(), 0),
        (HALF, Wanted(valid=True), 4),
        (HALF, Wanted(passing=True), 1),
        (LOST, Wanted(), 4),
        (LOST, Wanted(passing=True), 4),
        (degrade_record(PASSING, hooks_disabled("inherited")), Wanted(passing=True), 4),
    ],
)
def test_a_single_leg_has_the_code_of_what_was_found(
    found: RunRecord, wanted: Wanted, code: int
) -> None:
    assert of_record(found, clean=True, wanted=wanted) == code
    assert of_record(found, clean=False, wanted=wanted) == 5
