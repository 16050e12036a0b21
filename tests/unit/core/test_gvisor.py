"""Which case is blamed for the end of a container that it took along."""

from __future__ import annotations

import pytest

from runner.core.degrade import insufficient, runtime_unavailable
from runner.core.gvisor import to_blame, warnings
from runner.model.leg import CasePlan, Command, Degradation, Probe

COMMAND = Command(argv=("true",), cwd="/")


def planned(index: int, *, command: bool = True, probe: bool = False) -> CasePlan:
    return CasePlan(
        index=index,
        case_id=f"case-{index}",
        command=COMMAND if command else None,
        timeout_seconds=1,
        probes=(Probe(expectation=0, command=COMMAND),) if probe else (),
    )


@pytest.mark.parametrize("detail", ["oom", "agent_died"])
def test_the_only_case_that_ran_in_a_container_bears_its_end(detail: str) -> None:
    begun, static = planned(1), planned(0, command=False)
    assert to_blame(insufficient(detail), begun=begun, ended=()) == begun
    # A static case runs nothing.
    assert to_blame(insufficient(detail), begun=begun, ended=[static]) == begun
    probed = planned(1, command=False, probe=True)
    assert to_blame(insufficient(detail), begun=probed, ended=[static]) == probed


def test_nobody_is_blamed_where_another_case_ran_before() -> None:
    for earlier in (planned(0), planned(0, command=False, probe=True)):
        assert to_blame(insufficient("oom"), begun=planned(1), ended=[earlier]) is None


def test_nobody_is_blamed_where_no_case_was_running() -> None:
    assert to_blame(insufficient("oom"), begun=None, ended=()) is None
    assert to_blame(insufficient("agent_died"), begun=planned(0, command=False), ended=()) is None


@pytest.mark.parametrize(
    "end",
    [
        insufficient("protocol_violation"),
        insufficient("interrupted"),
        insufficient("leg_timeout"),
        runtime_unavailable("engine_lost"),
        runtime_unavailable("start_failed"),
    ],
)
def test_nobody_is_blamed_for_what_is_not_the_end_of_a_container(end: Degradation) -> None:
    assert to_blame(end, begun=planned(0), ended=()) is None


def test_a_scorecard_says_what_is_different_and_more_with_a_shared_workspace() -> None:
    (alone, looks), shared = warnings(shared=False), warnings(shared=True)
    assert "looked at" in looks
    assert looks in shared
    assert "others are not" in alone
    assert len(shared) == 3
    assert "whole leg" in shared[0]
    assert "System V" in shared[1]
