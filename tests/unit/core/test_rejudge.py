"""Records made again from stored outputs: the honest one comes out as it is, any other does not."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

import pytest

from runner.core.degrade import insufficient
from runner.core.rejudge import Derived, NotJudged, derive
from runner.model.leg import Degradation
from runner.model.liveproof import LiveChange, LiveStateProof
from runner.model.record import (
    CaseResult,
    FileRecord,
    RunRecord,
    Status,
    StreamRecord,
    Verdict,
)
from tests.unit.builders import PASSED, case, record, result, suite_file
from tests.unit.report import builders as report

SUITE = suite_file(
    case("says", {"type": "stdout_contains", "value": "hello"}),
    case("writes", {"type": "artifact_contains", "target": "out.txt", "value": "seven"}),
    case("hangs"),
    case("lost"),
)
BLOBS = {"out/says": b"hello there\n", "out/writes": b"the seven samurai\n"}
CLEAN = report.live(report.root())
CHANGED = report.live(
    report.root(changes=(LiveChange(path="x", kind="modified", attributes=("ctime",)),))
)


def stream(path: str | None = None) -> StreamRecord:
    """A stored output."""
    data = BLOBS[path] if path is not None else b""
    sha256 = hashlib.sha256(data).hexdigest()
    return StreamRecord(size=len(data), kept=len(data), sha256=sha256, path=path)


def rows() -> list[CaseResult]:
    """What was observed of the four cases; whatever follows from it is wrong on purpose."""
    data = BLOBS["out/writes"]
    written = FileRecord(
        path="/workspace/suites/out.txt", state="regular", size=len(data), kept=len(data),
        sha256=hashlib.sha256(data).hexdigest(), blob="out/writes",
    )  # fmt: skip
    quiet: dict[str, Any] = {"stdout": stream(), "stderr": stream(), "oom_killed": False}
    changes: dict[str, dict[str, Any]] = {
        "says": {**quiet, "stdout": stream("out/says"), "files": ()},
        "writes": {**quiet, "files": (written,)},
        "hangs": {**quiet, "files": (), "exit_code": None, "signal": 9, "timed_out": True},
        "lost": {"expectations": (), "stdout": None, "stderr": None, "files": ()},
    }
    return [
        result(SUITE, case_id, [PASSED]).model_copy(
            update={"score": 0.5, "status": Status.SKIPPED, "failure_message": "x", **change}
        )
        for case_id, change in changes.items()
    ]


def again(
    stored: RunRecord, live: LiveStateProof = CLEAN, *others: RunRecord
) -> tuple[Derived, ...]:
    """Make records of legs that ran side by side again."""
    return derive(SUITE, [(stored, *others)], live, BLOBS.__getitem__)


def honest(degraded: Degradation | None = None, live: LiveStateProof = CLEAN) -> RunRecord:
    """The record as it follows from what was observed."""
    return again(record(SUITE, rows(), degraded=degraded), live)[0].record


def test_everything_that_follows_from_the_outputs_is_derived() -> None:
    made = honest()
    by_id = {row.case_id: row for row in made.case_results}
    assert (by_id["says"].status, by_id["says"].score) == (Status.PASS, 1.0)
    assert by_id["writes"].status is Status.PASS
    assert by_id["hangs"].degraded_detail == "timeout"
    assert by_id["hangs"].score is None
    assert by_id["lost"].degraded_detail == "not_reached"
    assert made.status is Status.ERROR


@pytest.mark.parametrize("degraded", [None, insufficient("leg_timeout")])
@pytest.mark.parametrize("live", [CLEAN, CHANGED])
def test_an_honest_record_comes_out_as_it_is(
    degraded: Degradation | None, live: LiveStateProof
) -> None:
    stored = honest(degraded, live)
    assert again(stored, live)[0].record == stored


def _edited(stored: RunRecord, index: int, **fields: Any) -> RunRecord:
    edited: Sequence[CaseResult] = [
        row.model_copy(update=fields) if place == index else row
        for place, row in enumerate(stored.case_results)
    ]
    return stored.model_copy(update={"case_results": tuple(edited)})


@pytest.mark.parametrize(
    "index, fields",
    [
        (0, {"status": Status.FAIL}),
        (0, {"score": 0.0}),
        (0, {"failure_message": "no"}),
        (0, {"degraded_reason": "runtime_unavailable", "degraded_detail": "not_startable"}),
        (0, {"stdout": stream("out/writes")}),
        (0, {"start_error": "not_found"}),
        (0, {"oom_killed": True}),
        (1, {"files": ()}),
        (2, {"timed_out": False}),
        (2, {"degraded_detail": "crash"}),
        (2, {"score": 1.0, "status": Status.PASS}),
        (3, {"degraded_detail": "oom"}),
        (3, {"status": Status.PASS}),
    ],
)
def test_an_edited_record_does_not(index: int, fields: dict[str, Any]) -> None:
    stored = _edited(honest(), index, **fields)
    assert again(stored)[0].record != stored


def test_an_edited_verdict_does_not() -> None:
    stored = honest()
    (item,) = stored.case_results[0].expectations
    changed = (item.model_copy(update={"verdict": Verdict.FAILED}),)
    assert again(_edited(stored, 0, expectations=changed))[0].record != _edited(
        stored, 0, expectations=changed
    )


def test_a_leg_s_numbers_are_derived_too() -> None:
    stored = honest()
    for fields in ({"aggregate_score": 0.1}, {"dimension_scores": {"correctness": 0.1}},
                   {"status": Status.PASS}, {"verdict": "pass"}):  # fmt: skip
        edited = stored.model_copy(update=fields)
        assert again(edited)[0].record != edited


def test_what_had_to_be_taken_as_observed_is_said() -> None:
    (found,) = again(honest(insufficient("leg_timeout")))
    assert any("leg_timeout" in line for line in found.taken)
    (found,) = again(honest())
    assert any("1 cases were not reached" in line for line in found.taken)


def test_cases_that_the_suite_has_not_or_in_another_order_are_no_record_of_it() -> None:
    stored = honest()
    swapped = stored.model_copy(update={"case_results": stored.case_results[::-1]})
    with pytest.raises(NotJudged, match="in its order"):
        again(swapped)
    stranger = _edited(stored, 0, case_id="stranger")
    with pytest.raises(NotJudged, match="no case 'stranger'"):
        again(stranger)
    with pytest.raises(NotJudged, match="there is no case"):
        again(stored.model_copy(update={"case_results": ()}))
