"""Which variables of the invoker reach a leg, and what is told of them."""

from __future__ import annotations

import hashlib

import pytest

from tests.container.projects import Project, case

pytestmark = pytest.mark.container

PASSED = {
    "AGENTOPS_X": "value-one",
    "AO_Y": "value two, with spaces\nand a line",
    "CLAUDE_Z": "",
    "CODEX_W": "wert-ü",
}
DROPPED = {
    "AO_TOKEN": "secret-1",
    "CLAUDE_API_KEY": "secret-2",
    "CODEX_CLIENT_SECRET": "secret-3",
    "AGENTOPS_PASSWORD_FILE": "secret-4",
}
NOT_OURS = {
    "AO_EVAL_NOTE": "secret-5",
    "OTHER": "secret-6",
    "GITHUB_TOKEN": "secret-7",
    "HTTP_PROXY": "http://secret-8",
    "XAGENTOPS_X": "secret-9",
}
FIXED = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "HOME": "/home/case",
    "TMPDIR": "/tmp",
    "AO_AGENTS_DIR": "/context/agents",
    "AO_USAGE_FILE": "/tmp/ao-usage.json",
}


def test_the_hook_environment_is_passed_on_and_nothing_else_of_the_invokers(
    project: Project,
) -> None:
    show = case("show", inputs={"argv": ["env", "-0"], "env": {"OF_CASE": "c", "AO_Y": "case"}})
    path = project.suite(show, case("plain", inputs={"argv": ["env", "-0"]}))
    given = {**PASSED, **DROPPED, **NOT_OURS}
    result = project.ao_eval("ab", path, "--env", "OPTION=o", "--env", "OTHER", **given)
    assert result.code == 0, result.stderr

    for leg in ("context_off", "context_on"):
        expected = {**FIXED, **PASSED, "AO_CONTEXT_VARIANT": leg, "OPTION": "o"}
        expected["OTHER"] = "secret-6"  # asked for by name
        assert _environment(result.output("plain", leg)) == expected
        assert _environment(result.output("show", leg)) == {
            **expected,
            "OF_CASE": "c",
            "AO_Y": "case",
        }

    hooks = result.read("evidence/hooks.json")
    assert hooks["host"] == {name: _digest(value) for name, value in PASSED.items()}
    assert hooks["dropped"] == sorted(DROPPED)
    assert [leg["leg"] for leg in hooks["legs"]] == ["context_off", "context_on"]
    assert all(leg["preserved"] for leg in hooks["legs"])
    proof = result.card["integrity"]["hooks"]
    assert proof == {
        "names": sorted(PASSED),
        "dropped": sorted(DROPPED),
        "equal_in_both_legs": True,
        "preserved": True,
        "directory_sha256": None,
        "hooks": [],
        "receipts_equal": None,
    }

    told = [*result.evidence.glob("evidence/*"), *result.evidence.glob("legs/*/record.json")]
    told += result.evidence.glob("*.*")
    assert len(told) >= 9
    for file in told:
        data = file.read_bytes()
        for value in (*given.values(), "wert-"):
            assert not value or value.encode() not in data, (file, value)


def _environment(text: str) -> dict[str, str]:
    return dict(item.split("=", 1) for item in text.split("\0") if item)


def _digest(value: str) -> str:
    return hashlib.sha256(value.encode()).hexdigest()


def test_a_suite_or_case_cannot_move_the_legs_own_variables(project: Project) -> None:
    moved = {
        "AO_AGENTS_DIR": "/tmp",
        "AO_CONTEXT_VARIANT": "context_on",
        "AO_USAGE_FILE": "/dev/null",
    }
    path = project.suite(
        case("moved", inputs={"shell": "echo $AO_AGENTS_DIR $AO_CONTEXT_VARIANT", "env": moved})
    )
    arguments = [part for name in moved for part in ("--env", f"{name}={moved[name]}")]
    result = project.ao_eval("ab", path, *arguments, AO_CONTEXT_VARIANT="context_on")
    assert result.code == 0, result.stderr
    for leg in ("context_off", "context_on"):
        assert result.output("moved", leg) == f"/context/agents {leg}\n"
