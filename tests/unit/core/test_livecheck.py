"""A stored proof about live state: what it concludes must follow from what it says."""

from __future__ import annotations

from typing import Any

import pytest

from runner.core.livecheck import check_live
from runner.model.liveproof import LiveStateEvidence
from tests.unit.contracts.documents import live_state_evidence, sandbox_evidence
from tests.unit.report import builders as report

ROOT = report.violated().integrity.live_state


def evidence(**proof: Any) -> LiveStateEvidence:
    """Honest evidence with some fields of the proof replaced."""
    honest = live_state_evidence()
    return honest.model_copy(update={"proof": honest.proof.model_copy(update=proof)})


def told(found: LiveStateEvidence) -> list[str]:
    return [f"{item.where}: {item.problem}" for item in check_live(found, sandbox_evidence())]


def test_the_claim_is_exactly_that_of_the_product() -> None:
    assert any("claim" in line for line in told(evidence(claim="nothing was ever written")))


@pytest.mark.parametrize(
    "fields, problem",
    [
        ({"changed_by": None, "before_sha256": "1" * 64}, "a change has a writer"),
        ({"after_sha256": "0" * 64, "changes": (), "changes_total": 0}, "yet nothing changed"),
        ({"allowed": True, "changed_by": "by_leg"}, "only a change by an outsider"),
    ],
)
def test_a_root_whose_conclusion_does_not_follow_is_told(
    fields: dict[str, Any], problem: str
) -> None:
    root = live_state_evidence().proof.roots[0].model_copy(update=fields)
    assert any(problem in line for line in told(evidence(roots=(root,))))
