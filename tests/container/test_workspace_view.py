"""What of the repository a leg sees, and that nothing it does comes back."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

import pytest

from tests.container.projects import GVISOR, Project, Result, case

pytestmark = pytest.mark.container

MARKER = "MARKER-THAT-NO-LEG-MAY-SEE"
FIND = case("find", "cd /workspace && find . -mindepth 1 | sort")
SEARCH = case(
    "search",
    f"grep -rsl --exclude-dir=proc --exclude-dir=sys {MARKER[:10]}''{MARKER[10:]} /; true",
)
"""Looks for the marker everywhere; written so that its own command line does not hold it."""

TREE: Mapping[str, str] = {
    "src/tool.py": "tool\n",
    "src/untracked.txt": "untracked\n",
    ".gitignore": "/dist/\n*.log\n",
    "dist/built": "built\n",
    "noise.log": "ignored\n",
    ".agents/learnings/live.md": MARKER,
    "src/.agents/deep.md": MARKER,
    "evals/bin/helper": "#!/bin/sh\necho helped\n",
    "evals/fixtures/demo/context-on/context.json": '{"schema_version": 1, "label": "mine"}',
    "runs/earlier/scorecard.json": MARKER,
}


@pytest.fixture
def tree(project: Project) -> Project:
    """A repository with much that no leg may see."""
    project.write(TREE)
    project.git("add", "-A", ":!src/untracked.txt")
    project.git("commit", "-q", "-m", MARKER)
    return project


def _seen(result: Result, leg: str = "context_on") -> set[str]:
    return {line.removeprefix("./") for line in result.output("find", leg).splitlines()}


def test_what_a_leg_must_not_see_is_not_there(tree: Project) -> None:
    path = tree.suite(FIND, SEARCH)
    for name in (".agents/x.md", ".claude/settings.json", ".codex/auth.json", ".netrc", ".bashrc"):
        place = tree.home / name
        place.parent.mkdir(exist_ok=True)
        place.write_text(MARKER, encoding="utf-8")
    result = tree.ao_eval("ab", path, UNRELATED=MARKER)

    assert result.code == 0, result.stderr
    wanted = {".gitignore", "evals", "evals/bin", "evals/bin/helper"}
    wanted |= {"src", "src/tool.py", "src/untracked.txt"}
    for leg in ("context_off", "context_on"):
        assert _seen(result, leg) == wanted
        assert result.output("search", leg) == ""
    assert result.card["context_on"]["context_root_label"] == "mine"
    assert result.card["inputs"]["workspace_mode"] in {"overlay", "copy"}


def test_a_seeded_marker_would_have_been_found(tree: Project) -> None:
    tree.write({"src/visible.txt": MARKER})
    result = tree.ao_eval("run", tree.suite(SEARCH))
    assert result.output("search", "none") == "/workspace/src/visible.txt\n"


def test_ignored_files_and_a_history_of_one_commit_come_only_when_asked_for(
    tree: Project,
) -> None:
    log = case("log", "git log --format=%s | cat; git status --porcelain")
    path = tree.suite(FIND, log)
    result = tree.ao_eval("run", path, "--include", "dist/*", "--with-git")

    assert result.code == 0, result.stderr
    seen = _seen(result, "none")
    assert "dist/built" in seen
    assert "noise.log" not in seen
    assert ".agents" not in seen
    assert "src/.agents" not in seen
    assert ".git/HEAD" in seen
    # One commit of ours, and a clean tree: no message, name or object of the real history.
    (subject,) = result.output("log", "none").splitlines()
    assert MARKER not in subject


def test_a_glob_cannot_bring_back_what_is_left_out(tree: Project) -> None:
    path = tree.suite(FIND, SEARCH)
    result = tree.ao_eval("run", path, "--include", "**", "--include", ".agents/**")
    assert result.code == 0, result.stderr
    seen = _seen(result, "none")
    assert {"dist/built", "noise.log"} <= seen
    assert not [name for name in seen if ".agents" in name or name.startswith((".git/", "runs"))]
    assert "evals/demo.json" not in seen
    assert result.output("search", "none") == ""


def test_another_folder_can_be_the_workspace(tree: Project) -> None:
    path = tree.suite(FIND, case("where", "pwd"))
    result = tree.ao_eval("run", path, "--workspace", "evals")
    assert result.code == 0, result.stderr
    assert "bin/helper" in _seen(result, "none")
    assert not [name for name in _seen(result, "none") if name.startswith(("src", "evals"))]
    assert result.output("where", "none") == "/workspace\n"


WRITES = (
    case(
        "writes",
        "echo changed > ../src/tool.py && rm ../.gitignore && mkdir -p ../new/deep && "
        "touch ../new/deep/file && chmod 700 ../src",
    ),
    case("looks", "cat ../src/tool.py; test -e ../.gitignore; echo $?; test -e ../new; echo $?"),
)


def _host(project: Project) -> str:
    status = subprocess.run(
        ["git", "status", "--porcelain", "--", ":!runs"],
        cwd=project.repo,
        capture_output=True,
        text=True,
        check=True,
    )
    return status.stdout


def test_what_a_case_writes_reaches_neither_the_host_nor_the_next_case(tree: Project) -> None:
    path = tree.suite(*WRITES)
    before = _host(tree)
    result = tree.ao_eval("run", path)

    assert result.code == 0, result.stderr
    assert result.output("looks", "none") == "tool\n0\n1\n"
    assert (tree.repo / "src" / "tool.py").read_text(encoding="utf-8") == "tool\n"
    assert _host(tree) == before
    first, second = result.case("writes", "none"), result.case("looks", "none")
    assert first["wrote_workspace"] is not False
    assert (first["container"], second["container"]) == (0, 1)


def test_a_shared_workspace_is_one_tree_for_a_leg_and_the_records_say_so(tree: Project) -> None:
    path = tree.suite(*WRITES)
    before = _host(tree)
    result = tree.ao_eval("ab", path, "--share-workspace")

    assert result.code == 0, result.stderr
    for leg in ("context_off", "context_on"):
        assert result.output("looks", leg) == "changed\n1\n0\n"
        assert result.case("looks", leg)["container"] == 0
    assert _host(tree) == before
    assert result.card["inputs"]["workspace_mode"].startswith("shared_")


@pytest.mark.parametrize("staging", ["plain", "with:colon"])
def test_a_shared_workspace_stays_the_same_tree_in_a_fresh_container(
    tree: Project, staging: str
) -> None:
    """System V objects of a case must not meet the next one; what it wrote must."""
    leave = "import ctypes; print(ctypes.CDLL(None).shmget(7, 4096, 0o1666) >= 0)"
    look = "test -e made || exit 9; rm made; cat /proc/sysvipc/shm | wc -l"
    path = tree.suite(
        case("leaves", f'touch made; python3 -I -S -c "{leave}"'),
        case("looks", look),
        case("last", "test ! -e made"),
    )
    folder = tree.staging / staging
    folder.mkdir()
    result = tree.ao_eval("ab", path, "--share-workspace", AO_EVAL_STAGING_DIR=str(folder))
    folder.rmdir()
    assert result.code == 0, result.stderr
    for leg in ("context_off", "context_on"):
        assert result.output("leaves", leg) == "True\n"
        found = [result.case(name, leg) for name in ("leaves", "looks", "last")]
        assert [row["status"] for row in found] == ["pass"] * 3, result.output("looks", leg)
        # gVisor does not show what is left; the scorecard says so.
        assert [row["container"] for row in found] == ([0, 0, 0] if GVISOR else [0, 1, 1])
        if not GVISOR:
            assert result.output("looks", leg) == "1\n"  # the heading


def test_clean_cases_share_a_container_and_scratch_is_empty_for_each(project: Project) -> None:
    leave = 'echo x > "$HOME/x"; echo x > "$TMPDIR/x"; echo x > /dev/shm/x'
    look = 'find "$HOME" "$TMPDIR" /dev/shm -mindepth 1'
    result = project.ao_eval("run", project.suite(case("leaves", leave), case("looks", look)))
    assert result.code == 0, result.stderr
    assert result.output("looks", "none") == ""
    # gVisor does not show all that a case may leave: there every command has a fresh container.
    assert result.case("looks", "none")["container"] == (1 if GVISOR else 0)
    assert result.case("leaves", "none")["wrote_workspace"] is False


def test_nothing_visible_from_inside_tells_the_legs_apart_but_the_variant(
    project: Project,
) -> None:
    # Random names and kernel numbers aside.
    names = "s/[0-9a-f]{12,}/X/g; s,/l/[A-Z0-9]{26},/l/X,g; s/master:[0-9]+/M/; s/fdno=[0-9]+/F/g"
    scrub = f"sed -E '{names}; s/^[0-9]+ [0-9]+ [0-9:]+ //'"
    facts = (
        f"hostname; {scrub} /proc/self/mountinfo | sort; cat /proc/1/cmdline; "
        f"sed -E '{names}' /proc/self/cgroup; env | grep -v '^AO_CONTEXT_VARIANT=' | sort; "
        "stat -c '%n %A %u %g %s %Y' /context/agents /workspace /workspace/* /ao /ao/*"
    )
    same = {"learnings/hint.md": "same length 1\n"}, {"learnings/hint.md": "same length 2\n"}
    path = project.suite(case("facts", facts), off=same[0], on=same[1])
    result = project.ao_eval("ab", path)
    off, on = result.output("facts", "context_off"), result.output("facts", "context_on")
    assert len(on.splitlines()) > 20
    assert off == on
