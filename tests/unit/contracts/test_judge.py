"""Documents against their schemas: two validators and the model agree."""

from __future__ import annotations

import copy
import json
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.contracts import judge
from runner.contracts.judge import Problem, explain, problem
from runner.contracts.registry import CONTRACTS, contract
from runner.core.canon import canonical, document
from runner.core.strictjson import loads
from runner.core.suitefile import suite_problem
from runner.model.base import Value
from runner.model.suite import Suite
from tests.unit.contracts.documents import DOCUMENTS, OFF, VALUES

IDS = [f"{name}-{index}" for index, (name, _) in enumerate(DOCUMENTS)]
EACH = pytest.mark.parametrize("name, plain", DOCUMENTS, ids=IDS)


def test_there_is_a_document_of_every_contract() -> None:
    assert {name for name, _ in DOCUMENTS} == {item.name for item in CONTRACTS}


@EACH
def test_a_document_of_ours_is_valid_as_written_and_as_read_again(name: str, plain: Any) -> None:
    assert problem(name, plain) is None
    assert explain(name, plain) is None
    again = loads(canonical(plain))
    assert problem(name, again) is None
    assert explain(name, again) is None


@pytest.mark.parametrize("name, value", VALUES)
def test_a_document_reads_as_the_value_it_was_written_from(name: str, value: Value) -> None:
    again = contract(name).model.model_validate_json(canonical(document(value)))
    assert again == value
    assert document(again) == document(value)


# --- the model and both validators on documents that were changed


def nodes(value: Any, path: tuple[str | int, ...] = ()) -> list[tuple[str | int, ...]]:
    """Paths of every value in a document."""
    found = [path]
    if isinstance(value, dict):
        for key, inner in value.items():
            found += nodes(inner, (*path, key))
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            found += nodes(inner, (*path, index))
    return found


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


ODD: tuple[Any, ...] = (
    None, True, False, 0, 1, -1, 2, 0.5, -0.5, 1e9 + 0.5, 2**53 - 1, "", "x", "X", "pass", " ",
    "hooks_disabled", "context_on", "a\n", "a" * 64, "A" * 64, "0" * 63, "2026-11-30T12:00:00Z",
    "2026-11-30T12:00:00Z\n", "2026-11-30 12:00:00", "\uff12026-11-30T12:00:00Z",
    "sha256:" + "a" * 64, [], [None], ["x"], {}, {"x": 1}, {"kind": "evaluator_fact"},
)  # fmt: skip


PATHS = [nodes(plain) for _, plain in DOCUMENTS]


@st.composite
def changes(draw: st.DrawFn) -> tuple[str, Any]:
    """A document in which something was dropped, retyped or added."""
    which = draw(st.integers(0, len(DOCUMENTS) - 1))
    name, plain = DOCUMENTS[which]
    changed = copy.deepcopy(plain)
    for place in range(draw(st.integers(1, 2))):
        path = draw(st.sampled_from(nodes(changed) if place else PATHS[which]))
        target = at(changed, path)
        how = draw(st.sampled_from(["drop", "retype", "add"]))
        if how == "add" and isinstance(target, dict):
            target[draw(st.sampled_from(["extra", "Status", "score", ""]))] = draw(
                st.sampled_from(ODD)
            )
        elif how == "add" and isinstance(target, list):
            target.append(copy.deepcopy(draw(st.sampled_from([*target, *ODD]))))
        elif how == "drop" and path:
            del at(changed, path[:-1])[path[-1]]
        elif path:
            at(changed, path[:-1])[path[-1]] = copy.deepcopy(draw(st.sampled_from(ODD)))
    return name, changed


def read(name: str, changed: Any) -> tuple[bool, set[str]]:
    """Whether the model reads a document as it stands, and the kinds of its refusals.

    As it stands: nothing was left out that the model fills in, nothing is written otherwise.
    """
    try:
        value = contract(name).model.model_validate_json(json.dumps(changed))
    except ValidationError as error:
        return False, {item["type"] for item in error.errors()}
    if contract(name).model is Suite:
        # A suite has rules of its reader, too, and is never written.
        return suite_problem(loads(json.dumps(changed).encode())) is None, set()
    return canonical(document(value)) == canonical(changed), set()


# Rules that a schema cannot say; there the model is stricter.
BEYOND_A_SCHEMA = {"value_error"}


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(changes())
def test_model_and_schema_agree_on_changed_documents(change: tuple[str, Any]) -> None:
    name, changed = change
    as_it_stands, refusals = read(name, changed)
    if as_it_stands:
        assert problem(name, changed) is None
    elif refusals - BEYOND_A_SCHEMA:
        assert problem(name, changed) is not None


@settings(max_examples=150, suppress_health_check=[HealthCheck.too_slow])
@given(changes())
def test_both_validators_agree_on_changed_documents(change: tuple[str, Any]) -> None:
    name, changed = change
    assert (problem(name, changed) is None) == (explain(name, changed) is None)


@EACH
def test_a_field_too_many_or_too_few_is_refused_at_the_top(name: str, plain: Any) -> None:
    assert problem(name, {**plain, "extra": 1}) is not None
    for field in plain:
        if field == "schema_version":
            missing = {key: value for key, value in plain.items() if key != field}
            assert problem(name, missing) is not None
            assert problem(name, {**plain, field: 2}) is not None


@pytest.mark.parametrize("odd", [None, [], "x", 1, True])
def test_only_an_object_is_a_document(odd: Any) -> None:
    for item in CONTRACTS:
        assert problem(item.name, odd) is not None


# --- what is said of a problem

RECORD: Any = document(OFF)


def changed_record(*path: str | int, to: Any) -> Any:
    found = copy.deepcopy(RECORD)
    at(found, path[:-1])[path[-1]] = to
    return found


@pytest.mark.parametrize(
    "path, to, pointer, words",
    [
        (("aggregate_score",), 2, "/aggregate_score", "maximum"),
        (("status",), "ok", "/status", "'ok' is not one of"),
        (("case_results", 1, "score"), -1, "/case_results/1/score", "minimum"),
        (("case_results", 0, "extra"), 1, "/case_results/0", "'extra' was unexpected"),
        (("run_id",), "a\n", "/run_id", "does not match"),
        (("started_at",), "\uff12026-11-30T12:00:00Z", "/started_at", "does not match"),
        (("environment", "hook_environment", "a/b~c"), "x", None, "does not match"),
    ],
)
def test_a_problem_has_a_json_pointer_and_one_line(
    path: tuple[str | int, ...], to: Any, pointer: str | None, words: str
) -> None:
    found = problem("eval-run.v1", changed_record(*path, to=to))
    assert found is not None
    assert found.message.count("\n") == 0
    assert len(found.message) <= 300
    if pointer is not None:
        assert (found.pointer, words in found.message) == (pointer, True), found


def test_a_pointer_escapes_what_pointers_escape() -> None:
    hooks: Any = copy.deepcopy(next(plain for name, plain in DOCUMENTS if name == "hooks.v1"))
    hooks["host"]["a/b~c"] = "not a digest"
    found = problem("hooks.v1", hooks)
    assert found is not None
    assert found.pointer == "/host/a~1b~0c"


def test_a_document_on_which_the_validators_disagree_is_not_valid(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(judge, "explain", lambda *_: None)
    assert problem("eval-run.v1", {}) == Problem("", "the two validators disagree on this document")


def test_judging_a_valid_document_does_not_import_the_slow_validator() -> None:
    code = (
        "import sys\nfrom runner.contracts.judge import problem\n"
        "problem('context-file.v1', {'schema_version': 1, 'label': 'x'}) is None or exit(1)\n"
        "print('jsonschema' in sys.modules)"
    )
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True, text=True)
    assert ran.stdout == "False\n"
