"""Validation of documents against the shipped schemas; the only module with schema libraries.

Two libraries: one written for speed decides, jsonschema says why not. A document on which they
disagree is not valid.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema_rs

from runner.contracts.registry import schema

if TYPE_CHECKING:
    from jsonschema import ValidationError
    from jsonschema.protocols import Validator


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
    from jsonschema.exceptions import best_match

    error = best_match(_slow(name).iter_errors(document))
    if error is None:
        return None
    pointer = "".join(f"/{_escape(part)}" for part in error.absolute_path)
    return Problem(pointer=pointer, message=" ".join(error.message.split())[:300])


@functools.cache
def _slow(name: str) -> Validator:
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    ours: type[Validator] = extend(  # type: ignore[no-untyped-call]
        Draft202012Validator, {"pattern": _pattern}
    )
    return ours(schema(name))


def _pattern(
    validator: Validator, pattern: str, instance: Any, _schema: Any
) -> Iterator[ValidationError]:
    r"""`pattern` as ECMA 262 reads it.

    To Python `$` also matches before a last line feed, and `\d` every digit of Unicode.
    """
    from jsonschema import ValidationError

    if not validator.is_type(instance, "string"):
        return
    strict = f"{pattern[:-1]}\\Z" if pattern.endswith("$") else pattern
    if re.search(strict, instance, re.ASCII) is None:
        yield ValidationError(f"{instance!r} does not match {pattern!r}")


def _escape(part: object) -> str:
    return str(part).replace("~", "~0").replace("/", "~1")
