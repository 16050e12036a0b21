"""Strips know what they are made of, and keep all that can span two texts."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from runner.core.outcomes.foldings import apart, together
from runner.core.outcomes.views import Matcher

TEXTS = st.lists(st.text("abcxyz", max_size=12), max_size=8)
REACH = st.integers(1, 6)


@given(TEXTS, REACH)
def test_every_position_of_a_strip_is_that_letter_of_its_text(texts: list[str], reach: int) -> None:
    for strip in (apart(texts), together(texts, reach)):
        for position, letter in enumerate(strip.text):
            if letter != "\n":
                number, at = strip.locate(position)
                assert texts[number][at] == letter


@given(TEXTS, REACH)
def test_a_strip_backwards_is_that_of_the_texts_backwards(texts: list[str], reach: int) -> None:
    strip = together(texts, reach).reversed()
    for position, letter in enumerate(strip.text):
        if letter != "\n":
            number, at = strip.locate(position)
            assert texts[number][::-1][at] == letter


@given(TEXTS, REACH, st.data())
def test_what_spans_texts_within_reach_is_kept(
    texts: list[str], reach: int, data: st.DataObject
) -> None:
    whole = "".join(texts)
    if not whole:
        return
    start = data.draw(st.integers(0, len(whole) - 1))
    part = whole[start : start + reach]
    ends, position = set(), 0
    for text in texts:
        position += len(text)
        ends.add(position)
    if any(start < end < start + len(part) for end in ends):
        assert part in together(texts, reach).text
    assert all("\n" in piece or len(piece) <= 12 for piece in apart(texts).text.split("\n"))


@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=14), st.just([0]), max_size=8),
    st.text("abc", max_size=40),
)
def test_the_matcher_finds_every_occurrence(patterns: dict[str, list[int]], text: str) -> None:
    matcher = Matcher(patterns)
    expected = {
        (pattern, start)
        for pattern in patterns
        for start in range(len(text))
        if text.startswith(pattern, start)
    }
    found = list(matcher.find(text))
    assert {(matcher.patterns[number], start) for number, start, _ in found} == expected
    assert len(found) == len(expected)
    assert all(text[start:end] == matcher.patterns[number] for number, start, end in found)
