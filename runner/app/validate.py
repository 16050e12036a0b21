"""Check suites and documents of ours, without an engine."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from runner.app.suites import load_suite, read_bytes
from runner.core.strictjson import StrictJsonError, loads
from runner.core.suitefile import looks_like_suite
from runner.errors import InputError
from runner.model.attestation import MEASUREMENT, TEST_RESULT


class Valid(NamedTuple):
    """A file that is what it claims to be.

    Attributes:
        path: As given.
        contract: Name of the contract it fulfils.
        notes: What is worth knowing though not wrong.
    """

    path: Path
    contract: str
    notes: tuple[str, ...]


_TELLTALE = {
    "eval-run.v1": {"run_id", "case_results"},
    "skill-scorecard.v1": {"per_case", "skill_on_run_id"},
    "context-scorecard.v1": {"per_case", "aggregate_delta"},
    "live-state.v1": {"proof", "t0", "t1"},
    "sandbox.v1": {"engine", "containers", "inside"},
    "hooks.v1": {"host", "dropped", "legs"},
    "context-roots.v1": {"roots"},
    "context-reads.v1": {"legs"},
    "context-file.v1": {"schema_version", "label"},
    "outcomes-rubric.v1": {"source_task_id", "criteria"},
    "council-verdict.v4": {"verdict", "satisfaction_score"},
    "run-manifest.v1": {"captured_by", "grade_sha256"},
    "dsse-envelope.v1": {"payload", "payloadType"},
    "verification.v1": {"authorship", "checks"},
}
"""Members by which a document of ours is known."""

_STATEMENTS = {MEASUREMENT: "attestation.v1", TEST_RESULT: "test-result.v1"}
"""Statements are told by the type of their predicate."""


def validate(path: Path) -> Valid:
    """Check one file.

    Raises:
        InputError: It is not valid, or is nothing of ours; with a JSON pointer.
    """
    data = read_bytes(path)
    if looks_like_suite(data):
        from runner.core.score import suite_warnings

        loaded = load_suite(path)
        return Valid(path, "eval-suite.v1", suite_warnings(loaded.suite))
    try:
        document = loads(data)
    except StrictJsonError as error:
        raise InputError(str(error), where=str(path)) from error
    if not isinstance(document, dict):
        raise InputError("is not a JSON object", where=str(path))
    name = _kind(document)
    if name is None:
        raise InputError(
            "is neither a suite (`cases` and `scoring`) nor a document of ours", where=str(path)
        )
    from runner.contracts.judge import problem

    found = problem(name, document)
    if found is not None:
        raise InputError(found.message, where=f"{path}#{found.pointer}")
    return Valid(path, name, ())


def _kind(document: dict[str, object]) -> str | None:
    """Contract of a document; None when it is nothing of ours."""
    statement = _STATEMENTS.get(str(document.get("predicateType")))
    known = (name for name, members in _TELLTALE.items() if members <= set(document))
    return statement or next(known, None)
