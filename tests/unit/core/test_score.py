"""Observations and judged expectations -> case results and the numbers of a leg."""

from __future__ import annotations

import itertools
from decimal import ROUND_HALF_UP, Decimal
from fractions import Fraction
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.degrade import insufficient, runtime_unavailable
from runner.core.score import (
    Aggregate,
    aggregate,
    case_result,
    dimensions_of,
    leg_status,
    round4,
    round_delta,
    suite_warnings,
)
from runner.model.leg import Degradation, DegradedReason
from runner.model.observation import CaseObservation
from runner.model.record import CaseResult, ExpectationResult, Status, Verdict
from runner.model.suite import Scoring
from tests.unit.builders import (
    FAILED,
    PASSED,
    UNDECIDED,
    case,
    case_plan,
    execution,
    judged,
    observation,
    result,
    sha,
    stream,
    suite_file,
)

# --- rounding


@pytest.mark.parametrize(
    "value, rounded",
    [
        (0.0, 0.0),
        (0.00004, 0.0),
        (0.00005, 0.0001),
        (0.33333333, 0.3333),
        (0.5, 0.5),
        (2 / 3, 0.6667),
        (0.12345, 0.1235),
        (0.99995, 1.0),
        (-0.12345, -0.1235),
        (-0.00005, -0.0001),
        (0.49999999999999994 / 10_000, 0.0),
        (1.0 - 0.5333, 0.4667),
    ],
)
def test_numbers_have_four_decimals_and_halves_go_away_from_zero(
    value: float, rounded: float
) -> None:
    assert round_delta(value) == rounded


def test_there_is_no_negative_zero() -> None:
    assert [str(round_delta(value)) for value in (-0.0, -0.00001, -1e-320)] == ["0.0"] * 3


@pytest.mark.parametrize("value, rounded", [(-0.3, 0.0), (1.2, 1.0), (-0.00001, 0.0)])
def test_a_score_is_clamped(value: float, rounded: float) -> None:
    assert round4(value) == rounded


@given(st.floats(-1, 1))
def test_rounding_is_that_of_decimal_arithmetic_on_the_scaled_number(value: float) -> None:
    scaled = Decimal(value * 10_000).quantize(Decimal(1), ROUND_HALF_UP)
    assert round_delta(value) == float(scaled) / 10_000
    assert round_delta(-value) == -round_delta(value)
    assert round_delta(round_delta(value)) == round_delta(value)


@given(st.floats(-1, 1), st.floats(-1, 1))
def test_rounding_keeps_order(one: float, other: float) -> None:
    low, high = sorted((one, other))
    assert round_delta(low) <= round_delta(high)


# --- one case

SUITE = suite_file()
ONE = SUITE.suite.cases[0]


def judge(*verdicts: Verdict, seen: CaseObservation | None = None, **plan: Any) -> CaseResult:
    """The result of a case with these verdicts on required expectations."""
    expectations = [judged(verdict, index) for index, verdict in enumerate(verdicts)]
    return case_result(ONE, case_plan(**plan), seen or observation(), expectations)


@pytest.mark.parametrize(
    "verdicts, status, score",
    [
        ((PASSED,), Status.PASS, 1.0),
        ((FAILED,), Status.FAIL, 0.0),
        ((PASSED, FAILED, FAILED), Status.FAIL, 0.3333),
        ((PASSED, PASSED, FAILED), Status.FAIL, 0.6667),
    ],
)
def test_a_case_scores_the_share_of_its_required_expectations(
    verdicts: tuple[Verdict, ...], status: Status, score: float
) -> None:
    found = judge(*verdicts)
    assert (found.status, found.score, found.degraded_reason) == (status, score, None)


def test_optional_expectations_are_recorded_and_do_not_count() -> None:
    optional = [
        judged(PASSED),
        judged(FAILED, 1, required=False),
        judged(UNDECIDED, 2, required=False),
    ]
    found = case_result(ONE, case_plan(), observation(), optional)
    assert (found.status, found.score, found.failure_message) == (Status.PASS, 1.0, None)
    assert len(found.expectations) == 3


def test_a_case_without_a_required_expectation_is_no_evidence() -> None:
    found = case_result(ONE, case_plan(), observation(), [judged(PASSED, required=False)])
    assert (found.status, found.score) == (Status.INCONCLUSIVE, None)
    assert found.degraded_detail == "no_required_expectation"


def test_messages_of_what_did_not_pass_are_joined_and_bounded() -> None:
    assert judge(PASSED, FAILED, FAILED).failure_message == (
        "expectation 1 failed; expectation 2 failed"
    )
    assert judge(PASSED).failure_message is None
    long = [judged(FAILED, index) for index in range(300)]
    message = case_result(ONE, case_plan(), observation(), long).failure_message
    assert message is not None
    assert len(message) == 2000


# What was seen, and what it makes of the case (design, table of degraded reasons).
DEGRADED: tuple[tuple[str, dict[str, Any], DegradedReason, str, Status], ...] = (
    (
        "timeout",
        {"exit_code": None, "signal": 9, "timed_out": True},
        DegradedReason.INSUFFICIENT_DECISION_EVIDENCE,
        "timeout",
        Status.ERROR,
    ),
    (
        "killed for memory",
        {"exit_code": None, "signal": 9, "oom_killed": True, "timed_out": True},
        DegradedReason.INSUFFICIENT_DECISION_EVIDENCE,
        "oom",
        Status.ERROR,
    ),
    (
        "killed by a signal",
        {"exit_code": None, "signal": 11},
        DegradedReason.INSUFFICIENT_DECISION_EVIDENCE,
        "crash",
        Status.ERROR,
    ),
    (
        "an unknown end",
        {"exit_code": None},
        DegradedReason.INSUFFICIENT_DECISION_EVIDENCE,
        "crash",
        Status.ERROR,
    ),
    (
        "not started",
        {"exit_code": None, "start_error": "not_found", "timed_out": True},
        DegradedReason.RUNTIME_UNAVAILABLE,
        "not_startable",
        Status.ERROR,
    ),
)


@pytest.mark.parametrize(
    "facts, reason, detail, status",
    [line[1:] for line in DEGRADED],
    ids=[line[0] for line in DEGRADED],
)
def test_a_case_that_did_not_end_by_itself_is_degraded_and_has_no_score(
    facts: dict[str, Any], reason: DegradedReason, detail: str, status: Status
) -> None:
    found = judge(PASSED, seen=observation(execution=execution(**facts)))
    assert (found.degraded_reason, found.degraded_detail) == (reason, detail)
    assert (found.status, found.score) == (status, None)
    assert found.timed_out == facts.get("timed_out", False)


def test_an_unreadable_memory_counter_alone_degrades_nothing() -> None:
    seen = observation(execution=execution(oom_killed=None))
    assert judge(PASSED, seen=seen).degraded_reason is None


@pytest.mark.parametrize(
    "facts, detail",
    [
        ({"stdout": stream(20 << 20, 16 << 20)}, "output_truncated"),
        ({"stderr": stream(20 << 20, 16 << 20)}, "output_truncated"),
        ({}, "undecided"),
    ],
)
def test_an_expectation_that_cannot_be_decided_leaves_the_case_undecided(
    facts: dict[str, Any], detail: str
) -> None:
    for verdicts in ((UNDECIDED,), (PASSED, UNDECIDED), (FAILED, UNDECIDED)):
        found = judge(*verdicts, seen=observation(execution=execution(**facts)))
        assert (found.status, found.score) == (Status.INCONCLUSIVE, None)
        assert (found.degraded_reason, found.degraded_detail) == (
            DegradedReason.INSUFFICIENT_DECISION_EVIDENCE,
            detail,
        )


def test_truncated_output_does_not_matter_when_everything_could_be_decided() -> None:
    seen = observation(execution=execution(stdout=stream(20 << 20, 16 << 20)))
    assert judge(PASSED, FAILED, seen=seen).score == 0.5


def test_a_static_case_is_judged_without_an_execution() -> None:
    found = judge(PASSED, command=None, seen=observation(execution=None))
    assert (found.status, found.exit_code, found.stdout) == (Status.PASS, None, None)
    found = judge(UNDECIDED, command=None, seen=observation(execution=None))
    assert found.degraded_detail == "undecided"


def test_a_command_that_was_never_run_is_not_judged() -> None:
    found = judge(PASSED, seen=observation(execution=None))
    assert (found.status, found.degraded_detail) == (Status.INCONCLUSIVE, "not_reached")


@pytest.mark.parametrize(
    "planned, detail, status",
    [
        (None, "not_reached", Status.INCONCLUSIVE),
        (insufficient("leg_timeout"), "leg_timeout", Status.INCONCLUSIVE),
        (runtime_unavailable("live_runtime"), "live_runtime", Status.SKIPPED),
        (runtime_unavailable("engine_lost"), "engine_lost", Status.ERROR),
    ],
)
def test_a_case_that_was_never_reached_says_why(
    planned: Degradation | None, detail: str, status: Status
) -> None:
    found = case_result(ONE, case_plan(degraded=planned), None, ())
    assert (found.status, found.degraded_detail, found.score) == (status, detail, None)
    assert (found.expectations, found.stdout, found.usage, found.wrote_workspace) == (
        (),
        None,
        None,
        None,
    )


@pytest.mark.parametrize("of_plan", [True, False])
def test_what_was_known_of_the_case_beforehand_or_seen_of_it_degrades_it(of_plan: bool) -> None:
    why = runtime_unavailable("not_startable")
    seen = observation(degraded=None if of_plan else why)
    found = judge(PASSED, seen=seen, degraded=why if of_plan else None)
    assert (found.degraded_reason, found.score) == (DegradedReason.RUNTIME_UNAVAILABLE, None)


def test_what_was_observed_is_recorded_by_reference() -> None:
    found = judge(PASSED)
    assert found.stdout is not None
    assert (found.stdout.size, found.stdout.sha256) == (3, sha("5"))
    assert [(file.path, file.state) for file in found.files] == [("/workspace/out.json", "absent")]
    assert (found.usage, found.wrote_workspace) == ({"tokens": 100, "tool_calls": 2}, False)


@given(st.lists(st.sampled_from(Verdict), min_size=1, max_size=12))
def test_a_score_and_a_degradation_exclude_each_other(verdicts: list[Verdict]) -> None:
    found = judge(*verdicts)
    assert (found.score is None) == (found.degraded_reason is not None)
    assert (found.status in {Status.PASS, Status.FAIL}) == (found.score is not None)
    if UNDECIDED not in verdicts:
        exact = Fraction(verdicts.count(PASSED), len(verdicts))
        assert found.score is not None
        assert abs(Fraction(found.score) - exact) <= Fraction(1, 20_000) + Fraction(1, 10**12)


# --- aggregates


def scoring(**weights: float) -> Scoring:
    return suite_file(weights=weights).suite.scoring


TWO = scoring(correctness=2, safety=3)
Lost = Literal["unknown", "zero"]


def test_dimensions_are_means_and_the_aggregate_is_their_weighted_mean() -> None:
    scores = [(["correctness"], 0.3333), (["correctness"], 1.0), (["safety"], 1.0)]
    found = aggregate(scores, TWO, lost="unknown")
    assert found == Aggregate(0.8667, {"correctness": 0.6667, "safety": 1.0})


def test_a_case_that_names_no_dimension_counts_for_all() -> None:
    found = aggregate([([], 0.5)], TWO, lost="unknown")
    assert found == Aggregate(0.5, {"correctness": 0.5, "safety": 0.5})


def test_a_case_that_names_a_dimension_twice_counts_once() -> None:
    assert dimensions_of(["safety", "safety"], TWO) == ("safety",)
    found = aggregate([(["safety", "safety"], 1.0), (["safety"], 0.0)], TWO, lost="zero")
    assert found.dimensions["safety"] == 0.5


def test_a_dimension_that_the_suite_lists_twice_counts_each_case_once_and_weighs_twice() -> None:
    document = suite_file().suite.scoring.model_dump()
    document["dimensions"] = [
        {"name": "correctness", "weight": 1.0},
        {"name": "safety", "weight": 1.0},
        {"name": "correctness", "weight": 1.0},
    ]
    twice = Scoring.model_validate(document)
    scores = [([], 1.0), (["correctness"], 0.0), (["safety"], 1.0)]
    assert aggregate(scores, twice, lost="zero") == Aggregate(
        0.6667, {"correctness": 0.5, "safety": 1.0}
    )


def test_a_dimension_that_the_suite_does_not_have_is_passed_over() -> None:
    found = aggregate([(["efficiency"], 0.0), (["correctness", "safety"], 1.0)], TWO, lost="zero")
    assert found.score == 1.0
    assert "efficiency" not in found.dimensions


@pytest.mark.parametrize("lost", ["unknown", "zero"])
def test_a_dimension_that_no_case_names_counts_zero(lost: Lost) -> None:
    found = aggregate([(["correctness"], 1.0)], TWO, lost=lost)
    assert found == Aggregate(0.4, {"correctness": 1.0, "safety": 0.0})


def test_a_dimension_whose_cases_are_all_lost_is_unknown_or_zero() -> None:
    scores = [(["correctness"], 1.0), (["safety"], None)]
    unknown = aggregate(scores, TWO, lost="unknown")
    assert unknown == Aggregate(None, {"correctness": 1.0, "safety": None})
    assert aggregate(scores, TWO, lost="zero") == Aggregate(
        0.4, {"correctness": 1.0, "safety": 0.0}
    )


def test_a_lost_case_beside_a_scored_one_is_left_out_of_the_mean() -> None:
    found = aggregate([([], 0.5), ([], None)], TWO, lost="unknown")
    assert found.score == 0.5


@pytest.mark.parametrize("lost", ["unknown", "zero"])
@pytest.mark.parametrize(
    "scores", [[], [([], None)], [(["safety"], None), (["correctness"], None)]]
)
def test_without_any_score_there_is_no_aggregate(scores: Any, lost: Lost) -> None:
    assert aggregate(scores, TWO, lost=lost).score is None


SCORES = st.lists(
    st.tuples(
        st.lists(st.sampled_from(["correctness", "safety", "efficiency"]), max_size=3),
        st.none() | st.sampled_from([0.0, 0.25, 0.3333, 0.5, 1.0]),
    ),
    max_size=8,
)


@given(SCORES, st.floats(0.1, 9), st.floats(0.1, 9))
def test_an_aggregate_is_a_score_and_agrees_with_exact_arithmetic(
    scores: list[tuple[list[str], float | None]], one: float, other: float
) -> None:
    weights = {"correctness": one, "safety": other}
    found = aggregate(scores, scoring(**weights), lost="zero")
    if all(score is None for _, score in scores):
        assert found.score is None
        return
    total = Fraction(0)
    for name, weight in weights.items():
        known = [
            Fraction(score)
            for names, score in scores
            if score is not None and (not names or name in names)
        ]
        total += Fraction(weight) * (sum(known, Fraction(0)) / len(known) if known else 0)
    assert found.score is not None
    exact = total / (Fraction(one) + Fraction(other))
    assert abs(Fraction(found.score) - exact) <= Fraction(1, 9_999)


@given(SCORES, st.randoms())
def test_the_order_of_cases_does_not_matter_beyond_rounding(
    scores: list[tuple[list[str], float | None]], random: Any
) -> None:
    shuffled = list(scores)
    random.shuffle(shuffled)
    one, other = (aggregate(s, TWO, lost="unknown").score for s in (scores, shuffled))
    assert (one is None) == (other is None)
    if one is not None and other is not None:
        assert abs(one - other) <= 0.0001


# --- a leg


def status(*cases: CaseResult, score: float | None = 1.0, **dimensions: float | None) -> Status:
    return leg_status(SUITE.suite, cases, Aggregate(score, dimensions or {"correctness": score}))


PASS = result(SUITE, "one", [PASSED])
FAIL = result(SUITE, "one", [FAILED])
ERROR = result(SUITE, "one", [PASSED], insufficient("timeout"))
SKIPPED = result(SUITE, "one", [PASSED], runtime_unavailable("live_runtime"))
UNKNOWN = result(SUITE, "one", [UNDECIDED])


@pytest.mark.parametrize(
    "cases, expected",
    [
        ((PASS, ERROR, SKIPPED, UNKNOWN), Status.ERROR),
        ((SKIPPED, SKIPPED), Status.SKIPPED),
        ((PASS, SKIPPED), Status.INCONCLUSIVE),
        ((FAIL, UNKNOWN), Status.INCONCLUSIVE),
        ((PASS, PASS), Status.PASS),
    ],
)
def test_an_error_outranks_what_is_unknown_and_unknown_outranks_a_pass(
    cases: tuple[CaseResult, ...], expected: Status
) -> None:
    assert status(*cases) is expected


def test_a_leg_without_a_score_or_without_cases_is_inconclusive() -> None:
    assert status(PASS, score=None) is Status.INCONCLUSIVE
    assert status(score=None) is Status.INCONCLUSIVE


def test_a_critical_case_that_fails_fails_the_leg_whatever_the_score() -> None:
    critical = FAIL.model_copy(update={"critical": True})
    assert status(PASS, critical) is Status.FAIL
    assert status(PASS, FAIL) is Status.PASS


def test_thresholds_are_reached_by_equality() -> None:
    document = suite_file().suite.scoring.model_dump()
    document |= {"aggregate_threshold": 0.8}
    document["dimensions"][0]["threshold"] = 0.7
    suite = suite_file().suite.model_copy(update={"scoring": Scoring.model_validate(document)})

    def with_scores(score: float, dimension: float | None) -> Status:
        return leg_status(suite, [PASS], Aggregate(score, {"correctness": dimension}))

    assert with_scores(0.8, 0.7) is Status.PASS
    assert with_scores(0.7999, 0.7) is Status.FAIL
    assert with_scores(0.8, 0.6999) is Status.FAIL
    assert with_scores(0.8, None) is Status.FAIL


@pytest.mark.parametrize(
    "cases",
    list(itertools.combinations_with_replacement([PASS, FAIL, ERROR, SKIPPED, UNKNOWN], 3)),
)
def test_a_leg_passes_only_when_every_case_was_decided(cases: tuple[CaseResult, ...]) -> None:
    scores = [(item.dimensions, item.score) for item in cases]
    found = leg_status(SUITE.suite, cases, aggregate(scores, SUITE.suite.scoring, lost="unknown"))
    assert (found is Status.PASS) == all(item is PASS for item in cases)
    if any(item not in (PASS, FAIL) for item in cases):
        assert found not in {Status.PASS, Status.FAIL}


# --- warnings


def test_a_plain_suite_is_not_warned_of() -> None:
    assert suite_warnings(SUITE.suite) == ()
    quiet = suite_file(environment={"network": "forbidden", "max_attempts": 1})
    assert suite_warnings(quiet.suite) == ()


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"environment": {"max_attempts": 3}}, "max_attempts has no effect"),
        ({"environment": {"network": "allowed"}}, "a leg never has a network"),
        (
            {
                "scoring": {
                    "critical_threshold": 0.5,
                    "dimensions": [{"name": "correctness", "weight": 1}],
                }
            },
            "critical_threshold has no effect",
        ),
        (
            {"scoring": {"dimensions": [{"name": "safety", "weight": 1, "critical": True}]}},
            "critical has no effect beyond",
        ),
    ],
)
def test_what_has_no_effect_is_warned_of(fields: dict[str, Any], words: str) -> None:
    (warning,) = suite_warnings(suite_file(**fields).suite)
    assert words in warning


def test_a_dimension_that_no_case_names_is_warned_of() -> None:
    suite = suite_file(case(dimensions=["safety"]), weights={"safety": 1, "correctness": 1})
    (warning,) = suite_warnings(suite.suite)
    assert warning.startswith("dimension correctness: no case names it")


def test_a_runtime_that_the_suite_does_not_allow_is_warned_of() -> None:
    suite = suite_file(
        case("a", runtime="claude"),
        case("b", runtime="shell"),
        case("c"),
        allowed_runtimes=["shell"],
    )
    assert suite_warnings(suite.suite) == ("case a: runtime claude is not in allowed_runtimes",)


def test_judged_expectations_are_taken_over_unchanged() -> None:
    expectations: list[ExpectationResult] = [judged(PASSED), judged(FAILED, 1)]
    found = case_result(ONE, case_plan(), observation(), expectations)
    assert found.expectations == tuple(expectations)
