"""Accepted score -> run manifest and run record, and the names they are kept under."""

from __future__ import annotations

import hashlib
import re
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from typing import Final, Literal, NamedTuple
from urllib.parse import quote

from pydantic import ValidationError

from runner.core.outcomes.gates import Resolved, bind
from runner.core.outcomes.score import Score
from runner.core.outcomes.sealed import sealed
from runner.core.outcomes.verdict import band
from runner.core.score import round4
from runner.errors import HoldoutRefusal, InputError
from runner.model.leg import Axis
from runner.model.record import CaseResult, GitRef, RunRecord, Status, SuiteRef
from runner.model.rubric import Rubric
from runner.model.suite import DimensionName, Tier, Visibility
from runner.model.verdict import Band, Kind, ManifestVerdict, RunManifest, Split

LEAST_DIFFERENCE: Final = Decimal("0.05")
"""Least change of the aggregate that is called an improvement or a regression."""

MAX_NAME: Final = 200
"""Longest manifest folder name, in bytes."""

_BEAD: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", re.ASCII)
_CLEAN_RUN_ID: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]{0,127}", re.ASCII)
_UNCLEAN: Final = re.compile(r"[^A-Za-z0-9._:-]")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)


class Comparison(NamedTuple):
    """A score against a baseline score.

    Attributes:
        kind: What it says about the artifacts that the run used.
        delta: Aggregate minus baseline aggregate; None without a baseline.
        baseline_run_id: Clean run id of the baseline; None when unknown.
    """

    kind: Kind
    delta: float | None
    baseline_run_id: str | None


@sealed
def compare(resolved: Resolved, baseline: Score | None, rubric: Rubric | None = None) -> Comparison:
    """Compare with a baseline: improved or regressed only from `LEAST_DIFFERENCE` on.

    Args:
        resolved: What the gates let through.
        baseline: An earlier score of the same task by the same judge.
        rubric: Rubric that the baseline is bound to as well.

    Raises:
        HoldoutRefusal: The two cannot be compared, or the baseline does not fit the rubric.
    """
    if baseline is None:
        return Comparison(Kind.NO_CHANGE, None, None)
    if rubric is not None:
        bind(rubric, baseline)
    pairs = (
        ("task", resolved.task_id, baseline.task_id),
        ("judge content hash", resolved.judge_hash, baseline.judge_hash),
    )
    claims = (
        ("split", resolved.split, baseline.split),
        ("suite", resolved.suite_ref, baseline.suite_ref),
        ("ground-truth version", resolved.gt_version, baseline.gt_version),
    )
    differing = [noun for noun, ours, theirs in pairs if ours is None or ours != theirs]
    # The caller may have stated these for a score that does not name them; neither need a baseline.
    differing += [noun for noun, ours, theirs in claims if theirs is not None and ours != theirs]
    if differing:
        raise HoldoutRefusal(
            f"the baseline score is of another or unknown {' and '.join(differing)}",
            where="--baseline-score",
            remedy="compare only grades of one task by one judge",
        )
    # As decimals, so that 0.85 - 0.8 is 0.05.
    delta = Decimal(repr(resolved.aggregate)) - Decimal(repr(baseline.aggregate))
    if abs(delta) < LEAST_DIFFERENCE:
        kind = Kind.NO_CHANGE
    else:
        kind = Kind.IMPROVED if delta > 0 else Kind.REGRESSED
    run_id = None if baseline.run_id is None else clean_run_id(baseline.run_id)
    return Comparison(kind, float(delta), run_id)


@sealed
def run_manifest(
    resolved: Resolved, comparison: Comparison, *, bead: str | None, now_ms: int
) -> RunManifest:
    """The manifest that the verdict compiler reads.

    Args:
        resolved: What the gates let through.
        comparison: From `compare`.
        bead: Work item that the run belongs to.
        now_ms: Time of the ingest, in milliseconds since 1970.

    Raises:
        InputError: The bead is malformed, or there is no run id.
    """
    if bead is not None and not _BEAD.fullmatch(bead):
        raise InputError("not a bead id: ASCII letters, digits and ._:-", where="--bead")
    notes = [f"council verdict {band(resolved.aggregate, resolved.threshold).value}"]
    if bead is not None:
        notes.append(f"bead {bead}")
    told = "; ".join(notes)
    moment = timestamp(now_ms)
    holdout = resolved.split is Split.HOLDOUT
    return RunManifest(
        schema_version=1,
        id=clean_run_id(_run_id(resolved)),
        kind="outcomes",
        status="complete",
        started_at=moment,
        finished_at=moment,
        started_at_unix_ms=now_ms,
        finished_at_unix_ms=now_ms,
        suite_ref=resolved.suite_ref,
        task_ref=resolved.task_id,
        sample_split=resolved.split,
        ground_truth_ref=None if holdout else resolved.gt_version,
        ground_truth_hash=None,
        judge_content_hash=resolved.judge_hash,
        diff_from=comparison.baseline_run_id,
        verdict=ManifestVerdict(
            kind=comparison.kind,
            delta_point=comparison.delta,
            utility=resolved.aggregate,
            # A grade names no artifacts, and a guess would change learnings.
            applicable_artifacts=(),
            notes=told,
        ),
        score_sha256=resolved.score_sha256,
        grade_sha256=resolved.grade_sha256,
        captured_by="ao-eval outcomes ingest",
        notes=told,
    )


@sealed
def graded_record(resolved: Resolved, *, now_ms: int) -> RunRecord:
    """The eval-run v1 record of an out-of-process grade.

    Nothing ran here, so there is no runtime, environment or commit; the suite's digest is that of
    the score file, the only document that was read.

    Args:
        resolved: What the gates let through.
        now_ms: Time of the ingest, in milliseconds since 1970.

    Raises:
        InputError: There is no run id.
    """
    found = band(resolved.aggregate, resolved.threshold)
    status, verdict = _OUTCOMES[found]
    score = round4(resolved.aggregate)
    dimensions = _dimension_scores(resolved)
    moment = timestamp(now_ms)
    holdout = resolved.split is Split.HOLDOUT
    return RunRecord(
        schema_version=1,
        run_id=clean_run_id(_run_id(resolved)),
        leg="outcomes",
        axis=Axis.CONTEXT,
        variant="none",
        context_root_label=None,
        context_root_sha256=None,
        suite=SuiteRef(
            id=resolved.suite_ref or "outcomes",
            path="out-of-process",
            sha256=resolved.score_sha256,
            visibility=Visibility.PRIVATE_HOLDOUT if holdout else Visibility.PUBLIC_CANARY,
            tier=Tier.LIVE,
        ),
        started_at=moment,
        completed_at=moment,
        status=status,
        verdict=verdict,
        git=GitRef(commit=None, dirty=None),
        runtime=None,
        environment=None,
        case_results=(_case(resolved, status, score, tuple(dimensions)),),
        aggregate_score=score,
        dimension_scores=dimensions,
        degraded_reason=None,
        degraded_detail=None,
        inside=None,
        inside_end=None,
        timings=None,
    )


def manifest_name(run_id: str) -> str:
    """Folder name of a run id. Different run ids have different names.

    Args:
        run_id: Printable ASCII, as it was given.

    Returns:
        Letters, digits, `._-~`, and `%XX` for every other byte; never hidden, never an option.

    Raises:
        InputError: The name would be too long.
    """
    name = quote(run_id, safe="")
    if name[0] in ".-~":
        name = f"%{ord(name[0]):02X}{name[1:]}"
    if len(name) > MAX_NAME:
        raise InputError("too long for a folder name", where="--run-id")
    return name


def clean_run_id(run_id: str) -> str:
    """A run id as records and manifests carry it.

    Args:
        run_id: Printable ASCII, as it was given.

    Returns:
        The id itself when it has only characters of record ids; else those it has, with `-` for the
        others, and twelve digits of its SHA-256, so that two of them stay apart.
    """
    if _CLEAN_RUN_ID.fullmatch(run_id):
        return run_id
    told = hashlib.sha256(run_id.encode("utf-8")).hexdigest()[:12]
    kept = _UNCLEAN.sub("-", run_id).lstrip("-._:")
    return f"{kept or 'run'}-{told}"


@sealed
def is_repeat(existing: bytes, manifest: RunManifest) -> bool:
    """Whether the manifest that lies there already is of this very grade.

    Args:
        existing: The manifest file found in the folder of the run.
        manifest: The one that would be written.

    Returns:
        True: keep the old one, it differs in its times at most.

    Raises:
        HoldoutRefusal: It is of another run or grade, or cannot be read; it is not overwritten.
    """
    try:
        found = RunManifest.model_validate_json(existing)
    except ValidationError:
        found = None
    if found is None or found.model_copy(update=_times(manifest)) != manifest:
        raise HoldoutRefusal(
            "a manifest of another run or grade lies there and is not overwritten",
            where="--manifest-out",
            remedy="give the run another --run-id or another folder",
        )
    return True


def timestamp(moment_ms: int) -> str:
    """RFC 3339 in UTC, milliseconds.

    Args:
        moment_ms: Milliseconds since 1970.
    """
    # Integers all the way: a float would round the last digit.
    moment = _EPOCH + timedelta(milliseconds=moment_ms)
    return moment.strftime("%Y-%m-%dT%H:%M:%S.") + f"{moment.microsecond // 1000:03d}Z"


_OUTCOMES: Final[dict[Band, tuple[Status, Literal["pass", "fail", "inconclusive"]]]] = {
    Band.PASS: (Status.PASS, "pass"),
    Band.WARN: (Status.INCONCLUSIVE, "inconclusive"),
    Band.FAIL: (Status.FAIL, "fail"),
}


def _run_id(resolved: Resolved) -> str:
    if resolved.run_id is None:
        raise InputError(
            "a manifest needs a run id, and neither the caller nor the score gives one",
            where="--manifest-out",
            remedy="state --run-id",
        )
    return resolved.run_id


def _times(manifest: RunManifest) -> dict[str, object]:
    return {
        "started_at": manifest.started_at,
        "finished_at": manifest.finished_at,
        "started_at_unix_ms": manifest.started_at_unix_ms,
        "finished_at_unix_ms": manifest.finished_at_unix_ms,
    }


def _dimension_scores(resolved: Resolved) -> dict[str, float | None]:
    known = {item.value for item in DimensionName} - {DimensionName.CONTEXT_COMPREHENSION.value}
    scores = resolved.criterion_scores or {}
    named: dict[str, float | None] = {
        name: round4(scores[name]) for name in sorted(known & set(scores))
    }
    return named or {DimensionName.CORRECTNESS.value: round4(resolved.aggregate)}


def _case(
    resolved: Resolved, status: Status, score: float, dimensions: tuple[str, ...]
) -> CaseResult:
    return CaseResult(
        case_id=resolved.task_id or "aggregate",
        kind="outcomes",
        status=status,
        score=score,
        critical=False,
        dimensions=dimensions,
        exit_code=None,
        signal=None,
        timed_out=False,
        duration_ms=0,
        container=0,
        expectations=(),
        stdout=None,
        stderr=None,
        files=(),
        usage=None,
        wrote_workspace=None,
        failure_message=None,
        degraded_reason=None,
        degraded_detail=None,
    )
