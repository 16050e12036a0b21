"""Globs of `--include`."""

from __future__ import annotations

import pytest

from runner.host.globs import compile_glob


@pytest.mark.parametrize(
    "pattern, path, expected",
    [
        ("bin", b"bin", True),
        ("bin", b"bin/tool", True),
        ("bin/", b"bin/deep/er", True),
        ("./bin", b"bin/tool", True),
        ("bin", b"binary", False),
        ("bin", b"sub/bin", False),
        ("*.so", b"a.so", True),
        ("*.so", b"lib/a.so", False),
        ("**/*.so", b"a.so", True),
        ("**/*.so", b"lib/x/a.so", True),
        ("lib/**", b"lib/x/a.so", True),
        ("lib/**/a", b"lib/a", True),
        ("?", b"/", False),
        ("a?c", b"a/c", False),
        ("a[b-d]e", b"ace", True),
        ("a[!b]e", b"a/e", False),
        ("a[!b]e", b"axe", True),
        ("a[]x]e", b"a]e", True),
        ("a[", b"a[", True),
        ("a.b", b"axb", False),
        ("a^b|c", b"a^b|c", True),
        ("é*", "é1".encode(), True),
        ("x*", b"x\n\xff", True),
    ],
)
def test_a_pattern_matches_what_it_should(pattern: str, path: bytes, expected: bool) -> None:
    assert bool(compile_glob(pattern).fullmatch(path)) is expected


@pytest.mark.parametrize("pattern", ["", "/", ".", "/etc", "..", "a/../b", "[z-a]"])
def test_a_malformed_pattern_is_refused(pattern: str) -> None:
    with pytest.raises(ValueError, match="not a"):
        compile_glob(pattern)
