"""The staged workspace: what must be absent is physically absent."""

from __future__ import annotations

import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from runner.errors import InputError, StagingRefused
from runner.host.staging import EPOCH_NS
from runner.host.witness import take_manifest
from runner.host.workspace import stage_workspace
from runner.model.tree import Limits, StagedWorkspace
from tests.unit.host.repos import booby_trapped, repository, run_git
from tests.unit.host.worlds import IS_ROOT, fill, in_mount_namespace, me, names_below

FILES = {
    "src/main.py": "print()\n",
    "evals/suite.json": "{}",
    "evals/fixtures/suite/context-on/agents/a.md": "on",
    "evals/fixtures/suite/context-on/context.json": "{}",
    "evals/fixtures/suite/context-off/agents/a.md": "off",
    "evals/fixtures/suite/context-off/context.json": "{}",
    "evals/fixtures/suite/check.sh": "#!/bin/sh\n",
    ".agents/learnings/live.md": "live",
    "src/.agents/nested.md": "live",
    "src/sub/.agents": "a file of that name",
    "runs/old/scorecard.json": "{}",
    "vendor/.git-not": "",
}


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(tmp_path / "repo", FILES)


def stage(repo: Path, name: str = "copy", **more: object) -> StagedWorkspace:
    fixtures = repo / "evals" / "fixtures" / "suite"
    arguments: dict[str, object] = {
        "suite_file": repo / "evals" / "suite.json",
        "context_roots": [fixtures / "context-on" / "agents", fixtures / "context-off" / "agents"],
        "exclude_roots": [repo / ".agents", repo / "runs"],
        "owner": me(),
    }
    arguments.update(more)
    return stage_workspace(repo, copy_of(repo, name), **arguments)  # type: ignore[arg-type]


def copy_of(repo: Path, name: str = "copy") -> Path:
    return repo.parent / "staging" / name


def test_history_agents_context_suite_and_results_are_absent(repo: Path) -> None:
    staged = stage(repo)
    assert names_below(copy_of(repo)) == {
        "src",
        "src/main.py",
        "evals",
        "evals/fixtures",
        "evals/fixtures/suite",
        "evals/fixtures/suite/check.sh",
        "vendor",
        "vendor/.git-not",
    }
    assert staged.excluded == 9
    assert (staged.entries, staged.listed_by) == (8, "git")


def test_excluded_bytes_are_nowhere_in_the_copy(repo: Path) -> None:
    stage(repo, with_git=True)
    done = subprocess.run(
        ["grep", "-rlaE", "live|^on$|^off$", str(copy_of(repo))], capture_output=True, check=False
    )
    assert done.stdout == b""


def test_include_cannot_bring_back_what_is_left_out(repo: Path) -> None:
    fill(repo, {".gitignore": "x/\n", "x/.agents/secret": "s", "x/ok": "ok"})
    stage(repo, include=["x", ".agents", "evals/suite.json"])
    names = names_below(copy_of(repo))
    assert "x/ok" in names
    assert not any(".agents" in name or name.endswith("suite.json") for name in names)


def test_links_that_leave_the_tree_are_listed_and_not_copied(repo: Path) -> None:
    (repo / "abs").symlink_to("/etc/passwd")
    (repo / "up").symlink_to("../outside")
    (repo / "via").symlink_to("up")
    (repo / "fine").symlink_to("src/main.py")
    (repo / "to-agents").symlink_to(".agents")
    staged = stage(repo)
    copy = copy_of(repo)
    assert staged.skipped_links == ("abs", "up", "via")
    assert staged.skipped_link_count == 3
    assert not any(os.path.lexists(copy / name) for name in ("abs", "up", "via"))
    assert (copy / "fine").read_text() == "print()\n"
    assert not (copy / "to-agents").exists()


def test_a_tracked_folder_replaced_by_a_link_is_not_followed(repo: Path, tmp_path: Path) -> None:
    fill(tmp_path / "outside", {"main.py": "stolen"})
    os.rename(repo / "src", repo / "old-src")
    (repo / "src").symlink_to(tmp_path / "outside")
    staged = stage(repo)
    assert "src/main.py" not in names_below(copy_of(repo))
    assert "src" in staged.skipped_links
    assert staged.not_copied >= 1


def test_special_files_and_deleted_files_are_passed_over(repo: Path) -> None:
    os.mkfifo(repo / "pipe")
    (repo / "src" / "main.py").unlink()
    os.mkfifo(repo / "src" / "main.py")
    (repo / "vendor" / ".git-not").unlink()
    staged = stage(repo)
    assert staged.not_copied == 2
    assert not any(path.is_fifo() for path in copy_of(repo).rglob("*"))


def test_nested_repositories_and_submodules_are_passed_over(repo: Path) -> None:
    repository(repo / "nested", {"inner.txt": "x"})
    assert stage(repo).not_copied == 1
    run_git(repo, "add", "nested")
    stage(repo, name="again")
    assert not any("inner" in name for name in names_below(copy_of(repo, "again")))


def test_a_hard_link_to_live_state_is_refused(repo: Path) -> None:
    os.link(repo / ".agents" / "learnings" / "live.md", repo / "harmless.md")
    with pytest.raises(StagingRefused) as caught:
        stage(repo, forbidden=take_manifest(repo / ".agents").nodes())
    assert caught.value.detail == "unsafe_entry"
    assert not copy_of(repo).exists()


def test_a_setuid_file_is_refused(repo: Path) -> None:
    (repo / "src" / "main.py").chmod(0o4755)
    with pytest.raises(StagingRefused, match="setuid"):
        stage(repo)


def test_bounds_hold_for_what_is_copied_only(repo: Path) -> None:
    assert stage(repo, limits=Limits(entries=8)).entries == 8
    with pytest.raises(StagingRefused):
        stage(repo, name="again", limits=Limits(entries=7))


def test_a_suite_named_by_a_link_is_absent_under_both_names(repo: Path) -> None:
    (repo / "link.json").symlink_to("evals/suite.json")
    stage(repo, suite_file=repo / "link.json")
    names = names_below(copy_of(repo))
    assert "link.json" not in names
    assert "evals/suite.json" not in names


def test_a_workspace_inside_a_root_that_no_leg_may_see_is_a_usage_error(repo: Path) -> None:
    for root in (repo, repo.parent, Path("/")):
        with pytest.raises(InputError, match="workspace"):
            stage(repo, exclude_roots=[root])


def test_writing_elsewhere_in_the_work_tree_does_not_disturb_staging(repo: Path) -> None:
    first = stage(repo)
    fill(repo, {"runs/new/scorecard.json": "{}"})
    assert stage(repo, name="again").sha256 == first.sha256


def test_a_staging_folder_inside_the_repository_is_not_staged(repo: Path) -> None:
    fill(repo, {"scratch/context/secret.md": "staged before"})
    destination = repo / "scratch" / "workspace"
    stage_workspace(
        repo,
        destination,
        suite_file=repo / "evals" / "suite.json",
        context_roots=[],
        exclude_roots=[],
        owner=me(),
    )
    assert not any("scratch" in name for name in names_below(destination))


def test_a_folder_outside_git_is_staged_by_walking_it(tmp_path: Path) -> None:
    top = fill(tmp_path / "plain", {**FILES, ".git/config": "no repository"})
    staged = stage(top)
    assert staged.listed_by == "walk"
    assert not any(".git/" in name for name in names_below(copy_of(top)))
    assert "src/main.py" in names_below(copy_of(top))


def test_nothing_that_the_repository_configures_is_executed(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    top = booby_trapped(tmp_path / "repo", marker)
    stage(top, with_git=True)
    assert (copy_of(top) / "data.bin").read_text() == "DATA\n"
    assert not marker.exists(), marker.read_text()


def test_the_synthetic_commit_holds_the_files_and_nothing_else(repo: Path) -> None:
    fill(repo, {".gitattributes": "* text=auto eol=crlf\n", "crlf.txt": "a\r\nb\n"})
    staged = stage(repo, with_git=True)
    copy = copy_of(repo)
    assert run_git(copy, "rev-list", "--all", "--count").strip() == "1"
    assert run_git(copy, "status", "--porcelain", env={"GIT_OPTIONAL_LOCKS": "0"}) == ""
    blob = hashlib.sha1(b"blob 5\0a\r\nb\n", usedforsecurity=False).hexdigest()
    assert run_git(copy, "rev-parse", "HEAD:crlf.txt").strip() == blob
    tracked = run_git(copy, "ls-tree", "-r", "--name-only", "HEAD").splitlines()
    assert len(tracked) == sum(
        path.is_file() for path in copy.rglob("*") if ".git/" not in str(path)
    )
    assert staged.sha256 == stage(repo, name="without").sha256
    assert not (copy / ".git" / "hooks").exists()
    assert "repo" not in (copy / ".git" / "config").read_text().replace("repositoryformat", "")


def test_the_synthetic_git_folder_is_the_same_bytes_every_time(repo: Path) -> None:
    stage(repo, with_git=True)
    stage(repo, name="again", with_git=True)
    one, other = copy_of(repo) / ".git", copy_of(repo, "again") / ".git"
    assert names_below(one) == names_below(other)
    for name in names_below(one):
        if (one / name).is_file():
            assert (one / name).read_bytes() == (other / name).read_bytes(), name
        assert (one / name).lstat().st_mtime_ns == EPOCH_NS


@pytest.mark.skipif(not IS_ROOT, reason="bind mounts need root")
def test_a_selected_entry_below_a_mount_is_refused_and_an_ignored_mount_is_not(repo: Path) -> None:
    fill(repo, {".gitignore": "cache/\n", "cache/x": "x", "vendor/y": "y"})
    script = """
import subprocess, sys
from pathlib import Path
from runner.errors import StagingRefused
from runner.host.workspace import stage_workspace
repo = Path(sys.argv[1])
def stage(name):
    try:
        stage_workspace(repo, repo.parent / "out" / name, suite_file=repo / "evals/suite.json",
            context_roots=[], exclude_roots=[], owner=(0, 0))
        print("staged")
    except StagingRefused as error:
        print(error.detail)
subprocess.run(["mount", "--bind", "/etc", repo / "cache"], check=True)
stage("one")
subprocess.run(["mount", "--bind", repo / "src", repo / "vendor"], check=True)
stage("two")
"""
    assert in_mount_namespace(script, repo).split() == ["staged", "unsafe_entry"]
