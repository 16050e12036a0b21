"""Controls of the skill axis: replicates, since chance can make two legs differ by itself.

The other controls are about context roots, and no leg of this axis has one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, Literal, NamedTuple

from runner.core.controls import REPLICATES
from runner.core.degrade import insufficient
from runner.core.trials import Outcome, outcome
from runner.model.leg import Degradation, LegRole
from runner.model.record import RunRecord
from runner.model.skillscorecard import SkillCaseControl, SkillControls, SkillLegName

SKILL_OFF: Final[SkillLegName] = "skill_off"
SKILL_ON: Final[SkillLegName] = "skill_on"
_SIDES: Final = (SKILL_OFF, SKILL_ON)

Mode = Literal["none", "standard"]


class SkillOrder(NamedTuple):
    """A leg that is to be run.

    Attributes:
        role: Why; its `root` is the variant.
        variant: The side.
        cases: Ids; None for all.
    """

    role: LegRole
    variant: SkillLegName
    cases: tuple[str, ...] | None

    @property
    def name(self) -> str:
        """Name of the leg within the run."""
        ordinal = self.role.ordinal
        return self.variant if ordinal == 1 else f"{self.variant}_r{ordinal}"


SkillRound = tuple[SkillOrder, SkillOrder]
"""Two legs at once, off and on."""


def next_rounds(mode: Mode, records: Sequence[RunRecord]) -> tuple[SkillRound, ...]:
    """Decide which legs come next.

    Args:
        mode: `none`: two legs are all there is.
        records: Of every leg that was run so far.

    Returns:
        Rounds in order; none when everything that can be known is.
    """
    if not records:
        return (_round(1, None),)
    if mode == "none":
        return ()
    seen = _Seen(records)
    alive = seen.comparable()
    done = seen.replicates()
    if done < 2:
        return (_round(2, alive),) if alive else ()
    changed = tuple(
        case_id
        for case_id in alive
        if seen.differs(case_id) and seen.finding(case_id, runs=done) is None
    )
    if not changed:
        return ()
    return tuple(_round(ordinal, changed) for ordinal in range(done + 1, REPLICATES + 1))


def _round(ordinal: int, cases: tuple[str, ...] | None) -> SkillRound:
    purpose: Literal["first", "replicate"] = "first" if ordinal == 1 else "replicate"
    off, on = (
        SkillOrder(LegRole(purpose=purpose, root=side, ordinal=ordinal), side, cases)
        for side in _SIDES
    )
    return off, on


def findings(mode: Mode, records: Sequence[RunRecord]) -> dict[str, Degradation]:
    """Why pairs that look valid cannot be believed, by case id; to be asked when no leg follows."""
    if mode == "none":
        return {}
    seen = _Seen(records)
    found = {}
    for case_id in seen.comparable():
        runs = REPLICATES if seen.differs(case_id) else 2
        detail = seen.finding(case_id, runs=runs)
        if detail is not None:
            found[case_id] = insufficient(detail)
    return found


def controls_block(mode: Mode, records: Sequence[RunRecord]) -> SkillControls:
    """What the scorecard says of the controls."""
    seen = _Seen(records)
    found = findings(mode, records)
    full = min(2, seen.replicates())
    return SkillControls(
        mode=mode,
        legs=len(records),
        replicates=full,
        extra_replicates=seen.replicates() - full,
        cases=tuple(
            SkillCaseControl(
                case_id=case_id,
                runs_off=_ended(seen.outcomes(SKILL_OFF, case_id)),
                runs_on=_ended(seen.outcomes(SKILL_ON, case_id)),
                finding=found[case_id].detail if case_id in found else None,
            )
            for case_id in seen.comparable()
            if seen.differs(case_id) or case_id in found
        ),
    )


def _ended(outcomes: Sequence[Outcome | None]) -> int:
    return sum(item is not None for item in outcomes)


class _Seen:
    """What can be said of each case by now."""

    def __init__(self, records: Sequence[RunRecord]) -> None:
        self._legs = {
            side: [
                {case.case_id: case for case in record.case_results}
                for record in records
                if record.variant == side
            ]
            for side in _SIDES
        }

    def replicates(self) -> int:
        """How often both variants were run."""
        return min(len(legs) for legs in self._legs.values())

    def outcomes(self, side: SkillLegName, case_id: str) -> tuple[Outcome | None, ...]:
        """Outcome in every leg of a side that was to run the case."""
        return tuple(outcome(cases[case_id]) for cases in self._legs[side] if case_id in cases)

    def comparable(self) -> tuple[str, ...]:
        """Cases with an outcome in both first legs, in the order of the suite."""
        first = self._legs[SKILL_OFF][0] if self._legs[SKILL_OFF] else {}
        return tuple(
            case_id
            for case_id in first
            if all((self.outcomes(side, case_id) or (None,))[0] is not None for side in _SIDES)
        )

    def differs(self, case_id: str) -> bool:
        """The first legs disagree."""
        off, on = (self.outcomes(side, case_id)[0] for side in _SIDES)
        return off != on

    def finding(self, case_id: str, *, runs: int) -> str | None:
        """What speaks against the pair, of which so many runs a side are due by now."""
        both = [self.outcomes(side, case_id) for side in _SIDES]
        if any(len({item for item in side if item is not None}) > 1 for side in both):
            return "nondeterministic"
        if any(_ended(side) < runs for side in both):
            return "control_incomplete"
        return None
