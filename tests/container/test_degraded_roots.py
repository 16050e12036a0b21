"""A context root that cannot be shown to a leg as it is, and variants that are none."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.container.projects import (
    NEEDS_HINT,
    WAITING,
    Project,
    assert_no_claim,
    case,
    degraded_rows,
)

pytestmark = pytest.mark.container

IDS = ["needs-hint", "constant"]


def _cases() -> tuple[dict[str, object], dict[str, object]]:
    return case("needs-hint", NEEDS_HINT), case("constant", "true")


def _fifo(root: Path) -> None:
    os.mkfifo(root / "learnings" / "pipe")


def _link_out(root: Path) -> None:
    (root / "learnings" / "passwd").symlink_to("/etc/passwd")


def _live_entry(root: Path) -> None:
    live = root.parents[4] / ".agents"
    live.mkdir()
    (live / "note.md").write_text("live\n", encoding="utf-8")
    os.link(live / "note.md", root / "learnings" / "note.md")


def _setuid(root: Path) -> None:
    (root / "learnings" / "hint.md").chmod(0o4755)


@pytest.mark.parametrize("spoil", [_fifo, _link_out, _live_entry, _setuid])
def test_an_unsafe_root_degrades_its_leg_and_is_a_violation(
    project: Project, spoil: Callable[[Path], None]
) -> None:
    path = project.suite(*_cases())
    spoil(project.root("on"))
    result = project.ao_eval("ab", path)

    assert result.code == 5, result.stderr
    assert_no_claim(result, IDS)
    assert degraded_rows(result.card) == {("context_root_unavailable", "unsafe_entry")}
    assert result.card["context_off"]["degraded_reason"] is None
    assert result.card["context_on"]["degraded_detail"] == "unsafe_entry"
    assert result.card["integrity"]["verdict"] == "violated"
    assert "learnings/" in result.card["integrity"]["problems"][0]


NEVER_THE_SAME = "/proc/sys/kernel/random"
"""Its files say that they are empty and are not: they change while they are read, for root too."""


@pytest.mark.parametrize(
    "detail, root", [("missing", "no/such/folder"), ("unreadable", NEVER_THE_SAME)]
)
def test_a_root_that_is_not_there_or_does_not_hold_still_degrades_its_leg(
    project: Project, detail: str, root: str
) -> None:
    path = project.suite(*_cases())
    result = project.ao_eval("ab", path, "--context-on-agents-dir", root)

    assert result.code == 4, result.stderr
    assert_no_claim(result, IDS)
    assert degraded_rows(result.card) == {("context_root_unavailable", detail)}
    assert result.case("constant", "context_off")["status"] == "pass"
    assert [row["context_on"]["status"] for row in result.card["per_case"]] == ["error", "error"]
    assert result.card["integrity"]["verdict"] == "clean"


@pytest.mark.parametrize("place", [".agents", ".agents/pinned"])
def test_a_root_that_is_or_lies_in_the_live_agents_is_never_mounted(
    project: Project, place: str
) -> None:
    path = project.suite(*_cases())
    project.write({"learnings/hint.md": "HELPFUL\n"}, below=place)
    result = project.ao_eval("ab", path, "--context-on-agents-dir", place)

    assert result.code == 5
    assert_no_claim(result, IDS)
    assert degraded_rows(result.card) == {("context_root_unavailable", "unsafe_entry")}
    sandbox = result.read("evidence/sandbox.json")
    assert {item["leg"] for item in sandbox["containers"]} == {"context_off"}


def test_a_staged_root_that_changes_during_the_leg_is_noticed_from_inside(
    project: Project,
) -> None:
    path = project.suite(case("waits", WAITING), case("needs-hint", NEEDS_HINT))

    def tamper(containers: list[str]) -> None:
        found = project.engine.inspect(containers[0])["Mounts"]
        (source,) = (item["Source"] for item in found if item["Destination"] == "/context/agents")
        (Path(source) / "learnings" / "hint.md").write_text("ANOTHER\n", encoding="utf-8")

    result = project.while_waiting(1, tamper, "run", path, "--variant", "context_on")
    assert result.code == 4, result.stderr
    record = result.record()
    reason = ("context_root_unavailable", "digest_mismatch")
    assert (record["degraded_reason"], record["degraded_detail"]) == reason
    assert record["verdict"] == "inconclusive"
    assert {item["degraded_detail"] for item in record["case_results"]} == {"digest_mismatch"}


@pytest.mark.parametrize("name", ["curated_only", "stale_sentinel", "skill_on", "no such"])
def test_another_variant_is_recorded_as_unsupported_and_starts_nothing(
    project: Project, name: str
) -> None:
    path = project.suite(*_cases())
    result = project.ao_eval("run", path, "--variant", name, "--json")

    assert result.code == 4, result.stderr
    record = result.document
    assert (record["variant"], record["verdict"]) == (name, "inconclusive")
    reasons = {
        (item["degraded_reason"], item["degraded_detail"]) for item in record["case_results"]
    }
    assert reasons == {("context_variant_unsupported", name.replace(" ", "_"))}
    assert [item["case_id"] for item in record["case_results"]] == IDS
    assert [item["score"] for item in record["case_results"]] == [None, None]
    assert result.read("evidence/sandbox.json")["containers"] == []
