"""Whether a document looks like a run record (eval-run v1): its required fields and their types.

A structural check for the `schema_valid` expectation. It accepts the records of the format's first
runner and our own, which may hold null where nothing was measured.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from runner.core.jsonvalue import is_number, same

_RUN_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._:-]*")
_STATUSES = ("pass", "fail", "error", "skipped", "inconclusive")


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _is_status(value: object) -> bool:
    return value in _STATUSES if isinstance(value, str) else False


def _is_score(value: object) -> bool:
    return value is None or (is_number(value) and 0 <= value <= 1)


def _is_scores(value: object) -> bool:
    return isinstance(value, dict) and all(map(_is_score, value.values()))


def _is_object(value: object) -> bool:
    return isinstance(value, dict)


def _is_object_or_null(value: object) -> bool:
    return value is None or isinstance(value, dict)


def _is_suite(value: object) -> bool:
    return isinstance(value, dict) and _is_text(value.get("id"))


def _is_cases(value: object) -> bool:
    return isinstance(value, list) and all(map(_is_case, value))


def _is_case(value: object) -> bool:
    return (
        isinstance(value, dict)
        and _is_text(value.get("case_id"))
        and _is_status(value.get("status"))
    )


_FIELDS: dict[str, tuple[Callable[[object], bool], str]] = {
    "schema_version": (lambda value: same(value, 1), "must be 1"),
    "run_id": (
        lambda value: isinstance(value, str) and _RUN_ID.fullmatch(value) is not None,
        "must be a run id",
    ),
    "suite": (_is_suite, "must be an object with an id"),
    "started_at": (_is_text, "must be a time"),
    "status": (_is_status, "must be one of " + ", ".join(_STATUSES)),
    "verdict": (_is_text, "must be a word"),
    "git": (_is_object, "must be an object"),
    "runtime": (_is_object_or_null, "must be an object or null"),
    "environment": (_is_object_or_null, "must be an object or null"),
    "case_results": (_is_cases, "must be a list of objects with case_id and status"),
    "aggregate_score": (_is_score, "must be a number in [0, 1] or null"),
    "dimension_scores": (_is_scores, "must be an object of numbers in [0, 1] or nulls"),
}


def run_problem(document: object) -> str | None:
    """What keeps a parsed document from being a run record; None when nothing does.

    Args:
        document: Value of `runner.core.strictjson.loads`.
    """
    if not isinstance(document, dict):
        return "a run record is an object"
    for name, (holds, rule) in _FIELDS.items():
        if name not in document:
            return f"{name} is missing"
        if not holds(document[name]):
            return f"{name} {rule}"
    return None
