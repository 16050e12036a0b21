"""Validation of documents against the shipped schemas; the only module with schema libraries.

Two libraries: one written for speed decides, jsonschema says why not. A document on which they
disagree is not valid.
"""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

import jsonschema_rs

from runner.contracts.registry import schema


class Problem(NamedTuple):
    """Why a document is not valid: where, and what."""

    pointer: str
    message: str


@functools.cache
def _fast(name: str) -> jsonschema_rs.Draft202012Validator:
    return jsonschema_rs.Draft202012Validator(schema(name), offline=True)


def problem(name: str, document: Any) -> Problem | None:
    """The most telling reason why a document does not match a contract; None when it does.

    Args:
        name: Name of the contract.
        document: Plain JSON types.
    """
    if _fast(name).is_valid(document):
        return None
    return explain(name, document) or Problem("", "the two validators disagree on this document")


def explain(name: str, document: Any) -> Problem | None:
    """The same judgement by jsonschema alone, hundreds of times slower, with a reason."""
    from jsonschema import Draft202012Validator
    from jsonschema.exceptions import best_match

    error = best_match(Draft202012Validator(schema(name)).iter_errors(document))
    if error is None:
        return None
    pointer = "".join(f"/{_escape(part)}" for part in error.absolute_path)
    return Problem(pointer=pointer, message=" ".join(error.message.split())[:300])


def _escape(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")
