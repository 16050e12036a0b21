"""Projection of a compile input to its rubric: the allow-list, written out field by field."""

from __future__ import annotations

from runner.core.canon import canonical
from runner.core.outcomes.inputs import CompileInput
from runner.model.rubric import Criterion, Rubric


def project(compile_input: CompileInput) -> Rubric:
    """Take what a grader may see.

    Args:
        compile_input: The input.

    Returns:
        The rubric; values of the input that are not named here cannot reach it.
    """
    task = compile_input.task
    return Rubric(
        schema_version=1,
        source_task_id=task.id,
        judge_content_hash=compile_input.judge_content_hash,
        instructions=task.description or None,
        criteria=tuple(
            Criterion(
                id=criterion.id, description=criterion.description, weight=float(criterion.weight)
            )
            for criterion in compile_input.criteria
        ),
    )


def rubric_bytes(rubric: Rubric) -> bytes:
    """Canonical JSON of a rubric, one line with a newline; an absent field is left out."""
    return canonical(rubric.model_dump(mode="json", exclude_none=True))
