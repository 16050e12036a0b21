"""Hooks that are switched off degrade both legs, wherever the switch is; the rest is refused."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

from tests.container.projects import NEEDS_HINT, Project, assert_no_claim, case, degraded_rows

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine

pytestmark = pytest.mark.container

OFF = {"AGENTOPS_HOOKS_DISABLED": "1"}


@pytest.fixture(scope="module")
def image_without_hooks(
    engine: DockerEngine, leg_image: str, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[str]:
    """The leg image with the switch in its `ENV`."""
    folder = tmp_path_factory.mktemp("image")
    lines = ["ARG BASE", "FROM $BASE", "ENV AGENTOPS_HOOKS_DISABLED=1"]
    (folder / "Dockerfile").write_text("\n".join(lines), encoding="utf-8")
    reference = "ao-eval-test/hooks-off:1"
    engine.build(str(folder), reference, arguments={"BASE": leg_image}, labels={})
    yield reference
    engine._client.remove_image(reference)


SWITCHES: dict[str, dict[str, Any]] = {
    "inherited": {"env": OFF},
    "inherited-session-start": {"env": {"AGENTOPS_SESSION_START_DISABLED": "1"}},
    "option_env": {"arguments": ("--env", "AGENTOPS_HOOKS_DISABLED=1")},
    "image_env": {"arguments": ("--image", "ao-eval-test/hooks-off:1")},
    "suite_env": {"suite": {"environment": {"disable_hooks": True}}},
    "scrub_prefix": {"suite": {"environment": {"scrub_env_prefixes": ["AGENTOPS_"]}}},
    "case_env": {"case": OFF},
}


@pytest.mark.usefixtures("image_without_hooks")
@pytest.mark.parametrize("where", SWITCHES)
def test_switched_off_hooks_degrade_both_legs(project: Project, where: str) -> None:
    switch = SWITCHES[where]
    first = case("needs-hint", NEEDS_HINT)
    first["inputs"]["env"] = switch.get("case", {})
    path = project.suite(first, case("constant", "true"), **switch.get("suite", {}))
    result = project.ao_eval("ab", path, *switch.get("arguments", ()), **switch.get("env", {}))

    assert result.code == 4, result.stderr
    assert_no_claim(result, ["needs-hint", "constant"])
    reason = ("hooks_disabled", where.partition("-")[0])
    assert degraded_rows(result.card) == {reason}
    for leg in ("context_off", "context_on"):
        summary = result.card[leg]
        assert (summary["degraded_reason"], summary["degraded_detail"]) == reason
        assert summary["cases_degraded"] == 2
        assert result.record(leg)["environment"]["hooks_disabled"]
    # What happened is still told; it only counts for nothing.
    assert result.case("needs-hint")["exit_code"] == 0
    assert result.case("needs-hint", "context_off")["exit_code"] == 1
    assert "/".join(reason) in result.stdout


@pytest.mark.parametrize(
    "name, value",
    [
        ("AGENTOPS_HOOKS_DISABLED", "0"),
        ("AGENTOPS_HOOKS_DISABLED", "true"),
        ("AGENTOPS_HOOK_DISABLED", "1"),
        ("AGENTOPS_DISABLE_HOOKS", "1"),
    ],
)
def test_an_ambiguous_switch_is_refused_before_anything_runs(
    project: Project, name: str, value: str
) -> None:
    path = project.suite(case("one", "true"))
    result = project.ao_eval("ab", path, **{name: value})
    assert (result.code, result.stdout) == (2, "")
    assert name in result.stderr
    assert len(result.stderr.splitlines()) == 1
    assert not result.directories


def test_a_narrow_scrub_prefix_removes_nothing_and_degrades_nothing(
    project: Project,
) -> None:
    path = project.suite(
        case("sees-it", 'test "$AGENTOPS_MODE" = full'),
        environment={"scrub_env_prefixes": ["AGENTOPS_MODE"]},
    )
    result = project.ao_eval("ab", path, AGENTOPS_MODE="full")
    assert result.code == 0, result.stderr
    assert result.case("sees-it")["status"] == "pass"
    assert result.read("evidence/hooks.json")["scrub_prefixes_without_effect"] == ["AGENTOPS_MODE"]
