"""Canonical JSON (RFC 8785) and digests of values."""

from __future__ import annotations

import hashlib
import json
from typing import Any, Final

import rfc8785

from runner.model.base import Value

_SAFE_INTEGER: Final = 2**53 - 1
_LEAST_PLAIN: Final = 1e-4
"""From here up to the safe integers Python and ECMAScript write a float alike, but for `.0`."""

_SAME: Final = frozenset({str, bool, type(None)})

_ENCODE: Final = json.JSONEncoder(
    ensure_ascii=False, separators=(",", ":"), sort_keys=True, check_circular=False
).encode


def document(value: Value) -> Any:
    """A value as plain JSON types, every field present."""
    return value.model_dump(mode="json")


def canonical(value: Any) -> bytes:
    """Canonical bytes of plain JSON types; one line, newline at the end."""
    return _bytes(value) + b"\n"


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes of plain JSON types, without the newline."""
    return hashlib.sha256(_bytes(value)).hexdigest()


class _Unlike(Exception):
    """The standard encoder may write this value otherwise than RFC 8785 asks."""


def _bytes(value: Any) -> bytes:
    """Canonical bytes, by the standard library's encoder where it writes the same ones.

    The reference implementation is pure Python and twenty times slower: it took longer over the
    documents of a thousand cases than the cases themselves. It still writes, or refuses, whatever
    the two could differ on.
    """
    try:
        return _ENCODE(_alike(value)).encode()
    except (_Unlike, UnicodeEncodeError):
        return rfc8785.dumps(value)


def _alike(value: Any) -> Any:
    """The value with its floats as the standard encoder has to see them.

    Raises:
        _Unlike: It holds something on which the two encoders could differ.
    """
    kind = type(value)
    if kind in _SAME:
        return value
    if kind is dict:
        # Code points and UTF-16 code units sort alike in ASCII; beyond it they may not.
        try:
            sorts_alike = "".join(value).isascii()
        except TypeError as error:  # a key that is no text
            raise _Unlike from error
        if not sorts_alike:
            raise _Unlike
        return {key: item if type(item) in _SAME else _alike(item) for key, item in value.items()}
    if kind is list or kind is tuple:
        return [item if type(item) in _SAME else _alike(item) for item in value]
    if kind is int:
        if -_SAFE_INTEGER <= value <= _SAFE_INTEGER:
            return value
    elif kind is float:
        if value.is_integer() and abs(value) <= _SAFE_INTEGER:
            return int(value)
        if _LEAST_PLAIN <= abs(value) <= _SAFE_INTEGER:
            return value
    raise _Unlike
