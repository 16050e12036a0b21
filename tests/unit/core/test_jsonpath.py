"""The source and path grammar, quirks included."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.jsonpath import Target, find, split_target

DOCUMENT = {"a": [[1, 2], 3], "ab": [7], "$": [5], "o": {"n": None, "x.y": 1}, "": 9}


@pytest.mark.parametrize(
    "target, source, path",
    [
        ("stdout", "stdout", ""),
        ("  stderr ", "stderr", ""),
        ("stdout.a.b", "stdout", "a.b"),
        ("stdout:a", "stdout", "a"),
        ("stdout.json", "stdout", "json"),
        ("stdout[0]", "stdout[0]", ""),
        ("out/x.json", "out/x.json", ""),
        ("out/x.json:a:b", "out/x.json", "a:b"),
        (":a", ":a", ""),
        ("", "", ""),
    ],
)
def test_targets_are_split_into_source_and_path(target: str, source: str, path: str) -> None:
    assert split_target(target) == Target(source, path)


@pytest.mark.parametrize(
    "path, expected",
    [
        ("", DOCUMENT),
        ("$", DOCUMENT),
        ("$.", DOCUMENT),
        ("$.a[0][1]", 2),
        (".a[1]", 3),
        ("$..a[1]", 3),
        ("a..[0]", [1, 2]),
        ("a.[0].[0]", 1),
        ("a[0]b", 7),
        ("$[0]", 5),
        ("o.n", None),
        ("a[+1]", 3),
    ],
)
def test_paths_lead_to_values(path: str, expected: object) -> None:
    found = find(DOCUMENT, path)
    assert found.found
    assert found.value == expected


@pytest.mark.parametrize(
    "path",
    ["b", "a[2]", "a[-1]", "a[x]", "a[", "a[]", "o[0]", "a.n", "o.x.y", "o.n.z", "a[0", "$.$.a",
     "a[99999999999999999999]", "a[ 0]", "a[\u0661]"],
)  # fmt: skip
def test_paths_that_lead_nowhere_find_nothing(path: str) -> None:
    assert not find(DOCUMENT, path).found


@settings(deadline=None)
@given(st.text("ab$.[]0-+", max_size=20))
def test_no_path_raises(path: str) -> None:
    find(DOCUMENT, path)
