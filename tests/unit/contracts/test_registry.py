"""The published schemas: generated, complete, closed, and of one dialect."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

from runner.contracts.registry import CONTRACTS, Contract, contract, file_name, generate, schema
from runner.errors import InternalError

SCHEMAS = Path(__file__).parents[3] / "schemas"
NAMES = [item.name for item in CONTRACTS]

# Whose members are free: what a user wrote, what an engine said, or a map with names as its keys.
OPEN = {
    "profile": "the engine's own description",
    "asked": "any value that was sent to the engine",
    "found": "any value that the engine answered",
    "inputs": "free-form in the suite format",
    "value": "free-form in the suite format",
}
ABSENT = {"instructions"}
"""Fields that a document leaves out when there is nothing to say."""

KEYWORDS = {
    "$defs", "$id", "$ref", "$schema", "additionalProperties", "allOf", "anyOf", "const", "default",
    "description", "enum", "exclusiveMinimum", "if", "items", "maxItems", "maxLength", "maximum",
    "minItems", "minLength", "minimum", "not", "oneOf", "pattern", "patternProperties",
    "properties", "propertyNames", "required", "then", "title", "type",
}  # fmt: skip


def subschemas(node: Any, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every schema in a schema, with the names of the properties that lead to it."""
    if not isinstance(node, dict):
        return
    yield path, node
    for key, value in node.items():
        if key in {"properties", "patternProperties", "$defs"}:
            for name, inner in value.items():
                yield from subschemas(inner, (*path, name))
        elif key in {"allOf", "anyOf", "oneOf"}:
            for inner in value:
                yield from subschemas(inner, path)
        elif key in {"additionalProperties", "items", "if", "then", "not", "propertyNames"}:
            yield from subschemas(value, path)


@pytest.mark.parametrize("item", CONTRACTS, ids=NAMES)
def test_a_checked_in_schema_is_what_the_model_generates(item: Contract) -> None:
    assert (SCHEMAS / file_name(item)).read_text(encoding="utf-8") == generate(item)


def test_every_schema_file_belongs_to_a_contract() -> None:
    assert {path.name for path in SCHEMAS.iterdir()} == {file_name(item) for item in CONTRACTS}


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_is_valid_and_says_what_it_is(name: str) -> None:
    Draft202012Validator.check_schema(schema(name))
    assert schema(name)["$schema"] == "https://json-schema.org/draft/2020-12/schema"
    assert schema(name)["$id"] == f"urn:ao-eval:schema:{name}"


@pytest.mark.parametrize("name", NAMES)
def test_a_schema_uses_only_keywords_that_every_validator_knows(name: str) -> None:
    used = {key for _, node in subschemas(schema(name)) for key in node}
    assert used <= KEYWORDS
    # Formats are annotations in Draft 2020-12; our schemas use patterns instead.
    assert "format" not in used


@pytest.mark.parametrize("name", NAMES)
def test_every_object_of_ours_is_closed(name: str) -> None:
    for path, node in subschemas(schema(name)):
        if node.get("type") != "object" or (path and path[-1] in OPEN):
            continue
        more = node.get("additionalProperties")
        if "properties" in node or "patternProperties" in node:
            assert more is False, path
        else:
            # A map: its keys are names, its values have a type.
            assert isinstance(more, dict), path
            assert more, path


@pytest.mark.parametrize("name", NAMES)
def test_a_value_without_any_type_is_one_of_those_known_to_be_free(name: str) -> None:
    for path, node in subschemas(schema(name)):
        constrained = set(node) - {"title", "description", "default"}
        if path and not constrained:
            assert path[-1] in OPEN, path


@pytest.mark.parametrize("name", NAMES)
def test_every_reference_leads_somewhere_and_every_definition_is_used(name: str) -> None:
    document = schema(name)
    used = {node["$ref"] for _, node in subschemas(document) if "$ref" in node}
    defined = {f"#/$defs/{key}" for key in document.get("$defs", {})}
    assert used == defined


@pytest.mark.parametrize("name", NAMES)
def test_patterns_are_anchored_and_read_the_same_by_every_dialect(name: str) -> None:
    for path, node in subschemas(schema(name)):
        pattern = node.get("pattern")
        if pattern is None or not pattern.startswith("^"):
            continue
        assert pattern.endswith("$"), path
        assert not pattern.endswith("\\$"), path


@pytest.mark.parametrize("item", [item for item in CONTRACTS if not item.reads])
def test_a_document_that_we_write_has_every_field_but_those_with_a_default(
    item: Contract,
) -> None:
    for path, node in subschemas(schema(item.name)):
        if "properties" in node:
            given = {name for name, of in node["properties"].items() if "default" not in of}
            assert set(node.get("required", [])) == given - ABSENT, path


def test_the_string_below_a_field_describes_it() -> None:
    case = schema("eval-run.v1")["$defs"]["CaseResult"]["properties"]
    assert case["score"]["description"].startswith("Null when the case cannot be scored")
    live = schema("live-state.v1")
    assert live["properties"]["t0"]["description"] == "When the first manifest was begun."


def test_a_schema_is_loaded_once() -> None:
    assert schema("hooks.v1") is schema("hooks.v1")


def test_a_name_that_is_no_contract_is_a_defect_of_ours() -> None:
    with pytest.raises(InternalError, match=r"no contract named eval-run\.v2"):
        contract("eval-run.v2")


def test_a_schema_that_is_packaged_is_preferred(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "schemas").mkdir()
    (tmp_path / "schemas" / "hooks.v1.schema.json").write_text('{"packaged": true}')
    (tmp_path / "schemas" / "sandbox.v1.schema.json").write_text("[]")
    monkeypatch.setattr("importlib.resources.files", lambda _: tmp_path)
    assert schema.__wrapped__("hooks.v1") == {"packaged": True}
    with pytest.raises(InternalError, match="is not an object"):
        schema.__wrapped__("sandbox.v1")


def test_schemas_do_not_depend_on_what_else_was_imported() -> None:
    code = (
        "import runner.report.html, runner.app.run_ab\n"
        "from runner.contracts.registry import CONTRACTS, generate\n"
        "import json; print(json.dumps([generate(item) for item in CONTRACTS]))"
    )
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, text=True
    ).stdout
    assert json.loads(found) == [generate(item) for item in CONTRACTS]
