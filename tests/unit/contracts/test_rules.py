"""Rules of the models that no schema can say."""

from __future__ import annotations

from typing import Any

import pytest
from pydantic import ValidationError

from runner.contracts.registry import _describe
from runner.model.base import Value
from runner.model.liveproof import LiveRootProof
from runner.model.observation import StreamObservation
from runner.model.scorecard import PairedCase
from tests.unit.report import builders as report

CHANGED = report.improved().model_dump()
DEGRADED = report.degraded().model_dump()


@pytest.mark.parametrize(
    "row, change, words",
    [
        (CHANGED, {"score_delta": None}, "a valid pair has both deltas"),
        (CHANGED, {"status_delta": None}, "a valid pair has both deltas"),
        (CHANGED, {"decision_evidence": ()}, "needs the fact that changed"),
        (DEGRADED, {"score_delta": 0.0}, "a degraded pair has no delta"),
        (DEGRADED, {"status_delta": 0}, "a degraded pair has no delta"),
        (DEGRADED, {"degraded_detail": None}, "come together"),
        (CHANGED, {"degraded_detail": "timeout"}, "come together"),
    ],
)
def test_a_row_never_says_more_than_was_shown(
    row: dict[str, Any], change: dict[str, Any], words: str
) -> None:
    PairedCase.model_validate(row)
    with pytest.raises(ValidationError, match=words):
        PairedCase.model_validate(row | change)


def test_a_row_that_did_not_change_needs_no_changed_fact() -> None:
    assert PairedCase.model_validate(report.tied().model_dump()).is_valid


def test_a_fact_that_stayed_the_same_is_not_the_fact_that_changed() -> None:
    row = report.improved()
    (fact,) = (item for item in row.decision_evidence if item.kind == "evaluator_fact")
    same = fact.model_copy(update={"changed": False})
    with pytest.raises(ValidationError, match="needs the fact that changed"):
        PairedCase.model_validate(row.model_dump() | {"decision_evidence": (same,)})


@pytest.mark.parametrize(
    "change, unchanged",
    [
        ({}, True),
        ({"changes_total": 1}, False),
        ({"after_sha256": report.sha("e")}, False),
        ({"before_sha256": None, "after_sha256": None}, False),
        ({"after_sha256": None}, False),
        ({"before_sha256": None}, False),
    ],
)
def test_a_live_root_is_unchanged_only_when_two_manifests_agree(
    change: dict[str, Any], unchanged: bool
) -> None:
    root = LiveRootProof.model_validate(report.root().model_dump() | change)
    assert root.unchanged is unchanged


@pytest.mark.parametrize("kept, truncated", [(5, False), (4, True), (0, True)])
def test_a_stream_is_truncated_when_less_was_kept_than_written(kept: int, truncated: bool) -> None:
    assert StreamObservation(size=5, kept=kept, sha256="x").truncated is truncated


@pytest.mark.parametrize("change", [{"frozen": 1}, {"size": "5"}, {"size": True}, {"size": -1}])
def test_values_are_closed_strict_and_bounded(change: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        StreamObservation.model_validate({"size": 5, "kept": 5, "sha256": "x"} | change)


def test_values_are_frozen() -> None:
    stream = StreamObservation(size=5, kept=5, sha256="x")
    with pytest.raises(ValidationError, match="frozen"):
        stream.size = 6  # type: ignore[misc]


class _Described(Value):
    shown: int
    """What it is."""
    hidden: int
    """Not part of the schema."""


def test_a_description_without_a_property_is_left_out() -> None:
    definition: dict[str, Any] = {"properties": {"shown": {"type": "integer"}}}
    _describe(definition, _Described)
    assert definition == {
        "properties": {"shown": {"type": "integer", "description": "What it is."}}
    }
