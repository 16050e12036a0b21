"""What must not reach the rubric has no influence on it."""

from __future__ import annotations

import json
import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.outcomes.compile import compile_rubric
from runner.core.outcomes.inputs import CompileInput
from runner.core.outcomes.leakscan import scan
from runner.core.outcomes.noninterference import check_noninterference, scrambled
from runner.core.outcomes.project import project, rubric_bytes
from runner.errors import HoldoutRefusal
from runner.model.rubric import Rubric
from tests.unit.outcomes_compile import builders as b

MUTANTS: dict[str, Callable[[CompileInput], str]] = {
    "a sample": lambda made: str(made.task.samples["s1"]["target"]),
    "a sample's key": lambda made: next(iter(made.task.samples)),
    "the sum of a sample's letters": lambda made: str(sum(map(ord, str(made.task.samples)))),
    "the first letter of a holdout value": lambda made: str(made.holdout_values[0])[0],
    "the harness": lambda made: made.task.harness_ref,
    "the metric": lambda made: made.task.stats.metric if made.task.stats else "",
    "a threshold": lambda made: str(made.task.stats.min_n_samples) if made.task.stats else "",
    "the split": lambda made: str(made.split),
    "whether it is paired": lambda made: str(made.task.stats.paired) if made.task.stats else "",
}


def sample_input() -> CompileInput:
    made = b.document(holdout=["zebra crossing", 17, 0.25, [True]], split="holdout")
    made["task"] |= {
        "domain": "geo",
        "harness_ref": "harness/v3",
        "stats": {
            "metric": "accuracy",
            "paired": True,
            "min_n_samples": 30,
            "decision_rule": {"kind": "ci", "confidence": 0.95, "min_delta": 0.02},
        },
        "samples": {"s1": {"input": "which?", "target": "Quagga-Meadow"}},
    }
    return b.read(made)


@pytest.mark.parametrize("mutant", MUTANTS)
def test_a_projection_that_carries_something_is_caught(mutant: str) -> None:
    def projection(made: CompileInput) -> Rubric:
        return project(made).model_copy(update={"instructions": f"Hint {MUTANTS[mutant](made)}"})

    with pytest.raises(HoldoutRefusal, match="depends on a value"):
        check_noninterference(sample_input(), random.Random(1), projection)


def test_a_copied_sample_is_caught_by_this_check_alone() -> None:
    made = sample_input()
    rubric = project(made).model_copy(update={"instructions": MUTANTS["a sample"](made)})
    known = b.values(*map(str, made.holdout_values))
    assert scan(rubric_bytes(rubric), known) == ()
    with pytest.raises(HoldoutRefusal):
        check_noninterference(
            made,
            random.Random(1),
            lambda other: project(other).model_copy(
                update={"instructions": MUTANTS["a sample"](other)}
            ),
        )


def test_compilation_makes_the_check(monkeypatch: pytest.MonkeyPatch) -> None:
    def leaky(made: CompileInput) -> Rubric:
        return project(made).model_copy(update={"instructions": made.task.harness_ref})

    for name in ("noninterference", "compile"):
        monkeypatch.setattr(f"runner.core.outcomes.{name}.project", leaky)
    monkeypatch.setattr(check_noninterference.__wrapped__, "__defaults__", (leaky,))  # type: ignore[attr-defined]
    with pytest.raises(HoldoutRefusal, match="depends on a value"):
        compile_rubric(
            sample_input(), (), strict=False, judge_spec=None, randomness=random.Random(1)
        )


def test_the_projection_itself_passes() -> None:
    check_noninterference(sample_input(), random.Random(1))


LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.text()
    | st.decimals(
        allow_nan=False, allow_infinity=False, places=3, min_value=-1000, max_value=1000
    ).map(float)
)
TREES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None)
@given(st.lists(TREES, min_size=1, max_size=3), st.integers(0, 99))
def test_scrambling_keeps_types_and_lengths_and_changes_every_text(
    values: list[object], seed: int
) -> None:
    made = b.read(b.document(holdout=values))
    other = scrambled(made, random.Random(seed))
    for before, after in zip(made.holdout_values, other.holdout_values, strict=True):
        assert type(before) is type(after)
        if isinstance(before, str):
            assert len(before) == len(after)
            assert all(new != old or old.isspace() for old, new in zip(before, after, strict=True))
        if isinstance(before, bool):
            assert after is not before
    assert project(other) == project(made)
    assert json.loads(rubric_bytes(project(other)))["schema_version"] == 1
