"""Two run records -> paired rows, the delta and its bounds."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from runner.core.degrade import degrade_record, hooks_disabled, insufficient, runtime_unavailable
from runner.core.pair import leg_summary, paired_cases, pairing, sides
from runner.model.leg import Degradation, DegradedReason
from runner.model.observation import CaseObservation
from runner.model.record import CaseResult, RunRecord, Status, Verdict
from runner.model.scorecard import (
    CheckedFile,
    CommandOutput,
    ContextScorecard,
    EvaluatorFact,
    PairedCase,
)
from runner.model.suite import SuiteFile
from tests.unit import builders as b
from tests.unit.builders import FAILED, PASSED, UNDECIDED, case, record, result, suite_file

LIVE = Degradation(reason=DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE, detail="writer_unknown")


def excerpt(leg: str, case_id: str, stream: str) -> str:
    return f"{leg}/{case_id}/{stream}"


Outcome = Verdict | Degradation


@dataclass(frozen=True)
class Two:
    """Two legs of a suite with the outcomes of each case, off before on."""

    suite: SuiteFile
    off: RunRecord
    on: RunRecord

    @property
    def rows(self) -> tuple[PairedCase, ...]:
        return paired_cases(self.off, self.on, excerpt=excerpt)

    @property
    def delta(self) -> float | None:
        return pairing(self.off, self.on, self.suite.suite.scoring)[1]

    @property
    def bounds(self) -> tuple[float | None, float | None]:
        block, _ = pairing(self.off, self.on, self.suite.suite.scoring)
        return block.delta_lower_bound, block.delta_upper_bound

    def swapped(self) -> Two:
        return Two(self.suite, self.on, self.off)


def judge(suite: SuiteFile, case_id: str, outcome: Sequence[Verdict] | Outcome) -> CaseResult:
    if isinstance(outcome, Degradation):
        return result(suite, case_id, [PASSED], outcome)
    return result(suite, case_id, [outcome] if isinstance(outcome, Verdict) else outcome)


WEIGHTS = {"correctness": 2.0, "safety": 3.0}


def two(
    *pairs: tuple[Any, Any],
    dimensions: Sequence[Sequence[str]] = (),
    weights: Mapping[str, float] = WEIGHTS,
) -> Two:
    """Two legs; each pair says what came of a case in the off and in the on leg."""
    names = [f"c{index}" for index in range(len(pairs))]
    cases = [
        case(name, dimensions=list(dimensions[index]) if dimensions else [])
        for index, name in enumerate(names)
    ]
    suite = suite_file(*cases, weights=weights)
    off, on = (
        record(
            suite,
            [judge(suite, name, pair[leg]) for name, pair in zip(names, pairs, strict=True)],
            variant,
        )
        for leg, variant in enumerate(("context_off", "context_on"))
    )
    return Two(suite, off, on)


# --- rows


@pytest.mark.parametrize(
    "off, on, score_delta, status_delta",
    [
        (FAILED, PASSED, 1.0, 1),
        (PASSED, FAILED, -1.0, -1),
        (PASSED, PASSED, 0.0, 0),
        (FAILED, FAILED, 0.0, 0),
        ([FAILED, FAILED, PASSED], [PASSED, FAILED, PASSED], 0.3334, 0),
        ([PASSED, FAILED, FAILED], [PASSED, PASSED, PASSED], 0.6667, 1),
    ],
)
def test_a_valid_row_says_on_minus_off(
    off: Any, on: Any, score_delta: float, status_delta: int
) -> None:
    (row,) = two((off, on)).rows
    assert (row.score_delta, row.status_delta, row.degraded_reason) == (
        score_delta,
        status_delta,
        None,
    )


def test_the_known_numbers_of_the_wave_0_suite() -> None:
    legs = two(
        ([PASSED, FAILED, FAILED], [PASSED, PASSED, PASSED]),
        (PASSED, PASSED),
        dimensions=[["correctness"], ["safety"]],
        weights={"correctness": 0.7, "safety": 0.3},
    )
    block, delta = pairing(legs.off, legs.on, legs.suite.suite.scoring)
    assert (block.context_off_aggregate, block.context_on_aggregate) == (0.5333, 1.0)
    assert delta == 0.4667
    assert [row.status_delta for row in legs.rows] == [1, 0]


def test_harm_is_valid_evidence_and_a_negative_delta() -> None:
    legs = two((PASSED, FAILED))
    assert legs.delta == -1.0
    assert legs.rows[0].degraded_reason is None


LOST: tuple[Outcome, ...] = (
    UNDECIDED,
    insufficient("timeout"),
    insufficient("oom"),
    runtime_unavailable("not_startable"),
    runtime_unavailable("live_runtime"),
    hooks_disabled("case_env"),
)


@pytest.mark.parametrize("lost", LOST)
@pytest.mark.parametrize("clean", [PASSED, FAILED])
@pytest.mark.parametrize("swap", [False, True])
def test_a_case_lost_in_one_leg_is_a_degraded_row_without_deltas(
    lost: Outcome, clean: Verdict, swap: bool
) -> None:
    legs = two((clean, lost)).swapped() if swap else two((clean, lost))
    (row,) = legs.rows
    assert row.degraded_reason is not None
    assert (row.score_delta, row.status_delta) == (None, None)
    assert (row.token_delta, row.tool_delta) == (None, None)
    assert (row.ignored_context_evidence, row.artifact_attribution) == ((), ("none",))
    assert legs.delta is None


def test_of_two_reasons_the_worse_one_is_on_the_row() -> None:
    (row,) = two((insufficient("timeout"), runtime_unavailable("not_startable"))).rows
    assert row.degraded_reason is DegradedReason.RUNTIME_UNAVAILABLE
    assert row.context_off.degraded_detail == "timeout"
    assert row.context_on.degraded_detail == "not_startable"


def test_a_side_that_is_neither_pass_nor_fail_is_unfinished() -> None:
    legs = two((PASSED, PASSED))
    odd = legs.on.case_results[0].model_copy(update={"status": Status.INCONCLUSIVE})
    on = legs.on.model_copy(update={"case_results": (odd,)})
    (row,) = Two(legs.suite, legs.off, on).rows
    assert row.degraded_detail == "unfinished"
    unscored = legs.on.case_results[0].model_copy(update={"score": None})
    on = legs.on.model_copy(update={"case_results": (unscored,)})
    assert Two(legs.suite, legs.off, on).delta is None


def test_a_reason_without_a_detail_degrades_all_the_same() -> None:
    legs = two((FAILED, PASSED))
    odd = legs.on.case_results[0].model_copy(
        update={"degraded_reason": DegradedReason.RUNTIME_UNAVAILABLE}
    )
    broken = Two(legs.suite, legs.off, legs.on.model_copy(update={"case_results": (odd,)}))
    (row,) = broken.rows
    assert (row.degraded_reason, row.degraded_detail) == (
        DegradedReason.RUNTIME_UNAVAILABLE,
        "unspecified",
    )
    assert broken.delta is None


def test_each_side_of_a_row_names_its_leg_root_run_and_status() -> None:
    (row,) = two((FAILED, PASSED)).rows
    assert (row.context_off.variant, row.context_on.variant) == ("context_off", "context_on")
    assert row.context_on.run_id == "r1-context_on"
    assert (row.context_off.status, row.context_on.status) == (Status.FAIL, Status.PASS)
    assert row.context_off.context_root_label == "context-on"


def test_a_leg_without_a_root_has_an_empty_label() -> None:
    legs = two((PASSED, PASSED))
    off = legs.off.model_copy(update={"context_root_label": None})
    (row,) = paired_cases(off, legs.on, excerpt=excerpt)
    assert row.context_off.context_root_label == ""
    assert leg_summary(off, "context_off", 0).context_root_label == ""


def test_rows_come_in_the_order_of_the_off_leg_whatever_the_order_of_the_other() -> None:
    legs = two((PASSED, FAILED), (FAILED, FAILED), (PASSED, PASSED))
    on = legs.on.model_copy(update={"case_results": legs.on.case_results[::-1]})
    assert Two(legs.suite, legs.off, on).rows == legs.rows


@pytest.mark.parametrize("keep", [0, 1])
def test_records_that_do_not_hold_the_same_cases_are_not_of_one_run(keep: int) -> None:
    legs = two((PASSED, PASSED), (PASSED, PASSED))
    fewer = legs.on.model_copy(update={"case_results": legs.on.case_results[:keep]})
    for off, on in ((legs.off, fewer), (fewer, legs.off)):
        with pytest.raises(ValueError, match="do not hold the same cases"):
            sides(off, on)


# --- a whole leg


@pytest.mark.parametrize(
    "why",
    [
        hooks_disabled("inherited"),
        LIVE,
        insufficient("leg_timeout"),
        Degradation(reason=DegradedReason.CONTEXT_ROOT_UNAVAILABLE, detail="missing"),
        Degradation(reason=DegradedReason.CONTEXT_VARIANT_UNSUPPORTED, detail="x"),
        runtime_unavailable("engine_lost"),
    ],
)
@pytest.mark.parametrize("leg", ["off", "on", "both"])
def test_a_degraded_leg_leaves_no_valid_pair_and_no_delta(why: Degradation, leg: str) -> None:
    # Once a leg whose hooks were off had clean rows, and produced a win.
    legs = two((FAILED, PASSED), (PASSED, PASSED), (FAILED, FAILED))
    off = degrade_record(legs.off, why) if leg != "on" else legs.off
    on = degrade_record(legs.on, why) if leg != "off" else legs.on
    lost = Two(legs.suite, off, on)
    assert [row.degraded_reason for row in lost.rows] == [why.reason] * 3
    assert lost.delta is None
    block, _ = pairing(off, on, lost.suite.suite.scoring)
    assert (block.valid_pairs, block.degraded_pairs) == (0, 3)
    assert (block.context_off_aggregate, block.context_on_aggregate) == (None, None)
    if leg == "both":
        assert lost.bounds == (None, None)


def test_a_leg_summary_is_the_contracts_block() -> None:
    legs = two((FAILED, PASSED), (PASSED, insufficient("timeout")))
    found = leg_summary(legs.on, "context_on", 7)
    assert (found.variant, found.run_id, found.status) == (
        "context_on",
        "r1-context_on",
        Status.ERROR,
    )
    assert (found.cases_total, found.cases_degraded, found.context_root_entries) == (2, 1, 7)
    assert (found.aggregate_score, found.degraded_reason) == (1.0, None)


# --- evidence of a row


def facts(row: PairedCase) -> list[EvaluatorFact]:
    return [item for item in row.decision_evidence if isinstance(item, EvaluatorFact)]


def seen(case_id: str, digit: str) -> CaseObservation:
    """A case whose standard output has a digest of its own."""
    return b.observation(case_id, execution=b.execution(stdout=b.stream(9, digit=digit)))


def legs_resting_on(
    rests_on: str | None, *, off: CaseObservation | None = None, on: CaseObservation | None = None
) -> PairedCase:
    """A row whose only expectation changed and rests on something."""
    suite = suite_file(case("one"))
    records = []
    for variant, verdict, what in (("context_off", FAILED, off), ("context_on", PASSED, on)):
        found = result(suite, "one", [verdict], seen=what or seen("one", "5"))
        judged = b.judged(verdict, rests_on=rests_on)
        records.append(
            record(suite, [found.model_copy(update={"expectations": (judged,)})], variant)
        )
    (row,) = paired_cases(records[0], records[1], excerpt=excerpt)
    return row


def test_a_changed_row_says_which_expectation_went_from_what_to_what() -> None:
    (row,) = two(([PASSED, FAILED], [PASSED, PASSED])).rows
    assert [(fact.expectation, fact.context_off, fact.context_on) for fact in facts(row)] == [
        (0, PASSED, PASSED),
        (1, FAILED, PASSED),
    ]
    assert [fact.changed for fact in facts(row)] == [False, True]
    assert row.artifact_attribution == ("decision_output",)


def test_a_change_of_an_optional_expectation_is_a_fact_and_no_change() -> None:
    suite = suite_file(case("one"))
    records = []
    for variant, verdict in (("context_off", FAILED), ("context_on", PASSED)):
        found = result(suite, "one", [PASSED])
        optional = (b.judged(PASSED), b.judged(verdict, 1, required=False))
        records.append(
            record(suite, [found.model_copy(update={"expectations": optional})], variant)
        )
    (row,) = paired_cases(records[0], records[1], excerpt=excerpt)
    assert [fact.changed for fact in facts(row)] == [False, False]
    assert row.artifact_attribution == ("none",)


def test_an_expectation_that_one_leg_never_judged_is_no_fact() -> None:
    (row,) = two(([PASSED, PASSED], [PASSED])).rows
    assert [fact.expectation for fact in facts(row)] == [0]


@pytest.mark.parametrize("stream, size", [("stdout", 9), ("stderr", 0)])
def test_the_output_that_a_changed_fact_rests_on_is_evidence_in_both_legs(
    stream: str, size: int
) -> None:
    row = legs_resting_on(stream, on=seen("one", "7"))
    outputs = [item for item in row.decision_evidence if isinstance(item, CommandOutput)]
    assert [(item.leg, item.excerpt) for item in outputs] == [
        ("context_off", f"context_off/one/{stream}"),
        ("context_on", f"context_on/one/{stream}"),
    ]
    assert {item.size for item in outputs} == {size}
    if stream == "stdout":
        assert [item.sha256 for item in outputs] == [b.sha("5"), b.sha("7")]


def test_an_exit_code_is_evidence_in_words_with_their_digest() -> None:
    row = legs_resting_on("exit_code", off=b.observation(execution=b.execution(exit_code=3)))
    outputs = [item for item in row.decision_evidence if isinstance(item, CommandOutput)]
    assert [item.excerpt for item in outputs] == ["exit 3", "exit 0"]
    assert outputs[0].sha256 == hashlib.sha256(b"exit 3").hexdigest()


def test_a_file_that_a_changed_fact_rests_on_is_evidence_in_both_legs() -> None:
    row = legs_resting_on("/workspace/out.json", off=seen("one", "5"))
    files = [item for item in row.decision_evidence if isinstance(item, CheckedFile)]
    assert [(item.leg, item.path, item.state) for item in files] == [
        ("context_off", "/workspace/out.json", "absent"),
        ("context_on", "/workspace/out.json", "absent"),
    ]


@pytest.mark.parametrize("rests_on", ["/workspace/never-looked-at", None])
def test_where_what_a_fact_rests_on_is_withheld_all_outputs_stand_for_it(
    rests_on: str | None,
) -> None:
    row = legs_resting_on(rests_on)
    kinds = [item.kind for item in row.decision_evidence]
    assert kinds == ["evaluator_fact", *2 * ["command_output", "command_output", "checked_file"]]
    assert row.status_delta == 1


def static(
    off: Verdict, on: Verdict, rests_on: str | None = "stdout", **fields: object
) -> PairedCase:
    """A row of a case that runs nothing."""
    suite = suite_file(case("one", kind="artifact_check"))
    records = []
    for variant, verdict in (("context_off", off), ("context_on", on)):
        found = result(suite, "one", [verdict])
        judged = b.judged(verdict, rests_on=rests_on)
        records.append(
            record(suite, [found.model_copy(update={"expectations": (judged,), **fields})], variant)
        )
    (row,) = paired_cases(records[0], records[1], excerpt=excerpt)
    return row


@pytest.mark.parametrize("stream", ["stdout", "stderr"])
def test_a_change_that_rests_on_nothing_that_was_kept_is_not_counted(stream: str) -> None:
    row = static(FAILED, PASSED, stream, files=())
    assert [item.kind for item in row.decision_evidence] == ["evaluator_fact"]
    assert (row.status_delta, row.degraded_detail) == (None, "no_decision_evidence")


def test_a_static_case_that_stays_the_same_says_nothing_of_outputs() -> None:
    row = static(PASSED, PASSED)
    assert [item.kind for item in row.ignored_context_evidence] == ["same_outcome"]


def test_an_output_that_several_changed_facts_rest_on_is_shown_once_a_leg() -> None:
    (row,) = two(([FAILED, FAILED], [PASSED, PASSED])).rows
    outputs = [item for item in row.decision_evidence if isinstance(item, CommandOutput)]
    assert [item.leg for item in outputs] == ["context_off", "context_on"]


def ignored(off: CaseObservation, on: CaseObservation) -> list[str]:
    suite = suite_file(case("one"))
    records = [
        record(suite, [result(suite, "one", [PASSED], seen=what)], variant)
        for variant, what in (("context_off", off), ("context_on", on))
    ]
    (row,) = paired_cases(records[0], records[1], excerpt=excerpt)
    return [item.kind for item in row.ignored_context_evidence]


def test_a_tie_says_what_speaks_for_the_context_having_had_no_part() -> None:
    same = seen("one", "5")
    assert ignored(same, same) == ["same_outcome", "same_output"]
    assert ignored(same, seen("one", "7")) == ["same_outcome"]
    longer = b.observation(execution=b.execution(stdout=b.stream(10, digit="5")))
    assert ignored(same, longer) == ["same_outcome"]


def test_a_changed_row_says_nothing_of_the_sort() -> None:
    (row,) = two((FAILED, PASSED)).rows
    assert row.ignored_context_evidence == ()


@pytest.mark.parametrize(
    "off, on, tokens, calls",
    [
        ({"tokens": 100, "tool_calls": 2}, {"tokens": 70, "tool_calls": 5}, -30, 3),
        ({"tokens": 100}, {"tokens": 70, "tool_calls": 5}, -30, None),
        ({}, {"tokens": 70}, None, None),
        (None, {"tokens": 70, "tool_calls": 5}, None, None),
        ({"tokens": 1, "tool_calls": 1}, None, None, None),
    ],
)
def test_cost_is_compared_where_both_legs_report_it(
    off: dict[str, int] | None,
    on: dict[str, int] | None,
    tokens: int | None,
    calls: int | None,
) -> None:
    suite = suite_file(case("one"))
    records = [
        record(suite, [result(suite, "one", [PASSED], seen=b.observation(usage=usage))], variant)
        for variant, usage in (("context_off", off), ("context_on", on))
    ]
    (row,) = paired_cases(records[0], records[1], excerpt=excerpt)
    assert (row.token_delta, row.tool_delta) == (tokens, calls)


# --- delta and bounds


def test_a_dimension_that_lost_all_its_pairs_counts_zero_in_both_legs() -> None:
    legs = two((FAILED, PASSED), (PASSED, UNDECIDED), dimensions=[["correctness"], ["safety"]])
    block, delta = pairing(legs.off, legs.on, legs.suite.suite.scoring)
    assert (block.context_off_aggregate, block.context_on_aggregate) == (0.0, 0.4)
    assert delta == 0.4


def test_bounds_are_the_delta_when_nothing_was_lost_on_one_side_only() -> None:
    assert two((FAILED, PASSED), (PASSED, PASSED)).bounds == (0.5, 0.5)
    assert two((FAILED, PASSED), (UNDECIDED, UNDECIDED)).bounds == (1.0, 1.0)


@pytest.mark.parametrize(
    "pairs, delta, lower, upper",
    [
        # Off lost, on passed: at worst off would have passed too.
        (((FAILED, PASSED), (UNDECIDED, PASSED)), 1.0, 0.5, 1.0),
        # Off lost, on failed.
        (((FAILED, PASSED), (UNDECIDED, FAILED)), 1.0, 0.0, 1.0),
        # On lost, off passed: at worst on would have failed.
        (((FAILED, PASSED), (PASSED, UNDECIDED)), 1.0, 0.0, 1.0),
        # On lost, off failed.
        (((FAILED, PASSED), (FAILED, UNDECIDED)), 1.0, 0.5, 1.0),
        # What was lost would only dilute the harm that was shown; the lower bound stays.
        (((PASSED, FAILED), (UNDECIDED, PASSED)), -1.0, -1.0, 0.0),
        # Nothing valid: no delta, and bounds of what was lost.
        (((PASSED, UNDECIDED),), None, -1.0, 0.0),
        (((UNDECIDED, PASSED),), None, 0.0, 1.0),
        (((UNDECIDED, UNDECIDED),), None, None, None),
    ],
)
def test_losses_on_one_side_only_widen_the_bounds(
    pairs: tuple[tuple[Outcome, Outcome], ...],
    delta: float | None,
    lower: float | None,
    upper: float | None,
) -> None:
    legs = two(*pairs)
    assert legs.delta == delta
    assert legs.bounds == (lower, upper)


# --- properties

VERDICTS = st.lists(st.sampled_from([PASSED, FAILED]), min_size=3, max_size=3)
OUTCOME = VERDICTS | st.sampled_from(LOST)
DIMENSIONS = st.lists(st.sampled_from(["correctness", "safety"]), max_size=2, unique=True)
LEGS = st.lists(st.tuples(OUTCOME, OUTCOME, DIMENSIONS), min_size=1, max_size=6).map(
    lambda items: two(
        *((off, on) for off, on, _ in items), dimensions=[names for _, _, names in items]
    )
)


@given(LEGS)
def test_swapping_the_legs_negates_everything(legs: Two) -> None:
    other = legs.swapped()
    assert other.delta == (None if legs.delta is None else -legs.delta)
    lower, upper = legs.bounds
    assert other.bounds == (
        None if upper is None else -upper,
        None if lower is None else -lower,
    )
    for row, opposite in zip(legs.rows, other.rows, strict=True):
        assert row.degraded_reason == opposite.degraded_reason
        if row.score_delta is not None and row.status_delta is not None:
            assert opposite.score_delta == -row.score_delta
            assert opposite.status_delta == -row.status_delta


@given(LEGS, st.data())
def test_what_happened_in_a_degraded_pair_never_changes_the_delta(
    legs: Two, data: st.DataObject
) -> None:
    """Neither other scores there nor the pair's absence."""
    degraded = [row.case_id for row in legs.rows if row.degraded_reason is not None]
    assume(degraded)

    def rewritten(leg: RunRecord) -> RunRecord:
        return leg.model_copy(
            update={
                "case_results": tuple(
                    item.model_copy(update={"score": data.draw(st.sampled_from([0.0, 0.5, 1.0]))})
                    if item.case_id in degraded and item.degraded_reason is not None
                    else item
                    for item in leg.case_results
                )
            }
        )

    def without(leg: RunRecord) -> RunRecord:
        kept = tuple(item for item in leg.case_results if item.case_id not in degraded)
        return leg.model_copy(update={"case_results": kept})

    assert Two(legs.suite, rewritten(legs.off), rewritten(legs.on)).delta == legs.delta
    assert Two(legs.suite, without(legs.off), without(legs.on)).delta == legs.delta


@given(LEGS)
def test_the_bounds_contain_the_delta_and_are_deltas(legs: Two) -> None:
    lower, upper = legs.bounds
    assert (lower is None) == (upper is None)
    if legs.delta is not None:
        assert lower is not None
        assert upper is not None
        assert -1 <= lower <= legs.delta <= upper <= 1


@given(LEGS, st.data())
def test_the_bounds_hold_whatever_the_lost_side_would_have_been(
    legs: Two, data: st.DataObject
) -> None:
    """Filling in what one leg lost gives a delta within them."""
    one_sided = {
        row.case_id
        for row in legs.rows
        if (row.context_off.degraded_reason is None) != (row.context_on.degraded_reason is None)
    }

    def filled(leg: RunRecord) -> RunRecord:
        return leg.model_copy(
            update={
                "case_results": tuple(
                    judge(legs.suite, item.case_id, data.draw(VERDICTS)).model_copy(
                        update={"dimensions": item.dimensions}
                    )
                    if item.case_id in one_sided and item.degraded_reason is not None
                    else item
                    for item in leg.case_results
                )
            }
        )

    delta = Two(legs.suite, filled(legs.off), filled(legs.on)).delta
    lower, upper = legs.bounds
    if delta is not None:
        assert lower is not None
        assert upper is not None
        assert lower <= delta <= upper


@given(st.lists(st.tuples(OUTCOME, OUTCOME), min_size=1, max_size=6), VERDICTS)
def test_another_tie_never_turns_the_sign(pairs: list[tuple[Any, Any]], tie: list[Verdict]) -> None:
    """Where all cases count for the same dimensions; weights can shift elsewhere."""
    before, after = two(*pairs).delta, two(*pairs, (tie, tie)).delta
    assert after is not None
    if before is None:
        assert after == 0
    else:
        assert before * after >= 0
        # Both means are rounded before they are subtracted.
        assert abs(after) <= abs(before) + 0.00011


@given(LEGS)
def test_there_is_a_row_for_every_case_and_no_change_without_a_changed_fact(legs: Two) -> None:
    rows = legs.rows
    assert [row.case_id for row in rows] == [case.id for case in legs.suite.suite.cases]
    for row in rows:
        changed = any(fact.changed for fact in facts(row))
        if row.is_valid and (row.score_delta or row.status_delta):
            assert changed
            assert "decision_output" in row.artifact_attribution
        # Reading a row again runs the model's own rules.
        assert PairedCase.model_validate(row.model_dump()) == row


@given(LEGS)
def test_valid_and_degraded_pairs_add_up_and_without_a_valid_one_there_is_no_delta(
    legs: Two,
) -> None:
    block, delta = pairing(legs.off, legs.on, legs.suite.suite.scoring)
    valid = [row for row in legs.rows if row.is_valid]
    assert (block.valid_pairs, block.degraded_pairs) == (len(valid), len(legs.rows) - len(valid))
    assert (delta is None) == (not valid)
    if delta is not None:
        assert block.context_on_aggregate is not None
        assert block.context_off_aggregate is not None
        assert abs(delta - (block.context_on_aggregate - block.context_off_aggregate)) < 1e-9


@given(LEGS)
def test_every_pair_of_records_makes_a_scorecard_that_reads_the_same_again(legs: Two) -> None:
    card = b.scorecard(legs.suite, legs.off, legs.on)
    assert ContextScorecard.model_validate(card.model_dump()) == card
