"""The strict parser refuses whatever two readers could understand differently."""

from __future__ import annotations

import json
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.strictjson import StrictJsonError, loads

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@pytest.mark.parametrize(
    "data, message, pointer",
    [
        (b"\xef\xbb\xbf{}", "byte order mark", ""),
        (b"\xff\xfe{\x00}\x00", "byte order mark", ""),
        ("{}".encode("utf-16-le"), "UTF-16", ""),
        ("{}".encode("utf-32-be"), "UTF-16 or UTF-32", ""),
        (b'{"a":"\xff"}', "invalid UTF-8", ""),
        (b'"\xed\xa0\x80"', "invalid UTF-8", ""),
        (b'{"a":[{"b":1,"b":2}]}', "duplicate key", "/a/0/b"),
        (b'{"x/y":{"":1,"":1}}', "duplicate key", "/x~1y/"),
        (b'{"a":1,"\\u0061":2}', "duplicate key", "/a"),
        (b"[1,NaN]", "NaN and Infinity", "/1"),
        (b"Infinity", "NaN and Infinity", ""),
        (b'{"a":-Infinity}', "NaN and Infinity", "/a"),
        (b"[1e1000000000000000000]", "out of range", "/0"),
        (b'{"k":["\\ud800"]}', "lone surrogate", "/k/0"),
        (b'{"\\uDC00":1}', "lone surrogate", ""),
        (b"{} {}", "text after the document (line 1, column 4)", ""),
        (b"[1,\n 2,,]", "(line 2, column 4)", ""),
        (b"[01]", "expecting", ""),
        (b"[1.]", "expecting", ""),
        (b"[+1]", "expecting", ""),
        (b"", "expecting value", ""),
        (b"'a'", "expecting value", ""),
        (b'"a\nb"', "control character", ""),
        (b"[" + b"1" * 4301 + b"]", "more than 4300 characters", "/0"),
        (b"[0." + b"1" * 4301 + b"]", "more than 4300 characters", "/0"),
        (b"[" * 129 + b"]" * 129, "deeper than 128", ""),
        (b'{"a":' * 100_000, "deeper than 128", ""),
    ],
)
def test_what_is_not_strict_json_is_refused_with_its_place(
    data: bytes, message: str, pointer: str
) -> None:
    with pytest.raises(StrictJsonError) as caught:
        loads(data)
    assert message in str(caught.value)
    assert caught.value.pointer == pointer


def test_numbers_stay_exact() -> None:
    assert loads(b"9007199254740993") == 9007199254740993
    assert repr(loads(b"[0.10, 1E2, 1.0, 1e999999999]")) == repr(
        [Decimal("0.10"), Decimal("1E+2"), Decimal("1.0"), Decimal("1e999999999")]
    )


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert loads(b'"\\ud83d\\ude00"') == "\U0001f600"
    assert loads(b'"\\\\ud800"') == "\\ud800"


def test_depth_is_counted_outside_strings_only() -> None:
    inner = b"[" * 128 + b"]" * 128
    assert loads(inner)
    text = '["' + "[{" * 500 + '", "\\"[[[", 1]'
    assert loads(text.encode()) == json.loads(text)


@settings(deadline=None)
@given(st.lists(st.booleans(), max_size=12), st.integers(1, 12))
def test_the_depth_bound_is_exact(arrays: list[bool], bound: int) -> None:
    nested = "0"
    for array in arrays:
        nested = f"[1,{nested},[]]" if array else f'{{"[":{{}},"a":{nested}}}'
    depth = len(arrays) + bool(arrays)
    if depth <= bound:
        assert loads(nested.encode(), max_depth=bound) == json.loads(nested)
    else:
        with pytest.raises(StrictJsonError, match="deeper"):
            loads(nested.encode(), max_depth=bound)


def test_the_size_bound_counts_bytes() -> None:
    assert loads(b'"abcd"', max_bytes=6) == "abcd"
    with pytest.raises(StrictJsonError, match="more than 5 bytes"):
        loads(b'"abcd"', max_bytes=5)


def test_keys_that_differ_by_case_are_refused_on_request_only() -> None:
    data = b'{"a":{"Split":1,"split":2}}'
    assert loads(data) == {"a": {"Split": 1, "split": 2}}
    with pytest.raises(StrictJsonError) as caught:
        loads(data, fold_keys=True)
    assert caught.value.pointer == "/a/split"


def test_hostile_documents_take_linear_time() -> None:
    began = time.process_time()
    for data in (b'"' + b'\\"' * 400_000 + b"[" * 200, b"[" * 129 + b'"\\' * 400_000, b"[" * 10**6):
        with pytest.raises(StrictJsonError):
            loads(data)
    assert time.process_time() - began < 5


@settings(deadline=None)
@given(VALUES)
def test_what_a_writer_writes_is_read_unchanged(value: object) -> None:
    assert loads(json.dumps(value).encode()) == value
    assert loads(json.dumps(value, ensure_ascii=False).encode()) == value


@settings(deadline=None)
@given(st.binary(max_size=60) | st.text('[]{}",:\\u0d819e-.NaI ', max_size=60).map(str.encode))
def test_any_bytes_are_a_value_or_a_refusal_that_standard_json_agrees_with(data: bytes) -> None:
    try:
        value = loads(data)
    except StrictJsonError:
        return
    assert json.loads(data, parse_float=Decimal) == value
