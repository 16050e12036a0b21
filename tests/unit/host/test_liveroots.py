"""Which directories are live state."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.errors import InputError
from runner.host.liveroots import discover
from runner.model.tree import LiveRoot
from tests.unit.host.repos import repository
from tests.unit.host.worlds import fill


@pytest.fixture
def home(tmp_path: Path) -> Path:
    return fill(tmp_path / "home", {".agents/x": "x"})


@pytest.fixture
def repo(home: Path) -> Path:
    return repository(home / "repo", {"evals/suite.json": "{}", ".agents/y": "y"})


def find(
    repo: Path,
    home: Path,
    env: dict[str, str] | None = None,
    extra: tuple[Path, ...] = (),
    cwd: Path | None = None,
) -> dict[str, LiveRoot]:
    suite = repo / "evals" / "suite.json"
    found = discover(suite, cwd or repo, env or {}, extra, home)
    return {root.real: root for root in found.roots}


def test_the_nearest_agents_above_suite_and_cwd_is_one_root(repo: Path, home: Path) -> None:
    roots = find(repo, home)
    assert roots[str(repo / ".agents")].origins == ("suite", "cwd")
    assert not roots[str(repo / ".agents")].home
    assert roots[str(home / ".agents")].home
    assert len(roots) == 2


def test_a_nearer_agents_wins_and_another_cwd_adds_its_own(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    fill(repo, {"evals/.agents/z": ""})
    work = fill(tmp_path / "work", {".agents/w": "", "deep/er/x": ""})
    roots = find(repo, home, cwd=work / "deep" / "er")
    assert roots[str(repo / "evals" / ".agents")].origins == ("suite",)
    assert roots[str(work / ".agents")].origins == ("cwd",)


def test_without_one_the_place_where_it_would_be_is_watched(home: Path) -> None:
    bare = repository(home / "bare", {"evals/suite.json": "{}"})
    roots = find(bare, home, cwd=bare / "evals")
    assert roots[str(bare / ".agents")].origins == ("suite", "cwd")
    assert not (bare / ".agents").exists()


def test_below_home_without_a_nearer_one_home_is_not_taken_for_the_project(home: Path) -> None:
    plain = fill(home / "plain", {"evals/suite.json": "{}"})
    roots = find(plain, home, cwd=home)
    assert roots[str(home / ".agents")].home
    assert str(plain / "evals" / ".agents") in roots


def test_home_that_is_a_repository_is_a_project(home: Path) -> None:
    repository(home, {"evals/suite.json": "{}"})
    root = find(home, home)[str(home / ".agents")]
    assert not root.home
    assert root.origins == ("suite", "cwd", "home")


def test_the_variables_and_options_name_roots(repo: Path, home: Path, tmp_path: Path) -> None:
    fill(tmp_path, {"one/a": "", "two/.agents/b": "", "four/a": ""})
    env = {
        "AO_AGENTS_DIR": str(tmp_path / "one"),
        "AO_HOME": str(tmp_path / "two"),
        "CLAUDE_PLUGIN_DATA": str(tmp_path / "three"),
    }
    roots = find(repo, home, env, (tmp_path / "four",))
    assert roots[str(tmp_path / "one")].origins == ("AO_AGENTS_DIR",)
    assert roots[str(tmp_path / "two" / ".agents")].origins == ("AO_HOME",)
    assert roots[str(tmp_path / "three" / ".agents")].origins == ("CLAUDE_PLUGIN_DATA",)
    assert roots[str(tmp_path / "four")].origins == ("option",)


def test_ao_home_is_the_agents_directory_itself_unless_it_holds_one(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    fill(tmp_path, {"plain/a": "", "x/.agents/.agents/odd": ""})
    assert str(tmp_path / "plain") in find(repo, home, {"AO_HOME": str(tmp_path / "plain")})
    named = {"AO_HOME": str(tmp_path / "x" / ".agents")}
    assert str(tmp_path / "x" / ".agents") in find(repo, home, named)


def test_blank_values_are_not_set_and_relative_ones_count_from_cwd(repo: Path, home: Path) -> None:
    assert len(find(repo, home, {"AO_AGENTS_DIR": "  ", "AO_HOME": ""})) == 2
    assert str(repo / "mine") in find(repo, home, {"AO_AGENTS_DIR": " mine "})


def test_home_named_by_a_variable_is_fatal_too(repo: Path, home: Path) -> None:
    root = find(repo, home, {"AO_AGENTS_DIR": str(home / ".agents")})[str(home / ".agents")]
    assert not root.home


def test_a_link_and_its_target_are_one_root_named_by_the_link(
    repo: Path, home: Path, tmp_path: Path
) -> None:
    (tmp_path / "link").symlink_to(repo / ".agents")
    roots = find(repo, home, {"AO_AGENTS_DIR": str(tmp_path / "link")})
    assert len(roots) == 2
    assert roots[str(repo / ".agents")].path == str(tmp_path / "link")


def test_a_root_inside_another_is_kept(repo: Path, home: Path) -> None:
    fill(repo, {".agents/sub/x": ""})
    roots = find(repo, home, {"AO_AGENTS_DIR": str(repo / ".agents" / "sub")})
    assert {str(repo / ".agents"), str(repo / ".agents" / "sub")} <= set(roots)


def test_the_whole_machine_is_refused(repo: Path, home: Path) -> None:
    with pytest.raises(InputError):
        find(repo, home, {"AO_AGENTS_DIR": "/"})


def test_paths_with_backslashes_and_blanks_are_roots_too(home: Path) -> None:
    odd = repository(home / "a \\ b", {"evals/suite.json": "{}"})
    assert str(odd / ".agents") in find(odd, home)
