"""Council verdict and run manifest: what an ingested score says."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from runner.model.base import Items, RunId, Sha256, Timestamp, Value
from runner.model.burn import BurnHead, Moment, RefText
from runner.model.rubric import CriterionId, JudgeHash, TaskId

# Not rounded: bands and repeats are decided on what the grader wrote.
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]

Breakdown = Annotated[
    dict[CriterionId, Fraction],
    # The generated schema has a pattern for the keys, which alone forbids no others.
    Field(json_schema_extra={"additionalProperties": False}),
]
"""Criterion id -> score."""


class Split(StrEnum):
    """Which part of the samples was graded."""

    DEV = "dev"
    HOLDOUT = "holdout"


class Band(StrEnum):
    """Verdict of the council."""

    PASS = "PASS"  # noqa: S105
    WARN = "WARN"
    FAIL = "FAIL"


class CouncilVerdict(Value):
    """Council verdict record, schema version 4."""

    verdict: Band
    confidence: Literal["HIGH"]
    key_insight: str
    recommendation: str
    schema_version: Annotated[int, Field(ge=4, le=4)]
    satisfaction_score: Fraction
    """The aggregate as the grader wrote it."""
    satisfaction_breakdown: Breakdown | None
    """Criterion scores; null when the score has none."""
    findings: Annotated[Items[str], Field(max_length=0)]
    burn_ledger_head: BurnHead | None = Field(
        default=None,
        # Without a burn the record has exactly the fields that its readers know.
        exclude_if=lambda head: head is None,
    )
    """Head of the burn ledger after the burn; absent when nothing was burned."""


class Kind(StrEnum):
    """What a run says about the artifacts it used, compared with a baseline."""

    IMPROVED = "improved"
    REGRESSED = "regressed"
    NO_CHANGE = "no_change"


class ManifestVerdict(Value):
    """The part of a run manifest that the verdict compiler acts on."""

    kind: Kind
    delta_point: Annotated[float, Field(ge=-1.0, le=1.0)] | None
    """Aggregate minus baseline aggregate; null without a baseline."""
    utility: Fraction
    applicable_artifacts: Items[str]
    notes: str


class RunManifest(Value):
    """Run manifest of an out-of-process grade (`run-manifest.v1`)."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    id: RunId
    kind: Literal["outcomes"]
    status: Literal["complete"]
    started_at: Timestamp
    finished_at: Timestamp
    started_at_unix_ms: Moment
    finished_at_unix_ms: Moment
    suite_ref: RefText | None
    task_ref: TaskId | None
    sample_split: Split
    ground_truth_ref: RefText | None
    """Ground-truth version of a dev split; null for a holdout."""
    ground_truth_hash: None
    """Always null: nothing of the ground truth was read."""
    judge_content_hash: JudgeHash | None
    diff_from: RunId | None
    """Run id of the baseline."""
    verdict: ManifestVerdict
    score_sha256: Sha256
    grade_sha256: Sha256
    """Tells a repeated ingest from another grade under the same run id."""
    captured_by: Literal["ao-eval outcomes ingest"]
    notes: str
