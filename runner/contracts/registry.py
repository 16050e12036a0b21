"""Every document of ours by name, its model, and its JSON Schema."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import json
import textwrap
from importlib import resources
from pathlib import Path
from typing import Any, NamedTuple

from runner.errors import InternalError
from runner.model.attestation import DsseEnvelope, MeasurementStatement, TestResultStatement
from runner.model.base import Value
from runner.model.contextfile import ContextFile
from runner.model.contextroots import ContextRoots
from runner.model.evidence import HooksEvidence, SandboxEvidence
from runner.model.liveproof import LiveStateEvidence
from runner.model.reads import ContextReads
from runner.model.record import RunRecord
from runner.model.rubric import Rubric
from runner.model.scorecard import ContextScorecard
from runner.model.skillscorecard import SkillScorecard
from runner.model.suite import Suite
from runner.model.verdict import CouncilVerdict, RunManifest
from runner.model.verification import Verification

DIALECT = "https://json-schema.org/draft/2020-12/schema"


class Contract(NamedTuple):
    """One kind of document.

    Attributes:
        name: `<kind>.v<major>`, the stem of its schema file.
        model: The model it is generated from.
        reads: True for documents that users write: absent and defaulted fields are allowed.
    """

    name: str
    model: type[Value]
    reads: bool


CONTRACTS: tuple[Contract, ...] = (
    Contract("eval-suite.v1", Suite, reads=True),
    Contract("eval-run.v1", RunRecord, reads=False),
    Contract("context-scorecard.v1", ContextScorecard, reads=False),
    Contract("skill-scorecard.v1", SkillScorecard, reads=False),
    Contract("live-state.v1", LiveStateEvidence, reads=False),
    Contract("sandbox.v1", SandboxEvidence, reads=False),
    Contract("hooks.v1", HooksEvidence, reads=False),
    Contract("context-roots.v1", ContextRoots, reads=False),
    Contract("context-reads.v1", ContextReads, reads=False),
    Contract("context-file.v1", ContextFile, reads=True),
    Contract("outcomes-rubric.v1", Rubric, reads=False),
    Contract("council-verdict.v4", CouncilVerdict, reads=False),
    Contract("run-manifest.v1", RunManifest, reads=False),
    Contract("attestation.v1", MeasurementStatement, reads=False),
    Contract("test-result.v1", TestResultStatement, reads=False),
    Contract("dsse-envelope.v1", DsseEnvelope, reads=False),
    Contract("verification.v1", Verification, reads=False),
)


def generate(contract: Contract) -> str:
    """The schema file of a contract, as it is checked in."""
    schema = contract.model.model_json_schema(
        mode="validation" if contract.reads else "serialization"
    )
    _describe(schema, contract.model)
    for name, definition in schema.get("$defs", {}).items():
        if name in _models():
            _describe(definition, _models()[name])
    document = {
        "$schema": DIALECT,
        "$id": f"urn:ao-eval:schema:{contract.name}",
        **_without_discriminators(schema),
    }
    return json.dumps(document, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


@functools.cache
def _models() -> dict[str, type[Value]]:
    """Every model by name, as `$defs` names them."""
    found: dict[str, type[Value]] = {}
    pending: list[type[Value]] = [Value]
    while pending:
        model = pending.pop()
        found[model.__name__] = model
        pending += model.__subclasses__()
    return found


def _describe(definition: dict[str, Any], model: type[Value]) -> None:
    """Add the string below each field of a model as the description of its property."""
    for base in reversed(model.__mro__):
        if not issubclass(base, Value) or base is Value:
            continue
        (tree,) = ast.parse(textwrap.dedent(inspect.getsource(base))).body
        body = getattr(tree, "body", [])
        for field, below in itertools.pairwise(body):
            match field, below:
                case (
                    ast.AnnAssign(target=ast.Name(id=name)),
                    ast.Expr(value=ast.Constant(value=str(text))),
                ):
                    if name in definition.get("properties", {}):
                        definition["properties"][name]["description"] = inspect.cleandoc(text)
                case _:
                    pass


def _without_discriminators(node: Any) -> Any:
    """Drop the OpenAPI keyword that pydantic adds and Draft 2020-12 does not know."""
    if isinstance(node, dict):
        return {
            key: _without_discriminators(value)
            for key, value in node.items()
            if key != "discriminator"
        }
    if isinstance(node, list):
        return [_without_discriminators(item) for item in node]
    return node


def file_name(contract: Contract) -> str:
    """Name of a contract's schema file."""
    return f"{contract.name}.schema.json"


def contract(name: str) -> Contract:
    """Look a contract up by name."""
    for item in CONTRACTS:
        if item.name == name:
            return item
    raise InternalError(f"no contract named {name}")


@functools.cache
def schema(name: str) -> dict[str, Any]:
    """The checked-in schema, as shipped; loaded once."""
    loaded = json.loads(_read(file_name(contract(name))))
    if not isinstance(loaded, dict):
        raise InternalError(f"schema {name} is not an object")
    return loaded


def _read(name: str) -> str:
    packaged = resources.files("runner").joinpath("schemas", name)
    if packaged.is_file():
        return packaged.read_text(encoding="utf-8")
    # A checkout: the schemas lie beside the package, not in it.
    return (Path(__file__).parents[2] / "schemas" / name).read_text(encoding="utf-8")
