"""Where two JSON values differ first."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.firstdifference import first_difference

LEAVES = st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=3)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=8,
)


@given(VALUES)
def test_a_value_does_not_differ_from_itself(value: Any) -> None:
    assert first_difference(value, value) is None


@given(VALUES, VALUES)
def test_values_that_are_not_equal_differ_somewhere(left: Any, right: Any) -> None:
    # `repr` tells True from 1, which Python's own comparison does not.
    different = first_difference(left, right)
    if repr(left) != repr(right) and left != right:
        assert different is not None
    assert (different is None) == (first_difference(right, left) is None)


@pytest.mark.parametrize(
    "found, wanted, pointer, words",
    [
        ({"a": [1, {"b/c": 2}]}, {"a": [1, {"b/c": 3}]}, "/a/1/b~1c", "is 2, the evidence gives 3"),
        ({"a": 1}, {}, "/a", "is there, and the evidence does not give it"),
        ({}, {"a": 1}, "/a", "is missing"),
        ([1, 2], [1], "", "has 2 items, the evidence gives 1"),
        ([1, 2], [3], "/0", "is 1, the evidence gives 3"),
        ({"z": 1, "a": 1}, {"z": 2, "a": 2}, "/a", "is 1, the evidence gives 2"),
        (True, 1, "", "is true, the evidence gives 1"),
        (None, 0, "", "is null, the evidence gives 0"),
        ("a\n", "b", "", 'is "a\\n", the evidence gives "b"'),
    ],
)
def test_the_first_place_and_what_is_there_are_told(
    found: Any, wanted: Any, pointer: str, words: str
) -> None:
    different = first_difference(found, wanted)
    assert different is not None
    assert different == (pointer, words)


def test_numbers_are_compared_by_value() -> None:
    assert first_difference({"a": 1}, {"a": 1.0}) is None
