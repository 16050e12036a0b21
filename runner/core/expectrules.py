"""What an expectation needs to be one: rules beyond the schema, shared by reader and evaluator."""

from __future__ import annotations

from typing import NamedTuple

from runner.core import autodetect
from runner.core.jsonpath import split_target
from runner.core.jsonvalue import exact, is_number, plain_text
from runner.model.suite import Expectation, ExpectationType

CONTAINS = (
    ExpectationType.STDOUT_CONTAINS,
    ExpectationType.STDERR_CONTAINS,
    ExpectationType.ARTIFACT_CONTAINS,
)
_SOURCE = (ExpectationType.JSON_PATH, ExpectationType.SCORE_AT_LEAST)
_FILE = (
    ExpectationType.FILE_EXISTS,
    ExpectationType.FILE_ABSENT,
    ExpectationType.ARTIFACT_CONTAINS,
)


class Problem(NamedTuple):
    """A rule that is broken: JSON pointer and what is wrong, quoting nothing of the suite."""

    pointer: str
    message: str


def needle(expectation: Expectation) -> str | None:
    """Text that a `*_contains` looks for; None when its value has no defined text.

    The value if there is one (a string as it is, anything else by `plain_text`), else the target.
    """
    if expectation.value is None:
        return expectation.target or ""
    return plain_text(expectation.value)


def problem(expectation: Expectation, *, holdout: bool = False) -> Problem | None:
    """The first rule that an expectation breaks; None for a sound one.

    Args:
        expectation: As the model accepted it.
        holdout: The suite is a private holdout.
    """
    kind, target, value = expectation.type, expectation.target, expectation.value
    if target is not None and "\0" in target:
        return Problem("/target", "a target cannot hold a NUL character")
    if kind in _FILE and not target:
        return Problem("/target", f"{kind} needs a target")
    if kind in _SOURCE and not split_target(target or "").source:
        return Problem("/target", f"{kind} needs a target")
    if kind is ExpectationType.EXIT_CODE and not _is_integer(value):
        return Problem("/value", "exit_code needs an integer as its value")
    if kind is ExpectationType.SCORE_AT_LEAST and not (value is None or is_number(value)):
        return Problem("/value", "score_at_least needs a number as its value")
    if kind in CONTAINS:
        return _needle_problem(expectation, holdout=holdout)
    if kind is ExpectationType.SCHEMA_VALID:
        if (target or "").strip() in ("", "suite"):
            return Problem("/target", "schema_valid of the suite itself can never fail")
        if not (value is None or isinstance(value, str)):
            return Problem("/value", "schema_valid needs a text as its value")
    if kind is ExpectationType.STDOUT_CONTAINS_AUTO_DETECT:
        try:
            autodetect.parse(value)
        except ValueError as error:
            return Problem("/value", str(error))
    return None


def _needle_problem(expectation: Expectation, *, holdout: bool) -> Problem | None:
    text = needle(expectation)
    if text is None:
        return Problem("/value", f"{expectation.type} cannot look for an object: give its text")
    if not text:
        where = "" if expectation.value is None else "/value"
        return Problem(where, f"{expectation.type} looks for the empty text and can never fail")
    if (
        holdout
        and expectation.value is None
        and expectation.type is ExpectationType.ARTIFACT_CONTAINS
    ):
        # The path itself would be the text sought, and paths are recorded.
        return Problem("", "artifact_contains of a private holdout needs a value")
    return None


def _is_integer(value: object) -> bool:
    # 0.0 is the integer 0, as it is for JSON Schema; 0.9, "0" and true are not integers.
    return is_number(value) and exact(value) == exact(value).to_integral_value()
