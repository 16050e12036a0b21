"""Context scorecard v1: two legs compared, and never more than was shown.

The first block of fields is the contract's, under the contract's names; the rest says what the
claim rests on.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from runner.model.base import Delta, ImageId, Items, RunId, Score, Sha256, Timestamp, Token, Value
from runner.model.contextfile import SentinelRole
from runner.model.controls import Attribution, Controls, LegName
from runner.model.hooks import HookRef
from runner.model.leg import DegradedReason
from runner.model.liveproof import LiveStateProof
from runner.model.observation import Count
from runner.model.record import Status, Verdict


class EvaluatorFact(Value):
    """Which expectation went from what to what."""

    kind: Literal["evaluator_fact"]
    expectation: Count
    type: str
    target: str | None
    context_off: Verdict
    context_on: Verdict
    changed: bool
    fingerprint_off: str | None
    """Digest of the evaluated fact; null for a private holdout, or when there was none."""
    fingerprint_on: str | None


class CommandOutput(Value):
    """An output that a changed expectation rests on."""

    kind: Literal["command_output"]
    leg: LegName
    stream: Literal["stdout", "stderr", "exit_code"]
    excerpt: str | None
    """Leading text, control characters escaped; null for a private holdout."""
    sha256: str
    size: Count


class CheckedFile(Value):
    """A file that a changed expectation rests on."""

    kind: Literal["checked_file"]
    leg: LegName
    path: str
    state: str
    sha256: str | None


class SentinelFact(Value):
    """A negative control that failed in one leg: the case fails there with score 0."""

    kind: Literal["sentinel_fact"]
    leg: LegName
    artifact: str
    role: SentinelRole
    token: Count
    """Index of the token in `context.json`."""
    output: str
    sha256: str
    """Of the output that holds it."""


DecisionEvidence = Annotated[
    EvaluatorFact | CommandOutput | CheckedFile | SentinelFact, Field(discriminator="kind")
]


class IgnoredContext(Value):
    """Why context that was present had no part in the outcome."""

    kind: Literal["same_output", "same_outcome", "not_opened", "opened_without_effect"]
    detail: str


class LegCase(Value):
    """One side of a pair."""

    variant: LegName
    context_root_label: str
    run_id: RunId
    status: Status
    score: Score | None
    degraded_reason: DegradedReason | None
    degraded_detail: Token | None


class PairedCase(Value):
    """One case in both legs."""

    case_id: str
    context_off: LegCase
    context_on: LegCase
    score_delta: Delta | None
    """On minus off; null when the pair is not valid."""
    status_delta: Annotated[int, Field(ge=-1, le=1)] | None
    """+1: fail -> pass, -1: pass -> fail, 0: the same; null when the pair is not valid."""
    decision_evidence: Items[DecisionEvidence]
    ignored_context_evidence: Items[IgnoredContext]
    token_delta: int | None
    tool_delta: int | None
    degraded_reason: DegradedReason | None
    degraded_detail: Token | None
    artifact_attribution: Items[str]

    @property
    def is_valid(self) -> bool:
        """Both sides finished and neither is degraded."""
        return self.degraded_reason is None

    @model_validator(mode="after")
    def _says_no_more_than_shown(self) -> Self:
        if self.is_valid:
            if self.score_delta is None or self.status_delta is None:
                raise ValueError("a valid pair has both deltas")
            if self.score_delta != 0 or self.status_delta != 0:
                self._rests_on_evidence()
        elif self.score_delta is not None or self.status_delta is not None:
            raise ValueError("a degraded pair has no delta")
        if (self.degraded_reason is None) != (self.degraded_detail is None):
            raise ValueError("a degraded reason and its detail come together")
        return self

    def _rests_on_evidence(self) -> None:
        """A changed score is no evidence of itself."""
        evidence = self.decision_evidence
        sentinel = any(isinstance(item, SentinelFact) for item in evidence)
        if not sentinel and not any(
            isinstance(item, EvaluatorFact) and item.changed for item in evidence
        ):
            raise ValueError("a changed pair needs the fact that changed")
        if not sentinel and not any(
            isinstance(item, CommandOutput | CheckedFile) for item in evidence
        ):
            raise ValueError("a changed pair needs an output or a file that it rests on")


class LegSummary(Value):
    """One leg of the comparison."""

    variant: LegName
    context_root_label: str
    run_id: RunId
    aggregate_score: Score | None
    """Over the scored cases of this leg; null when there is none."""
    status: Status
    dimension_scores: dict[str, Score | None]
    context_root_sha256: Sha256 | None
    context_root_entries: Count
    degraded_reason: DegradedReason | None
    degraded_detail: Token | None
    cases_total: Count
    cases_degraded: Count


class PairCounts(Value):
    """What a delta was computed from, on either axis."""

    valid_pairs: Count
    degraded_pairs: Count
    delta_lower_bound: Delta | None
    """With every pair lost on one side only counted against the on-leg; equals the delta when
    nothing was lost on one side only."""
    delta_upper_bound: Delta | None


class Pairing(PairCounts):
    """What `aggregate_delta` was computed from."""

    context_off_aggregate: Score | None
    """Over valid pairs only."""
    context_on_aggregate: Score | None


class SignFlip(Value):
    """Sign-flip test of the mean paired difference, two-sided."""

    method: Literal["exact", "monte_carlo"]
    pairs: Count
    """Pairs whose scores differ; the others have no sign."""
    assignments: Count | None
    """How many were drawn; null when all were counted."""
    p: Annotated[float, Field(ge=0, le=1)]


class Interval(Value):
    """Confidence interval for the mean paired difference."""

    low: Delta
    high: Delta
    level: float
    clusters: Count
    """Families of cases, a case without one counting by itself."""


class Resolved(Value):
    """What the pairs of either axis can resolve."""

    valid_pairs: Count
    improved: Count
    """Scored higher in the on-leg."""
    regressed: Count
    tied: Count
    newly_passing: Count
    newly_failing: Count
    mcnemar_exact_p: Annotated[float, Field(ge=0, le=1)] | None
    """Over pairs that changed between pass and fail; null without a valid pair."""
    sign_flip: SignFlip | None
    """Over graded scores; null when none differs."""
    mean_difference: Delta | None
    """Unweighted mean over valid pairs; the aggregate's delta has the suite's weights."""
    interval: Interval | None
    """Null with fewer than two clusters or without any spread."""
    least_net_improvement: Count | None
    """Least number of one-directional changes that could reach p < 0.05; null when none can."""
    note: str


class Resolution(Resolved):
    """What the pairs can resolve. Every p speaks of cases like these, not of the world."""

    degraded_context_off: Count
    degraded_context_on: Count

    @property
    def degraded(self) -> tuple[int, int]:
        """Cases that were degraded in the off-leg and in the on-leg."""
        return self.degraded_context_off, self.degraded_context_on


class Inputs(Value):
    """Identity of everything that went in."""

    suite_sha256: Sha256
    workspace_sha256: Sha256
    workspace_mode: Literal["overlay", "copy", "shared_overlay", "shared_copy"]
    image: str
    image_id: ImageId
    agent_sha256: Sha256
    hook_environment_sha256: Sha256
    oci_runtime: str
    engine: str
    runner_version: str


class SandboxProof(Value):
    """What the engine reported of the containers, before each was started."""

    containers: Count
    differences: Count
    """Fields in which a created container was not what was asked for; a leg with one is refused."""
    network: Literal["none"]
    interfaces: Items[str]
    """Network interfaces seen from inside, over all containers."""
    capabilities: Items[str]
    no_new_privs: bool
    profile_sha256: Sha256
    """Of the confinement profile as read back; names, ids and host paths left out."""


class HooksProof(Value):
    """The hook environment in its three places."""

    names: Items[str]
    dropped: Items[str]
    equal_in_both_legs: bool
    preserved: bool
    """Host, created configuration, inside at start and at end all agree."""
    directory_sha256: Sha256 | None = None
    """Content digest of the hooks directory; null without one."""
    hooks: Items[HookRef] = ()
    """What ran around every command case, in order."""
    receipts_equal: bool | None = None
    """Around every case that could be compared, the same hooks ended the same way in both legs and
    completed; null when there was none."""


class Integrity(Value):
    """Was the measurement clean?"""

    verdict: Literal["clean", "violated", "unknown"]
    live_state: LiveStateProof
    sandbox: SandboxProof
    hooks: HooksProof
    problems: Items[str]
    """One line each, worst first; empty when clean."""


class ContextScorecard(Value):
    """The comparison of `context_off` and `context_on` on one suite."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    suite_id: str
    suite_path: str
    generated_at: Timestamp
    context_off: LegSummary
    context_on: LegSummary
    aggregate_delta: Delta | None
    """On minus off over valid pairs; null when no pair is valid."""
    per_case: Items[PairedCase]

    run_id: RunId
    pairing: Pairing
    resolution: Resolution
    controls: Controls
    attribution: Attribution
    inputs: Inputs
    integrity: Integrity
    warnings: Items[str]
