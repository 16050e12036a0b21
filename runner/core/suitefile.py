"""Reader of eval-suite v1 files: bytes in, a suite that can be run or one clear refusal out.

No message quotes a value of the suite, because the suite may be a private holdout.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from typing import NoReturn

from pydantic import ValidationError

from runner.core import strictjson
from runner.core.expectrules import Problem
from runner.core.expectrules import problem as expectation_problem
from runner.core.jsonvalue import printable
from runner.errors import InputError
from runner.model.suite import Suite, SuiteFile

_KEY_CONTEXT = b"ao-eval holdout digest key\0"
# A pointer into an expectation's value would quote its keys.
_INTO_VALUE = re.compile(r"(/cases/[0-9]+/expectations/[0-9]+/value)/.*", re.DOTALL)
_MARKS = (re.compile(rb'"cases"\s*:'), re.compile(rb'"scoring"\s*:'))
_WORDING = {
    "extra_forbidden": "unknown field",
    "missing": "missing",
    "model_type": "must be an object",
    "model_attributes_type": "must be an object",
    "dict_type": "must be an object",
    "tuple_type": "must be a list",
    "is_instance_of": "must be an object",
}


def read_suite(data: bytes, path: str) -> SuiteFile:
    """Read a suite.

    Args:
        data: Bytes of the file.
        path: Its name for messages and records.

    Returns:
        The suite with the digest of its bytes, and for a private holdout the key of its digests.

    Raises:
        InputError: The file is refused; `where` is `<path>#<JSON pointer>`.
    """
    try:
        document = strictjson.loads(data)
    except strictjson.StrictJsonError as error:
        _refuse(path, [Problem(error.pointer, str(error))])
    suite, problems = _suite_of(document)
    if suite is None:
        _refuse(path, problems)
    key = hashlib.sha256(_KEY_CONTEXT + data).digest() if suite.is_holdout else None
    return SuiteFile(
        path=path,
        sha256=hashlib.sha256(data).hexdigest(),
        suite=suite,
        source=data,
        holdout_key=key,
    )


def suite_problem(document: object) -> str | None:
    """What keeps a parsed document from being a suite; None when nothing does.

    Args:
        document: Value of `runner.core.strictjson.loads`.
    """
    suite, problems = _suite_of(document)
    return None if suite is not None else f"{problems[0].pointer or '/'} {problems[0].message}"


def check_fixtures(suite_file: SuiteFile, digest_of: Callable[[str], str | None]) -> None:
    """Compare the fixtures that a suite declares with what is there.

    Args:
        suite_file: The suite.
        digest_of: SHA-256 (hexadecimal) of the file at a path relative to the suite's folder;
            None when there is no such file.

    Raises:
        InputError: A required file is missing, or a declared digest differs.
    """
    problems = []
    for index, fixture in enumerate(suite_file.suite.fixtures):
        if fixture.sha256 is None and not fixture.required:
            continue
        digest = digest_of(fixture.path)
        if digest is None:
            if fixture.required:
                problems.append(Problem(f"/fixtures/{index}/path", "the required file is missing"))
        elif fixture.sha256 is not None and digest.lower() != fixture.sha256.lower():
            problems.append(
                Problem(f"/fixtures/{index}/sha256", "the file has another SHA-256 than declared")
            )
    if problems:
        _refuse(suite_file.path, problems)


def looks_like_suite(data: bytes) -> bool:
    """Whether a file found in a folder is meant to be a suite: an object with cases and scoring.

    Looser than the reader, so that a suite with a mistake is refused by name and not passed over.
    Never raises.
    """
    text = data.removeprefix(b"\xef\xbb\xbf").lstrip(b" \t\r\n")
    if not text.startswith(b"{"):
        return False
    try:
        document = json.loads(text.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        return all(mark.search(text) for mark in _MARKS)
    return isinstance(document, dict) and "cases" in document and "scoring" in document


def _suite_of(document: object) -> tuple[Suite | None, list[Problem]]:
    if not isinstance(document, dict):
        return None, [Problem("", "a suite is a JSON object")]
    try:
        suite = Suite.model_validate(document)
    except ValidationError as error:
        return None, _model_problems(error)
    problems = _rule_problems(suite)
    return (None, problems) if problems else (suite, [])


def _model_problems(error: ValidationError) -> list[Problem]:
    details = error.errors(include_url=False, include_context=False, include_input=False)
    paths = [detail["loc"] for detail in details]
    problems = []
    for detail in details:
        loc, kind = detail["loc"], detail["type"]
        inner = any(len(path) > len(loc) and path[: len(loc)] == loc for path in paths)
        if kind == "too_short" and inner:
            continue  # only says that the refused items were refused
        message = _WORDING.get(kind) or detail["msg"].removeprefix("Input ")
        problems.append(Problem(strictjson.pointer(loc), message[:1].lower() + message[1:]))
    return problems


def _rule_problems(suite: Suite) -> list[Problem]:
    problems = []
    first: dict[str, int] = {}
    for index, case in enumerate(suite.cases):
        # Ids are lower case by their pattern, so that none can differ by letter case only.
        earlier = first.setdefault(case.id, index)
        if earlier != index:
            problems.append(Problem(f"/cases/{index}/id", f"same id as /cases/{earlier}"))
        for place, expectation in enumerate(case.expectations):
            found = expectation_problem(expectation, holdout=suite.is_holdout)
            if found is not None:
                where = f"/cases/{index}/expectations/{place}{found.pointer}"
                problems.append(Problem(where, found.message))
    return problems


def _refuse(path: str, problems: list[Problem]) -> NoReturn:
    pointer = _INTO_VALUE.sub(r"\1", problems[0].pointer)
    more = f" (and {len(problems) - 1} more)" if len(problems) > 1 else ""
    raise InputError(
        problems[0].message + more, where=f"{printable(path, 4096)}#{printable(pointer, 200)}"
    )
