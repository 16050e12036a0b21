"""Skill scorecard v1: hooks on against hooks off, and never more than was shown.

The first block of fields is that of the format's first runner, under its names; the rest says what
the claim rests on.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from runner.model.base import Delta, Items, RunId, Score, Timestamp, Token, Value
from runner.model.leg import DegradedReason
from runner.model.observation import Count
from runner.model.record import Status, Verdict
from runner.model.scorecard import ContextScorecard, Inputs, Integrity, PairCounts, Resolved

SkillLegName = Literal["skill_off", "skill_on"]


class SkillFact(Value):
    """Which expectation went from what to what."""

    kind: Literal["evaluator_fact"]
    expectation: Count
    type: str
    target: str | None
    skill_off: Verdict
    skill_on: Verdict
    changed: bool
    fingerprint_off: str | None
    """Digest of the evaluated fact; null for a private holdout, or when there was none."""
    fingerprint_on: str | None


class SkillOutput(Value):
    """An output that a changed expectation rests on."""

    kind: Literal["command_output"]
    leg: SkillLegName
    stream: Literal["stdout", "stderr", "exit_code"]
    excerpt: str | None
    """Leading text, control characters escaped; null for a private holdout."""
    sha256: str
    size: Count


class SkillFile(Value):
    """A file that a changed expectation rests on."""

    kind: Literal["checked_file"]
    leg: SkillLegName
    path: str
    state: str
    sha256: str | None


SkillEvidence = Annotated[SkillFact | SkillOutput | SkillFile, Field(discriminator="kind")]


class SkillCase(Value):
    """One case in both legs."""

    case_id: str
    skill_on_status: Status
    skill_off_status: Status
    skill_on_score: Score | None
    skill_off_score: Score | None
    delta: Annotated[int, Field(ge=-1, le=1)] | None
    """+1: fails off and passes on, -1: the reverse, 0: the same; null when the pair is not
    valid."""

    score_delta: Delta | None
    """On minus off; null when the pair is not valid."""
    decision_evidence: Items[SkillEvidence]
    token_delta: int | None
    tool_delta: int | None
    degraded_reason: DegradedReason | None
    degraded_detail: Token | None
    degraded_legs: Items[SkillLegName]
    """The sides that are degraded; empty for a valid pair, and where a control speaks against
    the pair as such."""

    @property
    def is_valid(self) -> bool:
        """Both sides finished and neither is degraded."""
        return self.degraded_reason is None

    @model_validator(mode="after")
    def _says_no_more_than_shown(self) -> Self:
        if self.is_valid:
            if self.score_delta is None or self.delta is None:
                raise ValueError("a valid pair has both deltas")
            if self.score_delta != 0 or self.delta != 0:
                self._rests_on_evidence()
            if self.degraded_legs:
                raise ValueError("a valid pair has no degraded side")
        elif self.score_delta is not None or self.delta is not None:
            raise ValueError("a degraded pair has no delta")
        if (self.degraded_reason is None) != (self.degraded_detail is None):
            raise ValueError("a degraded reason and its detail come together")
        return self

    def _rests_on_evidence(self) -> None:
        """A changed score is no evidence of itself."""
        evidence = self.decision_evidence
        if not any(isinstance(item, SkillFact) and item.changed for item in evidence):
            raise ValueError("a changed pair needs the fact that changed")
        if not any(isinstance(item, SkillOutput | SkillFile) for item in evidence):
            raise ValueError("a changed pair needs an output or a file that it rests on")


class SkillLeg(Value):
    """One leg of the comparison."""

    variant: SkillLegName
    run_id: RunId
    aggregate_score: Score | None
    """Over the scored cases of this leg; null when there is none."""
    status: Status
    dimension_scores: dict[str, Score | None]
    degraded_reason: DegradedReason | None
    degraded_detail: Token | None
    cases_total: Count
    cases_degraded: Count


class SkillPairing(PairCounts):
    """What `aggregate_delta` was computed from."""

    skill_off_aggregate: Score | None
    """Over valid pairs only."""
    skill_on_aggregate: Score | None


class SkillResolution(Resolved):
    """What the pairs can resolve. Every p speaks of cases like these, not of the world."""

    degraded_skill_off: Count
    degraded_skill_on: Count

    @property
    def degraded(self) -> tuple[int, int]:
        """Cases that were degraded in the off-leg and in the on-leg."""
        return self.degraded_skill_off, self.degraded_skill_on


class SkillCaseControl(Value):
    """Controls of one case whose outcome differed between the first legs, or that failed one."""

    case_id: str
    runs_off: Count
    """Off-legs in which the case ended, the first one included."""
    runs_on: Count
    finding: Token | None
    """Why the pair is degraded; null when every control held."""


class SkillControls(Value):
    """Which controls were run."""

    mode: Literal["none", "standard"]
    legs: Count
    """All legs that were run, the first two included."""
    replicates: Count
    """How often each variant was run with every case that could be compared."""
    extra_replicates: Count
    """How often more with the cases whose outcome differed."""
    cases: Items[SkillCaseControl]


class SkillScorecard(Value):
    """The comparison of `skill_off` and `skill_on` on one suite."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    suite_id: str
    suite_path: str
    generated_at: Timestamp
    skill_on_run_id: RunId
    skill_off_run_id: RunId
    skill_on_aggregate: Score | None
    """Over all that the leg scored; null when there is nothing."""
    skill_off_aggregate: Score | None
    aggregate_delta: Delta | None
    """On minus off over valid pairs; null when no pair is valid."""
    per_case: Items[SkillCase]

    run_id: RunId
    skill_off: SkillLeg
    skill_on: SkillLeg
    pairing: SkillPairing
    resolution: SkillResolution
    controls: SkillControls
    inputs: Inputs
    integrity: Integrity
    warnings: Items[str]


AnyScorecard = ContextScorecard | SkillScorecard
"""The scorecard of either axis."""
