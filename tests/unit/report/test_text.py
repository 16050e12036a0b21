from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.report.text import number, plural, short, signed, visible
from tests.unit.report.builders import HOSTILE, RAW

ANY_TEXT = st.text(alphabet=st.characters())


@given(ANY_TEXT)
def test_visible_text_is_utf8_without_control_format_or_surrogate(text: str) -> None:
    shown = visible(text)
    shown.encode("utf-8")
    assert {unicodedata.category(char) for char in shown}.isdisjoint(
        {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
    )


@given(ANY_TEXT)
def test_visible_twice_is_visible_once(text: str) -> None:
    assert visible(visible(text)) == visible(text)


@given(ANY_TEXT.filter(lambda text: text.isprintable()))
def test_printable_text_is_left_as_it_is(text: str) -> None:
    assert visible(text) == text


def test_what_was_escaped_can_still_be_told() -> None:
    assert visible("a\x1b[31m\u202e\udcff\nb") == "a\\x1b[31m\\u202e\\udcff\\nb"
    assert visible("a\r\nb", newlines=True) == "a\\r\nb"


def test_a_limit_counts_what_it_leaves_out() -> None:
    assert visible("abcdef", limit=4) == "abcd… (2 more characters)"
    assert visible("abcd", limit=4) == "abcd"


@pytest.mark.parametrize("raw", RAW)
def test_nothing_raw_is_left_of_a_hostile_string(raw: str) -> None:
    assert raw in HOSTILE
    assert raw not in visible(HOSTILE)


@pytest.mark.parametrize(
    "value,written",
    [(0.5333, "0.5333"), (1.0, "1.0"), (0.46669999, "0.4667"), (-0.00001, "0.0"), (None, "-")],
)
def test_numbers_have_one_written_form(value: float | None, written: str) -> None:
    assert number(value) == written


@pytest.mark.parametrize(
    "value,written",
    [(0.4667, "+0.4667"), (-0.2, "-0.2"), (0.0, "0.0"), (0.00001, "0.0"), (None, "-")],
)
def test_a_delta_carries_its_sign_and_a_missing_one_is_not_zero(
    value: float | None, written: str
) -> None:
    assert signed(value) == written


def test_nouns_agree_with_their_number() -> None:
    assert [plural(n, "entry", "entries") for n in (0, 1, 2)] == [
        "0 entries",
        "1 entry",
        "2 entries",
    ]


def test_a_short_digest_keeps_the_prefix_of_a_keyed_one() -> None:
    assert short("a" * 64) == "aaaaaaaaaaaa…"
    assert short("hmac-sha256:" + "b" * 64) == "hmac-sha256:bbbbbbbbbbbb…"
