"""What the pairs can resolve, against enumerations and published examples."""

from __future__ import annotations

import itertools
import random
from collections import Counter
from collections.abc import Sequence
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.stats import (
    ALPHA,
    Difference,
    _bits,
    _clusters,
    _distance,
    holm,
    interval,
    least_net_improvement,
    mcnemar_exact,
    resolution,
    sign_flip,
)
from runner.core.student import distribution, quantile


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


# --- sign flips

# Darwin's maize, differences in height of crossed and self-fertilised plants in eighths of an inch:
# Fisher (1935), The Design of Experiments, section 21: 863 assignments of 32768 reach the observed
# sum in one direction.
MAIZE = [49, -67, 8, 16, 6, 23, 28, 41, 14, 29, 56, 24, 75, 60, -48]


def test_sign_flip_gives_fishers_value_for_darwins_maize() -> None:
    found = sign_flip([item / 10_000 for item in MAIZE], "")
    assert found is not None
    assert (found.method, found.pairs) == ("exact", 15)
    assert found.p == pytest.approx(2 * 863 / 32768, rel=1e-5)


scores = st.integers(-10_000, 10_000).map(lambda whole: whole / 10_000)


@given(st.lists(scores, min_size=1, max_size=10))
def test_sign_flip_is_the_enumeration_of_all_signs(deltas: list[float]) -> None:
    found = sign_flip(deltas, "")
    whole = [round(delta * 10_000) for delta in deltas if delta]
    if not whole:
        assert found is None
        return
    assert found is not None
    signed = itertools.product((-1, 1), repeat=len(whole))
    sums = [abs(sum(s * abs(w) for s, w in zip(signs, whole, strict=True))) for signs in signed]
    extreme = sum(total >= abs(sum(whole)) for total in sums)
    assert found.p == pytest.approx(extreme / len(sums), rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_sign_flip_agrees_with_scipy(seed: int) -> None:
    from scipy import stats

    drawn = random.Random(seed)
    deltas = [drawn.choice([-0.5, 0.25, 0.3333, 0.5, 1.0]) for _ in range(10)]
    theirs = stats.permutation_test(
        (deltas,), np_mean, permutation_type="samples", n_resamples=10**6, alternative="two-sided"
    )
    ours = sign_flip(deltas, "")
    assert ours is not None
    # scipy doubles the smaller tail; the distribution is symmetric, so it is the same.
    assert ours.p == pytest.approx(theirs.pvalue, rel=1e-5)


def np_mean(sample: object) -> object:
    import numpy as np

    return np.mean(np.asarray(sample), axis=-1)


def test_beyond_sixteen_pairs_the_draw_is_seeded_and_near_the_exact_value() -> None:
    drawn = random.Random(7)
    deltas = [drawn.randrange(-3000, 10_000) / 10_000 for _ in range(60)]
    found = [sign_flip(deltas, seed) for seed in ("a", "a", "b")]
    assert all(item is not None and item.method == "monte_carlo" for item in found)
    assert found[0] == found[1]
    many = [drawn.choice([-0.5, 0.5, 1.0]) for _ in range(60)]
    exact = sign_flip(many, "")
    assert exact is not None
    assert exact.method == "exact"
    sizes = tuple(Counter(2 if abs(item) == 1 else 1 for item in many).items())
    observed = abs(sum(round(2 * item) for item in many))
    extreme = sum(_distance(sizes, _bits("s", draw, 60)) >= observed for draw in range(20_000))
    assert extreme / 20_000 == pytest.approx(exact.p, abs=0.015)


def test_a_drawn_p_is_never_zero() -> None:
    drawn = random.Random(3)
    found = sign_flip([drawn.randrange(5000, 10_000) / 10_000 for _ in range(80)], "x")
    assert found is not None
    assert found.p == pytest.approx(1 / 20_001, rel=1e-5)


@given(st.lists(scores, max_size=12), st.randoms(use_true_random=False))
def test_sign_flip_knows_neither_order_nor_direction(
    deltas: list[float], shuffled: random.Random
) -> None:
    found = sign_flip(deltas, "s")
    mixed = [-delta for delta in deltas]
    shuffled.shuffle(mixed)
    other = sign_flip(mixed, "s")
    if found is None or found.method == "exact":
        assert found == other


# --- intervals


def test_the_interval_agrees_with_statsmodels() -> None:
    import numpy as np
    from statsmodels.regression.linear_model import OLS

    drawn = random.Random(11)
    for clusters in (2, 3, 8, 40):
        found, groups = [], []
        for cluster in range(clusters):
            level = drawn.uniform(-0.3, 0.5)
            for _ in range(drawn.randrange(1, 5)):
                delta = round(level + drawn.uniform(-0.3, 0.3), 4)
                found.append(Difference(delta, 0, (f"family:{cluster}", "other")))
                groups.append(cluster)
        y = np.array([item.score for item in found])
        fit = OLS(y, np.ones((len(y), 1))).fit(
            cov_type="cluster", cov_kwds={"groups": np.array(groups)}, use_t=True
        )
        low, high = fit.conf_int(alpha=0.05)[0]
        ours = interval(found)
        assert ours is not None
        assert ours.clusters == clusters
        assert ours.low == pytest.approx(max(-1, low), abs=2e-6)
        assert ours.high == pytest.approx(min(1, high), abs=2e-6)


def test_cases_without_a_family_count_by_themselves_as_in_a_one_sample_t_interval() -> None:
    from scipy import stats

    deltas = [0.1, 0.25, 0.0, 0.5, -0.1, 0.3333]
    ours = interval([Difference(delta, 0) for delta in deltas])
    theirs = stats.ttest_1samp(deltas, 0).confidence_interval(0.95)
    assert ours is not None
    assert (ours.low, ours.high) == pytest.approx(tuple(theirs), abs=2e-6)


@pytest.mark.parametrize(
    "found",
    [
        [],
        [Difference(0.5, 1)],
        [Difference(0.5, 1), Difference(0.5, 1), Difference(0.5, 1)],
        [Difference(0.5, 1, ("family:a",)), Difference(0.0, 0, ("family:a",))],
    ],
)
def test_what_gives_no_interval_gives_none(found: list[Difference]) -> None:
    assert interval(found) is None


def test_families_that_share_a_case_are_one_cluster() -> None:
    found = [
        Difference(0.1, 0, ("family:a",)),
        Difference(0.2, 0, ("family:b",)),
        Difference(0.3, 0, ("family:c", "family:a")),
        Difference(0.4, 0, ("family:b", "family:c")),
        Difference(0.5, 0),
        Difference(0.6, 0, ("tag",)),
    ]
    assert sorted(map(len, _clusters(found))) == [1, 1, 4]


@pytest.mark.parametrize("freedom", [1, 2, 3, 4, 5, 10, 29, 30, 121, 1000])
def test_students_t_agrees_with_scipy(freedom: int) -> None:
    from scipy import stats

    for probability in (0.6, 0.9, 0.95, 0.975, 0.995):
        ours = quantile(probability, freedom)
        assert ours == pytest.approx(stats.t.ppf(probability, freedom), rel=1e-9)
        assert distribution(ours, freedom) == pytest.approx(probability, abs=1e-12)
    assert distribution(-1.5, freedom) == pytest.approx(stats.t.cdf(-1.5, freedom), abs=1e-12)


# --- several suites


@given(st.lists(st.floats(0, 1), min_size=1, max_size=12))
def test_holm_agrees_with_statsmodels(found: list[float]) -> None:
    from statsmodels.stats.multitest import multipletests

    theirs = multipletests(found, method="holm")[1]
    assert holm(found) == pytest.approx(tuple(theirs), rel=1e-5, abs=1e-12)


def test_mcnemar_agrees_with_statsmodels() -> None:
    from statsmodels.stats.contingency_tables import mcnemar

    for improved, regressed in ((0, 1), (3, 9), (10, 10), (40, 20)):
        theirs = mcnemar([[5, improved], [regressed, 7]], exact=True).pvalue
        assert mcnemar_exact(improved, regressed) == pytest.approx(theirs, rel=1e-9)


# --- all together


def made(deltas: Sequence[float]) -> list[Difference]:
    """Pairs in which a whole point is a change between pass and fail."""
    return [Difference(delta, int(delta)) for delta in deltas]


@pytest.mark.parametrize(
    "deltas, note",
    [
        ([], "no valid pair: nothing can be said"),
        ([1.0] * 5, "cannot resolve: no result over 5 pairs could reach p < 0.05"),
        ([1.0] * 5 + [0.0] * 9, "cannot resolve: 5 pairs that differ cannot reach p < 0.05"),
        ([0.0] * 9, "cannot resolve: 0 pairs that differ cannot reach p < 0.05"),
        ([0.25] * 6, "p = 0.03125 (exact sign-flip test over 6 pairs that differ)"),
    ],
)
def test_the_note_says_what_the_pairs_can_resolve(deltas: list[float], note: str) -> None:
    assert resolution(made(deltas), seed="").note.startswith(note)


def test_a_note_with_a_p_says_what_it_speaks_of() -> None:
    note = resolution(made([1.0] * 7), seed="").note
    assert "on cases like these; nothing about other cases" in note


def test_passing_and_scoring_are_counted_apart() -> None:
    found = resolution(
        [Difference(0.5, 1), Difference(0.25, 0), Difference(-1.0, -1), Difference(0.0, 0)],
        seed="",
        degraded=(1, 2),
    )
    assert (found.improved, found.regressed, found.tied) == (2, 1, 1)
    assert (found.newly_passing, found.newly_failing) == (1, 1)
    assert (found.degraded_context_off, found.degraded_context_on) == (1, 2)
    assert found.mean_difference == -0.0625
    assert found.sign_flip is not None
    assert found.sign_flip.pairs == 3


def test_without_a_valid_pair_there_is_no_p() -> None:
    found = resolution([], seed="")
    assert (found.valid_pairs, found.mcnemar_exact_p, found.least_net_improvement) == (
        0,
        None,
        None,
    )
    assert found.sign_flip is None
    assert found.interval is None
    assert found.mean_difference is None


@given(st.lists(st.sampled_from([-1.0, -0.3333, 0.0, 0.0001, 1.0]), max_size=30))
def test_pairs_are_improved_regressed_or_tied(deltas: list[float]) -> None:
    found = resolution(made(deltas), seed="")
    assert found.improved + found.regressed + found.tied == found.valid_pairs == len(deltas)
    other = resolution(made([-delta for delta in deltas]), seed="")
    assert (found.improved, found.regressed) == (other.regressed, other.improved)
    assert found.mcnemar_exact_p == other.mcnemar_exact_p
    if found.improved + found.regressed <= 5 and deltas:
        assert found.note.startswith("cannot resolve")
