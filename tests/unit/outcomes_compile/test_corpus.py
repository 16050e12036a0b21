"""The corpus: every leak is refused, no honest rubric is."""

from __future__ import annotations

import pytest

from runner.errors import HoldoutRefusal
from tests.unit.outcomes_compile import builders as b
from tests.unit.outcomes_compile.honest import honest
from tests.unit.outcomes_compile.leaks import leaks


@pytest.mark.timeout(600)
def test_at_least_500_leaks_are_all_refused(capsys: pytest.CaptureFixture[str]) -> None:
    total, missed, shown = 0, [], []
    for leak in leaks():
        total += 1
        try:
            b.compiled(leak.made)
        except HoldoutRefusal as refusal:
            if leak.value.lower() in str(refusal).lower() and not leak.value[0].isdigit():
                shown.append(leak.name)
        else:
            missed.append(leak.name)
    with capsys.disabled():
        print(f"\nleaks: {total} made, {total - len(missed)} refused")
    assert missed == []
    assert shown == []
    assert total >= 500


@pytest.mark.timeout(600)
def test_at_least_300_honest_rubrics_are_all_compiled(capsys: pytest.CaptureFixture[str]) -> None:
    total, refused = 0, []
    for name, made in honest():
        total += 1
        try:
            b.compiled(made)
        except HoldoutRefusal as refusal:
            refused.append((name, str(refusal)))
    with capsys.disabled():
        print(f"\nhonest rubrics: {total} made, {len(refused)} refused")
    assert refused == []
    assert total >= 300
