"""Eval-suite v1, as far as the reader has accepted it.

The reader (`runner.core.suitefile`) turns bytes into these values; the rules a JSON Schema can
express are here, the rest (unique ids, expectations that can never fail) is in the reader. The
format is that of the public eval-suite v1 files; where we differ on purpose: `docs/adr`.
"""

from __future__ import annotations

from decimal import Decimal
from enum import StrEnum
from typing import Annotated, Any, Literal, TypeVar

from pydantic import (
    BeforeValidator,
    ConfigDict,
    Field,
    Strict,
    StringConstraints,
    WithJsonSchema,
)

from runner.model.base import Items, Value

E = TypeVar("E", bound=StrEnum)


def _none_is_empty(value: object) -> object:
    """JSON null means absent, as it does in the format's first reader."""
    return () if value is None else value


def _none_is_zero(value: object) -> object:
    return 0.0 if value is None else _to_float(value)


def _blank_is_none(value: object) -> object:
    """The empty word means absent, as it does in the format's first reader."""
    return None if value == "" else value


def _to_float(value: object) -> object:
    """Exact decimals from the parser become floats where only the magnitude matters."""
    return float(value) if isinstance(value, Decimal) else value


def _to_decimal(value: object) -> object:
    """Keep a number exact; what is not a number stays what it is and is refused."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return value if isinstance(value, Decimal) else _NotANumber()
    return Decimal(str(value))


class _NotANumber:
    """Refused by every number type, unlike the text `1`, which Decimal would accept."""


# White space is listed because regular-expression dialects disagree on what `\s` is.
_NOT_BLANK = r"[^\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000]"

Id = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=200)]
Text = Annotated[str, StringConstraints(pattern=_NOT_BLANK)]
# Enumerations are given as their words; `strict` would ask for Python members.
Word = Annotated[E, Strict(strict=False)]
Number = Annotated[float, BeforeValidator(_to_float), Field(allow_inf_nan=False)]
ExactNumber = Annotated[
    Decimal,
    BeforeValidator(_to_decimal),
    Field(allow_inf_nan=False),
    WithJsonSchema({"type": "number"}),
]
# Bounds come before the conversion, else the schema would not know them.
Fraction = Annotated[float, Field(ge=0.0, le=1.0), BeforeValidator(_to_float)]
FractionOrZero = Annotated[
    float,
    Field(ge=0.0, le=1.0),
    BeforeValidator(_none_is_zero, json_schema_input_type=Fraction | None),
]
Seconds = Annotated[int, Field(ge=1, le=86_400)]
Strings = Annotated[
    Items[str], BeforeValidator(_none_is_empty, json_schema_input_type=Items[str] | None)
]


class DimensionName(StrEnum):
    """Named score axes."""

    CORRECTNESS = "correctness"
    PROCESS_ADHERENCE = "process_adherence"
    ARTIFACT_QUALITY = "artifact_quality"
    RUNTIME_COMPATIBILITY = "runtime_compatibility"
    EFFICIENCY = "efficiency"
    SAFETY = "safety"
    LEARNING_CLOSURE = "learning_closure"
    CONTEXT_COMPREHENSION = "context_comprehension"


class ExpectationType(StrEnum):
    """What an expectation looks at."""

    EXIT_CODE = "exit_code"
    STDOUT_CONTAINS = "stdout_contains"
    STDERR_CONTAINS = "stderr_contains"
    STDOUT_CONTAINS_AUTO_DETECT = "stdout_contains_auto_detect"
    FILE_EXISTS = "file_exists"
    FILE_ABSENT = "file_absent"
    ARTIFACT_CONTAINS = "artifact_contains"
    JSON_PATH = "json_path"
    SCHEMA_VALID = "schema_valid"
    SCORE_AT_LEAST = "score_at_least"
    MANUAL_REVIEW = "manual_review"


class Visibility(StrEnum):
    """Whether the suite's answers may be seen."""

    PUBLIC_CANARY = "public_canary"
    PRIVATE_HOLDOUT = "private_holdout"


class Tier(StrEnum):
    """Determinism class; only `deterministic` is run, the others are skipped."""

    DETERMINISTIC = "deterministic"
    HEADLESS = "headless"
    LIVE = "live"
    RELEASE = "release"


class EvidenceKind(StrEnum):
    """What a result of the suite or case proves."""

    CONTRACT_CANARY = "contract_canary"
    GATE_WRAPPER = "gate_wrapper"
    BEHAVIOR_FIXTURE = "behavior_fixture"
    BASELINE_REGRESSION = "baseline_regression"
    SCORECARD_FIXTURE = "scorecard_fixture"
    LIVE_RUNTIME = "live_runtime"
    HOLDOUT = "holdout"


class CaseRuntime(StrEnum):
    """Declared runtime of a case; the live ones are skipped as `runtime_unavailable`."""

    STATIC = "static"
    MOCK = "mock"
    SHELL = "shell"
    CLAUDE = "claude"
    CODEX = "codex"
    MANUAL = "manual"


OptionalEvidenceKind = Annotated[
    Word[EvidenceKind] | None,
    BeforeValidator(_blank_is_none, json_schema_input_type=Word[EvidenceKind] | Literal[""] | None),
]
OptionalRuntime = Annotated[
    Word[CaseRuntime] | None,
    BeforeValidator(_blank_is_none, json_schema_input_type=Word[CaseRuntime] | Literal[""] | None),
]


def _form(types: tuple[str, ...], required: tuple[str, ...], **properties: Any) -> Any:
    """Schema clause: expectations of these types have these fields in this form."""
    return {
        "if": {"properties": {"type": {"enum": list(types)}}, "required": ["type"]},
        "then": {"properties": properties, "required": list(required)},
    }


_NEEDLE = {"type": ["null", "boolean", "number", "string", "array"], "not": {"const": ""}}
_SOME_TEXT = {"type": "string", "minLength": 1}
_SOURCE = {"type": "string", "pattern": _NOT_BLANK}
# What a schema can say of the reader's rules (`runner.core.expectrules` has all of them).
_FORMS = [
    _form(("exit_code",), ("value",), value={"type": "integer"}),
    _form(("stdout_contains", "stderr_contains"), (), value=_NEEDLE),
    _form(("artifact_contains",), ("target",), target=_SOME_TEXT, value=_NEEDLE),
    _form(("file_exists", "file_absent"), ("target",), target=_SOME_TEXT),
    _form(("json_path",), ("target",), target=_SOURCE),
    _form(("score_at_least",), ("target",), target=_SOURCE, value={"type": ["number", "null"]}),
    _form(
        ("schema_valid",),
        ("target",),
        target={**_SOURCE, "not": {"const": "suite"}},
        value={"type": ["string", "null"]},
    ),
    _form(
        ("stdout_contains_auto_detect",),
        ("value",),
        value={
            "type": "object",
            "additionalProperties": False,
            "required": ["command", "pattern"],
            "properties": {
                "command": _SOURCE,
                "pattern": _SOME_TEXT,
                "expected_group": {"type": ["integer", "null"], "minimum": 0},
                "tolerance_pct": {"type": ["number", "null"], "minimum": 0},
            },
        },
    ),
]


class Expectation(Value):
    """One assertion on an output or file of a case."""

    model_config = ConfigDict(json_schema_extra={"allOf": _FORMS})

    type: Word[ExpectationType]
    target: str | None = None
    value: Any = None
    threshold: ExactNumber | None = None
    required: bool | None = None

    @property
    def is_required(self) -> bool:
        """Required unless it says otherwise."""
        return self.required is not False


class Case(Value):
    """One check of a suite."""

    id: Id
    title: Text
    kind: Text
    objective: Text
    evidence_kind: OptionalEvidenceKind = None
    runtime: OptionalRuntime = None
    timeout_seconds: Seconds | None = None
    fixtures: Strings = ()
    inputs: dict[str, Any] | None = None
    expectations: Annotated[Items[Expectation], Field(min_length=1)]
    dimensions: Strings = ()
    critical: bool | None = None
    tags: Strings = ()

    @property
    def is_command(self) -> bool:
        """Only `command` runs anything; every other kind is static."""
        return self.kind == "command"


class Fixture(Value):
    """A file the suite says it needs; a declared digest is checked by the reader."""

    path: Text
    purpose: Text
    required: bool | None = None
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-fA-F]{64}$")] | None = None


class SuiteEnvironment(Value):
    """What a suite says of its surroundings. Isolation and no network are given, not asked for."""

    offline_required: bool | None = None
    network: str | None = None
    scrub_env_prefixes: Strings = ()
    isolate_home: bool | None = None
    isolate_codex_home: bool | None = None
    timeout_seconds: Seconds | None = None
    max_attempts: int | None = None
    disable_hooks: bool | None = None


class Dimension(Value):
    """A weighted score axis and the least score it must reach."""

    name: Word[DimensionName]
    weight: Annotated[float, Field(gt=0.0, allow_inf_nan=False), BeforeValidator(_to_float)]
    threshold: FractionOrZero = 0.0
    critical: bool | None = None


class Scoring(Value):
    """How case scores become one number."""

    aggregate_threshold: FractionOrZero = 0.0
    critical_threshold: Number | None = None
    """Read and kept; nothing depends on it."""
    dimensions: Annotated[Items[Dimension], Field(min_length=1)]


class BaselinePolicy(Value):
    """Read and kept; promotion and comparison with baselines are not part of this tool."""

    mode: Text
    baseline_ref: str | None = None
    baseline_path: str | None = None
    max_aggregate_regression: Number | None = None
    max_dimension_regression: Number | None = None
    repeat_count: int | None = None
    promotion_requires: Strings = ()
    blocking_gate: str | None = None


class Suite(Value):
    """File of cases plus scoring and policy."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    id: Id
    name: Text
    description: str | None = None
    practices: Strings = ()
    domain: str | None = None
    visibility: Word[Visibility]
    tier: Word[Tier]
    evidence_kind: OptionalEvidenceKind = None
    owners: Strings = ()
    tags: Strings = ()
    allowed_runtimes: Strings = ()
    environment: SuiteEnvironment | None = None
    fixtures: Annotated[
        Items[Fixture],
        BeforeValidator(_none_is_empty, json_schema_input_type=Items[Fixture] | None),
    ] = ()
    scoring: Scoring
    baseline_policy: BaselinePolicy
    cases: Annotated[Items[Case], Field(min_length=1)]

    @property
    def is_holdout(self) -> bool:
        """True when no answer of this suite may appear in any record, log or message."""
        return self.visibility is Visibility.PRIVATE_HOLDOUT


class SuiteFile(Value):
    """A suite with the identity of the bytes it came from."""

    path: str
    """As given on the command line."""
    sha256: str
    suite: Suite
    source: bytes = b""
    """The bytes themselves; evidence holds them, so that others can judge again."""
    holdout_key: bytes | None = None
    """Secret derived from the suite's bytes; keys digests of outputs of a private holdout."""
