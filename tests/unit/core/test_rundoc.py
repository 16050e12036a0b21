"""The structural check of run records."""

from __future__ import annotations

from decimal import Decimal

import pytest

from runner.core.rundoc import run_problem

RUN: dict[str, object] = {
    "schema_version": 1,
    "run_id": "eval-1",
    "suite": {"id": "s"},
    "started_at": "2026-01-01T00:00:00Z",
    "status": "pass",
    "verdict": "pass",
    "git": {},
    "runtime": {"name": "shell"},
    "environment": {},
    "case_results": [{"case_id": "c", "status": "pass"}],
    "aggregate_score": Decimal("0.5"),
    "dimension_scores": {"safety": 1},
}


def test_a_run_record_is_accepted_and_nulls_of_a_degraded_one_too() -> None:
    assert run_problem(RUN) is None
    degraded = {"runtime": None, "environment": None, "aggregate_score": None}
    assert run_problem({**RUN, **degraded, "dimension_scores": {"safety": None}}) is None


@pytest.mark.parametrize("name", sorted(RUN))
def test_each_required_field_is_required(name: str) -> None:
    assert run_problem({key: RUN[key] for key in RUN if key != name}) == f"{name} is missing"


@pytest.mark.parametrize(
    "name, value",
    [
        ("schema_version", True),
        ("schema_version", 2),
        ("run_id", "-x"),
        ("run_id", "x\n"),
        ("suite", {}),
        ("started_at", " "),
        ("status", "ok"),
        ("status", []),
        ("verdict", None),
        ("git", []),
        ("case_results", [{"case_id": "c"}]),
        ("case_results", {}),
        ("aggregate_score", "1"),
        ("aggregate_score", Decimal("1.1")),
        ("dimension_scores", {"safety": True}),
    ],
)
def test_a_wrong_field_is_named(name: str, value: object) -> None:
    assert (run_problem({**RUN, name: value}) or "").startswith(name)


@pytest.mark.parametrize("document", [None, [], "run", 1])
def test_only_an_object_is_a_run_record(document: object) -> None:
    assert run_problem(document)
