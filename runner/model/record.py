"""Run record (eval-run v1): what one leg showed, case by case."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from runner.model.base import ImageId, Items, RunId, Score, Sha256, Timestamp, Token, Value
from runner.model.contextfile import SentinelRole
from runner.model.hooks import HookReceipt
from runner.model.leg import Axis, Degradation, DegradedReason, LegRole
from runner.model.observation import Count, InsideEnd, InsideReport
from runner.model.suite import ExpectationType, Tier, Visibility


class Status(StrEnum):
    """Outcome of a case or leg."""

    PASS = "pass"  # noqa: S105
    FAIL = "fail"
    ERROR = "error"
    SKIPPED = "skipped"
    INCONCLUSIVE = "inconclusive"


class Verdict(StrEnum):
    """Judgement on one expectation."""

    PASSED = "passed"
    FAILED = "failed"
    UNDECIDED = "undecided"
    """The evidence that was kept cannot decide it. Never counted as failed."""


class ExpectationResult(Value):
    """One expectation, judged."""

    index: Count
    type: ExpectationType
    required: bool
    target: str | None = None
    verdict: Verdict
    message: str
    """One line. For a private holdout it names neither the value nor text matched by it."""
    rests_on: str | None = None
    """What was looked at: `exit_code`, `stdout`, `stderr`, or a container path."""
    fingerprint: str | None = None
    """Digest of the evaluated fact (a JSON value, a number); a change of it is a change of fact."""


class StreamRecord(Value):
    """An output stream, by reference."""

    size: Count
    kept: Count
    sha256: str
    path: str | None = None
    """Below the evidence directory; null when empty or withheld (private holdout)."""


class FileRecord(Value):
    """A checked file, by reference."""

    path: str
    state: Literal["regular", "absent", "directory", "other", "unreadable"]
    size: Count = 0
    sha256: str | None = None
    kept: Count = 0
    blob: str | None = None
    """Below the evidence directory; null when empty or withheld (private holdout)."""


class ProbeRecord(Value):
    """The extra execution that an auto-detect expectation asked for."""

    expectation: Count
    """Index of the expectation."""
    exit_code: int | None
    """Null when killed by a signal, and for a private holdout."""
    timed_out: bool
    start_error: Token | None
    stdout: StreamRecord
    stderr: StreamRecord


class SentinelHit(Value):
    """A token of a sentinel that an output of the case holds: a negative control that failed."""

    artifact: str
    """Path below the context root."""
    role: SentinelRole
    token: Count
    """Index of the token in `context.json`."""
    output: str
    """`stdout`, `stderr`, `probe-N.stdout`, a container path; `file-N` for a private holdout."""
    sha256: str
    """Of that output; keyed for a private holdout."""


class CaseResult(Value):
    """One case of a leg."""

    case_id: str
    kind: str
    status: Status
    score: Score | None
    """Null when the case cannot be scored; never zero for an infrastructure failure."""
    critical: bool
    dimensions: Items[str]
    exit_code: int | None
    """Null when killed by a signal, when nothing ran, and for a private holdout."""
    signal: int | None
    timed_out: bool
    oom_killed: bool | None = None
    """Null where nothing ran, and where the container's counter cannot be read."""
    start_error: Token | None = None
    """Why the program could not be started."""
    duration_ms: Count
    container: Count
    expectations: Items[ExpectationResult]
    stdout: StreamRecord | None
    stderr: StreamRecord | None
    probes: Items[ProbeRecord] = ()
    """In the order of their expectations."""
    files: Items[FileRecord]
    usage: dict[str, int] | None
    wrote_workspace: bool | None
    """By the case or a hook around it."""
    hooks: Items[HookReceipt] = ()
    """Receipts of the hooks around the case, in the order in which they ran."""
    sentinels: Items[SentinelHit] = ()
    """Not empty: the case fails with score 0 in this leg."""
    failure_message: str | None
    degraded_reason: DegradedReason | None
    degraded_detail: Token | None

    @model_validator(mode="after")
    def _a_reason_has_a_detail(self) -> Self:
        if (self.degraded_reason is None) != (self.degraded_detail is None):
            raise ValueError("a degraded reason and its detail come together")
        return self


class SuiteRef(Value):
    """Identity of the suite."""

    id: str
    path: str
    sha256: Sha256
    visibility: Visibility
    tier: Tier
    folder: str | None = None
    """Its folder inside the container, where targets of expectations begin; null when nothing
    ran."""


class GitRef(Value):
    """Commit of the repository that the suite belongs to; nulls outside a repository."""

    commit: str | None
    dirty: bool | None


class RuntimeRef(Value):
    """What ran the leg."""

    name: Literal["shell", "static"]
    engine: str
    """Name and version of the engine."""
    oci_runtime: str
    image: str
    image_id: ImageId
    agent_sha256: Sha256
    workspace_mode: Literal["overlay", "copy", "shared_overlay", "shared_copy"]


class EnvironmentRef(Value):
    """The surroundings that the leg really had, as shown by the read-back and from inside."""

    network_access: Literal["none"]
    isolated_home: Literal[True]
    hook_environment: dict[str, Sha256]
    """Hook variable -> SHA-256 of its value."""
    dropped: Items[str]
    """Names in the hook namespaces that were not passed on because they look like credentials."""
    hooks_disabled: bool


class LegTimings(Value):
    """Milliseconds; kept out of the scorecard so that its bytes do not depend on them."""

    staging_ms: Count
    create_ms: Count
    start_ms: Count
    run_ms: Count
    teardown_ms: Count


class RunRecord(Value):
    """Stored result of one leg."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    run_id: RunId
    leg: Token
    axis: Axis
    variant: str
    role: LegRole | None = None
    """Why the leg was run; null for a plain run."""
    context_root_label: str | None
    context_root_sha256: Sha256 | None
    suite: SuiteRef
    started_at: Timestamp
    completed_at: Timestamp
    status: Status
    verdict: Literal["pass", "fail", "inconclusive"]
    git: GitRef
    runtime: RuntimeRef | None
    environment: EnvironmentRef | None
    case_results: Items[CaseResult]
    aggregate_score: Score | None
    """Over the scored cases of this leg; null when there is none."""
    dimension_scores: dict[str, Score | None]
    degraded_reason: DegradedReason | None
    degraded_detail: Token | None
    inside: InsideReport | None
    inside_end: InsideEnd | None
    timings: LegTimings | None

    @model_validator(mode="after")
    def _a_degraded_leg_has_no_clean_case(self) -> Self:
        """Rows of a degraded leg must not look like evidence, whoever reads only the rows."""
        if self.degraded_reason is None and self.degraded_detail is not None:
            raise ValueError("a degraded detail without a reason")
        if self.degraded_reason is not None:
            if self.degraded_detail is None or self.verdict != "inconclusive":
                raise ValueError("a degraded leg has a detail and no verdict")
            if any(case.degraded_reason is None for case in self.case_results):
                raise ValueError("every case of a degraded leg is degraded")
        return self

    @property
    def degradation(self) -> Degradation | None:
        """The leg's degradation as one value."""
        if self.degraded_reason is None or self.degraded_detail is None:
            return None
        return Degradation(reason=self.degraded_reason, detail=self.degraded_detail)
