"""Stored evidence of a skill comparison -> the legs it must have had, and its scorecard."""

from __future__ import annotations

from collections.abc import Iterator

from runner.core import liveproof
from runner.core.crosscheck import Wrong, record_place
from runner.core.rederive import SkillDocuments, check_all_cases, is_ordered, notes
from runner.core.skillcontrols import next_rounds
from runner.core.skillpair import SkillObserved
from runner.model.leg import Axis
from runner.model.suite import SuiteFile


def skill_observed(suite: SuiteFile, found: SkillDocuments) -> SkillObserved:
    """What the scorecard has to follow from; see `core.rederive.observed`."""
    card = found.card
    return SkillObserved(
        suite=suite,
        records=found.records,
        live=found.live.proof,
        sandbox=found.sandbox,
        hooks=found.hooks,
        inputs=card.inputs,
        controls=card.controls.mode,
        run_id=card.run_id,
        generated_at=card.generated_at,
        notes=notes(found),
    )


def check_skill_sequence(suite: SuiteFile | None, found: SkillDocuments) -> Iterator[Wrong]:
    """The legs are those that the controls ask for, one after the other, and none is left out.

    Args:
        suite: None when it is not known: its cases are then those of the first leg.
        found: The documents.
    """
    yield from check_all_cases(suite, found)
    if liveproof.degradation(found.live.proof) is not None:
        return  # Every record is degraded by now: what the controls saw is not known any more.
    done = 0
    everything = tuple(case.case_id for case in found.records[0].case_results)
    while rounds := next_rounds(found.card.controls.mode, found.records[:done]):
        for order in (order for pair in rounds for order in pair):
            if done >= len(found.records):
                yield Wrong("legs", f"leg {order.name} is missing; the controls ask for it")
                return
            wanted = (order.name, order.role, str(order.variant))
            yield from is_ordered(found, found.records[done], wanted, order.cases or everything)
            done += 1
    for record in found.records[done:]:
        yield Wrong(record_place(record.leg), "no control asks for this leg")


def check_rootless(found: SkillDocuments) -> Iterator[Wrong]:
    """No leg of the skill axis had a context root, seen from outside or inside."""
    for record in found.records:
        at = record_place(record.leg)
        if record.axis is not Axis.SKILL:
            yield Wrong(f"{at}#/axis", "is not that of the scorecard")
        seen = [item.context_root_sha256 for item in (record.inside, record.inside_end) if item]
        stated = (record.context_root_label, record.context_root_sha256, *seen)
        if any(item is not None for item in stated):
            yield Wrong(at, "has a context root; no leg of the skill axis has one")
