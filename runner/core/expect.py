"""Expectations of a case against what was observed.

Pure: the observation is complete, the judgement happens outside the container. What the kept
evidence cannot decide is undecided; it is never a pass and never a failure. How each type is
judged, and where that differs from the format's first runner:
`docs/adr/0002-expectation-semantics.md`.
"""

from __future__ import annotations

import hashlib
import posixpath
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from decimal import Decimal
from typing import NamedTuple

from runner.core import autodetect
from runner.core.expectrules import CONTAINS, needle, problem
from runner.core.finding import Finding, failed, passed, undecided
from runner.core.jsonpath import STREAMS, find, split_target
from runner.core.jsonvalue import canonical, exact, is_number, plain_text, printable, same, shown
from runner.core.material import Captured, Material
from runner.core.rundoc import run_problem
from runner.core.strictjson import StrictJsonError, loads
from runner.core.suitefile import suite_problem
from runner.model.record import ExpectationResult
from runner.model.suite import Case, Expectation, ExpectationType

MAX_MESSAGE = 300
"""Longest message, in characters."""

_MAX_NAME = 60
_FILE_TYPES = (
    ExpectationType.FILE_EXISTS,
    ExpectationType.FILE_ABSENT,
    ExpectationType.ARTIFACT_CONTAINS,
)
_PATH_TYPES = (ExpectationType.JSON_PATH, ExpectationType.SCORE_AT_LEAST)


@dataclass(frozen=True, slots=True)
class _View:
    """One expectation and all that it may look at."""

    expectation: Expectation
    index: int
    material: Material
    suite_dir: str


class _Document(NamedTuple):
    """Parsed JSON of a source."""

    value: object


def evaluate(
    case: Case, index: int, material: Material, *, suite_dir: str, holdout: bool
) -> ExpectationResult:
    """Judge one expectation.

    Args:
        case: The case.
        index: Position of the expectation in it.
        material: What was observed.
        suite_dir: Folder of the suite inside the container, absolute.
        holdout: The suite is a private holdout: neither the expectation's value nor any text of an
            output goes into the result, and it has no fingerprint.

    Returns:
        The judgement; no bytes of any output raise.
    """
    expectation = case.expectations[index]
    flaw = problem(expectation)
    if flaw is not None:
        # The reader refuses these; a suite that did not come from it must not pass for free.
        finding = undecided("the expectation is malformed", flaw.message)
    else:
        finding = _JUDGES[expectation.type](_View(expectation, index, material, suite_dir))
    target, rests_on = expectation.target, finding.rests_on
    if holdout:
        secrets = tuple(_secrets(expectation))
        target, rests_on = _unless_shown(target, secrets), _unless_shown(rests_on, secrets)
    fact = None if holdout else finding.fact
    return ExpectationResult(
        index=index,
        type=expectation.type,
        required=expectation.is_required,
        target=target,
        verdict=finding.verdict,
        message=printable(finding.message(holdout=holdout), MAX_MESSAGE)[:MAX_MESSAGE],
        rests_on=rests_on,
        fingerprint=None if fact is None else hashlib.sha256(fact.encode()).hexdigest(),
    )


def file_targets(case: Case, *, suite_dir: str) -> tuple[str, ...]:
    """Container paths whose files the expectations of a case look at.

    Args:
        case: The case.
        suite_dir: Folder of the suite inside the container, absolute.

    Returns:
        Absolute, normalised paths in order of first use, each once. They may lie outside the
        suite's folder: the container is the boundary, not the folder.
    """
    paths = (_file_of(expectation, suite_dir) for expectation in case.expectations)
    return tuple(dict.fromkeys(path for path in paths if path is not None))


def probe_command(expectation: Expectation) -> str | None:
    """Shell text that has to run for an auto-detect expectation; None for every other type."""
    if expectation.type is not ExpectationType.STDOUT_CONTAINS_AUTO_DETECT:
        return None
    return autodetect.parse(expectation.value).command


def resolve(suite_dir: str, target: str) -> str:
    """Absolute, normalised container path of a target."""
    # POSIX gives two leading slashes a meaning of their own; Linux does not.
    return "/" + posixpath.normpath(posixpath.join(suite_dir, target)).lstrip("/")


def _file_of(expectation: Expectation, suite_dir: str) -> str | None:
    if problem(expectation) is not None:
        return None
    target = expectation.target or ""
    if expectation.type in _FILE_TYPES:
        return resolve(suite_dir, target)
    if expectation.type in _PATH_TYPES:
        source = split_target(target).source
    elif expectation.type is ExpectationType.SCHEMA_VALID:
        source = target.strip()
    else:
        return None
    return None if source in STREAMS else resolve(suite_dir, source)


def _exit_code(view: _View) -> Finding:
    expected, actual = view.expectation.value, view.material.exit_code
    if actual is None:
        return failed("the case was killed by a signal", "", "signal", "exit_code")
    if same(expected, actual):
        return passed("exit code as expected", str(actual), str(actual), "exit_code")
    detail = f"{actual}, expected {shown(expected)}"
    return failed("exit code not as expected", detail, str(actual), "exit_code")


def _stdout_contains(view: _View) -> Finding:
    return _contains(view, view.material.stdout, "stdout")


def _stderr_contains(view: _View) -> Finding:
    return _contains(view, view.material.stderr, "stderr")


def _contains(view: _View, captured: Captured, rests_on: str) -> Finding:
    text = needle(view.expectation) or ""
    label = shown(text)
    if text.encode() in captured.data:
        return passed("the expected text was found", label, "found", rests_on)
    if captured.complete:
        return failed("the expected text was not found", label, "absent", rests_on)
    return undecided(
        "only a part was kept, and the expected text is not in it", label, rests_on=rests_on
    )


def _file_exists(view: _View) -> Finding:
    return _file_state(view, "regular", "the file exists", "there is no such regular file")


def _file_absent(view: _View) -> Finding:
    return _file_state(view, "absent", "the file is absent", "the file is there")


def _file_state(view: _View, wanted: str, yes: str, no: str) -> Finding:
    target = view.expectation.target or ""
    path = resolve(view.suite_dir, target)
    file = view.material.files.get(path)
    if file is None or file.state == "unreadable":
        return undecided("the state of the file is not known", _name(target), rests_on=path)
    detail = f"{_name(target)} ({file.state})"
    if file.state == wanted:
        return passed(yes, detail, file.state, path)
    return failed(no, detail, file.state, path)


def _artifact_contains(view: _View) -> Finding:
    found = _source(view, view.expectation.target or "", stream=False)
    if isinstance(found, Finding):
        return found
    return _contains(view, *found)


def _source(view: _View, source: str, *, stream: bool) -> tuple[Captured, str] | Finding:
    """Bytes of a stream or file with what they rest on, or why there are none."""
    if stream:
        material = view.material
        return (material.stdout if source == "stdout" else material.stderr), source
    path = resolve(view.suite_dir, source)
    file = view.material.files.get(path)
    if file is None or file.state == "unreadable":
        return undecided("the file could not be read", _name(source), rests_on=path)
    if file.state != "regular":
        detail = f"{_name(source)} ({file.state})"
        return failed("there is no such regular file", detail, file.state, path)
    if file.captured is None:
        return undecided("the content of the file was not kept", _name(source), rests_on=path)
    return file.captured, path


def _document(view: _View, source: str) -> tuple[_Document, str] | Finding:
    """Parsed JSON of a source, or why there is none."""
    found = _source(view, source, stream=source in STREAMS)
    if isinstance(found, Finding):
        return found
    captured, rests_on = found
    if not captured.complete:
        return undecided("only a part of the JSON was kept", _name(source), rests_on=rests_on)
    try:
        return _Document(loads(captured.data)), rests_on
    except StrictJsonError as error:
        detail = f"{_name(source)}: {error}"
        return failed("not acceptable JSON", detail, "not-json", rests_on)


def _json_path(view: _View) -> Finding:
    target, expected = view.expectation.target or "", view.expectation.value
    source, path = split_target(target)
    document = _document(view, source)
    if isinstance(document, Finding):
        return document
    (value,), rests_on = document
    found = find(value, path)
    if not found.found:
        return failed("the path leads to nothing", _name(target), "nothing", rests_on)
    fact, seen = canonical(found.value), shown(found.value)
    if expected is None:
        return passed("the path leads to a value", f"{_name(target)} is {seen}", fact, rests_on)
    if same(found.value, expected):
        return passed("the value is as expected", f"{_name(target)} is {seen}", fact, rests_on)
    detail = f"{_name(target)} is {seen}, expected {shown(expected)}"
    return failed("the value is not as expected", detail, fact, rests_on)


def _score_at_least(view: _View) -> Finding:
    target = view.expectation.target or ""
    source, path = split_target(target)
    document = _document(view, source)
    if isinstance(document, Finding):
        return document
    (value,), rests_on = document
    found = find(value, path)
    if not found.found:
        return failed("the path leads to nothing", _name(target), "nothing", rests_on)
    fact, seen, least = canonical(found.value), shown(found.value), _least(view.expectation)
    if not is_number(found.value):
        detail = f"{_name(target)} is {seen}"
        return failed("the score is not a number", detail, fact, rests_on)
    detail = f"{_name(target)} is {seen}, at least {shown(least)} expected"
    if exact(found.value) >= least:
        return passed("the score is high enough", detail, fact, rests_on)
    return failed("the score is too low", detail, fact, rests_on)


def _least(expectation: Expectation) -> Decimal:
    if expectation.threshold is not None:
        return expectation.threshold
    return exact(expectation.value) if is_number(expectation.value) else Decimal(1)


def _schema_valid(view: _View) -> Finding:
    source = (view.expectation.target or "").strip()
    document = _document(view, source)
    if isinstance(document, Finding):
        return document
    (value,), rests_on = document
    flaw = _checker(view.expectation.value, value)(value)
    if flaw is None:
        return passed("the document is valid", _name(source), "valid", rests_on)
    detail = f"{_name(source)}: {flaw}"
    return failed("the document is not valid", detail, "invalid", rests_on)


def _checker(schema: object, document: object) -> Callable[[object], str | None]:
    """`run` or `suite` in the expectation's value decides, else whether there is a run_id."""
    name = str(schema or "").lower()
    if "run" in name:
        return run_problem
    if "suite" in name or not isinstance(document, dict) or "run_id" not in document:
        return suite_problem
    return run_problem


def _auto_detect(view: _View) -> Finding:
    spec = autodetect.parse(view.expectation.value)
    return autodetect.judge(spec, view.material.probes.get(view.index), view.material.stdout)


def _manual_review(_: _View) -> Finding:
    return undecided("a person has to look; nothing was judged")


def _name(target: str) -> str:
    return printable(target, _MAX_NAME)


def _secrets(expectation: Expectation) -> Iterator[str]:
    """Texts of a holdout that its result must not show."""
    if expectation.value is None and expectation.type in CONTAINS:
        yield expectation.target or ""
    pending = [expectation.value]
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            pending.extend((*value.keys(), *value.values()))
        elif isinstance(value, list | tuple):
            pending.extend(value)
        elif isinstance(value, str) or is_number(value):
            yield plain_text(value) or ""


def _unless_shown(text: str | None, secrets: tuple[str, ...]) -> str | None:
    if text is None or any(secret and secret in text for secret in secrets):
        return None
    return text


_JUDGES: dict[ExpectationType, Callable[[_View], Finding]] = {
    ExpectationType.EXIT_CODE: _exit_code,
    ExpectationType.STDOUT_CONTAINS: _stdout_contains,
    ExpectationType.STDERR_CONTAINS: _stderr_contains,
    ExpectationType.STDOUT_CONTAINS_AUTO_DETECT: _auto_detect,
    ExpectationType.FILE_EXISTS: _file_exists,
    ExpectationType.FILE_ABSENT: _file_absent,
    ExpectationType.ARTIFACT_CONTAINS: _artifact_contains,
    ExpectationType.JSON_PATH: _json_path,
    ExpectationType.SCHEMA_VALID: _schema_valid,
    ExpectationType.SCORE_AT_LEAST: _score_at_least,
    ExpectationType.MANUAL_REVIEW: _manual_review,
}
