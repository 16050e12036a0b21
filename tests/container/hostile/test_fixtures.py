"""Hostile context roots through the command line: refused whole, or shown as what they are."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from tests.container.projects import EXIT_0, HELPFUL, NEEDS_HINT, Project, Result, case

pytestmark = pytest.mark.container

IS_ROOT = os.geteuid() == 0
NEEDS_ROOT = pytest.mark.skipif(not IS_ROOT, reason="needs root")
SECONDS = 30.0
"""Bound of a refusal, on a machine under load; most take one."""


def _socket(root: Path) -> None:
    folder = os.open(root / "learnings", os.O_PATH)
    with socket.socket(socket.AF_UNIX) as server:  # its whole path would be too long for an address
        server.bind(f"/proc/self/fd/{folder}/evil")
    os.close(folder)


def _device(root: Path) -> None:
    os.mknod(root / "learnings" / "evil", 0o600 | 0o060000, os.makedev(8, 0))


def _null(root: Path) -> None:
    os.mknod(root / "learnings" / "evil", 0o666 | 0o020000, os.makedev(1, 3))


def _parent_link(root: Path) -> None:
    (root / "learnings" / "evil").symlink_to("../../../../../../.agents")


def _loop(root: Path) -> None:
    (root / "learnings" / "evil").symlink_to("evil")


def _setgid(root: Path) -> None:
    path = root / "learnings" / "evil"
    path.write_text("x")
    path.chmod(0o2755)


def _sparse(root: Path) -> None:
    with (root / "learnings" / "evil").open("wb") as file:
        file.truncate(1 << 40)


def _linked_live_file(root: Path) -> None:
    os.link(_live(root) / "note.md", root / "learnings" / "evil")


def _deep(root: Path) -> None:
    (root / "learnings" / "evil" / "/".join(["d"] * 100)).mkdir(parents=True)


def _live(root: Path) -> Path:
    live = root.parents[4] / ".agents"
    live.mkdir(exist_ok=True)
    (live / "note.md").write_text("live\n", encoding="utf-8")
    return live


def _run(project: Project, root: Path | str, *options: Path | str) -> Result:
    """One leg with that root: a refused one starts no container."""
    path = project.suite(case("needs-hint", NEEDS_HINT), case("constant", "true"))
    return project.ao_eval("run", path, "--variant", "context_on", "--agents-dir", root, *options)


def _assert_refused(result: Result, what: str) -> None:
    assert result.code == 5, (result.code, result.stderr)
    assert "Traceback" not in result.stderr
    _assert_refusal(result.evidence, what)


def _assert_refusal(evidence: Path, what: str) -> None:
    record = json.loads((evidence / "legs/context_on/record.json").read_bytes())
    reason = (record["degraded_reason"], record["degraded_detail"])
    assert reason == ("context_root_unavailable", "unsafe_entry")
    for row in record["case_results"]:
        assert (row["status"], row["score"]) == ("error", None)
        assert row["degraded_reason"] == "context_root_unavailable"
    sandbox = json.loads((evidence / "evidence/sandbox.json").read_bytes())
    assert sandbox["containers"] == []
    told = sandbox["problems"]
    roots = evidence / "evidence/context-roots.json"
    if roots.exists():  # of a comparison; a single run has no such document
        found = json.loads(roots.read_bytes())["roots"]
        told = [*told, *(item["refusal"] for item in found if item["refusal"] is not None)]
    (problem,) = (line for line in told if "staged" in line or "live" in line)
    assert what in problem
    assert problem.isprintable()


ENTRIES: dict[str, Callable[[Path], None]] = {
    "socket": _socket,
    "link-out": _parent_link,
    "loop": _loop,
    "setgid": _setgid,
    "sparse": _sparse,
    "live-file": _linked_live_file,
    "deep": _deep,
    **({"disk": _device, "null": _null} if IS_ROOT else {}),
}


def _spoiled(project: Project, name: str) -> Path:
    """The on-root of a suite that has no off-root: neither leg starts a container."""
    project.suite(case("needs-hint", NEEDS_HINT), case("constant", "true"), name=name, off=None)
    return project.root("on", name=name)


def _refusals(project: Project) -> dict[str, Path]:
    """Evidence directories of one command over all suites, by suite."""
    begun = time.monotonic()
    result = project.ao_eval("ab", "evals", "--quiet")
    assert time.monotonic() - begun < SECONDS
    assert result.code == 5, (result.code, result.stderr)
    assert "Traceback" not in result.stderr
    return {
        json.loads((item / "scorecard.json").read_bytes())["suite_id"]: item
        for item in result.directories
    }


def test_an_entry_that_no_leg_may_see_refuses_the_root(project: Project) -> None:
    for name, spoil in ENTRIES.items():
        root = _spoiled(project, name)
        _live(root)
        spoil(root)
    found = _refusals(project)
    assert found.keys() == ENTRIES.keys()
    for directory in found.values():
        _assert_refusal(directory, "evil")


@NEEDS_ROOT
def test_a_mount_below_a_root_refuses_it(project: Project) -> None:
    words = {"tmpfs": "evil", "live-folder": "live state", "live-file": "live state"}
    with ExitStack() as mounts:
        for name in words:
            root = _spoiled(project, name)
            live = _live(root)
            (root / "evil").mkdir()
            (root / "evil-file").touch()
            what: dict[str, tuple[str | Path, ...]] = {
                "tmpfs": ("-t", "tmpfs", "none", root / "evil"),
                "live-folder": ("--bind", live, root / "evil"),
                "live-file": ("--bind", live / "note.md", root / "evil-file"),
            }
            mounts.enter_context(_mounted(*what[name]))
        found = _refusals(project)
    assert found.keys() == words.keys()
    for name, directory in found.items():
        _assert_refusal(directory, words[name])


@contextmanager
def _mounted(*arguments: str | Path) -> Iterator[None]:
    # In the namespace of everybody: the command must see it as it sees any mount of the machine.
    subprocess.run(["mount", *map(str, arguments)], check=True)
    try:
        yield
    finally:
        subprocess.run(["umount", str(arguments[-1])], check=True)


@pytest.mark.slow
def test_two_hundred_thousand_entries_are_refused_before_any_is_copied(project: Project) -> None:
    project.suite(case("one", "true"))
    folder = project.root("on") / "many"
    folder.mkdir()
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        first = ""
        for index in range(200_000):
            name = f"n{index}"
            if index % 30_000 == 0:  # a file has at most 65,000 names on some file systems
                os.close(os.open(name, os.O_WRONLY | os.O_CREAT, dir_fd=descriptor))
                first = name
            else:
                os.link(first, name, src_dir_fd=descriptor, dst_dir_fd=descriptor)
    finally:
        os.close(descriptor)
    begun = time.monotonic()
    _assert_refused(_run(project, project.root("on")), "100000")
    assert time.monotonic() - begun < SECONDS


@pytest.mark.parametrize("place", [".agents", "holds", "evals/link", "evals/inside"])
def test_a_root_that_is_or_holds_or_leads_to_live_state_is_refused(
    project: Project, place: str
) -> None:
    project.suite(case("one", "true"))
    _live(project.root("on"))
    project.write({"deep/x.md": "live\n"}, below=".agents")
    (project.repo / "evals" / "link").symlink_to("../.agents")
    (project.repo / "evals" / "inside").symlink_to("../.agents/deep")
    project.write({"x.md": "live\n"}, below="holds/agents")
    result = _run(project, place, "--live-agents-dir", project.repo / "holds" / "agents")
    _assert_refused(result, "live state")


def test_the_repository_itself_is_no_root(project: Project) -> None:
    project.suite(case("one", "true"))
    _live(project.root("on"))
    result = _run(project, ".")
    assert (result.code, result.stdout, result.directories) == (2, "", ())
    (line,) = result.stderr.splitlines()
    assert "no leg may see" in line


def test_names_of_any_bytes_are_shown_to_the_leg_and_spoil_no_document(project: Project) -> None:
    names = [b"new\nline.md", b"bad\xff\xfe.md", b"\x1b]0;OWNED\x07.md", "\u202egpj.md".encode(),
             b" blank ", b"-rf", b"*", b"a'b\"c$(d)`e`.md", b"x" * 255]  # fmt: skip
    lister = (
        "import os; folder = os.environb[b'AO_AGENTS_DIR'] + b'/learnings'; "
        "print(sorted(os.listdir(folder)))"
    )
    path = project.suite(
        case("lists", f'python3 -c "{lister}"', EXIT_0),
        case("needs-hint", NEEDS_HINT),
    )
    for side in ("off", "on"):
        folder = os.fsencode(project.root(side) / "learnings")
        for name in names:
            with open(os.path.join(folder, name), "w", encoding="ascii") as file:
                file.write(f"{side}\n")
    result = project.ao_eval("ab", path)
    assert result.code == 0, result.stderr
    assert result.card["aggregate_delta"] == 0.5
    assert result.card["integrity"]["verdict"] == "clean"
    shown = {os.path.basename(name).encode() for name in HELPFUL}
    assert eval(result.output("lists")) == sorted([*names, *shown])
    assert result.card["context_on"]["context_root_sha256"]
    for document in result.evidence.rglob("*"):
        if document.is_file() and "cases" not in document.parts:
            text = document.read_text(encoding="utf-8")
            assert not [c for c in text if not c.isprintable() and c not in "\n\xa0"], document
