"""Exact equality and the texts made of values."""

from __future__ import annotations

from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.jsonvalue import canonical, plain_text, printable, same, shown

SCALARS = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, -1, Decimal("1.0"), Decimal("1e0"), Decimal("10e-1"), Decimal("-0.0")])
    | st.sampled_from(["1", "true", "", "1e0", 2**53, 2**53 + 1, Decimal(2**53), Decimal("1e9999")])
    | st.integers()
    | st.decimals(allow_nan=False, allow_infinity=False)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("ab"), inner, max_size=2)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "left, right, equal",
    [
        (1, Decimal("1.0"), True),
        (1, Decimal("1e0"), True),
        (100, Decimal("1E+2"), True),
        (0, Decimal("-0.0"), True),
        (9007199254740993, 9007199254740992, False),
        (Decimal("0.1"), Decimal("0.10000000000000001"), False),
        (Decimal("1e999999999"), Decimal("1e999999998"), False),
        (10**4000, Decimal("1e4000"), True),
        (True, 1, False),
        (False, 0, False),
        ("true", True, False),
        ("1", 1, False),
        (None, "<nil>", False),
        (None, False, False),
        ([1, [2]], [Decimal(1), [Decimal("2.0")]], True),
        ([1, 2], [2, 1], False),
        ({"a": 1, "b": 2}, {"b": Decimal("2.0"), "a": 1}, True),
        ({"a": 1}, {"a": 1, "b": None}, False),
        ([], {}, False),
        ("é", "e\u0301", False),
    ],
)
def test_values_are_compared_without_coercion(left: object, right: object, equal: bool) -> None:
    assert same(left, right) is equal
    assert same(right, left) is equal
    assert (canonical(left) == canonical(right)) is equal


@settings(deadline=None)
@given(VALUES, VALUES, VALUES)
def test_equality_is_an_equivalence(a: object, b: object, c: object) -> None:
    assert same(a, a)
    assert same(a, b) == same(b, a)
    if same(a, b) and same(b, c):
        assert same(a, c)


@settings(deadline=None)
@given(VALUES, VALUES)
def test_two_values_have_one_canonical_text_exactly_when_they_are_equal(
    a: object, b: object
) -> None:
    assert (canonical(a) == canonical(b)) == same(a, b)


@pytest.mark.parametrize(
    "value, text",
    [
        (True, "true"),
        (False, "false"),
        (7, "7"),
        (12345678, "12345678"),
        (Decimal("1.0"), "1"),
        (Decimal("0.50"), "0.5"),
        (Decimal("-12.340"), "-12.34"),
        (Decimal("1e3"), "1000"),
        (Decimal("0.0001"), "0.0001"),
        (Decimal("0.00001"), "1e-05"),
        (Decimal("1.5e-7"), "1.5e-07"),
        (Decimal("1e21"), "1e+21"),
        (Decimal("1e20"), "1" + "0" * 20),
        (Decimal("1e999999999"), "1e+999999999"),
        (Decimal("0.0"), "0"),
        (["a", 1, None, [True]], "[a 1 <nil> [true]]"),
        ([], "[]"),
        ({"a": 1}, None),
        ([{"a": 1}], None),
    ],
)
def test_values_that_are_no_strings_have_a_defined_text(value: object, text: str | None) -> None:
    assert plain_text(value) == text


def test_shown_text_is_one_short_line_without_anything_a_terminal_acts_on() -> None:
    assert shown({"b": Decimal("1.50"), "a": ["\x1b[31m\n", True]}) == (
        '{"a":["\\u001b[31m\\n",true],"b":1.50}'
    )
    assert printable("a\u202eb\nc\x7f") == "a\\u202eb\\u000ac\\u007f"
    assert len(shown("x" * 10_000, 50)) == 50
