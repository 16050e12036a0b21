"""Hostile repositories through the command line: nothing of theirs is executed or leaks."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.container.projects import HELPFUL, NEEDS_HINT, PLAIN, Project, Result, case
from tests.unit.host.repos import booby_trapped, run_git

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine

pytestmark = pytest.mark.container

ODD = "a:b,c\\d e\n'\"$(x)"
"""A folder name that breaks mount options, shells and lists of paths."""

OBJECTS = (
    "cd /workspace; git log --all --format=%B 2>/dev/null | cat; "
    "git cat-file --batch-all-objects --batch --buffer | tr -c '[:print:]\\n' '?'; "
    "git for-each-ref; git config --list --show-origin; ls -a .git 2>/dev/null"
)


@pytest.fixture
def odd(engine: DockerEngine, leg_image: str, tmp_path: Path) -> Iterator[Project]:
    """A project whose repository and staging folder lie below a folder of that name."""
    made = Project(tmp_path / ODD, tmp_path / ODD / "staging", engine, leg_image)
    yield made
    left = made.end()
    assert not left, "left behind: " + "; ".join(left)


def _assert_ran(result: Result) -> None:
    assert result.code == 0, result.stderr
    assert result.card["aggregate_delta"] == pytest.approx(1 / 2)
    assert result.card["integrity"]["verdict"] == "clean"


def test_a_path_that_no_mount_option_can_hold_works_all_the_same(odd: Project) -> None:
    path = odd.suite(case("needs-hint", NEEDS_HINT), case("writes", "echo x > ../tracked.txt"))
    odd.write({"tracked.txt": "tracked\n"})
    result = odd.ao_eval("ab", path)
    _assert_ran(result)
    assert result.card["inputs"]["workspace_mode"] == "copy"
    assert (odd.repo / "tracked.txt").read_text(encoding="utf-8") == "tracked\n"


@pytest.mark.parametrize("options", [(), ("--with-git",)])
def test_nothing_that_a_repository_configures_is_executed_by_a_whole_run(
    project: Project, tmp_path: Path, options: tuple[str, ...]
) -> None:
    marker = tmp_path / "executed"
    booby_trapped(project.repo, marker)
    marker.unlink(missing_ok=True)  # git itself ran some while the repository was made
    path = project.suite(case("needs-hint", NEEDS_HINT), case("reads", "cat ../tracked.txt"))
    result = project.ao_eval("ab", path, *options)
    _assert_ran(result)
    assert result.output("reads") == "TRACKED\n"
    assert not marker.exists(), marker.read_text()
    # The control: plain git does run them.
    run_git(project.repo, "--work-tree=.", "status", "--short")
    assert marker.exists()


def _with_history(project: Project) -> Path:
    """A repository that had live state, both roots and an answer in its history."""
    path = project.suite(
        case("needs-hint", NEEDS_HINT),
        case("objects", OBJECTS),
        case("reads", "cat ../src/kept.md", {"type": "stdout_contains", "value": "kept"}),
        off={**PLAIN, "learnings/off.md": "SECRET-OFF\n"},
        on={**HELPFUL, "learnings/on.md": "SECRET-ON\n"},
    )
    project.write(
        {
            ".agents/learnings/live.md": "SECRET-LIVE\n",
            "src/.agents/nested.md": "SECRET-NESTED\n",
            "src/answer.md": "SECRET-ANSWER\n",
            "src/kept.md": "kept\n",
        }
    )
    project.git("add", "-A", "-f")
    project.git("commit", "-q", "-m", "SECRET-MESSAGE")
    project.git("tag", "-a", "SECRET-TAG", "-m", "SECRET-ANNOTATION")
    project.git("stash", "list")
    (project.repo / "src" / "answer.md").write_text("harmless\n", encoding="utf-8")
    project.git("rm", "-q", "-r", "--cached", ".agents", "src/.agents", "evals/fixtures")
    project.git("add", "-A", "src/answer.md")
    project.git("commit", "-q", "-m", "SECRET-SECOND")
    return path


@pytest.mark.parametrize("options", [(), ("--with-git",)])
def test_no_history_is_visible_in_a_leg(project: Project, options: tuple[str, ...]) -> None:
    result = project.ao_eval("ab", _with_history(project), *options)
    assert result.code == 0, result.stderr
    for leg in ("context_off", "context_on"):
        seen = result.output("objects", leg) + result.output("objects", leg, "stderr")
        assert "SECRET" not in seen, seen
        if options:
            assert "kept" in seen  # the control: the one commit that there is can be read
            assert seen.count("tree ") >= 1
        else:
            assert "kept" not in seen


def test_a_git_folder_that_leads_elsewhere_brings_nothing_in(
    project: Project, tmp_path: Path
) -> None:
    """Alternates, a linked work tree's folder, a submodule: all name folders outside."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    run_git(elsewhere, "init", "-q", "-b", "main")
    (elsewhere / "secret.md").write_text("SECRET-ELSEWHERE\n", encoding="utf-8")
    run_git(elsewhere, "add", "-A")
    run_git(elsewhere, "commit", "-q", "-m", "SECRET")
    project.write({"src/kept.md": "kept\n"})
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "first")
    info = project.repo / ".git" / "objects" / "info"
    info.mkdir(exist_ok=True)
    (info / "alternates").write_text(f"{elsewhere}/.git/objects\n", encoding="utf-8")
    os.symlink(elsewhere, project.repo / "linked")
    (project.repo / "submodule").mkdir()
    (project.repo / "submodule" / ".git").write_text(f"gitdir: {elsewhere}/.git\n")
    (project.repo / "submodule" / "inner.md").write_text("SECRET-INNER\n")
    path = project.suite(
        case("objects", OBJECTS + "; grep -rs SECRET /workspace; ls -R /workspace"),
    )
    result = project.ao_eval("run", path, "--with-git")
    assert result.code == 0, result.stderr
    seen = result.output("objects", "none")
    assert "SECRET" not in seen
    assert "kept.md" in seen
    assert "inner.md" not in seen
    assert "alternates" not in seen
