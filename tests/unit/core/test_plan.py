"""Suite and axis -> legs: what will run, and what is degraded before anything does."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter

from runner.core.hookenv import LEG_VARIABLES
from runner.core.plan import APART, as_token, check_only, supported_variants, suppression
from runner.errors import InputError
from runner.model.base import Token
from runner.model.hooks import Hook, HookEvent, HooksDirectory
from runner.model.leg import Axis, Command, Degradation, DegradedReason, Variant
from runner.model.suite import SuiteFile
from tests.unit.builders import SUITE_DIR, case, leg_plan, root, sha, suite_file
from tests.unit.skill import skill_plan

TOKEN = TypeAdapter(Token)
MISSING = Degradation(reason=DegradedReason.CONTEXT_ROOT_UNAVAILABLE, detail="missing")
HOOKS_OFF = Degradation(reason=DegradedReason.HOOKS_DISABLED, detail="inherited")


def planned(**fields: Any) -> Command | None:
    """The command that a case with these fields starts."""
    return leg_plan(suite_file(case(**fields))).cases[0].command


# --- variants


@pytest.mark.parametrize("variant", ["context_off", "context_on"])
def test_a_leg_of_the_context_axis_has_its_variant_and_the_path_of_its_root(variant: str) -> None:
    leg = leg_plan(variant=variant)
    assert (leg.leg, leg.variant, leg.degraded) == (variant, variant, None)
    assert leg.env["AO_CONTEXT_VARIANT"] == variant
    assert leg.env["AO_AGENTS_DIR"] == "/context/agents"


def test_the_legs_differ_in_nothing_but_the_variant() -> None:
    off, on = leg_plan(variant="context_off"), leg_plan(variant="context_on")
    differing = {name for name in off.env | on.env if off.env.get(name) != on.env.get(name)}
    assert differing == {"AO_CONTEXT_VARIANT"}
    assert off.cases == on.cases


def test_a_plain_run_has_no_context_variable_at_all() -> None:
    leg = leg_plan(variant="none")
    assert leg.degraded is None
    assert set(leg.env) & set(LEG_VARIABLES) == {"AO_USAGE_FILE"}


@pytest.mark.parametrize(
    "name, detail",
    [
        ("curated_only", "curated_only"),
        ("stale_sentinel", "stale_sentinel"),
        ("toxic_sentinel", "toxic_sentinel"),
        ("skill_on", "skill_on"),
        ("Context On", "context_on"),
        ("CONTEXT_ON", "context_on"),
        ("2fast", "v_2fast"),
        ("", "v_"),
        ("\u00e9\n", "v___"),
    ],
)
def test_any_other_variant_degrades_the_leg_and_names_it(name: str, detail: str) -> None:
    leg = leg_plan(variant=name)
    expected = Degradation(reason=DegradedReason.CONTEXT_VARIANT_UNSUPPORTED, detail=detail)
    assert (leg.variant, leg.degraded) == (name, expected)
    assert leg.leg in {"unsupported", *Variant}


def test_each_axis_has_its_own_variants() -> None:
    assert leg_plan(variant="skill_off", axis=Axis.SKILL).degraded is None
    assert leg_plan(variant="context_on", axis=Axis.SKILL).degraded is not None
    assert set(supported_variants(Axis.CONTEXT)) & set(supported_variants(Axis.SKILL)) == set()


@given(st.text(max_size=100))
def test_every_name_has_a_bare_token(name: str) -> None:
    assert TOKEN.validate_python(as_token(name)) == as_token(name)


def test_an_unsupported_variant_comes_before_anything_else_that_is_wrong() -> None:
    leg = leg_plan(variant="curated_only", root_degraded=MISSING, suppressed=HOOKS_OFF)
    assert leg.degraded is not None
    assert leg.degraded.reason is DegradedReason.CONTEXT_VARIANT_UNSUPPORTED


def test_suppressed_hooks_come_before_a_root_that_could_not_be_staged() -> None:
    assert leg_plan(root_degraded=MISSING, suppressed=HOOKS_OFF).degraded == HOOKS_OFF
    staged = root(sha256=None)
    leg = leg_plan(staged=staged, root_degraded=MISSING)
    assert (leg.degraded, leg.root) == (MISSING, staged)


# --- cases


def test_suppressed_hooks_are_planned_away_and_their_directory_stays() -> None:
    hook = Hook(
        event=HookEvent.SESSION_START,
        index=0,
        command="true",
        command_sha256=sha("a"),
        timeout_seconds=60,
    )
    directory = HooksDirectory(sha256=sha("e"), entries=1, size=9, hooks=(hook,), not_run=())
    assert leg_plan().hooks is None
    assert leg_plan(directory=directory).hooks == directory
    suppressed = Degradation(reason=DegradedReason.HOOKS_DISABLED, detail="inherited")
    planned = leg_plan(directory=directory, suppressed=suppressed).hooks
    assert planned is not None
    assert (planned.sha256, planned.hooks) == (directory.sha256, ())


def test_every_case_is_planned_whole_or_those_that_are_asked_for() -> None:
    suite = suite_file(case("a"), case("b"), case("c"))
    assert [(c.index, c.case_id) for c in leg_plan(suite).cases] == [(0, "a"), (1, "b"), (2, "c")]
    assert [(c.index, c.case_id) for c in leg_plan(suite, only=["c"]).cases] == [(2, "c")]


@pytest.mark.parametrize(
    "inputs, argv",
    [
        ({"shell": "a | b", "argv": ["x"], "command": "y"}, ("sh", "-c", "a | b")),
        ({"shell": "", "argv": ["x", "1"], "command": "y"}, ("x", "1")),
        ({"shell": 5, "argv": [], "command": "y", "args": ["1", 2, "3"]}, ("y", "1", "3")),
        ({"argv": ["x", None, 4, "y"]}, ("x", "y")),
        ({"argv": "not a list", "command": "y"}, ("y",)),
        ({"command": "y", "args": "not a list"}, ("y",)),
    ],
)
def test_shell_wins_over_argv_and_argv_over_command(
    inputs: dict[str, Any], argv: tuple[str, ...]
) -> None:
    command = planned(inputs=inputs)
    assert command is not None
    assert command.argv == argv


@pytest.mark.parametrize("inputs", [None, {}, {"argv": [1]}, {"shell": None}, {"args": ["x"]}])
def test_a_command_case_with_nothing_to_start_cannot_be_started(inputs: Any) -> None:
    (only,) = leg_plan(suite_file(case(inputs=inputs))).cases
    assert only.command is None
    assert only.degraded is not None
    assert (only.degraded.reason, only.degraded.detail) == (
        DegradedReason.RUNTIME_UNAVAILABLE,
        "not_startable",
    )


@pytest.mark.parametrize("kind", ["artifact_check", "hook_event", "anything"])
def test_every_other_kind_runs_nothing(kind: str) -> None:
    (only,) = leg_plan(suite_file(case(kind=kind, inputs={"shell": "true"}))).cases
    assert (only.command, only.degraded) == (None, None)


@pytest.mark.parametrize(
    "cwd, where",
    [
        (None, SUITE_DIR),
        ("", SUITE_DIR),
        (".", SUITE_DIR),
        ("sub/../x", f"{SUITE_DIR}/x"),
        ("..", "/workspace"),
        ("/etc", "/etc"),
        (3, SUITE_DIR),
    ],
)
def test_a_working_directory_is_relative_to_the_suites_folder(cwd: Any, where: str) -> None:
    command = planned(inputs={"shell": "true", "cwd": cwd})
    assert command is not None
    assert command.cwd == where


def test_standard_input_and_variables_are_texts_or_absent() -> None:
    command = planned(inputs={"shell": "true", "stdin": "in", "env": {"A": "1", "B": 2, "C": None}})
    assert command is not None
    assert (command.stdin, command.env) == ("in", {"A": "1"})
    command = planned(inputs={"shell": "true", "stdin": 5, "env": ["A=1"]})
    assert command is not None
    assert (command.stdin, command.env) == (None, {})


def test_no_case_overrides_a_variable_of_the_leg() -> None:
    chosen = dict.fromkeys(LEG_VARIABLES, "/somewhere/else") | {"MINE": "1"}
    command = planned(inputs={"shell": "true", "env": chosen})
    assert command is not None
    assert command.env == {"MINE": "1"}


def test_no_hook_variable_overrides_a_variable_of_the_leg() -> None:
    leg = leg_plan(hooks=dict.fromkeys(LEG_VARIABLES, "/live"))
    assert "/live" not in leg.env.values()


@pytest.mark.parametrize(
    "of_case, of_suite, seconds",
    [(5, 7, 5), (None, 7, 7), (None, None, 30)],
)
def test_the_timeout_is_the_cases_else_the_suites_else_30_seconds(
    of_case: int | None, of_suite: int | None, seconds: int
) -> None:
    suite = suite_file(case(timeout_seconds=of_case), environment={"timeout_seconds": of_suite})
    assert leg_plan(suite).cases[0].timeout_seconds == seconds


def test_without_an_environment_the_timeout_is_30_seconds() -> None:
    assert leg_plan().cases[0].timeout_seconds == 30


def test_files_and_probes_of_expectations_are_planned_under_the_rules_of_the_case() -> None:
    probe = {"command": "cat version", "pattern": r"(\d+)"}
    suite = suite_file(
        case(
            "one",
            {"type": "file_exists", "target": "out.txt"},
            {"type": "stdout_contains_auto_detect", "value": probe},
            inputs={"shell": "true", "cwd": "sub", "env": {"A": "1"}},
        )
    )
    (only,) = leg_plan(suite).cases
    assert only.files == (f"{SUITE_DIR}/out.txt",)
    (found,) = only.probes
    assert found.expectation == 1
    assert found.command == Command(
        argv=("sh", "-c", "cat version"), cwd=f"{SUITE_DIR}/sub", env={"A": "1"}
    )


@pytest.mark.parametrize("runtime", ["claude", "codex", "manual"])
def test_a_live_runtime_is_unavailable(runtime: str) -> None:
    (only,) = leg_plan(suite_file(case(runtime=runtime))).cases
    assert only.degraded == Degradation(
        reason=DegradedReason.RUNTIME_UNAVAILABLE, detail="live_runtime"
    )


@pytest.mark.parametrize("runtime", [None, "shell", "static", "mock"])
def test_the_other_runtimes_run(runtime: str | None) -> None:
    assert leg_plan(suite_file(case(runtime=runtime))).cases[0].degraded is None


@pytest.mark.parametrize("tier", ["headless", "live", "release"])
def test_a_tier_that_is_not_deterministic_is_unavailable(tier: str) -> None:
    (only,) = leg_plan(suite_file(case(runtime="claude"), tier=tier)).cases
    assert only.degraded == Degradation(
        reason=DegradedReason.RUNTIME_UNAVAILABLE, detail="tier_not_deterministic"
    )


def test_an_unknown_case_is_refused_by_name() -> None:
    suite = suite_file(case("a")).suite
    check_only(suite, (), "s.json")
    check_only(suite, ["a"], "s.json")
    with pytest.raises(InputError, match=r"s\.json: no case 'b'"):
        check_only(suite, ["a", "b"], "s.json")


# --- suppression

OFF = {"AGENTOPS_HOOKS_DISABLED": "1"}


def why_off(
    suite: SuiteFile,
    invoker: dict[str, str] | None = None,
    options: dict[str, str] | None = None,
    image: dict[str, str] | None = None,
) -> Degradation | None:
    """Why hooks would be off."""
    return suppression(
        suite.suite,
        invoker=invoker or {},
        options=options or {},
        image=image or {},
        suite_path="s.json",
    )


PLAIN = suite_file()
SCRUBS = suite_file(environment={"scrub_env_prefixes": ["AGENTOPS_"]})
SCRUBS_ALL = suite_file(environment={"scrub_env_prefixes": [""]})
DISABLES = suite_file(environment={"disable_hooks": True})
CASE_ENV = suite_file(case("a"), case("b", inputs={"shell": "true", "env": OFF}))


@pytest.mark.parametrize(
    "suite, places, detail",
    [
        (PLAIN, {"invoker": OFF}, "inherited"),
        (PLAIN, {"invoker": {"AGENTOPS_SESSION_START_DISABLED": "1"}}, "inherited"),
        (PLAIN, {"options": OFF}, "option_env"),
        (PLAIN, {"image": OFF}, "image_env"),
        (DISABLES, {}, "suite_env"),
        (SCRUBS, {}, "scrub_prefix"),
        (SCRUBS_ALL, {}, "scrub_prefix"),
        (CASE_ENV, {}, "case_env"),
    ],
)
def test_suppression_is_found_wherever_it_comes_from(
    suite: SuiteFile, places: dict[str, dict[str, str]], detail: str
) -> None:
    assert why_off(suite, **places) == Degradation(
        reason=DegradedReason.HOOKS_DISABLED, detail=detail
    )


@pytest.mark.parametrize(
    "environment",
    [
        None,
        {"disable_hooks": False},
        {"scrub_env_prefixes": ["AGENTOPS_RPI_RUNTIME", "ANTHROPIC_"]},
    ],
)
def test_hooks_are_on_when_nothing_switches_them_off(environment: Any) -> None:
    suite = suite_file(
        case(inputs={"shell": "true", "env": {"AGENTOPS_HOOKS_DISABLED": ""}}),
        environment=environment,
    )
    assert why_off(suite, invoker={"AGENTOPS_HOOKS_DISABLED": ""}) is None


AMBIGUOUS = {"AGENTOPS_HOOKS_DISABLED": "true"}


@pytest.mark.parametrize(
    "place, where", [("invoker", "environment"), ("options", "--env"), ("image", "image ENV")]
)
def test_an_ambiguous_switch_is_refused_and_its_place_named(place: str, where: str) -> None:
    with pytest.raises(InputError) as caught:
        why_off(PLAIN, **{place: AMBIGUOUS})
    assert caught.value.where == where


def test_an_ambiguous_switch_in_a_case_is_refused_with_its_pointer() -> None:
    suite = suite_file(case("a"), case("b", inputs={"shell": "true", "env": AMBIGUOUS}))
    with pytest.raises(InputError) as caught:
        why_off(suite)
    assert caught.value.where == "s.json#/cases/1/inputs/env"


# --- the skill axis


@pytest.mark.parametrize("inherited", [{}, {"AGENTOPS_HOOKS_DISABLED": ""}])
def test_the_legs_of_the_skill_axis_differ_in_the_switch_alone(inherited: dict[str, str]) -> None:
    suite = suite_file(case("one"))
    off = skill_plan(suite, "skill_off", environment=inherited)
    on = skill_plan(suite, "skill_on", environment=inherited)
    assert off.env.get("AGENTOPS_HOOKS_DISABLED") == "1"
    assert on.env.get("AGENTOPS_HOOKS_DISABLED", "") == ""
    differing = {name for name in off.env | on.env if off.env.get(name) != on.env.get(name)}
    assert differing == {"AGENTOPS_HOOKS_DISABLED"} == APART[Axis.SKILL]
    assert off.cases == on.cases
    assert (off.degraded, on.degraded) == (None, None)


def test_no_leg_of_the_skill_axis_knows_of_a_context_root() -> None:
    for variant in ("skill_off", "skill_on"):
        leg = skill_plan(suite_file(case("one")), variant)
        assert leg.root is None
        assert not {"AO_AGENTS_DIR", "AO_CONTEXT_VARIANT"} & leg.env.keys()


def test_no_case_switches_hooks_on_again_in_the_off_leg() -> None:
    own = {"AGENTOPS_HOOKS_DISABLED": "", "OTHER": "x"}
    suite = suite_file(case("one", inputs={"shell": "true", "env": own}))
    for variant in ("skill_off", "skill_on"):
        command = skill_plan(suite, variant).cases[0].command
        assert command is not None
        assert command.env == {"OTHER": "x"}


def test_only_the_on_leg_of_the_skill_axis_runs_hooks_and_both_have_the_directory() -> None:
    hook = Hook(
        event=HookEvent.SESSION_START, index=0, command_sha256=sha("a"), timeout_seconds=1,
        command="true",
    )  # fmt: skip
    given = HooksDirectory(sha256=sha("b"), entries=1, size=1, hooks=(hook,), not_run=())
    suite = suite_file(case("one"))
    off, on = (skill_plan(suite, side, hooks=given) for side in ("skill_off", "skill_on"))
    assert off.hooks is not None
    assert on.hooks is not None
    assert (off.hooks.hooks, on.hooks.hooks) == ((), (hook,))
    assert off.hooks.sha256 == on.hooks.sha256


def test_suppression_degrades_both_legs_of_the_skill_axis_since_it_makes_them_alike() -> None:
    suite = suite_file(case("one"))
    for variant in ("skill_off", "skill_on"):
        assert skill_plan(suite, variant, suppressed=HOOKS_OFF).degraded == HOOKS_OFF
