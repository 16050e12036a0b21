"""What the agent saw from inside, held against what was asked for."""

from __future__ import annotations

from typing import Any

import pytest

from runner.core.hookenv import digest
from runner.core.inside import (
    environment_degradation,
    hooks_degradation,
    root_degradation,
    sandbox_problems,
)
from runner.model.hooks import HooksDirectory
from runner.model.leg import Degradation, DegradedReason
from tests.unit.builders import inside_end, inside_report, root, sha


def seen(*, gvisor: bool = False, **fields: Any) -> tuple[str, ...]:
    """Problems with a report in which these fields are different."""
    return sandbox_problems(
        inside_report(**fields),
        case_user=(65532, 65532),
        agent_sha256=sha("4"),
        gvisor=gvisor,
    )


def test_a_container_as_it_must_be_has_no_problem() -> None:
    assert seen() == ()


@pytest.mark.parametrize(
    "fields, words",
    [
        ({"agent_sha256": sha("9")}, "is not the one that was staged"),
        ({"capabilities": "00000000000000e1"}, "the agent has capabilities"),
        ({"capabilities": "0000000000000000"}, "asked for 00000000000000e0"),
        ({"capabilities": "000001ffffffffff"}, "the agent has capabilities"),
        ({"capabilities": "none"}, "the agent has capabilities none"),
        ({"case_capabilities": "0000000000000001"}, "cases have capabilities 0000000000000001"),
        ({"case_capabilities": ""}, "cases have capabilities"),
        ({"no_new_privs": False}, "no-new-privileges is not set"),
        ({"seccomp": 0}, "no seccomp filter is in force (mode 0)"),
        ({"seccomp": 1}, "no seccomp filter is in force (mode 1)"),
        ({"uid": 65532}, "agent runs as 65532"),
        ({"case_uid": 0}, "cases as 0"),
        ({"routes": 1}, "1 network routes"),
        ({"interfaces": ("eth0", "lo")}, "unexpected network interfaces: eth0"),
        ({"interfaces": ("eth0",)}, "unexpected network interfaces: eth0"),
        ({"interfaces": ("lo", "wg0", "docker0")}, "docker0, wg0"),
        ({"writable": ("/tmp", "/context/agents")}, "can write to /context/agents"),
        ({"writable": ("/", "/ao")}, "can write to /, /ao"),
    ],
)
def test_every_gap_in_the_confinement_is_a_problem(fields: dict[str, Any], words: str) -> None:
    (problem,) = seen(**fields)
    assert words in problem


def test_every_gap_is_named_not_only_the_first() -> None:
    assert len(seen(no_new_privs=False, seccomp=0, routes=2)) == 3


def test_gvisor_shows_no_seccomp_mode_and_nothing_else_is_forgiven() -> None:
    assert seen(gvisor=True, seccomp=0) == ()
    assert len(seen(gvisor=True, seccomp=0, no_new_privs=False)) == 1


@pytest.mark.parametrize("interfaces", [(), ("lo",), ("lo", "sit0", "tunl0"), ("ip6tnl0",)])
def test_loopback_and_what_every_network_namespace_has_are_expected(
    interfaces: tuple[str, ...],
) -> None:
    assert seen(interfaces=interfaces) == ()


@pytest.mark.parametrize("report", [inside_report, inside_end])
def test_a_root_that_is_not_the_staged_one_is_unavailable(report: Any) -> None:
    mismatch = Degradation(reason=DegradedReason.CONTEXT_ROOT_UNAVAILABLE, detail="digest_mismatch")
    assert root_degradation(root(), report()) is None
    assert root_degradation(root(), report(context_root_sha256=sha("e"))) == mismatch
    assert root_degradation(root(), report(context_root_sha256=None)) == mismatch
    assert root_degradation(None, report()) == mismatch
    assert root_degradation(root(sha256=None), report()) == mismatch
    assert root_degradation(None, report(context_root_sha256=None)) is None


def test_a_root_that_is_looked_at_only_at_the_end_has_to_be_right_then() -> None:
    mismatch = Degradation(reason=DegradedReason.CONTEXT_ROOT_UNAVAILABLE, detail="digest_mismatch")
    start, end = inside_report(context_root_sha256=None), inside_end()
    assert root_degradation(root(), start, at_start=False) is None
    assert root_degradation(root(), start) == mismatch
    # Then the agent must not have looked, and a look at the end is not optional.
    assert root_degradation(root(), inside_report(), at_start=False) == mismatch
    assert root_degradation(root(), end, at_start=False) is None
    for found in (None, sha("e")):
        late = inside_end(context_root_sha256=found)
        assert root_degradation(root(), late, at_start=False) == mismatch


@pytest.mark.parametrize("report", [inside_report, inside_end])
@pytest.mark.parametrize(
    "environment, clean",
    [
        ({"AO_PROFILE": "ci"}, True),
        ({"AO_PROFILE": "other"}, False),
        ({"AO_PROFILE": "ci", "TZ": "UTC"}, False),
        ({}, False),
    ],
)
def test_an_environment_that_is_not_the_planned_one_degrades_the_hooks(
    report: Any, environment: dict[str, str], clean: bool
) -> None:
    found = environment_degradation(environment, report())
    assert (found is None) == clean
    if found is not None:
        assert (found.reason, found.detail) == (
            DegradedReason.HOOKS_DISABLED,
            "environment_differs",
        )


def test_one_variable_too_many_inside_degrades_the_hooks() -> None:
    extra = {"AO_PROFILE": digest("ci"), "AGENTOPS_HOOKS_DISABLED": digest("1")}
    found = environment_degradation({"AO_PROFILE": "ci"}, inside_report(environment_sha256=extra))
    assert found is not None


def test_the_hooks_directory_inside_is_the_staged_one() -> None:
    directory = HooksDirectory(sha256=sha("e"), entries=1, size=1, hooks=(), not_run=())
    wrong = Degradation(reason=DegradedReason.HOOKS_DISABLED, detail="directory_differs")
    for look in (inside_report, inside_end):
        seen = look(hooks_directory_sha256=sha("e"))
        assert hooks_degradation(directory, seen) is None
        assert hooks_degradation(None, look()) is None
        # Another one, none that could be read, and one that nobody asked for.
        assert hooks_degradation(directory, look(hooks_directory_sha256=sha("f"))) == wrong
        assert hooks_degradation(directory, look()) == wrong
        assert hooks_degradation(None, seen) == wrong
