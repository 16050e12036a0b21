"""Names of answers that are given a value; names in prose are none."""

from __future__ import annotations

import json

import pytest

from runner.core.outcomes.keyscan import FORBIDDEN, key_scan
from runner.core.outcomes.payload import Shape

PLAIN = Shape(frozenset({"id", "description"}), frozenset())


def found(text: str) -> list[tuple[str, str]]:
    return [
        (hit.what, hit.pointer)
        for hit in key_scan(json.dumps({"description": text}).encode(), PLAIN)
    ]


@pytest.mark.parametrize(
    "text",
    [
        "target=Paris",
        "TARGET = Paris",
        "answer -> Paris",
        "answer := 42",
        "ground_truth: The Treaty of Westphalia of 1648",
        "expected-output: anything at all",
        "samples-holdout.jsonl: see there",
        '{"answer": "Paris"}',
        "'target' : 5",
        "<answer>Paris</answer>",
        "Answer: Paris",
        "Correct answer: Paris.",
        "**Answer:** Paris",
        "The expected output: `Paris`; else 0",
        "answer: x < 5",
        "gold label: \u201ccity of light\u201d",
        "t\u0430rget=Paris",
        "target&#61;Paris",
        "dGFyZ2V0PVBhcmlz",
        "target%3DParis",
    ],
)
def test_an_assignment_is_found(text: str) -> None:
    assert ("assignment", "/description") in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "The answer is concise.",
        "The answer: it should be concise and cite a source.",
        "Target audience: beginners",
        "Expected output: a JSON object with two keys.",
        "Answer quality: good",
        "Compare the answer to ground truth where there is one",
        "Hits the target <= 200 ms (target latency == budget)",
        "Format: `key = value` pairs",
        "The field expected_output must not be invented.",
        "Answers: complete sentences only",
        "answers, targets, holdout",
    ],
)
def test_prose_is_not(text: str) -> None:
    assert found(text) == []


@pytest.mark.parametrize("name", ["Target", "ground_truth", "expected-output", "samples.holdout"])
def test_ids_and_keys_that_are_names_of_answers_are_found(name: str) -> None:
    assert key_scan(json.dumps({"id": name}).encode(), PLAIN) == (("id", "/id"),)
    assert key_scan(json.dumps({"description": {name: 1}}).encode(), PLAIN) == (
        ("key", "/description/*"),
    )


def test_ids_that_only_mention_one_are_not() -> None:
    for name in ("answer-quality", "target-audience", "states-ground-truth"):
        assert key_scan(json.dumps({"id": name}).encode(), PLAIN) == ()


def test_the_names_of_the_contract_are_all_forbidden() -> None:
    assert {"target", "groundtruth", "expectedoutput", "answer", "samplesholdout"} <= FORBIDDEN
