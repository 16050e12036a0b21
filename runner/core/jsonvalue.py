"""Parsed JSON values: exact equality, canonical text, text to show."""

from __future__ import annotations

import json
from collections.abc import Callable
from decimal import Decimal
from typing import TypeGuard

GO_PLAIN_DIGITS = 21
"""Whole numbers of more digits are written with an exponent."""


def is_number(value: object) -> TypeGuard[float | Decimal]:
    """True for JSON numbers; `true` and `false` are none."""
    return isinstance(value, int | float | Decimal) and not isinstance(value, bool)


def exact(value: float | Decimal) -> Decimal:
    """The number as written. A float stands for its shortest text."""
    return Decimal(str(value)) if isinstance(value, float) else Decimal(value)


def same(left: object, right: object) -> bool:
    """Equality without coercion: types must agree, numbers are compared by exact value.

    Args:
        left: A parsed value.
        right: Another one.
    """
    if is_number(left) and is_number(right):
        # Decimal compares by exponent first: 1e999999999 costs nothing.
        return exact(left) == exact(right)
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(same(left[key], right[key]) for key in left)
    if isinstance(left, list | tuple) and isinstance(right, list | tuple):
        return len(left) == len(right) and all(map(same, left, right))
    return type(left) is type(right) and left == right


def canonical(value: object) -> str:
    """One text for all spellings of a value: sorted keys, numbers as `<digits>e<exponent>`."""
    return _render(value, _canonical_number)


def shown(value: object, limit: int = 80) -> str:
    """The value as JSON for a message: one line, shortened, control characters escaped."""
    return printable(_render(value, str), limit)


def printable(text: str, limit: int = 80) -> str:
    """The text on one line, shortened, everything that a terminal could act on escaped."""
    cut = text if len(text) <= limit else text[: limit - 1] + "…"
    if cut.isprintable():
        return cut
    return "".join(char if char.isprintable() else f"\\u{ord(char):04x}" for char in cut)


def plain_text(value: object) -> str | None:
    """Needle text of a value that is not a string, as the format's first reader wrote it.

    Args:
        value: A parsed value other than null.

    Returns:
        `true`, `1` for 1.0, `[a b]` for a list; None for an object, whose order is not defined.
    """
    if isinstance(value, str):
        return value
    if value is None:
        return "<nil>"
    if isinstance(value, bool):
        return "true" if value else "false"
    if is_number(value):
        return str(value) if isinstance(value, int) else _plain_number(exact(value))
    if isinstance(value, list | tuple):
        items = [plain_text(item) for item in value]
        return None if None in items else f"[{' '.join(item or '' for item in items)}]"
    return None


def _plain_number(number: Decimal) -> str:
    """Digits without trailing zeros; an exponent outside 1e-4 to 1e21."""
    if not number:
        return "-0" if number.is_signed() else "0"
    sign, digits, exponent = _parts(number)
    power = exponent + len(digits) - 1
    if -4 <= power < GO_PLAIN_DIGITS:
        if exponent >= 0:
            return f"{sign}{digits}{'0' * exponent}"
        padded = digits.rjust(1 - exponent, "0")
        return f"{sign}{padded[:exponent]}.{padded[exponent:]}"
    fraction = f".{digits[1:]}" if len(digits) > 1 else ""
    return f"{sign}{digits[0]}{fraction}e{'-' if power < 0 else '+'}{abs(power):02d}"


def _parts(number: Decimal) -> tuple[str, str, int]:
    sign, digits, exponent = number.as_tuple()
    text = "".join(map(str, digits))
    kept = text.rstrip("0")
    return "-" if sign else "", kept, int(exponent) + len(text) - len(kept)


def _canonical_number(number: float | Decimal) -> str:
    value = exact(number)
    if not value:
        return "0"
    sign, digits, exponent = _parts(value)
    return f"{sign}{digits}e{exponent}"


def _render(value: object, number: Callable[[float | Decimal], str]) -> str:
    if is_number(value):
        return number(value)
    if isinstance(value, dict):
        members = (f"{_quote(key)}:{_render(value[key], number)}" for key in sorted(value))
        return f"{{{','.join(members)}}}"
    if isinstance(value, list | tuple):
        return f"[{','.join(_render(item, number) for item in value)}]"
    return _quote(value)


def _quote(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)
