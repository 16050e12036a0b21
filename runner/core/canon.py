"""Canonical JSON (RFC 8785) and digests of values."""

from __future__ import annotations

import hashlib
from typing import Any

import rfc8785

from runner.model.base import Value


def document(value: Value) -> Any:
    """A value as plain JSON types, every field present."""
    return value.model_dump(mode="json")


def canonical(value: Any) -> bytes:
    """Canonical bytes of plain JSON types; one line, newline at the end."""
    return rfc8785.dumps(value) + b"\n"


def digest(value: Any) -> str:
    """SHA-256 of the canonical bytes of plain JSON types, without the newline."""
    return hashlib.sha256(rfc8785.dumps(value)).hexdigest()
