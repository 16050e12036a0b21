"""Listing and describing a repository, without running what it configures."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from runner.errors import InputError, StagingRefused
from runner.host.git import git
from runner.host.head import Head, head
from runner.host.repository import list_files, repository_of
from tests.unit.host.repos import booby_trapped, repository, run_git
from tests.unit.host.worlds import IS_ROOT, NOBODY, as_nobody, fill, open_folder


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    return repository(
        tmp_path / "repo", {"a.txt": "a\n", "evals/suite.json": "{}", ".gitignore": "*.log\nbin/\n"}
    )


def test_the_repository_of_a_suite_is_the_top_level_that_contains_it(repo: Path) -> None:
    assert repository_of(repo / "evals" / "suite.json") == repo
    assert repository_of(repo / "evals") == repo


def test_outside_a_repository_it_is_the_folder(tmp_path: Path) -> None:
    fill(tmp_path / "x", {"suite.json": "{}", ".git/not-a-repository": ""})
    assert repository_of(tmp_path / "x" / "suite.json") == tmp_path / "x"


def test_a_linked_worktree_is_a_repository(repo: Path, tmp_path: Path) -> None:
    run_git(repo, "worktree", "add", "-q", str(tmp_path / "tree"), "-b", "other")
    (tmp_path / "tree" / "new.txt").touch()
    assert repository_of(tmp_path / "tree" / "evals") == tmp_path / "tree"
    assert b"new.txt" in list_files(tmp_path / "tree").paths


def test_tracked_and_untracked_files_are_listed_but_ignored_ones_are_not(repo: Path) -> None:
    fill(repo, {"new.txt": "", "x.log": "", "bin/tool": "", "tracked.log": ""})
    run_git(repo, "add", "-f", "tracked.log")
    listing = list_files(repo)
    assert listing.listed_by == "git"
    assert set(listing.paths) == {
        b".gitignore",
        b"a.txt",
        b"evals/suite.json",
        b"new.txt",
        b"tracked.log",
    }


def test_include_brings_ignored_files_back(repo: Path) -> None:
    fill(repo, {"x.log": "", "bin/tool": "", "bin/deep/er": "", "sub/y.log": ""})
    assert b"bin/deep/er" in list_files(repo, ["bin"]).paths
    assert b"x.log" in list_files(repo, ["*.log"]).paths
    assert b"sub/y.log" not in list_files(repo, ["*.log"]).paths
    assert b"sub/y.log" in list_files(repo, ["**/*.log"]).paths


@pytest.mark.parametrize("pattern", ["nothing*", "/etc/passwd", "../x", "", "[z-a]"])
def test_an_include_that_matches_nothing_or_is_malformed_is_a_usage_error(
    repo: Path, pattern: str
) -> None:
    with pytest.raises(InputError):
        list_files(repo, [pattern])


def test_names_of_any_bytes_are_listed(repo: Path) -> None:
    name = b"new\nline\xff"
    with open(os.path.join(os.fsencode(repo), name), "wb"):
        pass
    assert name in list_files(repo).paths


@pytest.mark.parametrize("name", ["with:colon,comma", "back\\slash", "blank and\nnewline"])
def test_a_repository_may_have_an_odd_path(tmp_path: Path, name: str) -> None:
    top = repository(tmp_path / name, {"a": "a"})
    assert list_files(top).paths == (b"a",)
    assert head(top).dirty is False


def test_without_git_the_folder_is_walked(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(repo, {"x.log": ""})
    (repo / "link").symlink_to("a.txt")
    os.mkfifo(repo / "pipe")
    monkeypatch.setenv("PATH", "/nonexistent")
    listing = list_files(repo)
    assert listing.listed_by == "walk"
    assert {b"x.log", b"link", b"a.txt"} <= set(listing.paths)
    assert not any(path.startswith(b".git/") for path in listing.paths)
    assert b"pipe" not in listing.paths
    assert head(repo) == Head(None, None)


def test_a_repository_that_git_cannot_read_is_refused_not_walked(repo: Path) -> None:
    (repo / ".git" / "index").write_bytes(b"garbage")
    with pytest.raises(StagingRefused) as caught:
        list_files(repo)
    assert caught.value.detail == "unreadable"


def test_nothing_that_a_repository_configures_is_executed(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    top = booby_trapped(tmp_path / "repo", marker)
    assert b"tracked.txt" in list_files(top).paths
    assert head(top, ignoring=[b"trap.sh", b"hooks"]).dirty is True
    assert not marker.exists(), marker.read_text()


def test_a_work_tree_elsewhere_that_a_repository_configures_does_not_count(
    repo: Path, tmp_path: Path
) -> None:
    fill(repo, {"tracked.log": ""})
    run_git(repo, "add", "-f", "tracked.log")
    run_git(repo, "commit", "-q", "-m", "second")
    fill(tmp_path / "elsewhere", {"stolen.txt": ""})
    run_git(repo, "config", "core.worktree", str(tmp_path / "elsewhere"))
    # An ignored file is listed only if the index is read for this work tree.
    assert b"tracked.log" in list_files(repo).paths
    assert b"stolen.txt" not in list_files(repo).paths
    assert head(repo).dirty is False


def test_the_traps_do_fire_for_plain_git(tmp_path: Path) -> None:
    marker = tmp_path / "executed"
    top = booby_trapped(tmp_path / "repo", marker)
    subprocess.run(
        ["git", "-c", "core.worktree=", "--work-tree=.", "add", "-A"],
        cwd=top,
        capture_output=True,
        check=False,
    )
    assert marker.exists()


def test_hostile_git_variables_of_the_invoker_do_not_count(
    repo: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    other = repository(tmp_path / "other", {"other.txt": ""})
    monkeypatch.setenv("GIT_DIR", str(other / ".git"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(other / ".git" / "index"))
    monkeypatch.setenv("GIT_WORK_TREE", str(other))
    assert b"other.txt" not in list_files(repo).paths


def test_the_index_is_not_written(repo: Path) -> None:
    (repo / "a.txt").touch()
    before = (repo / ".git" / "index").stat().st_mtime_ns, sorted(os.listdir(repo / ".git"))
    list_files(repo)
    head(repo)
    assert before == (
        (repo / ".git" / "index").stat().st_mtime_ns,
        sorted(os.listdir(repo / ".git")),
    )


@pytest.mark.skipif(not IS_ROOT, reason="needs two users")
def test_a_repository_of_another_user_is_read_in_both_directions() -> None:
    with open_folder() as folder:
        top = repository(folder / "repo", {"a.txt": "a\n"})
        assert as_nobody(lambda: str(len(list_files(top).paths))) == "1"
        for path in (top, *top.rglob("*")):
            os.chown(path, NOBODY, NOBODY)
        assert list_files(top).paths == (b"a.txt",)
        assert head(top).dirty is False


def test_a_clean_repository_is_clean(repo: Path) -> None:
    (repo / "a.txt").touch()
    commit = run_git(repo, "rev-parse", "HEAD").strip()
    assert head(repo) == Head(commit, dirty=False)


def test_each_kind_of_difference_makes_it_dirty(repo: Path) -> None:
    def reset() -> None:
        run_git(repo, "reset", "-q", "--hard")
        run_git(repo, "clean", "-q", "-f", "-d", "-x")
        assert head(repo).dirty is False

    (repo / "a.txt").write_text("b\n")
    assert head(repo).dirty is True
    reset()
    (repo / "a.txt").chmod(0o755)
    assert head(repo).dirty is True
    reset()
    (repo / "a.txt").unlink()
    assert head(repo).dirty is True
    (repo / "a.txt").symlink_to("evals")
    assert head(repo).dirty is True
    reset()
    (repo / "new.txt").touch()
    assert head(repo).dirty is True
    run_git(repo, "add", "new.txt")
    assert head(repo).dirty is True
    reset()
    fill(repo, {"runs/x.json": "{}"})
    assert head(repo).dirty is True
    assert head(repo, ignoring=[b"runs"]).dirty is False


def test_a_fifo_in_place_of_a_tracked_file_is_a_difference_not_a_hang(repo: Path) -> None:
    (repo / "a.txt").unlink()
    os.mkfifo(repo / "a.txt")
    assert head(repo).dirty is True


def test_a_difference_that_a_filter_may_explain_is_unknown(tmp_path: Path) -> None:
    top = repository(
        tmp_path / "repo", {"a.bin": "pointer\n", ".gitattributes": "*.bin filter=x\n"}
    )
    assert head(top).dirty is False
    (top / "a.bin").write_text("smudged\n")
    assert head(top).dirty is None


def test_before_the_first_commit_and_outside_a_repository_it_is_unknown(tmp_path: Path) -> None:
    fill(tmp_path / "unborn", {"a": ""})
    run_git(tmp_path / "unborn", "init", "-q")
    assert head(tmp_path / "unborn") == Head(None, None)
    assert head(tmp_path) == Head(None, None)


def test_an_error_of_git_is_one_line(repo: Path) -> None:
    with pytest.raises(StagingRefused) as caught:
        git(repo, "rev-parse", "--verify", "nothing")
    assert "\n" not in caught.value.line()
