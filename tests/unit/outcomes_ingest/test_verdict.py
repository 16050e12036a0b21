"""The council verdict: the record its readers know, and bands that are exact."""

from __future__ import annotations

import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import ValidationError

from runner.contracts.registry import Contract, generate
from runner.core.canon import canonical, document
from runner.core.outcomes.gates import Stated, resolve
from runner.core.outcomes.verdict import band, council_verdict, refused_by_gate
from runner.model.burn import BurnHead
from runner.model.verdict import Band, CouncilVerdict
from tests.unit.outcomes_ingest.scores import accepted, score

HEAD = BurnHead(count=3, sha256="ab" * 32)


@pytest.mark.parametrize(
    "aggregate, threshold, expected",
    [
        (1.0, 1.0, Band.PASS),
        (0.7, 1.0, Band.WARN),
        (0.6999999999999999, 1.0, Band.FAIL),
        (0.9999999999999999, 1.0, Band.WARN),
        (0.8, 0.8, Band.PASS),
        (0.7999999999999999, 0.8, Band.WARN),
        (0.7 * 0.8, 0.8, Band.WARN),
        (0.56, 0.8, Band.WARN),
        (0.5599999999999998, 0.8, Band.FAIL),
        (0.0, 0.8, Band.FAIL),
        (0.0, 5e-324, Band.FAIL),
    ],
)
def test_bands_at_the_threshold_and_seven_tenths_of_it(
    aggregate: float, threshold: float, expected: Band
) -> None:
    assert band(aggregate, threshold) is expected


@settings(deadline=None)
@given(st.floats(0, 1), st.floats(0, 1), st.floats(0, 1, exclude_min=True))
def test_a_higher_aggregate_is_never_a_worse_verdict(
    one: float, other: float, threshold: float
) -> None:
    order = [Band.FAIL, Band.WARN, Band.PASS]
    low, high = sorted((one, other))
    assert order.index(band(low, threshold)) <= order.index(band(high, threshold))


def test_the_record_is_field_for_field_what_its_readers_know() -> None:
    assert document(council_verdict(accepted())) == {
        "verdict": "PASS",
        "confidence": "HIGH",
        "key_insight": "refund-answers meets its threshold.",
        "recommendation": "Accept the run.",
        "schema_version": 4,
        "satisfaction_score": 0.85,
        "satisfaction_breakdown": {"rule": 0.9, "amount": 0.7},
        "findings": [],
    }


def test_after_a_burn_the_head_of_the_ledger_is_in_it() -> None:
    shown = document(council_verdict(accepted(), HEAD))
    assert shown.pop("burn_ledger_head") == {"count": 3, "sha256": "ab" * 32}
    assert shown == document(council_verdict(accepted()))


def test_without_criteria_the_breakdown_is_null() -> None:
    found = resolve(Stated(), score("criterion_scores"))
    assert document(council_verdict(found))["satisfaction_breakdown"] is None


@pytest.mark.parametrize("head", [None, HEAD])
def test_a_verdict_is_written_and_read_again_unchanged(head: BurnHead | None) -> None:
    verdict = council_verdict(accepted(), head)
    assert CouncilVerdict.model_validate_json(canonical(document(verdict))) == verdict


def test_the_record_is_closed_at_every_level() -> None:
    shown = json.loads(canonical(document(council_verdict(accepted(), HEAD))))
    for change in (
        {"target": "x"},
        {"findings": ["x"]},
        {"burn_ledger_head": {"count": 1, "sha256": "ab" * 32, "x": 1}},
        {"schema_version": 3},
        {"satisfaction_score": 7.3},
        {"satisfaction_breakdown": {"answer is Paris": 1}},
        {"verdict": "pass"},
    ):
        with pytest.raises(ValidationError):
            CouncilVerdict.model_validate_json(json.dumps({**shown, **change}))


def test_the_schema_is_closed_too() -> None:
    """A schema that is looser than the model would let an answer pass as a criterion id."""
    schema = json.loads(generate(Contract("council-verdict.v4", CouncilVerdict, reads=False)))
    validator = Draft202012Validator(schema)
    for head in (None, HEAD):
        shown = json.loads(canonical(document(council_verdict(accepted(), head))))
        assert validator.is_valid(shown)
        for change in (
            {"target": "x"},
            {"satisfaction_breakdown": {"answer is Paris": 1}},
            {"findings": ["x"]},
            {"burn_ledger_head": {"count": 1}},
            {"verdict": "pass"},
        ):
            assert not validator.is_valid({**shown, **change})


def test_i17_a_gate_that_was_asked_for_says_no() -> None:
    assert [refused_by_gate(found, None) for found in Band] == [False, False, False]
    assert [refused_by_gate(found, "fail") for found in Band] == [False, False, True]
    assert [refused_by_gate(found, "warn") for found in Band] == [False, True, True]
