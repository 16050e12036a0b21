"""What of the invoker's environment reaches a leg, and what would switch hooks off."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.hookenv import (
    LEG_VARIABLES,
    NAMESPACES,
    SWITCHES,
    digest,
    scrubs_hooks,
    select,
    suppressed_by,
)
from runner.errors import InputError

NAMES = st.text(alphabet="ABKOSTCLXUDE_", min_size=0, max_size=12)
ENVIRONMENTS = st.dictionaries(
    st.builds(str.__add__, st.sampled_from(["", "AO_EVAL_", "ao_", "X_", *NAMESPACES]), NAMES),
    st.text(max_size=4),
    max_size=12,
)


def test_the_four_namespaces_are_passed_on_and_nothing_else_is() -> None:
    kept = {"AGENTOPS_HOME": "/a", "AO_PROFILE": "ci", "CLAUDE_DIR": "/c", "CODEX_HOME": "/d"}
    other = {"HOME": "/root", "PATH": "/bin", "AO": "x", "ao_profile": "x", "XAO_PROFILE": "x"}
    found = select({**other, **kept})
    assert (found.passed, found.dropped) == (kept, ())


@pytest.mark.parametrize(
    "name",
    [
        "AO_API_TOKEN",
        "CLAUDE_API_KEY",
        "CODEX_CLIENT_SECRET",
        "AGENTOPS_DB_PASSWORD",
        "AGENTOPS_PASSWORD_FILE",
        "AO_token",
        "AO_Api_Key",
        "CODEX_dbPassword",
    ],
)
def test_names_that_look_like_credentials_are_dropped_and_listed(name: str) -> None:
    found = select({name: "hunter2", "AO_PROFILE": "ci"})
    assert (found.passed, found.dropped) == ({"AO_PROFILE": "ci"}, (name,))
    assert "hunter2" not in repr(found)


def test_names_that_only_resemble_credentials_are_passed_on() -> None:
    names = {"AO_KEYS": "1", "AO_TOKENS_MAX": "1", "AO_MONKEY": "1", "AO_SECRETS_DIR": "/s"}
    assert select(names).passed == names


def test_our_own_settings_never_enter_a_leg_not_even_as_a_dropped_name() -> None:
    found = select({"AO_EVAL_IMAGE": "x", "AO_EVAL_TOKEN": "x", "AO_EVAL_": "x"})
    assert (found.passed, found.dropped) == ({}, ())


def test_variables_of_the_leg_are_the_legs_alone() -> None:
    assert select(dict.fromkeys(LEG_VARIABLES, "/live/.agents")).passed == {}


@given(ENVIRONMENTS)
def test_what_is_passed_on_is_a_part_of_the_environment_with_unchanged_values(
    environment: dict[str, str],
) -> None:
    found = select(environment)
    assert found.passed.items() <= environment.items()
    assert not set(found.passed) & set(found.dropped)
    for name in (*found.passed, *found.dropped):
        assert name.startswith(NAMESPACES)
        assert not name.startswith("AO_EVAL_")
        assert name not in LEG_VARIABLES
    assert list(found.dropped) == sorted(found.dropped)


def test_the_fingerprint_has_digests_and_no_value() -> None:
    found = select({"AO_B": "secret-value", "AO_A": ""})
    assert list(found.fingerprint()) == ["AO_A", "AO_B"]
    assert found.fingerprint()["AO_B"] == hashlib.sha256(b"secret-value").hexdigest()
    assert "secret-value" not in str(found.fingerprint())


def test_bytes_that_are_no_text_have_the_digest_of_the_bytes() -> None:
    assert digest("\udcff\u00e9") == hashlib.sha256(b"\xff\xc3\xa9").hexdigest()


@pytest.mark.parametrize("name", SWITCHES)
def test_exactly_1_switches_hooks_off(name: str) -> None:
    assert suppressed_by({name: "1"}, where="environment") == name


@pytest.mark.parametrize("name", SWITCHES)
def test_an_empty_switch_switches_nothing_off(name: str) -> None:
    assert suppressed_by({name: "", "PATH": "/bin"}, where="environment") is None


@pytest.mark.parametrize("name", SWITCHES)
@pytest.mark.parametrize("value", ["0", "true", "1 ", " 1", "01", "yes", "\uff11", "\n"])
def test_any_other_value_of_a_switch_is_refused_as_ambiguous(name: str, value: str) -> None:
    with pytest.raises(InputError) as caught:
        suppressed_by({name: value}, where="suite.json#/x")
    assert caught.value.exit_code == 2
    assert caught.value.line().startswith(f"suite.json#/x: {name} has a value")


@pytest.mark.parametrize(
    "name",
    [
        "agentops_hooks_disabled",
        "AgentOps_Hooks_Disabled",
        "AGENTOPS_HOOK_DISABLED",
        "AGENTOPS__HOOKS__DISABLED",
        "AGENTOPS-HOOKS-DISABLED",
        "AGENTOPS.HOOKS.DISABLED",
        " AGENTOPS_HOOKS_DISABLED",
        "AGENTOPS_HOOKS_DISABLED\t",
        "AGENTOPSHOOKSDISABLED",
        "AGENTOPS_HOOKSDISABLED",
        "AGENTOPS_DISABLED_HOOKS",
        "AGENTOPS_DISABLE_HOOKS",
        "AGENTOPS_HOOKS_DISABLE",
        "AGENTOPS_HOOKS_OFF",
        "\uff21\uff27\uff25\uff2e\uff34\uff2f\uff30\uff33_HOOKS_DISABLED",
        "AGENTOPS\uff3fHOOKS\uff3fDISABLED",
        "AGENTOPS_\U0001d407OOKS_DISABLED",
        "agentops_session_start_disabled",
        "AGENTOPS_DISABLED_SESSION_START",
    ],
)
def test_a_look_alike_of_a_switch_is_refused_and_an_empty_one_is_not(name: str) -> None:
    with pytest.raises(InputError, match="looks like a switch"):
        suppressed_by({name: "0"}, where="environment")
    assert suppressed_by({name: ""}, where="environment") is None


@pytest.mark.parametrize(
    "name",
    ["AGENTOPS_HOOKS_DIR", "AGENTOPS_HOOKS", "HOOKS_DISABLED", "AGENTOPS_DISABLED", "AO_HOOKS_OFF"],
)
def test_other_names_about_hooks_are_no_switches(name: str) -> None:
    assert suppressed_by({name: "1"}, where="environment") is None


def test_an_ambiguous_switch_is_refused_even_when_another_one_is_clear() -> None:
    environment = {SWITCHES[0]: "1", SWITCHES[1]: "maybe"}
    with pytest.raises(InputError):
        suppressed_by(environment, where="environment")


def test_the_first_switch_by_name_is_reported() -> None:
    assert suppressed_by(dict.fromkeys(SWITCHES, "1"), where="e") == "AGENTOPS_HOOKS_DISABLED"


@given(
    st.sampled_from(SWITCHES), st.text(max_size=3), st.dictionaries(st.text(max_size=5), st.text())
)
def test_a_switch_is_off_suppressing_or_refused_and_nothing_in_between(
    name: str, value: str, others: dict[str, str]
) -> None:
    environment = {**others, name: value}
    if value in {"", "1"}:
        assert suppressed_by(environment, where="e") == (name if value else None)
    else:
        with pytest.raises(InputError):
            suppressed_by(environment, where="e")


@pytest.mark.parametrize(
    "prefix", ["", "A", "AGENT", "AGENTOPS", "AGENTOPS_", "AO_", "C", "CLAUDE_", "CODEX_"]
)
def test_a_prefix_that_swallows_a_whole_namespace_suppresses_hooks(prefix: str) -> None:
    assert scrubs_hooks(["ANTHROPIC_", prefix]) == prefix


@pytest.mark.parametrize("prefix", ["AGENTOPS_RPI_RUNTIME", "AO_EVAL_", "CLAUDECODE", "B", "ao_"])
def test_a_narrower_or_foreign_prefix_does_not(prefix: str) -> None:
    assert scrubs_hooks([prefix]) is None
