"""What was observed -> the legs that come next, and what may be said once none does.

A difference between two legs proves little: it may be noise, follow the name of the leg, or have
nothing to do with the context. Each rule here takes one of these explanations away, or the claim.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Literal, NamedTuple

from runner.core.attribute import ablation, ablation_groups, mixes, named_by_reads
from runner.core.degrade import insufficient
from runner.core.trials import OFF, ON, Outcome, Trials
from runner.model.controls import CaseControl, LegName, Unit
from runner.model.leg import Degradation, LegRole

EXTRA: Final = 8
"""Replicates of each root beyond the first two, for cases whose outcome differs."""

REPLICATES: Final = 2 + EXTRA


class Rules(NamedTuple):
    """Which controls were asked for.

    Attributes:
        mode: `none`: the first two legs are all there is, but for an ablation that was asked for.
        attribute: `ablate`: by varying units; `trace`: only where nothing that was opened explains
            a difference.
        isolated: The runtime hides a second open of a file, so that replicates give each case a
            container of its own.
        ablation_legs: Most legs of an ablation.
    """

    mode: Literal["none", "standard"]
    attribute: Literal["trace", "ablate"]
    isolated: bool
    ablation_legs: int


class LegOrder(NamedTuple):
    """A leg that is to be run.

    Attributes:
        role: Why, and with whose content.
        label: Variant that its cases see.
        cases: Their ids; None for all.
        isolated: Every case gets a container of its own.
        fresh: Its root is a copy of its own, under a name of its own.
    """

    role: LegRole
    label: LegName
    cases: tuple[str, ...] | None
    isolated: bool = False
    fresh: bool = False

    @property
    def name(self) -> str:
        """Name of the leg within the run."""
        role = self.role
        match role.purpose:
            case "first":
                return role.root
            case "replicate":
                return f"{role.root}_r{role.ordinal}"
            case "label_swap":
                return f"{role.root}_swapped"
            case _:
                return f"{role.purpose}_{role.ordinal}"


Round = tuple[LegOrder, LegOrder]
"""Two legs at once. They have different roots, so that their reads cannot be mixed up."""


def next_rounds(rules: Rules, trials: Trials, units: Sequence[Unit]) -> tuple[Round, ...]:
    """Decide which legs come next.

    Args:
        rules: What was asked for.
        trials: Every leg that was run so far.
        units: Difference between the roots.

    Returns:
        Rounds in order; none when everything that can be known is.
    """
    if not len(trials):
        return (_round("first", 1, None),)
    standing = _Standing(rules, trials, units)
    alive = standing.comparable()
    if rules.mode == "standard":
        if trials.replicates(OFF) < 2:
            return (_round("replicate", 2, alive),) if alive else ()
        changed = standing.surviving(alive)
        if changed and not trials.ran("label_swap"):
            return (_round("label_swap", 1, changed),)
        if changed and trials.replicates(OFF) < 3:
            return (_extra(rules, 3, changed),)
    changed = standing.surviving(alive)
    wanted = standing.to_ablate(alive, changed)
    if wanted and not trials.ran("ablation"):
        return _ablation(standing.groups, wanted)
    if rules.mode == "standard" and changed and trials.replicates(OFF) < REPLICATES:
        ordinals = range(trials.replicates(OFF) + 1, REPLICATES + 1)
        return tuple(_extra(rules, ordinal, changed) for ordinal in ordinals)
    return ()


def _round(
    purpose: Literal["first", "replicate", "label_swap"],
    ordinal: int,
    cases: Sequence[str] | None,
    **more: bool,
) -> Round:
    def order(root: LegName, other: LegName) -> LegOrder:
        return LegOrder(
            role=LegRole(purpose=purpose, root=root, ordinal=ordinal),
            label=other if purpose == "label_swap" else root,
            cases=None if cases is None else tuple(cases),
            **more,
        )

    return order(OFF, ON), order(ON, OFF)


def _extra(rules: Rules, ordinal: int, cases: Sequence[str]) -> Round:
    # Under a name of its own: an outcome that follows the name of a folder must not look stable.
    # Not the first one, so that an ablation can say that it does.
    return _round("replicate", ordinal, cases, isolated=rules.isolated, fresh=ordinal > 3)


def _ablation(found: Sequence[tuple[str, ...]], cases: Sequence[str]) -> tuple[Round, ...]:
    rounds = []
    for number, pair in enumerate(mixes(found)):
        added, left = (
            LegOrder(
                role=LegRole(
                    purpose="ablation",
                    root="mixed",
                    ordinal=2 * number + position + 1,
                    on_units=mix.on_units,
                ),
                label=mix.label,
                cases=tuple(cases),
                fresh=True,
            )
            for position, mix in enumerate(pair)
        )
        rounds.append((added, left))
    return tuple(rounds)


def findings(rules: Rules, trials: Trials, units: Sequence[Unit]) -> dict[str, Degradation]:
    """Why pairs that look valid cannot be believed, by case id; to be asked when no leg follows."""
    if rules.mode == "none":
        return {}
    standing = _Standing(rules, trials, units)
    found = {}
    for case_id in standing.comparable():
        detail = standing.finding(case_id)
        if detail is not None:
            found[case_id] = insufficient(detail)
    return found


def control_rows(
    rules: Rules, trials: Trials, units: Sequence[Unit]
) -> tuple[tuple[CaseControl, ...], frozenset[str]]:
    """A row for each case that differed or failed a control, and the ids of those that differed."""
    standing = _Standing(rules, trials, units)
    found = findings(rules, trials, units)
    rows, differing = [], set()
    for case_id in standing.comparable():
        differs = standing.differs(case_id)
        if differs:
            differing.add(case_id)
        if not differs and case_id not in found:
            continue
        rows.append(
            CaseControl(
                case_id=case_id,
                runs_off=_ended(trials.outcomes(OFF, case_id)),
                runs_on=_ended(trials.outcomes(ON, case_id)),
                label_swapped=all(_ended(trials.swapped(root, case_id)) > 0 for root in (OFF, ON)),
                finding=found[case_id].detail if case_id in found else None,
            )
        )
    return tuple(rows), frozenset(differing)


def _ended(outcomes: Iterable[Outcome | None]) -> int:
    return sum(item is not None for item in outcomes)


class _Standing:
    """What can be said of each case by now."""

    def __init__(self, rules: Rules, trials: Trials, units: Sequence[Unit]) -> None:
        self._rules = rules
        self._trials = trials
        self._units = units
        self.groups = ablation_groups(units, rules.ablation_legs)

    def comparable(self) -> tuple[str, ...]:
        """Cases with an outcome in both first legs."""
        return tuple(
            case_id
            for case_id in self._trials.order()
            if all(self._first(root, case_id) is not None for root in (OFF, ON))
        )

    def differs(self, case_id: str) -> bool:
        """The first legs disagree."""
        return self._first(OFF, case_id) != self._first(ON, case_id)

    def surviving(self, cases: Iterable[str]) -> tuple[str, ...]:
        """Cases that differ, and for which no control that was run explains it away."""
        return tuple(
            case_id
            for case_id in cases
            if self.differs(case_id) and self._explained(case_id) is None
        )

    def to_ablate(self, alive: Sequence[str], changed: Sequence[str]) -> tuple[str, ...]:
        """Cases for which units have to be varied."""
        if not self._units:
            return ()
        if self._rules.attribute == "ablate":
            changing = set(changed)
            return tuple(
                case_id for case_id in alive if case_id in changing or self._read_in_vain(case_id)
            )
        if self._rules.mode == "none":
            return ()
        return tuple(case_id for case_id in changed if not self._named(case_id))

    def _read_in_vain(self, case_id: str) -> bool:
        """A tie that opened a unit: only an ablation can say that it had no part."""
        if self.differs(case_id) or self._explained(case_id) is not None:
            return False
        return self._named(case_id)

    def finding(self, case_id: str) -> str | None:
        """Detail under which the pair is degraded; None when it stands."""
        found = self._explained(case_id)
        trials = self._trials
        if found is None and any(len(trials.outcomes(root, case_id)) < 2 for root in (OFF, ON)):
            return "control_incomplete"
        if found is not None or not self.differs(case_id):
            return found
        complete = all(
            _ended(trials.outcomes(root, case_id)) == REPLICATES
            and _ended(trials.swapped(root, case_id)) == 1
            for root in (OFF, ON)
        )
        if not complete:
            return "control_incomplete"
        if self._named(case_id) or ablation(trials, case_id, self.groups) is not None:
            return None
        return "context_not_read"

    def _explained(self, case_id: str) -> str | None:
        """What a control that was run holds against the pair."""
        trials = self._trials
        runs = {root: trials.outcomes(root, case_id) for root in (OFF, ON)}
        for outcomes in runs.values():
            if len({item for item in outcomes if item is not None}) > 1:
                return "nondeterministic"
        if any(item is None for outcomes in runs.values() for item in outcomes):
            return "control_incomplete"
        if not self.differs(case_id):
            return None
        for root, outcomes in runs.items():
            swapped = trials.swapped(root, case_id)
            if any(item is not None and item != outcomes[0] for item in swapped):
                return "follows_variant_label"
            if any(item is None for item in swapped):
                return "control_incomplete"
        ablated = ablation(trials, case_id, self.groups)
        if ablated is None:
            return None
        if not ablated.complete:
            return "control_incomplete"
        return None if ablated.reproduced else "context_not_read"

    def _named(self, case_id: str) -> bool:
        return named_by_reads(self._trials, case_id, self._units) is not None

    def _first(self, root: LegName, case_id: str) -> Outcome | None:
        outcomes = self._trials.outcomes(root, case_id)
        return outcomes[0] if outcomes else None
