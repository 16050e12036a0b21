"""Compile inputs for the tests, and one call that compiles them."""

from __future__ import annotations

import json
import random
from collections.abc import Sequence
from typing import Any

from runner.core.outcomes.compile import Compiled, compile_rubric
from runner.core.outcomes.holdout import HoldoutValue, collect_holdout
from runner.core.outcomes.inputs import CompileInput, read_compile_input
from runner.core.outcomes.judgehash import judge_hash

JUDGE_HASH = "sha256:" + "0123456789abcdef" * 4
JUDGE = b"# Judge\nScore each criterion.\n"
JUDGED = {"judge_content_hash": judge_hash(JUDGE, "judge.md")}
"""What an input says whose judge specification is `JUDGE`."""


def document(
    *descriptions: str,
    holdout: Sequence[Any] | None = ("Ouagadougou",),
    ids: Sequence[str] | None = None,
    instructions: str = "Name the capital city.",
    task_id: str = "capital-cities",
    weight: Any = 1,
    **more: Any,
) -> dict[str, Any]:
    """A compile input as parsed JSON; `more` are further members of its root."""
    texts = descriptions or ("The reply names the city and nothing else.",)
    names = ids or [f"c{number}" for number in range(1, len(texts) + 1)]
    made: dict[str, Any] = {
        "task": {"schema_version": 1, "id": task_id, "description": instructions},
        "criteria": [
            {"id": name, "description": text, "weight": weight}
            for name, text in zip(names, texts, strict=True)
        ],
        "judge_content_hash": JUDGE_HASH,
        **more,
    }
    if holdout is not None:
        made["holdout_values"] = list(holdout)
    return made


def read(made: dict[str, Any] | bytes) -> CompileInput:
    """Read a compile input."""
    data = made if isinstance(made, bytes) else json.dumps(made).encode()
    return read_compile_input(data, "input.json")


def compiled(
    made: dict[str, Any] | bytes,
    *files: tuple[str, bytes],
    strict: bool = False,
    judge_spec: tuple[str, bytes] | None = None,
    warnings: list[str] | None = None,
) -> Compiled:
    """Read and compile."""
    parsed = read(made)
    return compile_rubric(
        parsed,
        collect_holdout(parsed, files),
        strict=strict,
        judge_spec=judge_spec,
        randomness=random.Random(7),
        warnings=warnings,
    )


def values(*texts: str) -> tuple[HoldoutValue, ...]:
    """Holdout values with the indexes of their order."""
    return tuple(HoldoutValue(index, "test", text) for index, text in enumerate(texts))
