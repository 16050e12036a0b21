"""What is stated beats what is claimed; a contradiction is refused; the rest is loud."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from runner.core.canon import document
from runner.core.outcomes import leakscan
from runner.core.outcomes.gates import (
    AGGREGATE_TOLERANCE,
    Resolved,
    Stated,
    bind,
    carried_text,
    read_rubric,
    refuse_leaks,
    resolve,
)
from runner.core.outcomes.holdout import read_holdout_files
from runner.core.outcomes.manifest import Comparison, graded_record, run_manifest
from runner.core.outcomes.score import read_score
from runner.core.outcomes.verdict import council_verdict
from runner.errors import HoldoutRefusal, InputError
from runner.model.rubric import Criterion, Rubric
from runner.model.verdict import Kind, Split
from tests.unit.outcomes_ingest.scores import (
    FIXTURES,
    HASH,
    OTHER_HASH,
    RUBRIC,
    SECRET,
    STATED,
    accepted,
    everything_shown,
    score,
)


def warned(resolved: Resolved, text: str) -> bool:
    return sum(text in warning for warning in resolved.warnings) == 1


def without(field: str) -> Stated:
    changed: dict[str, Any] = {field: None}
    return STATED._replace(**changed)


def test_what_ingest_warns_of_outlives_its_refusal() -> None:
    told: list[str] = []
    unbound = STATED._replace(judge_hash=None)
    # Refused late: by then it is known that neither judge nor rubric was compared.
    contradicted = score(ground_truth_version="another")
    refused(lambda: resolve(unbound, contradicted, warnings=told), "--gt-version contradicts")
    assert ["gate #2 was NOT checked" in told[0], "no rubric" in told[1]] == [True, True]
    # Told once: a refusal by --strict is made of them.
    told = ["of somebody else"]
    strict = refused(lambda: resolve(unbound, score(), strict=True, warnings=told), "no rubric")
    assert "gate #2 was NOT checked" in str(strict)
    assert told == ["of somebody else"]


def refused(work: Callable[[], object], match: str) -> HoldoutRefusal:
    with pytest.raises(HoldoutRefusal, match=match) as caught:
        work()
    assert caught.value.exit_code == 6
    assert SECRET not in everything_shown(caught.value)
    return caught.value


def test_a_score_that_agrees_with_everything_stated_has_no_warning_even_with_strict() -> None:
    found = resolve(STATED, score(), rubric=RUBRIC, strict=True)
    assert found.warnings == ()
    assert found.burns
    assert (found.suite_ref, found.gt_version, found.run_id) == ("refunds", "gt-1", "run-1")


def test_what_is_stated_needs_no_claim() -> None:
    bare = score("threshold", "split", "suite_ref", "ground_truth_version", "run_id")
    found = resolve(STATED, bare, rubric=RUBRIC, strict=True)
    assert found.warnings == ()
    assert (found.threshold, found.split) == (0.8, Split.HOLDOUT)


# --- I1, I3, I9: the score decides nothing that the caller stated

CONTRADICTIONS = {
    "split": ("split", "dev"),
    "suite": ("suite_ref", "other"),
    "gt-version": ("ground_truth_version", "gt-1b"),
    "threshold": ("threshold", 0.01),
    "run-id": ("run_id", "run-2"),
}


@pytest.mark.parametrize("option", CONTRADICTIONS)
def test_i1_i3_i9_a_contradiction_is_refused_and_neither_side_quoted(option: str) -> None:
    field, claim = CONTRADICTIONS[option]
    refusal = refused(
        lambda: resolve(STATED, score(**{field: claim}), rubric=RUBRIC), f"--{option} contradicts"
    )
    assert str(claim) not in refusal.line().replace(f"--{option}", "")


@pytest.mark.parametrize("option", CONTRADICTIONS)
def test_i1_i3_i9_what_is_not_stated_is_taken_with_a_warning_or_refused(option: str) -> None:
    field = {"run-id": "run_id", "gt-version": "gt_version"}.get(option, option)
    stated = without(field)
    found = resolve(stated, score(), rubric=RUBRIC)
    assert len(found.warnings) == 1
    assert warned(found, f"--{option} was not stated")
    refused(lambda: resolve(stated, score(), rubric=RUBRIC, strict=True), f"--{option}")


def test_i1_a_score_that_says_dev_itself_is_told_not_to_have_burned() -> None:
    stated = STATED._replace(split=None)
    found = resolve(stated, score(split="dev"), rubric=RUBRIC)
    assert not found.burns
    assert warned(found, "the burn ledger was NOT charged")
    refused(lambda: resolve(stated, score(split="dev"), rubric=RUBRIC, strict=True), "NOT charged")


def test_i1_a_score_of_no_split_is_refused() -> None:
    refused(lambda: resolve(STATED._replace(split=None), score("split")), "state --split")


def test_a_dev_score_never_burns() -> None:
    stated = STATED._replace(split="dev")
    found = resolve(stated, score(split="dev"), rubric=RUBRIC, strict=True)
    assert not found.burns


def test_a_holdout_without_a_ledger_is_loud_or_refused() -> None:
    stated = STATED._replace(ledger=False)
    found = resolve(stated, score(), rubric=RUBRIC)
    assert not found.burns
    assert warned(found, "gate #3 was NOT checked")
    refused(lambda: resolve(stated, score(), rubric=RUBRIC, strict=True), "gate #3")


@pytest.mark.parametrize(
    "field, option",
    [("suite_ref", "--suite"), ("ground_truth_version", "--gt-version"), ("run_id", "--run-id")],
)
def test_i3_a_burn_that_nobody_names_is_refused(field: str, option: str) -> None:
    name = {"suite_ref": "suite", "ground_truth_version": "gt_version"}.get(field, field)
    stated = without(name)
    refused(lambda: resolve(stated, score(field), rubric=RUBRIC), f"state {option}")


def test_i9_a_threshold_that_nobody_states_is_one_and_loud() -> None:
    stated = STATED._replace(threshold=None)
    found = resolve(stated, score("threshold"), rubric=RUBRIC)
    assert found.threshold == 1.0
    assert warned(found, "nobody states a threshold")
    refused(lambda: resolve(stated, score("threshold"), strict=True), "threshold")


def test_a_run_that_nobody_names_is_named_by_its_task() -> None:
    stated = STATED._replace(run_id=None, ledger=False)
    found = resolve(stated, score("run_id"), rubric=RUBRIC)
    assert found.run_id == "refund-answers"
    assert warned(found, "the task id stands in")


@pytest.mark.parametrize(
    "field, value",
    [
        ("split", "Holdout"), ("split", ""), ("split", "holdout "), ("suite", ""),
        ("suite", "refunds "), ("gt_version", ""), ("gt_version", "gt 1"), ("run_id", ""),
        ("run_id", " a"), ("run_id", "a\n"), ("threshold", 0.0), ("threshold", -1.0),
        ("threshold", 1.5), ("threshold", math.nan), ("threshold", math.inf), ("judge_hash", ""),
        ("judge_hash", "x"), ("judge_hash", HASH + " "),
    ],
)  # fmt: skip
def test_what_is_stated_badly_is_a_usage_error(field: str, value: Any) -> None:
    with pytest.raises(InputError, match="--"):
        resolve(STATED._replace(**{field: value}), score(), rubric=RUBRIC)


# --- gate 2


def test_i12_an_empty_expected_hash_does_not_switch_the_gate_off() -> None:
    with pytest.raises(InputError, match="must not switch gate #2 off") as caught:
        resolve(STATED._replace(judge_hash=""), score(), rubric=RUBRIC)
    assert caught.value.exit_code == 2


@pytest.mark.parametrize("expected", [HASH, HASH.upper(), HASH.replace("a", "A")])
@pytest.mark.parametrize("carried", [HASH, HASH.upper()])
def test_i12_letter_case_is_no_drift(expected: str, carried: str) -> None:
    found = resolve(
        STATED._replace(judge_hash=expected),
        score(judge_content_hash=carried),
        rubric=RUBRIC,
        strict=True,
    )
    assert found.judge_hash == HASH


def test_gate_2_refuses_another_rubric_and_a_score_without_a_hash() -> None:
    refused(lambda: resolve(STATED._replace(judge_hash=OTHER_HASH), score()), "gate #2")
    refused(lambda: resolve(STATED, score("judge_content_hash")), "gate #2")


@pytest.mark.parametrize("missing", [(), ("judge_content_hash",)])
def test_i12_a_parity_that_was_not_checked_is_loud_or_refused(missing: tuple[str, ...]) -> None:
    stated = STATED._replace(judge_hash=None)
    assert warned(resolve(stated, score(*missing)), "gate #2 was NOT checked")
    refused(lambda: resolve(stated, score(*missing), strict=True), "gate #2 was NOT checked")


# --- I13: the rubric binds the score

UNBOUND: dict[str, dict[str, Any]] = {
    "not of the rubric's task": {"source_task_id": "another-task"},
    "not by the rubric's judge": {"judge_content_hash": OTHER_HASH},
    "criteria are not those": {"criterion_scores": {"rule": 0.85}},
    "not those of the rubric": {"criterion_scores": {"rule": 1, "amount": 0.4, "tone": 1}},
    "those of the rubric": {"criterion_scores": {"rule": 0.9, SECRET: 0.7}},
    "not the weighted mean": {"aggregate": 0.8},
    "the weighted mean": {"aggregate": 1},
    "weighted mean of": {"criterion_scores": {"rule": 0.7, "amount": 0.9}},
}


@pytest.mark.parametrize("match", UNBOUND)
def test_i13_a_score_that_does_not_fit_the_rubric_is_refused(match: str) -> None:
    stated = STATED._replace(judge_hash=None)
    refused(lambda: resolve(stated, score(**UNBOUND[match]), rubric=RUBRIC), match)


@pytest.mark.parametrize("field", ["source_task_id", "judge_content_hash", "criterion_scores"])
def test_i13_a_score_that_does_not_say_is_refused(field: str) -> None:
    stated = STATED._replace(judge_hash=None)
    refused(lambda: resolve(stated, score(field), rubric=RUBRIC), "rubric")


def test_i13_a_score_without_a_rubric_is_loud_or_refused() -> None:
    assert warned(resolve(STATED, score()), "no rubric was given")
    refused(lambda: resolve(STATED, score(), strict=True), "no rubric was given")


@settings(deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(0.001, 1e6), st.floats(0, 1)),
        min_size=1,
        max_size=8,
    ),
    st.floats(-2e-9, 2e-9),
)
def test_i13_the_aggregate_is_recomputed_to_the_documented_tolerance(
    parts: list[tuple[float, float]], error: float
) -> None:
    rubric = Rubric(
        schema_version=1,
        source_task_id="refund-answers",
        judge_content_hash=HASH,
        criteria=tuple(
            Criterion(id=f"c{index}", description="x", weight=weight)
            for index, (weight, _) in enumerate(parts)
        ),
    )
    zero = Fraction(0)
    exact = sum((Fraction(weight) * Fraction(value) for weight, value in parts), zero) / sum(
        (Fraction(weight) for weight, _ in parts), zero
    )
    claimed = float(exact) + error
    assume(0 <= claimed <= 1)
    graded = score(
        aggregate=claimed,
        criterion_scores={f"c{index}": value for index, (_, value) in enumerate(parts)},
    )
    if abs(Fraction(claimed) - exact) <= AGGREGATE_TOLERANCE:
        bind(rubric, graded)
    else:
        refused(lambda: bind(rubric, graded), "weighted mean")


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text[:-2],
        lambda text: text.replace(b'"tone"', b'"amount"'),
        lambda text: text.replace(b'"tone"', b'"Amount"'),
        lambda text: text.replace(b'"weight":1', b'"weight":0'),
        lambda text: text.replace(b'"weight":1', b'"weight":1,"target":"Ouagadougou"'),
        lambda text: text.replace(b'{"criteria"', b'{"Ouagadougou":1,"criteria"'),
        lambda text: text.replace(b'"schema_version":1', b'"schema_version":2'),
        lambda text: b'{"Ouagadougou": NaN}',
    ],
)
def test_what_is_no_rubric_is_a_usage_error_that_quotes_nothing(
    change: Callable[[bytes], bytes],
) -> None:
    whole = (FIXTURES / "rubric.json").read_bytes()
    assert read_rubric(whole, "rubric.json").source_task_id == "refund-answers"
    assert change(whole) != whole
    with pytest.raises(InputError, match=r"^rubric.json: no rubric") as caught:
        read_rubric(change(whole), "rubric.json")
    assert SECRET not in everything_shown(caught.value)


# --- the grade's identity


@pytest.mark.parametrize(
    "other",
    [
        accepted()._replace(threshold=0.7),
        accepted()._replace(gt_version="gt-2"),
        accepted()._replace(suite_ref="other"),
        accepted()._replace(run_id="run-2"),
        accepted()._replace(split=Split.DEV),
        accepted()._replace(score_sha256="0" * 64),
    ],
)
def test_i6_a_grade_read_in_another_way_is_another_grade(other: Resolved) -> None:
    assert other.grade_sha256 != accepted().grade_sha256


def test_i6_stating_what_was_claimed_before_is_the_same_grade() -> None:
    taken = resolve(Stated(judge_hash=HASH, ledger=True), score())
    assert taken.warnings
    assert taken.grade_sha256 == accepted().grade_sha256


# --- I14: the verdict and the manifest carry no holdout value


class Hit(NamedTuple):
    value_index: int
    view: str
    pointer: str


def looking_for(*values: str) -> Callable[[bytes], list[Hit]]:
    """A plain scan: each text of the document, letter case aside."""

    def scan(payload: bytes) -> list[Hit]:
        texts = json.loads(payload)
        return [
            Hit(index, "plain", f"/{position}")
            for index, value in enumerate(values)
            for position, text in enumerate(texts)
            if value.casefold() in text.casefold()
        ]

    return scan


@pytest.mark.parametrize(
    "changed",
    [
        {"criterion_scores": {SECRET: 1}},
        {"criterion_scores": {f"answer-is-{SECRET}.": 1}},
        {"source_task_id": SECRET.lower()},
        {"run_id": f"run {SECRET}"},
        {"suite_ref": SECRET},
        {"ground_truth_version": SECRET},
    ],
)
def test_i14_a_holdout_value_in_the_score_is_refused(changed: dict[str, Any]) -> None:
    found = resolve(Stated(), score(**changed))
    refusal = refused(
        lambda: refuse_leaks(carried_text(found), looking_for("Nairobi", SECRET)), "value #1"
    )
    assert SECRET.casefold() not in refusal.line().casefold()
    refuse_leaks(carried_text(found), looking_for("Nairobi"))


def test_i14_a_long_number_is_scanned_and_a_short_one_coincides() -> None:
    found = resolve(Stated(), score(aggregate=0.83745, criterion_scores={"rule": 0.5}))
    assert "0.83745" in carried_text(found)
    assert "0.5" not in carried_text(found)
    refused(lambda: refuse_leaks(carried_text(found), looking_for("0.83745")), "value #0")


def test_words_of_ours_refuse_no_verdict() -> None:
    found = accepted()
    texts = carried_text(found, "ao-12")
    refuse_leaks(texts, looking_for("PASS", "HIGH", "complete", "holdout", "outcomes", "0.8"))


def leaves(value: Any) -> list[str]:
    if isinstance(value, dict):
        return [text for key, item in value.items() for text in (key, *leaves(item))]
    if isinstance(value, list):
        return [text for item in value for text in leaves(item)]
    return [str(value)]


def test_i14_nothing_from_outside_gets_round_the_scan() -> None:
    """Every text of every document differs between two scores only where the scan has looked."""

    def shown(mark: str) -> tuple[list[str], tuple[str, ...]]:
        changed: dict[str, Any] = {
            "source_task_id": f"task-{mark}",
            "criterion_scores": {f"criterion-{mark}": 0.9},
            "suite_ref": f"suite-{mark}",
            "ground_truth_version": f"version-{mark}",
            "run_id": f"run-{mark}",
            "judge_content_hash": f"sha256:{mark}" + "0" * 60,
            "split": "dev",
        }
        found = resolve(Stated(), score(**changed))
        others = (f"bead-{mark}", f"baseline-{mark}")
        comparison = Comparison(Kind.IMPROVED, 0.1, others[1])
        documents = [
            council_verdict(found),
            run_manifest(found, comparison, bead=others[0], now_ms=1),
            graded_record(found, now_ms=1),
        ]
        digests = {found.score_sha256, found.grade_sha256}
        texts = [text for item in documents for text in leaves(document(item))]
        return [text for text in texts if text not in digests], carried_text(found, *others)

    ours, ours_scanned = shown("aaaa")
    theirs, theirs_scanned = shown("bbbb")
    differing = [(a, b) for a, b in zip(ours, theirs, strict=True) if a != b]
    assert len(differing) > 10
    for one, other in differing:
        # Any text that varies is made of scanned texts and of words of ours.
        assert any(
            one.replace(a, "*") == other.replace(b, "*")
            for a, b in zip(ours_scanned, theirs_scanned, strict=True)
        ), one


def test_the_bundled_holdout_score_passes_every_gate_and_the_leak_none() -> None:
    rubric = read_rubric((FIXTURES / "rubric.json").read_bytes(), "rubric.json")
    good = read_score((FIXTURES / "score-holdout-pass.json").read_bytes(), "good")
    stated = Stated(
        judge_hash=rubric.judge_content_hash,
        suite="refunds",
        split="holdout",
        gt_version="2026-03",
        threshold=0.8,
        run_id="refunds-holdout-03",
        ledger=True,
    )
    assert resolve(stated, good, rubric=rubric, strict=True).burns
    bad = read_score((FIXTURES / "score-holdout-leak.json").read_bytes(), "bad")
    unbound = stated._replace(run_id="refunds-holdout-04")
    refused(lambda: resolve(unbound, bad, rubric=rubric), "criteria are not those")
    found = resolve(unbound, bad)
    values = read_holdout_files([("holdout.jsonl", (FIXTURES / "holdout.jsonl").read_bytes())])

    def real_scan(payload: bytes) -> Sequence[leakscan.Hit]:
        return leakscan.scan(payload, values)

    refusal = refused(lambda: refuse_leaks(carried_text(found), real_scan), "value #0")
    assert "lantern" not in everything_shown(refusal).casefold()
    refuse_leaks(carried_text(resolve(stated, good, rubric=rubric)), real_scan)
