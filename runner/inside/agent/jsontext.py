"""JSON without the `json` module, whose import costs 10 ms."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Context:
    strict = True
    object_hook = None
    object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = float


def parse_json(text: str) -> Any:
    """Parse one JSON document with the C scanner alone: importing `json` costs 10 ms."""
    text = text.strip(" \t\r\n")
    try:
        from _json import make_scanner

        scan = make_scanner(_Context())  # type: ignore[arg-type]
    except (ImportError, AttributeError, TypeError):  # another Python than the usual ones
        import json

        return json.loads(text)
    try:
        value, end = scan(text, 0)
    except StopIteration:
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError("extra data after JSON")
    return value


def quote(text: str) -> bytes:
    """A JSON string literal, ASCII only."""
    try:
        from _json import encode_basestring_ascii
    except ImportError:
        import json

        return json.dumps(text).encode("ascii")
    literal: str = encode_basestring_ascii(text)
    return literal.encode("ascii")


def json_map(values: dict[str, str]) -> bytes:
    """A JSON object of strings, ordered by name."""
    return b"{%s}" % b",".join(quote(k) + b":" + quote(values[k]) for k in sorted(values))


def json_list(values: list[str]) -> bytes:
    """A JSON array of strings."""
    return b"[%s]" % b",".join(map(quote, values))


def json_text(value: str | None) -> bytes:
    """A JSON string or null."""
    return b"null" if value is None else quote(value)


def json_flag(value: object) -> bytes:
    """A JSON boolean or null."""
    return b"null" if value is None else b"true" if value else b"false"
