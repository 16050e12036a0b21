"""The rubric: what a grader outside may see of a task, and nothing else.

Representations are empty on purpose: until the scan has passed, a rubric may carry a holdout value.
"""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Any, Literal

from pydantic import BeforeValidator, Field, StringConstraints, WithJsonSchema

from runner.model.base import Items, Value


def _to_float(value: object) -> object:
    return float(value) if isinstance(value, Decimal) else value


def _without_default(schema: dict[str, Any]) -> None:
    """Absent is written as absent, never as null."""
    schema.pop("default", None)


TaskId = Annotated[str, StringConstraints(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=128)]
CriterionId = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=128)
]
JudgeHash = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""Judge content hash in canonical form."""

Weight = Annotated[
    float,
    Field(gt=0.0, le=1_000_000.0, allow_inf_nan=False),
    BeforeValidator(_to_float, json_schema_input_type=float),
]
Prose = Annotated[str, StringConstraints(min_length=1)]


class Unseen(Value):
    """A value that never shows what is in it."""

    def __repr_args__(self) -> list[tuple[str | None, Any]]:
        return []


class Criterion(Unseen):
    """One thing that the grader scores."""

    id: CriterionId
    """Unique in the rubric, also when letter case is ignored."""

    description: Prose
    """What earns the score."""

    weight: Weight
    """Relative weight; needs not sum to anything."""


class Rubric(Unseen):
    """Outcomes rubric v1: task id, judge content hash, instructions, criteria."""

    schema_version: Literal[1]

    source_task_id: TaskId
    """Id of the task that this was projected from."""

    judge_content_hash: JudgeHash
    """SHA-256 of the canonical judge specification."""

    instructions: Annotated[Prose | None, WithJsonSchema({"type": "string", "minLength": 1})] = (
        Field(default=None, json_schema_extra=_without_default)
    )
    """The task's description; absent when it has none."""

    criteria: Annotated[Items[Criterion], Field(min_length=1)]
    """What is scored; at least one."""
