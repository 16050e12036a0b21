"""A score file is one that every reader understands alike, or a usage error that quotes nothing."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.outcomes.score import MAX_BYTES, canonical_judge_hash, read_score
from runner.errors import AoEvalError, InputError
from runner.model.verdict import Split
from tests.unit.outcomes_ingest.scores import (
    CLAIMS,
    FIXTURES,
    HASH,
    SECRET,
    everything_shown,
    score,
    score_bytes,
)


def refusal(data: bytes) -> InputError:
    with pytest.raises(InputError) as caught:
        read_score(data, "score.json")
    assert caught.value.exit_code == 2
    assert SECRET not in everything_shown(caught.value)
    return caught.value


def outcome(data: bytes) -> AoEvalError | None:
    try:
        found = read_score(data, "score.json")
    except AoEvalError as error:
        return error
    assert 0 <= found.aggregate <= 1
    return None


def test_a_whole_score_is_read() -> None:
    found = score()
    assert found[:9] == (
        0.85, 0.8, {"rule": 0.9, "amount": 0.7}, "refund-answers", HASH, Split.HOLDOUT, "refunds",
        "gt-1", "run-1",
    )  # fmt: skip
    assert len(found.sha256) == 64


def test_only_the_aggregate_is_needed() -> None:
    found = read_score(b'{"aggregate": 1}', "score.json")
    assert found.aggregate == 1.0
    assert set(found[1:9]) == {None}


def test_a_null_table_of_criteria_is_an_absent_one() -> None:
    assert score(criterion_scores=None).criterion_scores is None


def test_i11_a_missing_aggregate_is_an_error_and_not_zero() -> None:
    assert "no aggregate" in refusal(b"{}").line()
    assert "no aggregate" in refusal(score_bytes("aggregate")).line()


@pytest.mark.parametrize(
    "number",
    [
        "7.3", "-4", "1.00000000000000000001", "-1e-400", "1e999", "NaN", "Infinity", "-Infinity",
        "null", "true", '"0.5"', "[0.5]", "9" * 5000,
    ],
)  # fmt: skip
def test_i10_an_aggregate_that_is_no_number_in_the_unit_interval(number: str) -> None:
    refusal(b'{"aggregate": ' + number.encode() + b"}")


@pytest.mark.parametrize("number", ["0", "0.0", "-0.0", "1", "1.0", "1e0", "1e-400"])
def test_the_ends_of_the_unit_interval_belong_to_it(number: str) -> None:
    found = read_score(b'{"aggregate": ' + number.encode() + b"}", "score.json")
    assert repr(found.aggregate) in {"0.0", "1.0"}


@pytest.mark.parametrize("threshold", [0, -5, 1.01, None, "0.8", True, [], {}])
def test_i9_a_threshold_out_of_range_is_an_error_and_not_one(threshold: Any) -> None:
    assert "/threshold" in refusal(score_bytes(threshold=threshold)).line()


@pytest.mark.parametrize(
    "split", ["Holdout", "holdout ", " holdout", "HOLDOUT", "test", "", "train", None, 1, [], {}]
)
def test_i1_a_split_is_exactly_dev_or_holdout(split: Any) -> None:
    assert "/split" in refusal(score_bytes(split=split)).line()


@pytest.mark.parametrize(
    "data",
    [
        b'{"split":"holdout","SPLIT":"dev","aggregate":1}',
        b'{"split":"holdout","split":"dev","aggregate":1}',
        b'{"aggregate":0,"aggregate":1}',
        b'{"aggregate":1,"criterion_scores":{"Ouagadougou":1,"ouagadougou":0}}',
        b'{"aggregate":1,"Ouagadougou":1,"OUAGADOUGOU":0}',
    ],
)
def test_i2_a_key_cannot_be_overridden(data: bytes) -> None:
    refusal(data)


@pytest.mark.parametrize(
    "version", ["gt-1 ", " gt-1", "", "gt 1", "gt-1\n", "gt\u20111", "g" * 129]
)
@pytest.mark.parametrize("field", ["ground_truth_version", "suite_ref"])
def test_i3_a_name_that_only_looks_like_another_is_refused(field: str, version: str) -> None:
    assert f"/{field}" in refusal(score_bytes(**{field: version})).line()


@pytest.mark.parametrize(
    "judge", ["x", "", "ab" * 32, "md5:" + "ab" * 16, HASH[:-1], HASH + "0", f" {HASH}", None, 1]
)
def test_i12_a_judge_hash_is_sha256_and_64_digits(judge: Any) -> None:
    assert "/judge_content_hash" in refusal(score_bytes(judge_content_hash=judge)).line()


def test_i12_judge_hashes_are_kept_in_canonical_form() -> None:
    assert score(judge_content_hash=HASH.upper()).judge_hash == HASH
    assert canonical_judge_hash(HASH.upper()) == HASH


@pytest.mark.parametrize(
    "name",
    [f"answer is {SECRET}", f"{SECRET}!", "", " rule", "r\u00fcle", "-rule", "r" * 129, "a/b"],
)
def test_i14_a_criterion_key_is_an_id_and_no_free_text(name: str) -> None:
    assert "criterion id" in refusal(score_bytes(criterion_scores={name: 1})).line()


@pytest.mark.parametrize(
    "table", [{}, [], "x", {"a": 1.5}, {"a": -0.1}, {"a": None}, {"a": True}, {"a": {}}, 3]
)
def test_criterion_scores_are_numbers_in_the_unit_interval(table: Any) -> None:
    assert "/criterion_scores" in refusal(score_bytes(criterion_scores=table)).line()


def test_a_table_of_too_many_criteria_is_refused() -> None:
    refusal(score_bytes(criterion_scores={f"c{index}": 1 for index in range(1001)}))


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"null", b"{", b'{"aggregate":1}x', b"\xef\xbb\xbf{}", b'{"aggregate":1,}',
        b'{"aggregate":1,"run_id":"\\ud800"}', b"\xff", b'{"aggregate":{"a":{"b":1}}}',
        b" " * (MAX_BYTES + 1), b"[" * 100_000,
    ],
)  # fmt: skip
def test_what_is_no_score_is_refused(data: bytes) -> None:
    refusal(data)


@pytest.mark.parametrize(
    "data",
    [
        score_bytes(**{SECRET: 1}),
        score_bytes(**{f"answer {SECRET}": SECRET}),
        score_bytes(split=SECRET),
        score_bytes(aggregate=SECRET),
        score_bytes(threshold=SECRET),
        score_bytes(judge_content_hash=SECRET),
        score_bytes(run_id=f" {SECRET}"),
        score_bytes(source_task_id=f"{SECRET} "),
        score_bytes(criterion_scores={"rule": SECRET}),
        score_bytes(criterion_scores={SECRET: 2}),
        score_bytes(criterion_scores=SECRET),
        b'{"aggregate":1,"criterion_scores":{"Ouagadougou":NaN}}',
        b'{"aggregate":1,"Ouagadougou":"\\ud800"}',
        b'{"aggregate":1 Ouagadougou',
    ],
)
def test_i14_no_refusal_quotes_the_score(data: bytes) -> None:
    refusal(data)


def test_a_score_does_not_show_itself() -> None:
    assert SECRET not in repr(score(run_id=SECRET))


NUMBERS = st.floats(0, 1).map(lambda number: number + 0.0)
IDS = st.from_regex(r"\A[A-Za-z0-9][A-Za-z0-9._-]{0,20}\Z")


@settings(deadline=None)
@given(
    NUMBERS,
    st.dictionaries(IDS, NUMBERS, min_size=1, max_size=5).filter(
        lambda table: len({name.casefold() for name in table}) == len(table)
    ),
)
def test_what_is_written_is_read(aggregate: float, table: dict[str, float]) -> None:
    found = score(aggregate=aggregate, criterion_scores=table)
    assert found.aggregate == aggregate
    assert found.criterion_scores == table


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_any_bytes_are_a_score_or_one_clear_line(data: bytes) -> None:
    told = outcome(data)
    assert told is None or (told.exit_code == 2 and "\n" not in told.line())


JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=6,
)


@settings(deadline=None)
@given(st.fixed_dictionaries({}, optional=dict.fromkeys(CLAIMS, JSON)))
def test_any_claims_are_a_score_or_one_clear_line(claims: dict[str, Any]) -> None:
    told = outcome(json.dumps(claims).encode())
    assert told is None or told.exit_code == 2


@pytest.mark.parametrize("path", sorted(FIXTURES.glob("score-*.json")), ids=lambda path: path.name)
def test_the_bundled_scores_are_scores(path: Any) -> None:
    assert read_score(path.read_bytes(), path.name).task_id == "refund-answers"
