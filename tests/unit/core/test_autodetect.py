"""Auto-detect: a fresh output must occur in the case's stdout."""

from __future__ import annotations

import time
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.autodetect import AutoDetect, judge, parse
from runner.core.material import Captured, CapturedProbe
from runner.model.record import Verdict

PASSED, FAILED, UNDECIDED = Verdict.PASSED, Verdict.FAILED, Verdict.UNDECIDED


def captured(data: bytes, lost: int = 0) -> Captured:
    """Output of which `lost` bytes were not kept."""
    return Captured(data, len(data) + lost, "0" * 64)


def probe(out: bytes = b"", err: bytes = b"", **fields: Any) -> CapturedProbe:
    """A finished probe."""
    known: dict[str, Any] = {
        "exit_code": 0,
        "timed_out": False,
        "start_error": None,
        "stdout": captured(out),
        "stderr": captured(err),
    }
    return CapturedProbe(**known | fields)


def spec(pattern: str = r"Total: (\d+)", **fields: Any) -> AutoDetect:
    """A parsed value."""
    return parse({"command": "count", "pattern": pattern, **fields})


@pytest.mark.parametrize(
    "value",
    [
        None,
        "x",
        {},
        {"command": " ", "pattern": "(a)"},
        {"command": "x\0y", "pattern": "(a)"},
        {"command": 1, "pattern": "(a)"},
        {"command": "x", "pattern": ""},
        {"command": "x", "pattern": "(a"},
        {"command": "x", "pattern": r"(a)\1"},
        {"command": "x", "pattern": "(?=a)(a)"},
        {"command": "x", "pattern": "(a*)"},
        {"command": "x", "pattern": "(a)" * 4000},
        {"command": "x", "pattern": "a"},
        {"command": "x", "pattern": "(a)", "expected_group": 2},
        {"command": "x", "pattern": "(a)", "expected_group": -1},
        {"command": "x", "pattern": "(a)", "expected_group": True},
        {"command": "x", "pattern": "(a)", "expected_group": "1"},
        {"command": "x", "pattern": "(a)", "expected_group": Decimal("0.5")},
        {"command": "x", "pattern": "(a)", "expected_group": Decimal("1e999999999")},
        {"command": "x", "pattern": "(a)", "tolerance_pct": -1},
        {"command": "x", "pattern": "(a)", "tolerance_pct": True},
        {"command": "x", "pattern": "(a)", "tolerance_pct": "5"},
        {"command": "x", "pattern": "(a)", "tolerance_pct": Decimal("1e999999999")},
        {"command": "x", "pattern": "(a)", "tolerance_pct": Decimal("1e-999999999")},
        {"command": "x", "pattern": "(a)", "tolerence_pct": 5},
    ],
)
def test_a_malformed_value_is_refused(value: object, capfd: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(ValueError, match=r"^value"):
        parse(value)
    assert capfd.readouterr() == ("", "")


def test_defaults_are_the_first_group_and_no_tolerance() -> None:
    assert spec() == AutoDetect("count", r"Total: (\d+)", 1)
    assert spec("a", expected_group=Decimal("0.0")).group == 0


@pytest.mark.parametrize(
    "run, stdout, tolerance, verdict",
    [
        (probe(b"Total: 7\n"), b"log\nTotal: 7\nok", 0, PASSED),
        (probe(b"", b"Total: 7\n"), b"Total: 7", 0, PASSED),
        (probe(b"Total: 7\n", exit_code=3), b"Total: 7", 0, PASSED),
        (probe(b"Total: 8"), b"Total: 7", 0, FAILED),
        (probe(b"Total: 8"), b"Total: 7", 14, FAILED),
        (probe(b"Total: 8"), b"Total: 7", 15, PASSED),
        (probe(b"Total: 6"), b"Total: 7", 15, PASSED),
        (probe(b"Total: 110"), b"Total: 100", 10, PASSED),
        (probe(b"Total: 111"), b"Total: 100", 10, FAILED),
        (probe(b"Total: 1"), b"Total: 0", 99, FAILED),
        (probe(b"Total: 00"), b"Total: 0.", 1, PASSED),
        (probe(b"Total: 7"), b"nothing", 50, FAILED),
        (probe(b"nothing"), b"Total: 7", 0, FAILED),
        (probe(b"Total: ", b"7"), b"Total: 7", 0, FAILED),
        (None, b"Total: 7", 0, UNDECIDED),
        (probe(start_error="not_found"), b"Total: 7", 0, UNDECIDED),
        (probe(b"Total: 7", timed_out=True), b"Total: 7", 0, UNDECIDED),
        (probe(b"", b"sh: count: not found", exit_code=127), b"Total: 7", 0, UNDECIDED),
        (probe(stdout=captured(b"To", 9)), b"Total: 7", 0, UNDECIDED),
        (probe(b"Total: 7", stderr=captured(b"", 9)), b"Total: 7", 0, UNDECIDED),
    ],
)
def test_the_detected_text_must_occur_in_stdout(
    run: CapturedProbe | None, stdout: bytes, tolerance: int, verdict: Verdict
) -> None:
    found = judge(spec(tolerance_pct=tolerance), run, captured(stdout))
    assert found.verdict is verdict
    assert (found.fact is None) is (verdict is UNDECIDED)


def test_truncated_stdout_passes_on_what_it_shows_and_is_otherwise_undecided() -> None:
    run = probe(b"Total: 8")
    assert judge(spec(), run, captured(b"Total: 8", 5)).verdict is PASSED
    assert judge(spec(tolerance_pct=50), run, captured(b"Total: 7", 5)).verdict is UNDECIDED


def test_an_empty_match_shows_nothing() -> None:
    assert judge(spec(r"(\b)"), probe(b"word"), captured(b"word")).verdict is FAILED


@pytest.mark.parametrize("text", ["Inf", "NaN", "0x10", "1e99999", "x", "1,5", "1" * 500])
def test_only_plain_finite_numbers_are_within_a_tolerance(text: str) -> None:
    found = judge(
        spec(r"n=(\S*)", tolerance_pct=100), probe(f"n={text}".encode()), captured(b"n=1 ")
    )
    assert found.verdict is FAILED


def test_a_hostile_pattern_takes_linear_time() -> None:
    began = time.process_time()
    found = judge(spec(r"((a+)+)$"), probe(b"a" * 200_000 + b"b"), captured(b""))
    assert found.verdict is FAILED
    assert time.process_time() - began < 5


@settings(deadline=None)
@given(st.binary(max_size=40), st.binary(max_size=40), st.binary(max_size=40))
def test_no_bytes_raise(out: bytes, err: bytes, stdout: bytes) -> None:
    judge(spec(r"(.+)", tolerance_pct=1), probe(out, err), captured(stdout))
