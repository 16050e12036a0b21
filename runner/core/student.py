"""Student's t distribution for whole degrees of freedom, in closed form."""

from __future__ import annotations

import math


def distribution(t: float, freedom: int) -> float:
    """Probability of at most `t`.

    Source: Abramowitz and Stegun 1964, 26.7.3 and 26.7.4.

    Args:
        t: Any number.
        freedom: Degrees of freedom, at least 1.
    """
    theta = math.atan(t / math.sqrt(freedom))
    sine, square = math.sin(theta), math.cos(theta) ** 2
    term = 1.0 if freedom % 2 == 0 else math.cos(theta)
    total = 0.0
    for k in range(freedom % 2, freedom - 1, 2):
        total += term
        term *= square * (k + 1) / (k + 2)
    inner = sine * total
    if freedom % 2:
        inner = 2 / math.pi * (theta + inner)
    return 0.5 + inner / 2


def quantile(probability: float, freedom: int) -> float:
    """The `t` with `distribution(t, freedom) == probability`, to the last bit or so.

    Args:
        probability: Between 0.5 and 1, both excluded.
        freedom: Degrees of freedom, at least 1.
    """
    low, high = 0.0, 1.0
    while distribution(high, freedom) < probability:
        high *= 2
    for _ in range(100):
        middle = (low + high) / 2
        if distribution(middle, freedom) < probability:
            low = middle
        else:
            high = middle
    return (low + high) / 2
