"""Nothing that is raised, shown or returned carries a holdout value."""

from __future__ import annotations

import json
import random
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import runner
from runner.core.outcomes.compile import compile_rubric
from runner.core.outcomes.holdout import HoldoutValue, collect_holdout, read_holdout_files
from runner.core.outcomes.inputs import read_compile_input
from runner.core.outcomes.judgehash import judge_hash
from runner.core.outcomes.keyscan import key_scan
from runner.core.outcomes.leakscan import scan
from runner.core.outcomes.noninterference import check_noninterference
from runner.core.outcomes.project import project
from runner.core.outcomes.views import needles
from runner.errors import AoEvalError, InternalError
from tests.unit.outcomes_compile import builders as b

# Put together at run time, so that no line of source that a traceback quotes has it.
MARKER = f"Zyxwvut{chr(77)}arker"
MARKED = f"the {MARKER} is it"
PACKAGE = str(Path(runner.__file__).parent)


def made(**more: Any) -> dict[str, Any]:
    return b.document(holdout=[MARKED], **more)


def reader(document: dict[str, Any] | bytes) -> Callable[[], object]:
    data = document if isinstance(document, bytes) else json.dumps(document).encode()
    return lambda: read_compile_input(data, "input.json")


def compiler(document: dict[str, Any], **options: Any) -> Callable[[], object]:
    parsed = b.read(document)
    values = collect_holdout(parsed, [])
    settings: dict[str, Any] = {"strict": False, "judge_spec": None} | options
    return lambda: compile_rubric(parsed, values, randomness=random.Random(1), **settings)


RAISING: dict[str, Callable[[], Callable[[], object]]] = {
    "unknown key": lambda: reader(made() | {MARKER: MARKED}),
    "unknown key in task": lambda: reader(made() | {"task": {"id": "a", MARKER: 1}}),
    "wrong type": lambda: reader(made() | {"criteria": MARKED}),
    "bad id": lambda: reader(made(task_id=MARKED)),
    "bad criterion id": lambda: reader(b.document("x", ids=[MARKED])),
    "bad hash": lambda: reader(made() | {"judge_content_hash": MARKED}),
    "bad split": lambda: reader(made(split=MARKED)),
    "duplicate key": lambda: reader(f'{{"{MARKER}":1,"{MARKER}":2}}'.encode()),
    "duplicate key in samples": lambda: reader(
        f'{{"task":{{"samples":{{"{MARKER}":1,"{MARKER.lower()}":2}}}}}}'.encode()
    ),
    "not JSON": lambda: reader(f'{{"a": {MARKED}}}'.encode()),
    "leak": lambda: compiler(made(instructions=MARKED)),
    "assignment": lambda: compiler(b.document(f"target={MARKER}")),
    "strict": lambda: compiler(
        b.document(MARKED, holdout=["B"]) | b.JUDGED,
        strict=True,
        judge_spec=("j.md", b.JUDGE),
    ),
    "strict, no judge": lambda: compiler(made(), strict=True),
    "judge": lambda: compiler(made(), judge_spec=("j.md", MARKED.encode())),
    "judge not JSON": lambda: lambda: judge_hash(f"[{MARKED}".encode(), "j.json"),
    "holdout file": lambda: lambda: read_holdout_files([("h.jsonl", MARKED.encode())]),
    "no value": lambda: lambda: read_holdout_files([("h.jsonl", json.dumps([MARKED]).encode())]),
    "scan": lambda: lambda: scan(f'{{"{MARKER}":1,"{MARKER}":2}}'.encode(), b.values(MARKED)),
    "key scan": lambda: lambda: key_scan(MARKED.encode()),
    "interference": lambda: (
        lambda: check_noninterference(
            b.read(made()),
            random.Random(1),
            lambda other: project(other).model_copy(
                update={"instructions": other.holdout_values[0]}
            ),
        )
    ),
    "defect": lambda: (
        lambda: check_noninterference(
            b.read(made()), random.Random(1), lambda other: {}[other.holdout_values[0]]
        )
    ),
}


def shown(error: BaseException) -> str:
    """All that an error can show, with the variables of every frame of ours."""
    text = [str(error), repr(error), repr(vars(error))]
    current: BaseException | None = error
    while current is not None:
        captured = traceback.TracebackException.from_exception(current, capture_locals=True)
        for frame in captured.stack:
            if frame.filename.startswith(PACKAGE):
                text += [str(frame.line), repr(frame.locals)]
        text += captured.format_exception_only()
        current = current.__cause__ or current.__context__
    return "\n".join(text)


@pytest.mark.parametrize("name", RAISING)
def test_no_error_shows_a_value_not_even_in_its_frames(name: str) -> None:
    action = RAISING[name]()
    with pytest.raises(AoEvalError) as caught:
        action()
    assert isinstance(caught.value, InternalError) == (name == "defect")
    assert MARKER.lower() not in shown(caught.value).lower()
    assert MARKER.encode().hex() not in shown(caught.value)


def test_no_value_of_ours_shows_what_it_holds() -> None:
    document = made(instructions=MARKED)
    document["task"]["samples"] = {MARKER: MARKED}
    parsed = b.read(document)
    values = collect_holdout(parsed, [])
    things = [parsed, parsed.task, parsed.criteria, values, values[0], project(parsed)]
    things += [needles(values), b.compiled(made())]
    for thing in things:
        assert MARKER not in repr(thing)
        assert MARKER not in str(thing)
        assert MARKER not in f"{thing}"
    assert repr(HoldoutValue(3, "h.jsonl line 2", MARKED)) == (
        "HoldoutValue(index=3, source='h.jsonl line 2')"
    )
