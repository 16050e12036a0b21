"""Numbers in text, compared by value: `0.50`, `.5`, `5e-1`, `50%`, `1,000`, `1.000,0`, `1/2`.

Signs are ignored: in prose a hyphen before a number is as often a dash.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Context, Decimal, DivisionByZero, InvalidOperation, Overflow
from typing import Final

Magnitude = tuple[str, int]
"""Significant digits without zeros at either end, and the power of ten of the last one."""

# `\d` would take other scripts' digits too; the folding has already made them ASCII.
_NUMBER = re.compile(
    r"(?<![A-Za-z0-9_.,])(?:"
    r"0x[0-9a-f]{1,16}(?![0-9a-z_])"
    r"|[0-9]{1,9}\s?[/\u2044]\s?[0-9]{1,9}(?![0-9a-z_/])"
    r"|(?:[0-9][0-9.,_'\u2019]{0,80}|[.,][0-9]{1,80})(?: [0-9]{3}(?![0-9]))*+(?:[.,][0-9]+)?"
    r"(?:e[-+]?[0-9]{1,4}|\s?[x*\u00d7\u00b7]\s?10\s?\^?\s?[-+\u2212]?[0-9]{1,4})?"
    r"(?:\s?%|\s?percent\b)?)",
    re.IGNORECASE,
)
_DIGIT = re.compile(r"[0-9]")
_START = re.compile(r"[0-9.,]+")
_POWER = re.compile(r"\s?[x*\u00d7\u00b7]\s?10\s?\^?\s?", re.IGNORECASE)
_TRAILING: Final = ".,_'\u2019 "
_PLAIN = re.compile(r"[0-9]+\.?[0-9]*|\.[0-9]+")
_GROUPED = re.compile(
    r"[0-9]{1,3}(?:[,_'\u2019 ][0-9]{3})+(?:\.[0-9]+)?"
    r"|[0-9]{1,2}(?:,[0-9]{2})*,[0-9]{3}(?:\.[0-9]+)?|[0-9]+(?:_[0-9]+)+"
)
_CONTINENTAL = re.compile(r"[0-9]{1,3}(?:[. '\u2019][0-9]{3})+(?:,[0-9]+)?")
_COMMA = re.compile(r"[0-9]*,[0-9]+")
_GROUP_MARKS = re.compile(r"[,_'\u2019 ]")
_SEPARATORS = re.compile(r"[,_'\u2019 ]+")
_PERCENT = re.compile(r"\s?(?:%|percent)$", re.IGNORECASE)
_AROUND = re.compile(r"^[\s$\u20ac\u00a3\u00a5+\u2212-]+|\s+$")
_LAST: Final = frozenset("0123456789.,")
_FIRST: Final = frozenset("0123456789.,e%")
_JUNCTION: Final = 48
_CONTEXT: Final = Context(
    prec=40, Emin=-9999, Emax=9999, traps=[InvalidOperation, DivisionByZero, Overflow]
)


def whole_number(folded: str) -> set[Magnitude]:
    """Values of a text that is a number and nothing else, currency sign aside; else none."""
    text = _AROUND.sub("", folded)
    found = _NUMBER.match(text)
    if found is None or found.end() != len(text):
        return set()
    return readings(text, ambiguous=False)


def numbers_in(folded: str) -> Iterator[tuple[int, set[Magnitude]]]:
    """Every number in a folded text: where it starts, and the values it can be read as."""
    for start, token in tokens_in(folded):
        yield start, readings(token)


def tokens_in(folded: str) -> Iterator[tuple[int, str]]:
    """Every number in a folded text: where it starts, and how it is spelled."""
    if _DIGIT.search(folded) is None:
        return
    # The same as `_NUMBER.finditer`, which tries at every letter: a number starts where a run of
    # digits, points and commas does, and nowhere else in one.
    done = 0
    for run in _START.finditer(folded):
        start = run.start()
        if start >= done and (found := _NUMBER.match(folded, start)) is not None:
            done = found.end()
            yield start, found[0]


def numbers_across(before: str, after: str) -> set[Magnitude]:
    """Values of the number that two folded texts make where they meet; none if they do not."""
    if not (after and before and before[-1] in _LAST and after[0] in _FIRST):
        return set()
    tail, head = before[-_JUNCTION:], after[:_JUNCTION]
    made = [found for start, found in numbers_in(tail + head) if start < len(tail)]
    alone = {reading for _, found in numbers_in(tail) for reading in found}
    return {reading for found in made for reading in found} - alone


def magnitude(number: Decimal) -> Magnitude:
    """Of a finite number, without its sign."""
    _, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits)).lstrip("0")
    significant = text.rstrip("0")
    return significant, (int(exponent) + len(text) - len(significant)) if significant else 0


def _plain_magnitude(spelled: str) -> Magnitude:
    """`magnitude` of digits with at most one point."""
    whole, _, fraction = spelled.partition(".")
    text = (whole + fraction).lstrip("0")
    significant = text.rstrip("0")
    return significant, (len(text) - len(significant) - len(fraction)) if significant else 0


def width(value: Magnitude) -> int:
    """Characters of the number in plain notation, without a sign: `0.5` has 3."""
    digits, exponent = value
    if exponent >= 0:
        return max(1, len(digits) + exponent)
    return max(len(digits), 1 - exponent) + 1


def readings(token: str, *, ambiguous: bool = True) -> set[Magnitude]:
    """The values that a number can be read as.

    Args:
        token: Its spelling, from `tokens_in`.
        ambiguous: Also read the comma of `1,500` as a decimal point.
    """
    plain = token.rstrip(_TRAILING)
    if (
        len(plain) <= _CONTEXT.prec
        and _PLAIN.fullmatch(plain)
        and _CONTINENTAL.fullmatch(plain) is None
    ):
        return {_plain_magnitude(plain)}  # what the rest would say of it, but ten times faster
    if token.lower().startswith("0x"):
        return {magnitude(Decimal(int(token, 16)))}
    if "/" in token or "\u2044" in token:
        upper, lower = re.split(r"\s?[/\u2044]\s?", token)
        value = _divided(upper, lower)
        return set() if value is None else {magnitude(value)}
    body, percents = _PERCENT.subn("", token)
    body, powers = _POWER.subn("e", body)
    body, _, exponent = body.replace("\u2212", "-").rstrip(_TRAILING).lower().partition("e")
    spellings = set(_spellings(body, ambiguous=ambiguous))
    values = {
        number
        for spelled in spellings
        if (number := _decimal(f"{spelled}e{exponent}" if exponent else spelled)) is not None
    }
    if percents:
        values |= {number.scaleb(-2, _CONTEXT) for number in set(values)}
    if powers:
        values |= {number for spelled in spellings if (number := _decimal(spelled)) is not None}
    return {magnitude(number) for number in values}


def _spellings(body: str, *, ambiguous: bool) -> Iterator[str]:
    """A number's digits with a decimal point only; a list of numbers gives each of them."""
    if _PLAIN.fullmatch(body):
        yield body
    grouped = _GROUPED.fullmatch(body) is not None
    if grouped:
        yield _GROUP_MARKS.sub("", body)
    if _CONTINENTAL.fullmatch(body) or (_COMMA.fullmatch(body) and (ambiguous or not grouped)):
        yield _GROUP_MARKS.sub("", body.replace(".", "").replace(",", "."))
    if not grouped:
        yield from (part for part in _SEPARATORS.split(body) if _PLAIN.fullmatch(part))


def _decimal(spelled: str) -> Decimal | None:
    try:
        return _CONTEXT.create_decimal(spelled)
    except (InvalidOperation, Overflow):
        return None


def _divided(upper: str, lower: str) -> Decimal | None:
    try:
        return _CONTEXT.divide(Decimal(upper), Decimal(lower))
    except (InvalidOperation, DivisionByZero, Overflow):
        return None
