"""Council verdict and run manifest: what an ingested score says."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import Field, SerializerFunctionWrapHandler, StringConstraints, model_serializer

from runner.model.base import Items, RunId, Sha256, Timestamp, Value
from runner.model.burn import BurnHead, Moment, RefText

CriterionId = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=128)
]
TaskId = CriterionId

# Not rounded: bands and repeats are decided on what the grader wrote.
Fraction = Annotated[float, Field(ge=0.0, le=1.0)]
Threshold = Annotated[float, Field(gt=0.0, le=1.0)]


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
    satisfaction_breakdown: dict[CriterionId, Fraction] | None
    """Criterion scores; null when the score has none."""
    findings: Annotated[Items[str], Field(max_length=0)]
    burn_ledger_head: BurnHead | None = None
    """Head of the burn ledger after the burn; absent when nothing was burned."""

    @model_serializer(mode="wrap")
    def _without_absent_head(self, handler: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Without a burn the record has exactly the fields that its readers know."""
        written: dict[str, Any] = handler(self)
        if self.burn_ledger_head is None:
            del written["burn_ledger_head"]
        return written


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
    judge_content_hash: str | None
    diff_from: RunId | None
    """Run id of the baseline."""
    verdict: ManifestVerdict
    score_sha256: Sha256
    grade_sha256: Sha256
    """Tells a repeated ingest from another grade under the same run id."""
    captured_by: Literal["ao-eval outcomes ingest"]
    notes: str
