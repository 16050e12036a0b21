"""What the pairs can resolve. Exact, closed form, no random numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence

from runner.model.scorecard import Resolution

ALPHA = 0.05


def mcnemar_exact(improved: int, regressed: int) -> float:
    """Two-sided exact McNemar test on discordant pairs.

    Source: binomial test of min(b, c) out of b + c at 1/2.
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


def resolution(deltas: Sequence[float]) -> Resolution:
    """Counts and resolving power of the valid pairs.

    Args:
        deltas: Score delta of every valid pair.
    """
    improved = sum(delta > 0 for delta in deltas)
    regressed = sum(delta < 0 for delta in deltas)
    least = least_net_improvement(len(deltas))
    discordant = improved + regressed
    if not deltas:
        note = "no valid pair: nothing can be said"
    elif least is None:
        note = f"cannot resolve: no result over {len(deltas)} pairs could reach p < 0.05"
    elif discordant <= 5:
        note = f"cannot resolve: {discordant} discordant pairs cannot reach p < 0.05"
    else:
        p = mcnemar_exact(improved, regressed)
        note = f"exact McNemar p = {p:.4g} over {discordant} discordant pairs, for cases like these"
    return Resolution(
        valid_pairs=len(deltas),
        improved=improved,
        regressed=regressed,
        tied=len(deltas) - discordant,
        mcnemar_exact_p=mcnemar_exact(improved, regressed) if deltas else None,
        least_net_improvement=least,
        note=note,
    )
