"""Validation of documents against the shipped schemas. The only module that imports jsonschema."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from jsonschema import Draft202012Validator
from jsonschema.exceptions import best_match

from runner.contracts.registry import schema


class Problem(NamedTuple):
    """Why a document is not valid: where, and what."""

    pointer: str
    message: str


@functools.cache
def _validator(name: str) -> Draft202012Validator:
    return Draft202012Validator(schema(name), format_checker=Draft202012Validator.FORMAT_CHECKER)


def problem(name: str, document: Any) -> Problem | None:
    """The most telling reason why a document does not match a contract; None when it does."""
    error = best_match(_validator(name).iter_errors(document))
    if error is None:
        return None
    pointer = "".join(f"/{_escape(part)}" for part in error.absolute_path)
    return Problem(pointer=pointer, message=" ".join(error.message.split())[:300])


def _escape(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")
