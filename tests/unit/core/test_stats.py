"""What the pairs can resolve, against enumerations and published examples."""

from __future__ import annotations

import itertools
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.stats import ALPHA, least_net_improvement, mcnemar_exact, resolution


def enumerated(improved: int, regressed: int) -> Fraction:
    """Share of all sign patterns of the discordant pairs that are at least as lopsided."""
    discordant = improved + regressed
    observed = abs(improved - regressed)
    extreme = sum(
        abs(2 * sum(signs) - discordant) >= observed
        for signs in itertools.product((0, 1), repeat=discordant)
    )
    return Fraction(extreme, 2**discordant)


@pytest.mark.parametrize(
    "improved, regressed",
    [(a, b) for a in range(8) for b in range(8) if a + b <= 10],
)
def test_mcnemar_is_the_enumeration_of_all_sign_patterns(improved: int, regressed: int) -> None:
    assert mcnemar_exact(improved, regressed) == float(enumerated(improved, regressed))


@pytest.mark.parametrize(
    "improved, regressed, p",
    [
        # Fagerland, Lydersen, Laake (2013), table 1: airway hyper-responsiveness before and after
        # stem cell transplantation, discordant 1 and 7; the exact conditional p is 0.070.
        (1, 7, 0.070),
        # Sign test on 8 of 8 (Conover, Practical Nonparametric Statistics).
        (8, 0, 0.008),
        (5, 0, 0.0625),
        (6, 0, 0.031),
        (4, 14, 0.031),
    ],
)
def test_mcnemar_gives_known_values(improved: int, regressed: int, p: float) -> None:
    assert mcnemar_exact(improved, regressed) == pytest.approx(p, abs=0.0005)


@given(st.integers(0, 400), st.integers(0, 400))
def test_mcnemar_is_a_probability_and_does_not_know_the_direction(one: int, other: int) -> None:
    p = mcnemar_exact(one, other)
    assert 0 <= p <= 1
    assert p == mcnemar_exact(other, one)
    assert mcnemar_exact(one, one) == 1


@given(st.integers(0, 60), st.integers(0, 60))
def test_one_more_change_in_the_leading_direction_is_never_weaker_evidence(
    few: int, lead: int
) -> None:
    many = few + lead
    assert mcnemar_exact(many + 1, few) <= mcnemar_exact(many, few)


@pytest.mark.parametrize("pairs", range(6))
def test_five_pairs_can_never_reach_significance(pairs: int) -> None:
    assert least_net_improvement(pairs) is None
    for improved in range(pairs + 1):
        for regressed in range(pairs + 1 - improved):
            assert mcnemar_exact(improved, regressed) >= ALPHA


@pytest.mark.parametrize("pairs", [6, 7, 100])
def test_six_changes_in_one_direction_are_the_least_that_can(pairs: int) -> None:
    assert least_net_improvement(pairs) == 6
    assert mcnemar_exact(6, 0) < ALPHA <= mcnemar_exact(5, 0)


@pytest.mark.parametrize(
    "deltas, note",
    [
        ([], "no valid pair: nothing can be said"),
        ([1.0] * 5, "cannot resolve: no result over 5 pairs could reach p < 0.05"),
        ([1.0] * 5 + [0.0] * 9, "cannot resolve: 5 discordant pairs cannot reach p < 0.05"),
        ([0.0] * 9, "cannot resolve: 0 discordant pairs cannot reach p < 0.05"),
        ([0.25] * 6, "exact McNemar p = 0.03125 over 6 discordant pairs, for cases like these"),
        (
            [1.0] * 6 + [-0.1],
            "exact McNemar p = 0.125 over 7 discordant pairs, for cases like these",
        ),
    ],
)
def test_the_note_says_what_the_pairs_can_resolve(deltas: list[float], note: str) -> None:
    assert resolution(deltas).note == note


def test_without_a_valid_pair_there_is_no_p() -> None:
    found = resolution([])
    assert (found.valid_pairs, found.mcnemar_exact_p, found.least_net_improvement) == (
        0,
        None,
        None,
    )


@given(st.lists(st.sampled_from([-1.0, -0.3333, 0.0, 0.0001, 1.0]), max_size=30))
def test_pairs_are_improved_regressed_or_tied(deltas: list[float]) -> None:
    found = resolution(deltas)
    assert found.improved + found.regressed + found.tied == found.valid_pairs == len(deltas)
    other = resolution([-delta for delta in deltas])
    assert (found.improved, found.regressed) == (other.regressed, other.improved)
    assert found.mcnemar_exact_p == other.mcnemar_exact_p
    if found.improved + found.regressed <= 5 and deltas:
        assert found.note.startswith("cannot resolve")
