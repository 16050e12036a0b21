"""Leg outcome -> run record."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.core.degrade import hooks_disabled, insufficient, runtime_unavailable, status_of
from runner.core.record import run_record
from runner.model.leg import Degradation, DegradedReason
from runner.model.record import CaseResult, RunRecord, Status, Verdict
from tests.unit import builders as b
from tests.unit.builders import FAILED, PASSED, UNDECIDED, case, record, result, suite_file

SUITE = suite_file(case("a"), case("b"))
MISSING = Degradation(reason=DegradedReason.CONTEXT_ROOT_UNAVAILABLE, detail="missing")


def results(*verdicts: Verdict | Degradation) -> list[CaseResult]:
    """Results of the suite's cases: judged by a verdict, or lost."""
    return [
        result(SUITE, name, [PASSED], item)
        if isinstance(item, Degradation)
        else result(SUITE, name, [item])
        for name, item in zip("ab", verdicts, strict=True)
    ]


def test_a_record_states_the_leg_its_root_its_suite_and_its_circumstances() -> None:
    found = record(SUITE, results(PASSED, PASSED))
    assert (found.leg, found.variant, found.run_id) == ("context_on", "context_on", "r1-context_on")
    assert (found.context_root_label, found.context_root_sha256) == ("context-on", b.sha("d"))
    assert (found.suite.id, found.suite.sha256) == ("demo", SUITE.sha256)
    assert found.runtime == b.circumstances().runtime
    assert found.timings == b.circumstances().timings
    assert (found.inside, found.inside_end) == (b.inside_report(), b.inside_end())


def test_a_leg_without_a_root_has_no_label_and_no_digest() -> None:
    plan = b.leg_plan(SUITE, "none").model_copy(update={"root": None})
    found = run_record(
        SUITE,
        plan,
        results(PASSED, PASSED),
        degraded=None,
        inside=None,
        inside_end=None,
        circumstances=b.circumstances(),
    )
    assert (found.context_root_label, found.context_root_sha256) == (None, None)


@pytest.mark.parametrize(
    "outcomes, status, verdict, score",
    [
        ((PASSED, PASSED), Status.PASS, "pass", 1.0),
        ((PASSED, FAILED), Status.FAIL, "fail", 0.5),
        ((PASSED, UNDECIDED), Status.INCONCLUSIVE, "inconclusive", 1.0),
        ((PASSED, insufficient("timeout")), Status.ERROR, "inconclusive", 1.0),
        (
            (runtime_unavailable("live_runtime"), runtime_unavailable("live_runtime")),
            Status.SKIPPED,
            "inconclusive",
            None,
        ),
    ],
)
def test_status_verdict_and_aggregate_follow_from_the_cases(
    outcomes: Sequence[Verdict | Degradation], status: Status, verdict: str, score: float | None
) -> None:
    found = record(SUITE, results(*outcomes))
    assert (found.status, found.verdict, found.aggregate_score) == (status, verdict, score)
    assert found.degradation is None


def test_cases_that_were_left_out_make_their_dimension_unknown_not_zero() -> None:
    suite = suite_file(
        case("a", dimensions=["correctness"]),
        case("b", dimensions=["safety"]),
        weights={"correctness": 2, "safety": 3},
    )
    one = record(suite, [result(suite, "a", [PASSED])])
    assert one.dimension_scores == {"correctness": 1.0, "safety": None}
    assert (one.aggregate_score, one.status) == (None, Status.INCONCLUSIVE)
    both = record(suite, [result(suite, "a", [PASSED]), result(suite, "b", [FAILED])])
    assert (both.aggregate_score, both.status) == (0.4, Status.FAIL)


@pytest.mark.parametrize(
    "degraded",
    [
        MISSING,
        hooks_disabled("inherited"),
        insufficient("leg_timeout"),
        runtime_unavailable("engine_lost"),
        Degradation(reason=DegradedReason.CONTEXT_VARIANT_UNSUPPORTED, detail="curated_only"),
    ],
)
def test_a_leg_that_ran_nothing_has_the_status_of_its_degradation(degraded: Degradation) -> None:
    found = record(SUITE, results(degraded, degraded), degraded=degraded)
    assert (found.status, found.verdict) == (status_of(degraded), "inconclusive")
    assert (found.aggregate_score, found.degradation) == (None, degraded)


def test_a_degraded_leg_that_ran_says_what_happened_and_gives_no_verdict() -> None:
    found = record(SUITE, results(PASSED, PASSED), degraded=hooks_disabled("case_env"))
    assert (found.status, found.aggregate_score) == (Status.PASS, 1.0)
    assert (found.verdict, found.degradation) == ("inconclusive", hooks_disabled("case_env"))


OUTCOMES = st.sampled_from(
    [PASSED, FAILED, UNDECIDED, insufficient("timeout"), runtime_unavailable("live_runtime")]
)
LEGS = st.none() | st.sampled_from(
    [MISSING, hooks_disabled("inherited"), insufficient("leg_timeout")]
)


@given(st.tuples(OUTCOMES, OUTCOMES), LEGS)
def test_every_record_keeps_its_own_rules_and_a_degraded_leg_has_no_clean_row(
    outcomes: tuple[Verdict | Degradation, ...], degraded: Degradation | None
) -> None:
    found = record(SUITE, results(*outcomes), degraded=degraded)
    # Building by copy does not check; reading does.
    assert RunRecord.model_validate(found.model_dump()) == found
    if degraded is not None:
        assert found.verdict == "inconclusive"
        assert all(row.degraded_reason is not None for row in found.case_results)
    assert (found.verdict == "pass") == (degraded is None and set(outcomes) == {PASSED})


def test_a_record_of_a_degraded_leg_with_a_clean_row_cannot_be_read() -> None:
    written = record(SUITE, results(PASSED, PASSED), degraded=MISSING).model_dump()
    clean = record(SUITE, results(PASSED, PASSED)).model_dump()["case_results"]
    with pytest.raises(ValidationError, match="every case of a degraded leg is degraded"):
        RunRecord.model_validate(written | {"case_results": clean})


@pytest.mark.parametrize("change", [{"degraded_detail": None}, {"verdict": "pass"}])
def test_a_degraded_leg_with_a_verdict_or_without_a_detail_cannot_be_read(
    change: dict[str, object],
) -> None:
    written = record(SUITE, results(PASSED, PASSED), degraded=MISSING).model_dump()
    with pytest.raises(ValidationError, match="has a detail and no verdict"):
        RunRecord.model_validate(written | change)
