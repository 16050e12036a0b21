"""Numbers by value."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.outcomes import numerals
from runner.core.outcomes.numerals import (
    magnitude,
    numbers_across,
    numbers_in,
    whole_number,
    width,
)


def readings(text: str) -> set[tuple[str, int]]:
    return {reading for _, found in numbers_in(text) for reading in found}


@pytest.mark.parametrize(
    "value, spellings",
    [
        ("0.5", ["0.50", ".5", "5e-1", "50%", "50 percent", "1/2", "0,5", "5 x 10^-1"]),
        ("1000", ["1,000", "1.000", "1 000", "1_000", "1e3", "0x3e8", "$1,000.00", "1'000"]),
        ("1234567.5", ["1,234,567.50", "1.234.567,5", "1 234 567.5", "12,34,567.5"]),
        ("1889", ["in 1889.", "(1889)", "1889,1890"]),
    ],
)
def test_spellings_of_one_number_are_equal(value: str, spellings: list[str]) -> None:
    for spelling in spellings:
        assert magnitude(Decimal(value)) in readings(f"it is {spelling} there"), spelling


@pytest.mark.parametrize(
    "value, text",
    [("5", "0.5"), ("314", "3.14"), ("2024", "a2024"), ("1.5", "1.5.2"), ("500", "1,500")],
)
def test_other_numbers_are_not_read_into_one(value: str, text: str) -> None:
    assert magnitude(Decimal(value)) not in readings(text)


def test_a_value_is_read_in_one_way_where_text_is_read_in_all() -> None:
    assert whole_number("1,500") == {magnitude(Decimal(1500))}
    assert whole_number("5 apples") == set()
    assert whole_number("1e99999999") == set()


def test_a_number_over_two_texts_is_read_where_they_meet() -> None:
    assert magnitude(Decimal(1889)) in numbers_across("in 18", "89 it")
    assert numbers_across("in 18 ", "89 it") == set()
    assert numbers_across("", "89") == set()


@given(st.from_regex(r"\A(0|[1-9][0-9]{0,14})(\.[0-9]{1,14})?\Z"))
def test_a_number_is_found_in_its_own_text_and_its_width_is_that_of_plain_notation(
    spelled: str,
) -> None:
    number = magnitude(Decimal(spelled))
    assert number in readings(f"x {spelled} y")
    plain = spelled.rstrip("0").rstrip(".") if "." in spelled else spelled
    assert width(number) == len(plain)


@given(st.text("0123456789.,_ '%xe+-/abZ\u2019\u00d7^(", max_size=24))
@settings(max_examples=1000)
def test_tokens_are_what_the_pattern_finds_when_it_is_tried_at_every_letter(text: str) -> None:
    tried = [(found.start(), found[0]) for found in numerals._NUMBER.finditer(text)]
    assert list(numerals.tokens_in(text)) == tried


@given(st.from_regex(r"[0-9]{0,45}\.?[0-9]{0,9}", fullmatch=True))
@settings(max_examples=1000)
def test_a_plain_number_has_the_readings_that_decimal_arithmetic_gives_it(token: str) -> None:
    digits = token.rstrip(".")
    if not any(char.isdigit() for char in digits):
        return
    exact = numerals._decimal(digits)
    assert exact is not None
    assert numerals.magnitude(exact) in numerals.readings(token)
    if "." not in digits:
        assert numerals.readings(token) == {numerals.magnitude(exact)}
