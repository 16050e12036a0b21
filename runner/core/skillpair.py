"""Everything that was observed of a skill comparison -> its scorecard.

A pair is a pair on either axis: rows, deltas and statistics are made by the functions of the
context axis, and told here under the names of this one.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from runner.core import liveproof
from runner.core.assemble import integrity
from runner.core.canon import digest
from runner.core.decision import Excerpt
from runner.core.pair import paired_cases, pairing
from runner.core.plan import APART
from runner.core.skillcontrols import SKILL_OFF, SKILL_ON, Mode, controls_block, findings
from runner.core.stats import differences, resolution
from runner.core.trials import OFF, ON
from runner.model.controls import LegName
from runner.model.evidence import HooksEvidence, SandboxEvidence
from runner.model.leg import Axis
from runner.model.liveproof import LiveStateProof
from runner.model.record import RunRecord
from runner.model.scorecard import (
    CheckedFile,
    CommandOutput,
    DecisionEvidence,
    EvaluatorFact,
    Inputs,
    PairedCase,
    Pairing,
    Resolution,
    SentinelFact,
)
from runner.model.skillscorecard import (
    SkillCase,
    SkillEvidence,
    SkillFact,
    SkillFile,
    SkillLeg,
    SkillLegName,
    SkillOutput,
    SkillPairing,
    SkillResolution,
    SkillScorecard,
)
from runner.model.suite import SuiteFile

_HERE: Final[dict[str, SkillLegName]] = {OFF: SKILL_OFF, ON: SKILL_ON}


class SkillObserved(NamedTuple):
    """What a skill comparison is made from.

    Attributes:
        suite: The suite.
        records: Of every leg, in the order of their start; the first two are `skill_off` and
            `skill_on`. Degraded as `core.assemble.as_reported` does it.
        live: The live state, before and after.
        sandbox: Containers as read back, and as seen from inside.
        hooks: The hook environment in its places.
        inputs: Identity of everything that went in.
        controls: Which controls were asked for.
        run_id: Run id of the comparison.
        generated_at: The declared clock.
        notes: Warnings from before the legs.
    """

    suite: SuiteFile
    records: tuple[RunRecord, ...]
    live: LiveStateProof
    sandbox: SandboxEvidence
    hooks: HooksEvidence
    inputs: Inputs
    controls: Mode
    run_id: str
    generated_at: str
    notes: tuple[str, ...] = ()


def assemble_skill(observed: SkillObserved, excerpt: Excerpt) -> SkillScorecard:
    """Make the scorecard.

    Args:
        observed: Everything that was observed.
        excerpt: Reads the head of a stored output; asked by the names of this axis.
    """
    off, on = observed.records[:2]
    suite = observed.suite.suite
    against = findings(observed.controls, observed.records)

    def named(leg: str, case_id: str, stream: str) -> str | None:
        return excerpt(_HERE[leg], case_id, stream)

    rows = paired_cases(off, on, excerpt=named, findings=against)
    block, delta = pairing(off, on, suite.scoring, against)
    tags = {case.id: case.tags for case in suite.cases}
    return SkillScorecard(
        schema_version=1,
        suite_id=suite.id,
        suite_path=observed.suite.path,
        generated_at=observed.generated_at,
        skill_on_run_id=on.run_id,
        skill_off_run_id=off.run_id,
        skill_on_aggregate=on.aggregate_score,
        skill_off_aggregate=off.aggregate_score,
        aggregate_delta=delta,
        per_case=tuple(map(_row, rows)),
        run_id=observed.run_id,
        skill_off=_leg(off, SKILL_OFF),
        skill_on=_leg(on, SKILL_ON),
        pairing=_pairing(block),
        resolution=_resolution(
            resolution(
                differences(rows, tags),
                seed=digest([observed.inputs.suite_sha256, Axis.SKILL.value]),
                degraded=(_degraded(off), _degraded(on)),
            )
        ),
        controls=controls_block(observed.controls, observed.records),
        inputs=observed.inputs,
        integrity=integrity(
            observed.live, observed.sandbox, observed.hooks, apart=APART[Axis.SKILL]
        ),
        warnings=(*liveproof.warnings(observed.live), *observed.notes),
    )


def _row(row: PairedCase) -> SkillCase:
    sides: tuple[LegName, ...] = (OFF, ON)
    return SkillCase(
        case_id=row.case_id,
        skill_on_status=row.context_on.status,
        skill_off_status=row.context_off.status,
        skill_on_score=row.context_on.score,
        skill_off_score=row.context_off.score,
        delta=row.status_delta,
        score_delta=row.score_delta,
        decision_evidence=tuple(map(_evidence, row.decision_evidence)),
        token_delta=row.token_delta,
        tool_delta=row.tool_delta,
        degraded_reason=row.degraded_reason,
        degraded_detail=row.degraded_detail,
        degraded_legs=tuple(
            _HERE[side] for side in sides if getattr(row, side).degraded_reason is not None
        ),
    )


def _evidence(item: DecisionEvidence) -> SkillEvidence:
    match item:
        case EvaluatorFact():
            return SkillFact(
                kind=item.kind,
                expectation=item.expectation,
                type=item.type,
                target=item.target,
                skill_off=item.context_off,
                skill_on=item.context_on,
                changed=item.changed,
                fingerprint_off=item.fingerprint_off,
                fingerprint_on=item.fingerprint_on,
            )
        case CommandOutput():
            return SkillOutput(**{**item.model_dump(), "leg": _HERE[item.leg]})
        case CheckedFile():
            return SkillFile(**{**item.model_dump(), "leg": _HERE[item.leg]})
        case SentinelFact():
            raise ValueError("a sentinel lies in a context root, and no leg of this axis has one")


def _leg(record: RunRecord, variant: SkillLegName) -> SkillLeg:
    return SkillLeg(
        variant=variant,
        run_id=record.run_id,
        aggregate_score=record.aggregate_score,
        status=record.status,
        dimension_scores=record.dimension_scores,
        degraded_reason=record.degraded_reason,
        degraded_detail=record.degraded_detail,
        cases_total=len(record.case_results),
        cases_degraded=_degraded(record),
    )


def _degraded(record: RunRecord) -> int:
    return sum(case.degraded_reason is not None for case in record.case_results)


def _pairing(block: Pairing) -> SkillPairing:
    return SkillPairing(
        valid_pairs=block.valid_pairs,
        degraded_pairs=block.degraded_pairs,
        delta_lower_bound=block.delta_lower_bound,
        delta_upper_bound=block.delta_upper_bound,
        skill_off_aggregate=block.context_off_aggregate,
        skill_on_aggregate=block.context_on_aggregate,
    )


def _resolution(found: Resolution) -> SkillResolution:
    shared = {
        name: getattr(found, name)
        for name in Resolution.model_fields
        if name in SkillResolution.model_fields
    }
    return SkillResolution(
        **shared,
        degraded_skill_off=found.degraded[0],
        degraded_skill_on=found.degraded[1],
    )
