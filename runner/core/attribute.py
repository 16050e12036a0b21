"""Which units of the difference between the roots decided a case."""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from runner.core.confine import CONTEXT_ROOT
from runner.core.trials import OFF, ON, Outcome, Trials
from runner.core.units import groups
from runner.model.controls import CaseAttribution, LegName, Unit
from runner.model.record import CaseResult

Pattern = Literal["single", "joint", "either", "mixed", "unresolved"]

WHOLE = "context_fixture"
"""Word of the contract for the root as a whole."""


class Mix(NamedTuple):
    """A mixed root that an ablation asks for.

    Attributes:
        on_units: Units that have their on-version.
        label: Variant that cases see.
    """

    on_units: tuple[str, ...]
    label: LegName


class Ablation(NamedTuple):
    """What the mixed roots showed of one case.

    Attributes:
        complete: Every mixed root gave an outcome.
        reproduced: The roots put together anew gave the outcomes of the legs.
        necessary: Names of groups without which the on-outcome is lost.
        sufficient: Names of groups that alone bring it.
    """

    complete: bool
    reproduced: bool
    necessary: tuple[str, ...] = ()
    sufficient: tuple[str, ...] = ()

    @property
    def unchanged(self) -> bool:
        """No mixed root changed anything, and that is known of all of them."""
        return self.complete and self.reproduced and not self.necessary

    @property
    def pattern(self) -> Pattern:
        """How the named groups work together."""
        needed, enough = set(self.necessary), set(self.sufficient)
        if not needed and not enough:
            return "unresolved"
        if len(needed) == 1 and needed == enough:
            return "single"
        if len(needed) > 1 and not enough:
            return "joint"
        if not needed and len(enough) > 1:
            return "either"
        return "mixed"


def ablation_groups(units: Sequence[Unit], most_legs: int) -> tuple[tuple[str, ...], ...]:
    """Units as they are varied, so that the legs stay below a bound; see `mixes`."""
    return groups(units, max(1, (most_legs - 2) // 2)) if units else ()


def mixes(found: Sequence[tuple[str, ...]]) -> Iterator[tuple[Mix, Mix]]:
    """Pairs of mixed roots: first the two ends, then leave one out and add one in, group by group.

    Args:
        found: From `ablation_groups`.
    """
    every = tuple(sorted(path for group in found for path in group))
    yield Mix((), OFF), Mix(every, ON)
    for group in found:
        without = tuple(path for path in every if path not in group)
        yield Mix(tuple(sorted(group)), OFF), Mix(without, ON)


def ablation(trials: Trials, case_id: str, found: Sequence[tuple[str, ...]]) -> Ablation | None:
    """Read what the mixed roots showed of a case; None when it was not ablated.

    Args:
        trials: All legs.
        case_id: The case.
        found: The groups that were varied.
    """
    seen: dict[tuple[frozenset[str], LegName], Outcome | None] = {
        (units, label): result for units, label, result in trials.mixed(case_id)
    }
    if not seen:
        return None
    off, on = _settled(trials, OFF, case_id), _settled(trials, ON, case_id)
    wanted = [
        [seen.get((frozenset(mix.on_units), mix.label)) for mix in pair] for pair in mixes(found)
    ]
    if off is None or on is None or any(result is None for pair in wanted for result in pair):
        return Ablation(complete=False, reproduced=False)
    ends, *others = wanted
    if ends != [off, on]:
        return Ablation(complete=True, reproduced=False)
    return Ablation(
        complete=True,
        reproduced=True,
        necessary=tuple(
            group_name(group) for group, (_, left) in zip(found, others, strict=True) if left != on
        ),
        sufficient=tuple(
            group_name(group)
            for group, (added, _) in zip(found, others, strict=True)
            if added == on != off
        ),
    )


def _settled(trials: Trials, root: LegName, case_id: str) -> Outcome | None:
    found = set(trials.outcomes(root, case_id))
    return found.pop() if len(found) == 1 else None


def group_name(group: Sequence[str]) -> str:
    """A unit's path; of several the folder that they share, or the whole root."""
    if len(group) == 1:
        return group[0]
    shared = posixpath.commonpath(group)
    return f"{shared}/" if shared else WHOLE


def named_by_reads(trials: Trials, case_id: str, units: Sequence[Unit]) -> CaseAttribution | None:
    """What the traces and the checked files name; None when they name no unit.

    An artifact that both roots share cannot make the difference, so only units count.
    """
    paths = {unit.path for unit in units}
    off = (trials.opened(OFF, case_id) or frozenset()) & paths
    on = (trials.opened(ON, case_id) or frozenset()) & paths
    if off or on:
        return _row(case_id, "trace", off, on)
    off, on = (
        frozenset(_checked(trials.first(root, case_id), trials.first(other, case_id))) & paths
        for root, other in ((OFF, ON), (ON, OFF))
    )
    return _row(case_id, "checked_file", off, on) if off or on else None


def _row(
    case_id: str, method: Literal["trace", "checked_file"], off: frozenset[str], on: frozenset[str]
) -> CaseAttribution:
    return CaseAttribution(
        case_id=case_id,
        method=method,
        opened_off=tuple(sorted(off)),
        opened_on=tuple(sorted(on)),
        necessary=(),
        sufficient=(),
        pattern=None,
    )


def _checked(case: CaseResult | None, other: CaseResult | None) -> Iterator[str]:
    """Paths below the context root that an expectation which changed was read from."""
    if case is None or other is None:
        return
    verdicts = {item.index: item.verdict for item in other.expectations}
    prefix = f"{CONTEXT_ROOT}/"
    for item in case.expectations:
        changed = item.required and verdicts.get(item.index) is not item.verdict
        if changed and item.rests_on is not None and item.rests_on.startswith(prefix):
            yield posixpath.normpath(item.rests_on.removeprefix(prefix))


def attribution(
    trials: Trials, case_id: str, units: Sequence[Unit], found: Sequence[tuple[str, ...]]
) -> CaseAttribution | None:
    """All that is known of what decided a case; None when nothing names anything."""
    read = named_by_reads(trials, case_id, units)
    ablated = ablation(trials, case_id, found)
    if ablated is None or not (ablated.complete and ablated.reproduced):
        return read
    return CaseAttribution(
        case_id=case_id,
        method="ablation",
        opened_off=read.opened_off if read else (),
        opened_on=read.opened_on if read else (),
        necessary=ablated.necessary,
        sufficient=ablated.sufficient,
        pattern=ablated.pattern,
    )


def artifacts(row: CaseAttribution | None) -> tuple[str, ...]:
    """`artifact_attribution` of a changed case, in the contract's words."""
    if row is None:
        return ("decision_output",)
    if row.method == "ablation":
        return tuple(sorted({*row.necessary, *row.sufficient})) or (WHOLE,)
    return tuple(sorted({*row.opened_off, *row.opened_on}))
