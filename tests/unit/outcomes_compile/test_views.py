"""Which views apply to which values, and what must not be taken for a value."""

from __future__ import annotations

import base64
import json
import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.outcomes import fold
from runner.core.outcomes.leakscan import scan, unscannable
from runner.core.outcomes.payload import Shape
from runner.errors import HoldoutRefusal, InputError
from tests.unit.outcomes_compile import builders as b

PLAIN = Shape(frozenset(), frozenset())
WORDS = st.text("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ ", min_size=9, max_size=40)


def views(text: str, *values: str) -> list[tuple[int, str]]:
    hits = scan(json.dumps([text]).encode(), b.values(*values), PLAIN)
    return [(hit.value_index, hit.view) for hit in hits]


@pytest.mark.parametrize(
    "value, text",
    [
        ("Paris", "comparison"),
        ("cation", "application and classification"),
        ("Oslo", "Oslos"),
        ("tal", "capital totals"),
        ("Oslo", "it was an also-ran: o slo"),
        ("Oslo", "olsO"),
        ("1889", "18890 or 21889 or 1.8891"),
        ("0.5", "0.55, 10.5, 5.0, 5 and v0.5.1"),
        ("100", "1000, a100b, 1001"),
        ("id", "the id of it"),
        ("B", "Plan B or plan A"),
        ("42", "42 is not said to be anything here"),
        ("yes", "say yes or no"),
        ("in put", "put it in"),
    ],
)
def test_what_only_looks_like_a_value_is_none(value: str, text: str) -> None:
    assert views(text, value) == []


@pytest.mark.parametrize(
    "value, text, view",
    [
        ("Oslo", "go to Oslo!", "text"),
        ("Oslo", "go to OSLO!", "letter case"),
        ("Oslo", "theOsloAnswer", "inside a word"),
        ("Oslo", "O-s-l-o", "spaces and punctuation"),
        ("New York", "new-york", "spaces and punctuation"),
        ("New York", "NewYork", "spaces and punctuation"),
        ("x < 5", "where x<5 holds", "unicode form"),
        ("C++", "written in c++, mostly", "letter case"),
        ("\u6771\u4eac", "\u6771\u4eac\u30bf\u30ef\u30fc", "text"),
        ("42", "42", "whole field"),
        ("42", "The answer is 42.", "answer position"),
        ("B", "The solution is: B", "answer position"),
        ("yes", " Yes ", "whole field"),
        ("100 km", "over 100km away", "spaces and punctuation"),
        ("International Company", "lnternational Cornpany", "lookalike characters"),
        ("1889", "the year 1,889", "number"),
        ("Paris", "see: 5061726973", "hex"),
        ("Paris", "to be 50 61 72 69 73 or added", "hex"),
        ("Paris", "facade 0x50, 0x61, 0x72, 0x69, 0x73", "hex"),
        ("Paris", "cafe 50:61:72:69:73 cafe", "hex"),
        ("Ouagadougou", base64.b64encode(b"x Ouagadougou").decode(), "base64"),
        ("Paris", "Paris".encode("utf-16-le").decode("utf-16-be"), "utf-16"),
    ],
)
def test_a_hit_names_the_plainest_view(value: str, text: str, view: str) -> None:
    found = views(text, value)
    assert [index for index, _ in found] == [0]
    assert found[0][1] == view


def test_values_that_say_too_little_are_named_by_index() -> None:
    values = b.values("Paris", "B", "42", "yes", "", "  ", "\u00e9", "0.5", "x < 5", "true", "Oslo")
    assert unscannable(values) == (1, 2, 3, 4, 5, 6, 9)
    with pytest.raises(HoldoutRefusal, match=r"not scannable.*: 0, 2"):
        b.compiled(
            b.document(holdout=["B", "Ouagadougou", "7"]) | b.JUDGED,
            strict=True,
            judge_spec=("judge.md", b.JUDGE),
        )
    warnings = b.compiled(b.document(holdout=["B", "Ouagadougou", "7"])).warnings
    assert any("not scannable" in line and line.endswith(": 0, 2") for line in warnings)


def test_keys_that_are_no_constants_are_scanned_and_not_shown() -> None:
    hits = scan(json.dumps({"scores": {"is Ouagadougou": 1}}).encode(), b.values("Ouagadougou"))
    assert [(hit.view, hit.pointer) for hit in hits] == [("text", "/*/*")]


def test_a_value_may_be_longer_than_the_payload_and_a_payload_empty() -> None:
    assert scan(b"[]", b.values("x" * 5000), PLAIN) == ()
    assert scan(b'[""]', b.values("Paris", "y" * 5000), PLAIN) == ()
    assert scan(b'["Paris"]', (), PLAIN) == ()
    with pytest.raises(InputError):
        scan(b'{"a":1,"a":2}', b.values("Paris"), PLAIN)


def test_text_that_is_encoded_too_deeply_is_refused_rather_than_passed() -> None:
    text = "A text that is long enough to be hidden."
    for _ in range(7):
        text = base64.b64encode(text.encode()).decode()
    with pytest.raises(HoldoutRefusal, match="too deeply"):
        views(text, "unrelated value")


@settings(max_examples=60, deadline=None)
@given(WORDS, st.randoms(use_true_random=False))
def test_a_long_value_is_found_however_it_is_wrapped(value: str, randomness: random.Random) -> None:
    """Random chains of encodings in random surroundings, cut at random into two fields."""
    if fold.weight(fold.words(fold.plain(value))) < 9 or unscannable(b.values(value)):
        return
    value = value.strip()
    text = randomness.choice([value, value.swapcase()])
    depth = randomness.randint(0, 2)
    for _ in range(depth):
        text = randomness.choice(CHAINED)(text)
    before, after = (
        randomness.choice(["", "see: ", "(", "x\n"]),
        randomness.choice(["", " ok", ")"]),
    )
    whole = before + text + after
    cut = randomness.randint(0, len(whole))
    assert scan(json.dumps([whole]).encode(), b.values(value), PLAIN)
    if depth == 0:
        assert scan(json.dumps([whole[:cut], whole[cut:]]).encode(), b.values(value), PLAIN)


CHAINED = (
    lambda text: base64.b64encode(text.encode()).decode(),
    lambda text: base64.urlsafe_b64encode(b"a: " + text.encode()).decode().rstrip("="),
    lambda text: text.encode().hex(),
    lambda text: "".join(f"%{byte:02x}" for byte in text.encode()),
    lambda text: "".join(f"&#{ord(char)};" for char in text),
    lambda text: json.dumps(json.dumps(text)),
)


@given(st.text(max_size=60), st.text(max_size=60))
def test_folding_is_idempotent_and_blind_to_case(one: str, two: str) -> None:
    for folding in (fold.plain, fold.lookalike):
        assert folding(folding(one)) == folding(folding(folding(one)))
    assert fold.words(fold.plain(one)) == fold.plain(" ".join(fold.words(fold.plain(one)))).split()
    assert (
        "".join(fold.words(fold.plain(f"{one}\n{two}")))
        == "".join(fold.words(fold.plain(one)) + fold.words(fold.plain(two)))
        or not f"{one}{two}".isascii()
    )


@settings(max_examples=150, deadline=None)
@given(st.lists(st.text(max_size=40), max_size=6), st.lists(st.text(max_size=20), max_size=4))
def test_the_scan_ends_in_a_result_or_a_refusal_for_any_text(
    texts: list[str], sought: list[str]
) -> None:
    try:
        hits = scan(json.dumps(texts).encode("utf-8", "surrogatepass"), b.values(*sought), PLAIN)
    except (HoldoutRefusal, InputError):
        return
    assert {hit.value_index for hit in hits} <= set(range(len(sought)))
