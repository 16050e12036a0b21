"""What the pairs can resolve. Exact where that is cheap, seeded from the inputs where it is not.

Nothing here is a library's: these are four short procedures, they must give the same bytes on every
machine, and a library that has them takes longer to import than a suite takes to run. The tests
hold them against scipy, statsmodels and published examples.
"""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from collections.abc import Sequence
from typing import Final, NamedTuple

from runner.core.student import quantile
from runner.model.scorecard import Interval, PairedCase, Resolution, SignFlip
from runner.model.skillscorecard import AnyScorecard

ALPHA: Final = 0.05
FAMILY: Final = "family:"
"""Cases that share a tag with this prefix are not independent of each other."""

_SCALE: Final = 10_000
"""Scores have four decimals: differences are whole numbers of this fraction."""

_ENUMERATED: Final = 16
_CHEAP: Final = 400_000
_DRAWS: Final = 20_000


class Difference(NamedTuple):
    """One valid pair.

    Attributes:
        score: On minus off.
        status: +1: fail -> pass, -1: pass -> fail, 0: the same.
        tags: Of the case.
    """

    score: float
    status: int
    tags: tuple[str, ...] = ()


def differences(
    pairs: Sequence[PairedCase], tags: dict[str, tuple[str, ...]]
) -> tuple[Difference, ...]:
    """The valid pairs of a scorecard.

    Args:
        pairs: All rows.
        tags: Of each case of the suite, by id.
    """
    return tuple(
        Difference(row.score_delta, row.status_delta or 0, tags.get(row.case_id, ()))
        for row in pairs
        if row.score_delta is not None
    )


def mcnemar_exact(improved: int, regressed: int) -> float:
    """Two-sided exact McNemar test on discordant pairs.

    Source: McNemar 1947; the binomial test of min(b, c) out of b + c at 1/2.
    """
    discordant = improved + regressed
    if discordant == 0:
        return 1.0
    low = min(improved, regressed)
    tail = sum(math.comb(discordant, k) for k in range(low + 1))
    p: float = 2 * tail / 2**discordant
    return min(1.0, p)


def least_net_improvement(pairs: int) -> int | None:
    """Least number of one-directional changes among `pairs` with p < 0.05; None: none can."""
    return next((k for k in range(1, pairs + 1) if mcnemar_exact(k, 0) < ALPHA), None)


def sign_flip(scores: Sequence[float], seed: str) -> SignFlip | None:
    """Two-sided sign-flip (permutation) test of the mean paired difference.

    Under the hypothesis that the context makes no difference each difference could as well have had
    the other sign. All assignments of signs are counted up to 16 pairs that differ, and beyond
    where their sums are few; else 20,000 are drawn, and p is (b + 1) / (n + 1), which is never 0.
    Source: Fisher 1935 (Design of Experiments, 21); Phipson and Smyth 2010 for the correction.

    Args:
        scores: Differences with at most four decimals.
        seed: Digest of the inputs: the same inputs draw the same signs.

    Returns:
        None when no pair differs.
    """
    whole = [abs(round(score * _SCALE)) for score in scores]
    moved = [item for item in whole if item]
    if not moved:
        return None
    observed = abs(sum(round(score * _SCALE) for score in scores))
    unit = math.gcd(*moved)
    steps = [item // unit for item in moved]
    if len(steps) <= _ENUMERATED or sum(steps) * len(steps) <= _CHEAP:
        extreme = _extreme(steps, observed // unit)
        return SignFlip(method="exact", pairs=len(moved), assignments=None, p=_figures(extreme))
    sizes = tuple(Counter(steps).items())
    count = sum(
        _distance(sizes, _bits(seed, draw, len(steps))) >= observed // unit
        for draw in range(_DRAWS)
    )
    return SignFlip(
        method="monte_carlo",
        pairs=len(moved),
        assignments=_DRAWS,
        p=_figures((count + 1) / (_DRAWS + 1)),
    )


def _extreme(steps: Sequence[int], observed: int) -> float:
    """Share of all assignments of signs whose sum is at least as far from zero."""
    sums = Counter({0: 1})
    for step in steps:
        after: Counter[int] = Counter()
        for total, count in sums.items():
            after[total + step] += count
            after[total - step] += count
        sums = after
    extreme = sum(count for total, count in sums.items() if abs(total) >= observed)
    share: float = extreme / 2 ** len(steps)
    return share


def _bits(seed: str, draw: int, count: int) -> int:
    """So many bits, the same for the same seed on every machine and in every version."""
    blocks = -(-count // 256)
    stream = b"".join(
        hashlib.sha256(f"{seed}/{draw}/{block}".encode()).digest() for block in range(blocks)
    )
    return int.from_bytes(stream, "big")


def _distance(sizes: Sequence[tuple[int, int]], bits: int) -> int:
    """Distance from zero of one assignment: for each size, how many of its pairs went up."""
    total = 0
    for size, count in sizes:
        total += size * (2 * (bits & (1 << count) - 1).bit_count() - count)
        bits >>= count
    return abs(total)


def interval(found: Sequence[Difference]) -> Interval | None:
    """95 % confidence interval for the mean paired difference, robust to clusters.

    Student's t with (clusters - 1) degrees of freedom on the standard error of the mean that sums
    residuals within clusters, times clusters / (clusters - 1). Source: Liang and Zeger 1986; the
    estimator of statsmodels' OLS on a constant with `cov_type="cluster"`.

    Returns:
        None with fewer than two clusters, or when all differences are the same: a spread of zero
        says that the sample is small, not that the mean is known.
    """
    clusters = _clusters(found)
    if len(clusters) < 2 or len({item.score for item in found}) == 1:
        return None
    mean = math.fsum(item.score for item in found) / len(found)
    residuals = [math.fsum(item.score - mean for item in cluster) for cluster in clusters]
    correction = len(clusters) / (len(clusters) - 1)
    error = math.sqrt(correction * math.fsum(item * item for item in residuals)) / len(found)
    reach = quantile(1 - ALPHA / 2, len(clusters) - 1) * error
    return Interval(
        low=_decimals(max(-1.0, mean - reach)),
        high=_decimals(min(1.0, mean + reach)),
        level=0.95,
        clusters=len(clusters),
    )


def _clusters(found: Sequence[Difference]) -> list[list[Difference]]:
    """Cases that share a family, directly or through others; a case without one is by itself."""
    leader: dict[str, str] = {}

    def first(family: str) -> str:
        while leader.setdefault(family, family) != family:
            family = leader[family]
        return family

    families = [[tag for tag in item.tags if tag.startswith(FAMILY)] for item in found]
    for mine in families:
        for family in mine[1:]:
            leader[first(family)] = first(mine[0])
    clusters: dict[object, list[Difference]] = {}
    for place, (item, mine) in enumerate(zip(found, families, strict=True)):
        clusters.setdefault(first(mine[0]) if mine else place, []).append(item)
    return list(clusters.values())


def holm(found: Sequence[float]) -> tuple[float, ...]:
    """Holm's adjusted p-values, in the order given.

    Source: Holm 1979.
    """
    order = sorted(range(len(found)), key=found.__getitem__)
    adjusted = [0.0] * len(found)
    highest = 0.0
    for rank, place in enumerate(order):
        highest = max(highest, min(1.0, (len(found) - rank) * found[place]))
        adjusted[place] = _figures(highest)
    return tuple(adjusted)


class Adjusted(NamedTuple):
    """One suite of several, with its p-value before and after the adjustment."""

    suite_id: str
    p: float
    adjusted: float


def adjust(scorecards: Sequence[AnyScorecard]) -> tuple[Adjusted, ...]:
    """Suites in which a pair differs: their sign-flip p-values, adjusted for their number."""
    tested = [(card.suite_id, card.resolution.sign_flip) for card in scorecards]
    found = [(suite_id, flips.p) for suite_id, flips in tested if flips is not None]
    adjusted = holm([p for _, p in found])
    return tuple(
        Adjusted(suite_id, p, many) for (suite_id, p), many in zip(found, adjusted, strict=True)
    )


def resolution(
    found: Sequence[Difference], *, seed: str, degraded: tuple[int, int] = (0, 0)
) -> Resolution:
    """Counts, tests and resolving power of the valid pairs.

    Args:
        found: Every valid pair.
        seed: Digest of the inputs.
        degraded: Cases that were degraded in the off-leg and in the on-leg.
    """
    improved = sum(item.score > 0 for item in found)
    regressed = sum(item.score < 0 for item in found)
    passing = sum(item.status > 0 for item in found)
    failing = sum(item.status < 0 for item in found)
    least = least_net_improvement(len(found))
    flips = sign_flip([item.score for item in found], seed)
    p = _figures(mcnemar_exact(passing, failing)) if found else None
    return Resolution(
        valid_pairs=len(found),
        improved=improved,
        regressed=regressed,
        tied=len(found) - improved - regressed,
        newly_passing=passing,
        newly_failing=failing,
        mcnemar_exact_p=p,
        sign_flip=flips,
        mean_difference=_mean(found),
        interval=interval(found),
        least_net_improvement=least,
        degraded_context_off=degraded[0],
        degraded_context_on=degraded[1],
        note=_note(len(found), improved + regressed, least, flips),
    )


def _mean(found: Sequence[Difference]) -> float | None:
    if not found:
        return None
    return _decimals(math.fsum(item.score for item in found) / len(found))


def _note(pairs: int, moved: int, least: int | None, flips: SignFlip | None) -> str:
    if not pairs:
        return "no valid pair: nothing can be said"
    if least is None:
        return f"cannot resolve: no result over {pairs} pairs could reach p < 0.05"
    if moved <= 5:
        return f"cannot resolve: {moved} pairs that differ cannot reach p < 0.05"
    how = "exact" if flips is None or flips.method == "exact" else "drawn"
    p = 1.0 if flips is None else flips.p
    return (
        f"p = {p:.4g} ({how} sign-flip test over {moved} pairs that differ): how often chance "
        "would do this on cases like these; nothing about other cases"
    )


def _figures(value: float) -> float:
    """Six significant figures: the last bits may differ between machines."""
    return float(f"{value:.6g}")


def _decimals(value: float) -> float:
    return round(value, 6) + 0.0
