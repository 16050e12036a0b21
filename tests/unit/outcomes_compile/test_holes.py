"""The holes of the first implementation (C1 to C13), each closed."""

from __future__ import annotations

import base64
import codecs
import json
import traceback
from typing import Any

import pytest

from runner.core.outcomes.judgehash import judge_hash
from runner.core.outcomes.project import project, rubric_bytes
from runner.errors import HoldoutRefusal, InputError
from tests.unit.outcomes_compile import builders as b


def refusal(*descriptions: str, **more: Any) -> str:
    with pytest.raises(HoldoutRefusal) as caught:
        b.compiled(b.document(*descriptions, **more))
    assert caught.value.exit_code == 6
    return str(caught.value)


def test_c1_html_escaping_hides_nothing() -> None:
    assert "value 0 (text) at /criteria/0/description" in refusal(
        "Answer: x < 5", holdout=["x < 5"]
    )
    assert "value 0 (escapes) at /criteria/0/description" in refusal(
        "It holds that x &lt; 5 here", holdout=["x < 5"]
    )


@pytest.mark.parametrize("value", ['say "hi"', "a\nb", "C:\\dir", "tab\there"])
def test_c2_quotes_backslashes_and_newlines_hide_nothing(value: str) -> None:
    assert "value 0" in refusal(f"it must {value} then", holdout=[value])


def test_c3_letter_case_hides_nothing() -> None:
    assert "value 0 (letter case)" in refusal("Paris", holdout=["PARIS"])


@pytest.mark.parametrize(
    "value, text",
    [
        ("\u00e9", "e\u0301"),
        ("caf\u00e9", "the cafe\u0301 there"),
        ("cafe\u0301", "the caf\u00e9 there"),
        ("Paris", "it is Pa\u200bris, really"),
        ("Paris", "it is P\u00ada\u2060r\ufe0fis, really"),
        ("Paris", "it is \uff30\uff41\uff52\uff49\uff53, really"),
        ("Paris", "it is P\u0430ris, really"),
    ],
)
def test_c4_unicode_forms_and_zero_width_characters_hide_nothing(value: str, text: str) -> None:
    assert "value 0" in refusal(text, holdout=[value])


@pytest.mark.parametrize(
    "value, text",
    [
        ("Paris", "UGFyaXM="),
        ("Paris", "note UGFyaXM here"),
        ("Paris", base64.b32encode(b"Paris").decode()),
        ("Paris", b"Paris".hex()),
        ("Paris", "s i r a P"),
        ("Paris", "siraP is it"),
        ("Paris", codecs.encode("the Paris", "rot13")),
        ("0.5", "rate 0.50"),
        ("0.50", "rate .5"),
        ("0.5", "rate 5e-1"),
        ("0.5", "rate 50%"),
        ("1000", "some 1,000 of them"),
        ("1,000", "some 1000 of them"),
    ],
)
def test_c5_encodings_and_number_formats_hide_nothing(value: str, text: str) -> None:
    assert "value 0" in refusal(text, holdout=[value])


def test_c6_splitting_over_fields_hides_nothing() -> None:
    named = "value 0 (split across fields) at several places read together"
    assert named in refusal("Oua", "gadougou")
    assert named in refusal("gadougou is it", "x", ids=["Oua", "c2"])
    assert named in refusal("x", "y", ids=["Oua", "gadougou"])
    assert named in refusal("Oua", "z", ids=["gadougou", "c2"])
    assert named in refusal("gadougou", instructions="It is Oua")
    assert "escapes, split across fields" in refusal("It is %4", "Fuagadougou, or so")
    assert "number, split across fields" in refusal("It was 18", "89 then", holdout=["1889"])


def test_c7_a_compilation_without_holdout_values_says_so_or_is_refused() -> None:
    made = b.document(holdout=None)
    assert any(line.startswith("NO holdout values") for line in b.compiled(made).warnings)
    judge = ("judge.md", b.JUDGE)
    for strictly in (made, b.document(holdout=None, split="holdout")):
        with pytest.raises(HoldoutRefusal, match="no holdout values were given"):
            b.compiled({**strictly, **b.JUDGED}, strict=True, judge_spec=judge)
    dev = b.compiled(b.document(holdout=None, split="dev"), strict=True)
    assert not any("holdout" in line for line in dev.warnings)


def test_c7_the_task_description_is_scanned() -> None:
    assert "value 0 (text) at /instructions" in refusal(instructions="Say Ouagadougou.")


def test_c8_constants_of_the_format_are_not_hits() -> None:
    made = b.document(
        holdout=["1", "id", "criteria", "weight", "schema_version", "sha256", "instructions", 1]
    )
    assert json.loads(b.compiled(made).payload)["schema_version"] == 1


def test_c9_a_refusal_does_not_print_the_value() -> None:
    secret = f"Marker-Zanzibar-{4711}"
    with pytest.raises(HoldoutRefusal) as caught:
        b.compiled(b.document(f"It is {secret}.", holdout=[secret]))
    shown = "".join(traceback.format_exception(caught.value)) + repr(caught.value)
    assert "zanzibar-4711" not in shown.lower()
    assert "value 0 (text) at /criteria/0/description" in shown


@pytest.mark.parametrize(
    "text",
    ["target=Paris", "ground_truth: the city of light", '"answer": "Paris"', "Answer: Paris."],
)
def test_c10_an_answer_written_under_its_name_is_refused_without_knowing_it(text: str) -> None:
    assert "an answer's name that is given a value" in refusal(text, holdout=["unrelated value"])


def test_c10_an_id_cannot_carry_an_assignment_and_cannot_be_the_name_of_an_answer() -> None:
    with pytest.raises(InputError):
        b.compiled(b.document("x", ids=["target=Paris"]))
    assert "an id that names an answer" in refusal("x", ids=["ground_truth"])


@pytest.mark.parametrize(
    "made",
    [
        {},
        b.document(task_id=""),
        {**b.document(), "criteria": []},
        {**b.document(), "judge_content_hash": ""},
        {**b.document(), "judge_content_hash": "x"},
        b.document(weight=0),
        b.document(weight=-1),
        b.document("x", "y", ids=["a", "A"]),
    ],
)
def test_c11_what_the_schema_forbids_is_refused_before(made: dict[str, Any]) -> None:
    with pytest.raises(InputError) as caught:
        b.compiled(made)
    assert caught.value.exit_code == 2


def test_c12_the_hash_is_that_of_the_judge_specification() -> None:
    spec = b"# Judge\nScore each criterion.\n"
    made = {**b.document(), "judge_content_hash": judge_hash(spec, "judge.md")}
    assert b.compiled(made, judge_spec=("judge.md", spec)).warnings == ()
    with pytest.raises(HoldoutRefusal, match="not that of the judge specification"):
        b.compiled(made, judge_spec=("judge.md", spec + b"Be kind.\n"))
    assert "NOT recomputed" in b.compiled(made).warnings[0]


@pytest.mark.parametrize("split", ["holdout", None])
def test_c12_strict_refuses_a_hash_that_nothing_was_compared_with(split: str | None) -> None:
    made = b.document(split=split) if split else b.document()
    with pytest.raises(HoldoutRefusal, match=r"/judge_content_hash: .*; give --judge-spec") as got:
        b.compiled(made, strict=True)
    assert got.value.exit_code == 6
    # As for holdout values: a rubric of a dev split may still be a draft.
    dev = b.compiled(b.document(split="dev"), strict=True)
    assert [line for line in dev.warnings if "NOT recomputed" in line]


def test_what_compile_warns_of_outlives_its_refusal() -> None:
    told: list[str] = []
    with pytest.raises(HoldoutRefusal, match="value 0"):
        b.compiled(b.document("It is Ouagadougou."), warnings=told)
    assert ["NOT recomputed" in line for line in told] == [True]


@pytest.mark.parametrize(
    "data",
    [
        b'{"task":{"id":"a"},"Task":{"id":"b"}}',
        b'{"task":{"id":"a","id":"b"}}',
        b'{"task":{"id":"a","ID":"b"}}',
        json.dumps({**b.document(), "extra": 1}).encode(),
        json.dumps(b.document()).replace('"weight"', '"Weight"').encode(),
    ],
)
def test_c13_duplicate_keys_in_any_letter_case_and_unknown_keys_are_refused(data: bytes) -> None:
    with pytest.raises(InputError) as caught:
        b.read(data)
    assert caught.value.exit_code == 2
    assert (caught.value.where or "").startswith("input.json#")


def test_an_honest_rubric_is_canonical_and_holds_the_allowed_fields_only() -> None:
    made = b.document()
    result = b.compiled(made)
    assert result.payload == rubric_bytes(project(b.read(made)))
    assert json.loads(result.payload) == {
        "schema_version": 1,
        "source_task_id": "capital-cities",
        "judge_content_hash": b.JUDGE_HASH,
        "instructions": "Name the capital city.",
        "criteria": [
            {
                "id": "c1",
                "description": "The reply names the city and nothing else.",
                "weight": 1,
            }
        ],
    }
    assert b"instructions" not in b.compiled(b.document(instructions="")).payload
