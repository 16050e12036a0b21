"""The judge content hash depends on what is said, not on how it was typed."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.outcomes.judgehash import judge_hash
from runner.errors import InputError


def of(text: str, name: str = "judge.md") -> str:
    return judge_hash(text.encode(), name)


def test_the_digest_is_that_of_the_canonical_text() -> None:
    assert of("a \r\nb\n\n\n") == "sha256:" + hashlib.sha256(b"a\nb\n").hexdigest()
    assert of('{"b": 1.0, "a": [ 2 ]}', "j.json") == (
        "sha256:" + hashlib.sha256(b'{"a":[2],"b":1.0}\n').hexdigest()
    )


@pytest.mark.parametrize(
    "other",
    ["\ufeffCaf\u00e9: be fair.\n", "Cafe\u0301: be fair.", "Caf\u00e9: be\u200b fair.  \r\n\r\n"],
)
def test_byte_order_marks_zero_width_normal_forms_and_line_ends_do_not_count(other: str) -> None:
    assert of(other) == of("Caf\u00e9: be fair.\n")


def test_keys_are_sorted_and_numbers_keep_their_spelling() -> None:
    assert of('{"b":{"y":1,"x":2},"a":0}', "j.JSON") == of('{"a":0,"b":{"x":2,"y":1}}', "j.json")
    assert of('{"a":1.0}', "j.json") != of('{"a":1}', "j.json")


def test_words_and_their_order_count() -> None:
    assert len({of("be fair"), of("be fair!"), of("Be fair"), of("fair be"), of("be  fair")}) == 5


@pytest.mark.parametrize(
    "data, name",
    [
        (b"a: 1", "judge.yaml"),
        (b"a: 1", "judge.YML"),
        (b"\xff\xfe", "judge.md"),
        (b"{", "judge.json"),
        (b'{"a":1,"a":2}', "judge.json"),
        ('{"\u00e9":1,"e\u0301":2}'.encode(), "judge.json"),
        (b"", "judge.md"),
        (b"\xef\xbb\xbf \n", "judge.md"),
    ],
)
def test_what_has_no_canonical_form_is_refused_by_name(data: bytes, name: str) -> None:
    with pytest.raises(InputError) as caught:
        judge_hash(data, name)
    assert (caught.value.where or "").startswith(name)


@given(st.text(min_size=1).filter(lambda text: text.strip("\ufeff\u200b\u200c\u200d \t\r\n\f\v")))
def test_text_keeps_its_hash_under_what_does_not_count(text: str) -> None:
    if not text.strip():
        return
    data = text.encode("utf-8", "ignore")
    if data.strip():
        assert judge_hash(data, "j.md") == judge_hash(b"\xef\xbb\xbf" + data + b"\n\n", "j.md")
