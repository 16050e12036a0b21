"""The live agents change while a leg runs: seen, fatal, and nothing is claimed."""

from __future__ import annotations

import os
import subprocess
import sys
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

ADD = "open(root + '/learnings/new.md', 'w').write('new')"
REMOVE = "os.unlink(root + '/learnings/kept.md')"
REVERT = """
path = root + '/learnings/kept.md'
seen, data = os.stat(path), open(path, 'rb').read()
with open(path, 'r+b') as file:
    file.write(b'x' * len(data)); file.flush(); file.seek(0); file.write(data)
os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
"""
CHMOD = "os.chmod(root + '/learnings/kept.md', 0o600)"
CREATE = "os.makedirs(root)"

CHANGES = {
    "added": (ADD, "learnings/new.md"),
    "removed": (REMOVE, "learnings/kept.md"),
    "reverted": (REVERT, "learnings/kept.md"),
    "mode": (CHMOD, "learnings/kept.md"),
    "created": (CREATE, "."),
}


def _change(root: Path, code: str) -> None:
    """Another process, as an agent at work on this machine would be."""
    program = f"import os, sys\nroot = sys.argv[1]\n{code}"
    subprocess.run([sys.executable, "-c", program, str(root)], check=True)


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_of_the_live_agents_degrades_both_legs_and_exits_5(
    project: Project, change: str
) -> None:
    code, place = CHANGES[change]
    live = project.repo / ".agents"
    if change != "created":
        project.write({"learnings/kept.md": "kept\n"}, below=".agents")
    path = project.suite(case("waits", WAITING), case("needs-hint", NEEDS_HINT))
    result = project.while_waiting(2, lambda _: _change(live, code), "ab", path)

    assert result.code == 5, result.stderr
    assert_no_claim(result, ["waits", "needs-hint"])
    (reason,) = degraded_rows(result.card)
    assert reason[0] == "context_root_mutated_live_state"
    # Whether a writer that ended at once could still be looked at is a matter of luck.
    assert reason[1] in {"by_outsider", "writer_unknown"}
    for leg in ("context_off", "context_on"):
        assert result.card[leg]["degraded_reason"] == reason[0]
        assert result.record(leg)["verdict"] == "inconclusive"
    assert result.card["integrity"]["verdict"] == "violated"
    proof = result.read("evidence/live-state.json")["proof"]
    (root,) = (item for item in proof["roots"] if item["path"] == str(live))
    attributes = {item["path"]: item["attributes"] for item in root["changes"]}
    assert place in attributes
    if change == "reverted":
        assert attributes == {place: ["ctime"]}
    # What changed is the first thing said.
    opening = "".join(result.stdout.split())[:1000]
    assert f"{live}/{place}" in opening


def test_a_live_root_that_the_user_names_is_watched_like_the_nearest_one(project: Project) -> None:
    live = project.home / "elsewhere"
    (live / "learnings").mkdir(parents=True)
    path = project.suite(case("waits", WAITING))
    for arguments, env in (
        (("--live-agents-dir", live), {}),
        ((), {"AO_AGENTS_DIR": str(live)}),
    ):
        (live / "learnings" / "new.md").unlink(missing_ok=True)
        result = project.while_waiting(
            1, lambda _: _change(live, ADD), "run", path, *arguments, **env
        )
        assert result.code == 5, result.stderr
        assert result.record("none")["degraded_reason"] == "context_root_mutated_live_state"
        assert str(live / "learnings" / "new.md") in result.stderr


@pytest.mark.parametrize("strict", [False, True])
def test_a_change_of_the_home_directorys_agents_is_told_and_fatal_only_when_strict(
    project: Project, strict: bool
) -> None:
    live = project.home / ".agents"
    (live / "learnings").mkdir(parents=True)
    path = project.suite(case("waits", WAITING))
    option = ("--strict-live",) if strict else ()
    result = project.while_waiting(1, lambda _: _change(live, ADD), "run", path, *option)

    assert result.code == (5 if strict else 0), result.stderr
    proof = result.read("evidence/live-state.json")["proof"]
    (root,) = (item for item in proof["roots"] if item["path"] == str(live))
    assert root["fatal"] is strict
    assert "learnings/new.md" in [item["path"] for item in root["changes"]]


def test_a_live_root_that_holds_still_is_proved_unchanged_and_unreached(project: Project) -> None:
    project.write({"learnings/kept.md": "kept\n", "a/b/c": "deep\n"}, below=".agents")
    before = {path: path.lstat() for path in (project.repo / ".agents").rglob("*")}
    result = project.ao_eval("ab", project.suite(case("needs-hint", NEEDS_HINT)))

    assert result.code == 0, result.stderr
    proof = result.card["integrity"]["live_state"]
    assert proof["mounts_checked"] > 0
    assert proof["mounts_reaching"] == []
    (root,) = (item for item in proof["roots"] if item["path"] == str(project.repo / ".agents"))
    assert root["present_before"]
    assert root["present_after"]
    assert root["entries"] >= len(before)
    assert root["before_sha256"] == root["after_sha256"]
    after = {path: path.lstat() for path in (project.repo / ".agents").rglob("*")}
    assert {p: (s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for p, s in before.items()} == {
        p: (s.st_mtime_ns, s.st_ctime_ns, s.st_ino) for p, s in after.items()
    }
    assert os.path.lexists(project.repo / ".agents")
