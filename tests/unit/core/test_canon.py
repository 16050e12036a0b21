"""Canonical JSON and digests of values."""

from __future__ import annotations

import hashlib
import json
from typing import Any

import pytest
import rfc8785
from hypothesis import example, given
from hypothesis import strategies as st

from runner.core.canon import canonical, digest, document
from tests.unit.builders import FAILED, PASSED, case, record, result, scorecard, suite_file

JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(-1e6, 1e6)
    | st.text(st.characters(codec="utf-8")),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(st.characters(codec="utf-8")), inner, max_size=4)
    ),
    max_leaves=6,
)


@pytest.mark.parametrize(
    "value, text",
    [
        ({"b": 1, "a": [1.0, None, True]}, '{"a":[1,null,true],"b":1}'),
        # RFC 8785, section 3.2.2 and appendix B.
        (
            [333333333.33333329, 1e30, 4.50, 2e-3, 1e-27],
            "[333333333.3333333,1e+30,4.5,0.002,1e-27]",
        ),
        ('\u20ac$\u000f\nA\'B"\\\\"/', '"\u20ac$\\u000f\\nA\'B\\"\\\\\\\\\\"/"'),
        # Section 3.2.3: keys by UTF-16 code units, so that U+1F600 comes before U+FB33.
        (
            {"\ufb33": 1, "\U0001f600": 2, "\u20ac": 3, "1": 4},
            '{"1":4,"\u20ac":3,"\U0001f600":2,"\ufb33":1}',
        ),
        (-0.0, "0"),
    ],
)
def test_canonical_bytes_are_those_of_the_rfc(value: Any, text: str) -> None:
    assert canonical(value) == text.encode() + b"\n"


@given(JSON)
def test_canonical_bytes_are_one_line_that_reads_as_the_same_value(value: Any) -> None:
    data = canonical(value)
    assert data.count(b"\n") == 1
    assert data.endswith(b"\n")
    assert json.loads(data) == value
    assert canonical(json.loads(data)) == data
    assert digest(value) == hashlib.sha256(data[:-1]).hexdigest()


@given(st.dictionaries(st.text(st.characters(codec="utf-8")), st.integers(0, 9)), st.randoms())
def test_the_order_of_keys_does_not_matter(value: dict[str, int], random: Any) -> None:
    items = list(value.items())
    random.shuffle(items)
    assert digest(dict(items)) == digest(value)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 2**53, {1: 2}, "\ud800"])
def test_what_json_cannot_say_exactly_is_refused(value: Any) -> None:
    with pytest.raises(ValueError, match=r"."):
        canonical(value)


def test_a_value_as_a_document_has_every_field_and_plain_types_only() -> None:
    suite = suite_file(case("a"))
    off, on = (
        record(suite, [result(suite, "a", [verdict])], variant)
        for verdict, variant in ((FAILED, "context_off"), (PASSED, "context_on"))
    )
    card = scorecard(suite, off, on)
    plain = document(card)
    assert json.loads(json.dumps(plain)) == plain
    assert set(plain) == set(type(card).model_fields)
    assert plain["context_on"]["degraded_reason"] is None
    assert type(card).model_validate_json(canonical(plain)) == card


# Wherever the standard library's encoder writes otherwise than RFC 8785 asks, and next to it.
ANY_JSON: st.SearchStrategy[Any] = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.sampled_from([1e-4, 9.999e-5, 1e15, 1e16, 2.0**53, 2.0**53 - 1, 1e21, 5e-324, -0.0])
    | st.text(),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.lists(inner, max_size=3).map(tuple)
        | st.dictionaries(st.text() | st.sampled_from(["\ufb33", "\U0001f600", "a", "B"]), inner)
    ),
    max_leaves=8,
)


@given(ANY_JSON)
@example({"\ufb33": 1, "\U0001f600": 2})
@example([0.00001, 123456789012345680000.0, 1.0, -2.5])
@example("\x7f\x1f\u2028</script>\ud800")
@example([2**53, 1])
@example({1: "a"})
def test_canonical_bytes_and_refusals_are_those_of_the_reference_implementation(value: Any) -> None:
    try:
        expected = rfc8785.dumps(value)
    except rfc8785.CanonicalizationError as refusal:
        with pytest.raises(type(refusal)):
            canonical(value)
    else:
        assert canonical(value) == expected + b"\n"
