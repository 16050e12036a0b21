"""Words for what the pairs can resolve."""

from __future__ import annotations

from collections.abc import Sequence

from runner.core.stats import adjust
from runner.model.scorecard import ContextScorecard
from runner.model.skillscorecard import AnyScorecard
from runner.report.text import plural, signed, visible


def bounds_line(card: AnyScorecard) -> str | None:
    """Worst and best case of pairs lost on one side only; None when they change nothing."""
    low, high = card.pairing.delta_lower_bound, card.pairing.delta_upper_bound
    if low is None or high is None or low == high:
        return None
    return f"between {signed(low)} and {signed(high)}, whatever the pairs lost on one side were"


def resolution_line(card: AnyScorecard) -> str:
    """What this number of pairs can and cannot resolve."""
    res = card.resolution
    counts = f"{res.improved} improved, {res.regressed} regressed, {res.tied} tied"
    parts = [counts, visible(res.note, limit=300)] if res.note else [counts]
    off, on = res.degraded
    if off != on:
        axis = "context" if isinstance(card, ContextScorecard) else "skill"
        parts.append(f"lost unequally: {off} degraded in {axis}_off, {on} in {axis}_on")
    return "; ".join(parts)


def interval_line(card: AnyScorecard) -> str | None:
    """Mean difference and its confidence interval; None without one."""
    res = card.resolution
    if res.interval is None or res.mean_difference is None:
        return None
    return (
        f"mean difference {signed(round(res.mean_difference, 4))}, 95 % confidence interval "
        f"{signed(round(res.interval.low, 4))} to {signed(round(res.interval.high, 4))} over "
        f"{plural(res.interval.clusters, 'cluster')}, for cases like these"
    )


def adjusted_lines(cards: Sequence[AnyScorecard]) -> list[str]:
    """p-values of several suites, adjusted for their number; empty when none has one."""
    found = adjust(cards)
    return [
        f"{visible(item.suite_id)}: p = {item.p:.4g}, adjusted for {plural(len(found), 'suite')} "
        f"(Holm) {item.adjusted:.4g}"
        for item in found
    ]
