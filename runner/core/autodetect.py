"""`stdout_contains_auto_detect`: the output of a second command must occur in the case's stdout.

Patterns run on RE2, whose matching time is linear in the text whatever the pattern.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction

import re2

from runner.core.finding import Finding, failed, passed, undecided
from runner.core.jsonvalue import canonical, exact, is_number, printable
from runner.core.material import Captured, CapturedProbe

MAX_PATTERN = 10_000
"""Longest pattern, in characters."""

# Exponents beyond those of a double are no measured number, and exact arithmetic on them is costly.
_MAX_POWER = 400
_NUMBER = re.compile(rb"\s*([+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]{1,6})?)\s*")
_FIELDS = {"command", "pattern", "expected_group", "tolerance_pct"}
# What `sh` says when the program is missing or cannot be executed.
_NOT_STARTED = (126, 127)


@dataclass(frozen=True, slots=True)
class AutoDetect:
    """A well-formed value of the expectation.

    Attributes:
        command: Shell text to run as a probe.
        pattern: RE2 pattern; its first match in the probe's output is the text to look for.
        group: Group with the number that `tolerance_pct` is about; 0 is the whole match.
        tolerance_pct: Accepted drift in percent of the number in stdout; 0: none.
    """

    command: str
    pattern: str
    group: int = 1
    tolerance_pct: Fraction = Fraction(0)


def parse(value: object) -> AutoDetect:
    """Read the expectation's value.

    Args:
        value: `{"command", "pattern", "expected_group"?, "tolerance_pct"?}`.

    Raises:
        ValueError: The value is malformed; the text says how and quotes nothing of it.
    """
    if not isinstance(value, dict):
        # One error class for every flaw: the caller reports them alike.
        raise ValueError("value must be an object with command and pattern")  # noqa: TRY004
    if value.keys() - _FIELDS:
        raise ValueError("value has a field other than " + ", ".join(sorted(_FIELDS)))
    command, pattern = value.get("command"), value.get("pattern")
    if not isinstance(command, str) or not command.strip() or "\0" in command:
        raise ValueError("value.command must be a text that is not empty")
    if not isinstance(pattern, str) or not 0 < len(pattern) <= MAX_PATTERN:
        raise ValueError(f"value.pattern must be a text of 1 to {MAX_PATTERN} characters")
    group, tolerance = value.get("expected_group"), value.get("tolerance_pct")
    group = 1 if group is None else group
    if isinstance(group, Decimal) and abs(group.adjusted()) < 9 and group == int(group):
        group = int(group)
    if isinstance(group, bool) or not isinstance(group, int) or group < 0:
        raise ValueError("value.expected_group must be an integer of at least 0")
    drift = Fraction(0) if tolerance is None else _bounded(tolerance)
    if drift is None or drift < 0:
        raise ValueError("value.tolerance_pct must be a number of at least 0, at most 1e400")
    compiled = _compiled(pattern)
    if compiled is None:
        raise ValueError("value.pattern is not a valid RE2 pattern")
    if compiled.search(b"") is not None:
        raise ValueError("value.pattern matches the empty text, so that it could never fail")
    if group > compiled.groups:
        raise ValueError("value.expected_group is larger than the number of groups in the pattern")
    return AutoDetect(command.strip(), pattern, group, drift)


def judge(spec: AutoDetect, probe: CapturedProbe | None, stdout: Captured) -> Finding:
    """Judge the expectation.

    Args:
        spec: The expectation's value.
        probe: What its command did; None when it was not run.
        stdout: Standard output of the case.
    """
    if probe is None or probe.start_error is not None:
        return undecided("the auto-detect command was not started", rests_on="stdout")
    if probe.timed_out:
        return undecided("the auto-detect command timed out", rests_on="stdout")
    if not (probe.stdout.complete and probe.stderr.complete):
        # What was cut off could hold an earlier or a longer match.
        return undecided("the output of the auto-detect command was truncated", rests_on="stdout")
    pattern = _compiled(spec.pattern)
    fresh = pattern.search(_joined(probe)) if pattern is not None else None
    if fresh is None:
        if probe.exit_code in _NOT_STARTED:
            return undecided(
                "the auto-detect command could not be started",
                f"its shell ended with {probe.exit_code}",
                rests_on="stdout",
            )
        return failed(
            "the pattern matches nothing that the auto-detect command wrote", "", "none", "stdout"
        )
    text = fresh.group(0)
    label = _label(text)
    if not text:
        return failed("the match is empty and shows nothing", "", "empty", "stdout")
    if text in stdout.data:
        return passed("stdout contains the detected text", label, _fact(text, 1), "stdout")
    if not stdout.complete:
        return undecided(
            "stdout was truncated, and what was kept does not contain the detected text",
            label,
            rests_on="stdout",
        )
    if spec.tolerance_pct > 0 and _tolerated(spec, pattern, fresh, stdout.data):
        fact = _fact(text, 2)
        return passed("stdout is within the tolerance of the detected text", label, fact, "stdout")
    return failed("stdout does not contain the detected text", label, _fact(text, 0), "stdout")


def _tolerated(spec: AutoDetect, pattern: re2._Regexp, fresh: re2._Match, stdout: bytes) -> bool:
    pinned = pattern.search(stdout)
    if pinned is None:
        return False
    new, old = _number(fresh.group(spec.group)), _number(pinned.group(spec.group))
    if new is None or old is None:
        return False
    if old == 0:
        return new == 0
    return abs(new - old) * 100 <= spec.tolerance_pct * abs(old)


def _compiled(pattern: str) -> re2._Regexp | None:
    options = re2.Options()
    options.log_errors = False  # it would write the pattern to stderr
    try:
        return re2.compile(pattern, options)
    except re2.error:
        return None


def _joined(probe: CapturedProbe) -> bytes:
    """Both streams; a line break keeps the end of one from gluing to the start of the other."""
    out, err = probe.stdout.data, probe.stderr.data
    return out + b"\n" + err if out and err and not out.endswith(b"\n") else out + err


def _number(text: bytes | None) -> Fraction | None:
    match = _NUMBER.fullmatch(text or b"")
    return _bounded(Decimal(match[1].decode())) if match and len(match[1]) <= _MAX_POWER else None


def _bounded(value: object) -> Fraction | None:
    if not is_number(value):
        return None
    number = exact(value)
    if not number:
        return Fraction(0)
    return Fraction(number) if abs(number.adjusted()) <= _MAX_POWER else None


def _label(text: bytes) -> str:
    return printable(text.decode("utf-8", "backslashreplace"))


def _fact(text: bytes, how: int) -> str:
    return canonical([text.decode("utf-8", "backslashreplace"), how])
