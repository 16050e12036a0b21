"""What comes out of the container is not believed: its burn is checked against what was stated."""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

import pytest

from runner.app.outcomes import IngestRequest, _burn
from runner.app.outcomesbox import Copy, require_contract
from runner.app.request import Surroundings
from runner.errors import IntegrityError, InternalError
from tests.container.outcomes.commands import MARKER

pytestmark = pytest.mark.container

SHA = hashlib.sha256(b"score").hexdigest()
SCORE = Copy("score.json", "0", SHA)
BURN = {
    "suite_ref": "refunds",
    "gt_version": "2026-03",
    "run_id": "run-1",
    "score_sha256": SHA,
    "grade_sha256": "0" * 64,
}


def request(**stated: Any) -> IngestRequest:
    """An ingest with a ledger that states these."""
    here = Path("/nowhere")
    left_out = dict.fromkeys(("split", "suite", "gt_version", "run_id"))
    return IngestRequest(
        surroundings=Surroundings(
            cwd=here, home=here, environment={}, staging_base=here, epoch=None
        ),
        score=here,
        stated={**left_out, **stated},
        ledger=here / "ledger.json",
    )


def test_the_burn_that_was_stated_is_made() -> None:
    stated = request(split="holdout", suite="refunds", gt_version="2026-03", run_id="run-1")
    for asked in (stated, request()):
        burn = _burn(asked, SCORE, {"burn": BURN})
        assert burn is not None
        assert burn.run_id == "run-1"


@pytest.mark.parametrize(
    "changed",
    [
        {"suite_ref": "other"},
        {"gt_version": "2026-04"},
        {"run_id": "run-2"},
        {"score_sha256": "1" * 64},
    ],
)
def test_another_burn_than_the_one_that_was_stated_is_none(changed: dict[str, str]) -> None:
    stated = request(split="holdout", suite="refunds", gt_version="2026-03", run_id="run-1")
    with pytest.raises(IntegrityError):
        _burn(stated, SCORE, {"burn": {**BURN, **changed}})


def test_a_holdout_that_was_stated_is_not_talked_out_of_its_burn() -> None:
    with pytest.raises(IntegrityError):
        _burn(request(split="holdout"), SCORE, {"burn": None})
    assert _burn(request(split="dev"), SCORE, {"burn": None}) is None


def test_a_document_that_its_schema_forbids_is_not_shown_and_not_quoted() -> None:
    with pytest.raises(InternalError) as caught:
        require_contract("outcomes-rubric.v1", {"answer": MARKER})
    assert MARKER not in str(caught.value)
