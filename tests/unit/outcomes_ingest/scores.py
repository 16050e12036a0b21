"""Scores, rubrics and what a caller states."""

from __future__ import annotations

import json
import traceback
from pathlib import Path
from typing import Any

from runner.core.outcomes.gates import Resolved, Stated, resolve
from runner.core.outcomes.score import Score, read_score
from runner.errors import AoEvalError
from runner.model.rubric import Criterion, Rubric

FIXTURES = Path(__file__).parents[3] / "fixtures" / "outcomes" / "ingest"
HASH = "sha256:" + "ab" * 32
OTHER_HASH = "sha256:" + "cd" * 32
SECRET = "Ouagadougou"
"""Stands for an answer; must be in nothing that is shown."""

CLAIMS: dict[str, Any] = {
    "source_task_id": "refund-answers",
    "judge_content_hash": HASH,
    "aggregate": 0.85,
    "threshold": 0.8,
    "criterion_scores": {"rule": 0.9, "amount": 0.7},
    "split": "holdout",
    "suite_ref": "refunds",
    "ground_truth_version": "gt-1",
    "run_id": "run-1",
}

STATED = Stated(
    judge_hash=HASH,
    suite="refunds",
    split="holdout",
    gt_version="gt-1",
    threshold=0.8,
    run_id="run-1",
    ledger=True,
)

RUBRIC = Rubric(
    schema_version=1,
    source_task_id="refund-answers",
    judge_content_hash=HASH,
    criteria=(
        Criterion(id="rule", description="Names the rule.", weight=3.0),
        Criterion(id="amount", description="States the amount.", weight=1.0),
    ),
)


def score_bytes(*without: str, **changed: Any) -> bytes:
    claims = {name: value for name, value in {**CLAIMS, **changed}.items() if name not in without}
    return json.dumps(claims).encode()


def score(*without: str, **changed: Any) -> Score:
    return read_score(score_bytes(*without, **changed), "score.json")


def accepted(**changed: Any) -> Resolved:
    return resolve(STATED, score(**changed), rubric=RUBRIC)


def everything_shown(error: AoEvalError) -> str:
    """All that a traceback or a log with local variables could show of a caught error.

    The first frame is the test's own, which holds the input.
    """
    told = traceback.TracebackException(
        type(error),
        error,
        error.__traceback__ and error.__traceback__.tb_next,
        capture_locals=True,
    )
    return f"{error.line()} {error!r} {error.args} {''.join(told.format())}"
