"""The reader of compile inputs, and where holdout values come from."""

from __future__ import annotations

import json
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.outcomes.holdout import collect_holdout, read_holdout_files
from runner.core.outcomes.inputs import read_compile_input
from runner.errors import InputError
from tests.unit.outcomes_compile import builders as b

TASK = b.document()["task"]
CRITERION = b.document()["criteria"][0]


@pytest.mark.parametrize(
    "changes, pointer",
    [
        ({"task": {**TASK, "id": "Upper"}}, "/task/id"),
        ({"task": {**TASK, "id": "a/b"}}, "/task/id"),
        ({"task": {**TASK, "target": "x"}}, "/task"),
        ({"task": {**TASK, "schema_version": 2}}, "/task/schema_version"),
        ({"task": {**TASK, "samples": []}}, "/task/samples"),
        ({"task": {**TASK, "stats": {"decision_rule": {"x": 1}}}}, "/task/stats/decision_rule"),
        ({"task": []}, "/task"),
        ({"criteria": []}, "/criteria"),
        ({"criteria": [{**CRITERION, "id": "a b"}]}, "/criteria/0/id"),
        ({"criteria": [{**CRITERION, "description": " \n"}]}, "/criteria/0/description"),
        ({"criteria": [{**CRITERION, "weight": 0}]}, "/criteria/0/weight"),
        ({"criteria": [{**CRITERION, "weight": True}]}, "/criteria/0/weight"),
        ({"criteria": [{**CRITERION, "weight": "1"}]}, "/criteria/0/weight"),
        ({"criteria": [{**CRITERION, "weight": 1_000_001}]}, "/criteria/0/weight"),
        ({"criteria": [{**CRITERION, "weight": 0.4217001}]}, "/criteria/0/weight"),
        ({"criteria": [{**CRITERION, "weight": 123.4567}]}, "/criteria/0/weight"),
        ({"criteria": [CRITERION, {**CRITERION, "id": "C1"}]}, "/criteria/1/id"),
        ({"judge_content_hash": "sha256:" + "g" * 64}, "/judge_content_hash"),
        ({"judge_content_hash": "ab" * 32}, "/judge_content_hash"),
        ({"split": "Holdout"}, "/split"),
        ({"split": "holdout "}, "/split"),
        ({"surplus": 1}, ""),
    ],
)
def test_what_the_format_does_not_allow_is_refused_at_its_place(
    changes: dict[str, Any], pointer: str
) -> None:
    with pytest.raises(InputError) as caught:
        b.read({**b.document(), **changes})
    assert caught.value.where == f"input.json#{pointer}"


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"[]",
        b"\xef\xbb\xbf{}",
        b'{"task":NaN}',
        b'{"task":' * 65 + b"1" + b"}" * 65,
        b'{"task": 1e999999999999999999}',
        b" " * (16 * 1024 * 1024 + 1),
    ],
    ids=["empty", "list", "bom", "nan", "deep", "number", "long"],
)
def test_what_is_not_strict_json_is_refused(data: bytes) -> None:
    with pytest.raises(InputError):
        read_compile_input(data, "input.json")


def test_pointers_and_messages_stop_where_the_input_chose_the_name() -> None:
    data = json.dumps(b.document()).encode()
    samples = data.replace(
        b'"id": "capital', b'"samples": {"Zanzibar":{"k":1,"K":2}}, "id": "capital'
    )
    unknown = data.replace(b'"split"', b"").replace(b'"task"', b'"Zanzibar": 1, "task"')
    for broken, pointer in ((samples, "/task/samples"), (unknown, "")):
        with pytest.raises(InputError) as caught:
            b.read(broken)
        assert caught.value.where == f"input.json#{pointer}"
        assert "Zanzibar" not in str(caught.value)


def test_the_hash_is_compared_in_lower_case_and_weights_stay_exact() -> None:
    parsed = b.read({**b.document(weight=0.1), "judge_content_hash": "sha256:" + "AB" * 32})
    assert parsed.judge_content_hash == "sha256:" + "ab" * 32
    assert parsed.criteria[0].weight == Decimal("0.1")


def test_null_is_absent_where_a_list_or_map_may_be_absent() -> None:
    parsed = b.read(
        {**b.document(holdout=None), "holdout_values": None, "task": {**TASK, "samples": None}}
    )
    assert parsed.holdout_values == ()
    assert parsed.task.samples == {}


def test_values_come_from_the_input_then_from_files_then_from_samples() -> None:
    made = b.document(holdout=["one", 2, 0.5, [True, {"k": "three"}], None])
    made["task"]["samples"] = {"s1": {"input": "q", "Target": "seven"}}
    files = [
        ("a.jsonl", b'{"id":1,"target":"four"}\n\n{"x":{"y":[{"ground_truth":["five",6]}]}}\n'),
    ]
    found = collect_holdout(b.read(made), files)
    assert [value.text for value in found] == [
        "one", "2", "0.5", "true", "three", "four", "five", "6", "seven",
    ]  # fmt: skip
    assert [value.index for value in found] == list(range(9))
    assert found[5].source == "a.jsonl line 1"
    assert found[6].source == "a.jsonl line 3"
    dev = collect_holdout(b.read({**made, "split": "dev"}), [])
    assert "seven" not in [value.text for value in dev]


@pytest.mark.parametrize(
    "data, where",
    [
        (b"", "h.jsonl"),
        (b'{"id":1}\n', "h.jsonl"),
        (b'{"target":"a"}\nnot json\n', "h.jsonl line 2"),
        (b'{"target":"a","target":"b"}', "h.jsonl line 1"),
        (b'{"target":null}', "h.jsonl"),
    ],
)
def test_a_holdout_file_that_is_not_one_is_refused(data: bytes, where: str) -> None:
    with pytest.raises(InputError) as caught:
        read_holdout_files([("h.jsonl", data)])
    assert caught.value.where == where


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_input_makes_the_reader_fail_in_another_way(name: str, text: str) -> None:
    made = b.document(name or "x", instructions=text, holdout=[text, {name: text}])
    made[name] = text
    with pytest.raises(InputError):
        b.read(made)
