"""The live proof with real writers: containers of ours, of somebody else, and processes beside."""

from __future__ import annotations

import json
import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from runner.app.live import LiveWatch
from runner.app.request import LiveOptions
from runner.core import liveproof
from runner.host.decoy import PREFIX
from runner.model.liveproof import LiveStateEvidence
from runner.model.tree import LiveRoot
from tests.container.projects import NEEDS_HINT, TOP, WAITING, Project, Result, case
from tests.unit.host.watching import Writer, writer

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine

pytestmark = [
    pytest.mark.container,
    pytest.mark.skipif(os.geteuid() != 0, reason="writers are told by fanotify, which needs root"),
]

# The one who lets it go on is in the container too, and must not be ended with it.
LINGERING = f"{WAITING}; sleep 0.5"

SETTLED = ("shell writes", "echo x > /live/by-shell; touch /tmp/done; sleep 60")
FLEETING = (
    "programs that end at once",
    "for n in $(seq 50); do touch /live/n$n; done; touch /tmp/done; sleep 60",
)


class Root:
    """A live root that is watched by itself."""

    def __init__(self, folder: Path, *, allow: bool = False) -> None:
        self.path = folder / "repo" / ".agents"
        self.path.mkdir(parents=True)
        (self.path / "kept.md").write_text("kept\n")
        self.path.chmod(0o777)
        self._places = (folder,)
        root = LiveRoot(
            path=str(self.path), real=os.path.realpath(self.path), origins=("suite",), home=False
        )
        self.watch = LiveWatch([root], LiveOptions(allow_external=allow))

    def end(self, *legs: str) -> LiveStateEvidence:
        """The proof, with its control."""
        with self.watch:
            self.watch.start_control(self._places)
            return self.watch.end(
                mounts_checked=0, reaching=(), legs=frozenset(legs), t0="2026-11-30T12:00:00Z"
            )


@pytest.fixture
def container(engine: DockerEngine, leg_image: str) -> Iterator[Callable[[Path, str], str]]:
    """Starts a container with a live root bound writable, as ours never are; returns its id."""
    client, made = engine._client, []

    def start(live: Path, script: str) -> str:
        host = client.create_host_config(
            binds=[f"{live}:/live:rw"], network_mode="none", log_config={"Type": "none"}
        )
        found = client.create_container(leg_image, ["sh", "-c", script], host_config=host)
        made.append(found["Id"])
        client.start(found["Id"])
        deadline = time.monotonic() + 60
        while True:
            test = client.exec_create(found["Id"], ["test", "-e", "/tmp/done"])
            client.exec_start(test["Id"])
            if client.exec_inspect(test["Id"])["ExitCode"] == 0:
                return str(found["Id"])
            assert time.monotonic() < deadline
            time.sleep(0.02)

    yield start
    for container_id in made:
        client.remove_container(container_id, force=True, v=True)


def kinds(found: LiveStateEvidence) -> set[str]:
    return {write.writer.kind for write in found.writes}


@pytest.mark.parametrize("allow", [False, True])
def test_a_write_of_a_container_of_ours_is_a_legs_and_never_tolerated(
    tmp_path: Path, container: Callable[[Path, str], str], allow: bool
) -> None:
    root = Root(tmp_path, allow=allow)
    made = container(root.path, SETTLED[1])
    found = root.end(made)

    assert found.proof.changed_by == "by_leg"
    change = liveproof.degradation(found.proof)
    assert change is not None
    assert change.detail == "by_leg"
    (write,) = (item for item in found.writes if item.path == "by-shell")
    assert (write.writer.kind, write.writer.container) == ("leg", made)
    assert {"created", "modified"} <= set(write.actions)
    assert (liveproof.notices(found)[0]).startswith(
        f"live state changed: {root.path}/by-shell at 20"
    )
    assert f"by a container of this run ({made[:12]})" in liveproof.notices(found)[0]


def test_what_ends_too_soon_in_a_container_of_ours_is_never_an_outsider(
    tmp_path: Path, container: Callable[[Path, str], str]
) -> None:
    root = Root(tmp_path, allow=True)
    found = root.end(container(root.path, FLEETING[1]))
    assert found.proof.watch.events_total >= 50
    assert kinds(found) <= {"leg", "unknown"}
    assert found.proof.changed_by in {"by_leg", "writer_unknown"}
    assert liveproof.problems(found.proof)


def test_a_container_of_somebody_else_is_an_outsider(
    tmp_path: Path, container: Callable[[Path, str], str]
) -> None:
    root = Root(tmp_path, allow=True)
    container(root.path, SETTLED[1])
    found = root.end("0" * 64)
    assert kinds(found) == {"outsider"}
    assert found.proof.changed_by == "by_outsider"
    assert liveproof.problems(found.proof) == ()


def test_one_write_of_a_leg_among_those_of_outsiders_is_the_legs(
    tmp_path: Path, container: Callable[[Path, str], str]
) -> None:
    root = Root(tmp_path, allow=True)
    with writer(root.path) as other:
        other.run("[open(f'o{n}', 'w') for n in range(20)]")
        found = root.end(container(root.path, SETTLED[1]))
    assert kinds(found) == {"leg", "outsider"}
    assert found.proof.changed_by == "by_leg"
    assert liveproof.problems(found.proof)


def test_a_process_that_is_gone_is_unknown_or_an_outsider_and_never_a_leg(tmp_path: Path) -> None:
    root = Root(tmp_path, allow=True)
    with writer(root.path) as other:
        other.run("import subprocess; [subprocess.run(['touch', str(n)]) for n in range(30)]")
    found = root.end("0" * 64)
    assert kinds(found) <= {"outsider", "unknown"}
    assert found.proof.changed_by == (
        "by_outsider" if kinds(found) == {"outsider"} else "writer_unknown"
    )


def test_a_write_of_this_program_itself_is_no_outsiders(tmp_path: Path) -> None:
    root = Root(tmp_path, allow=True)
    (root.path / "mine").write_text("x")
    found = root.end()
    assert kinds(found) == {"runner"}
    assert found.proof.changed_by == "writer_unknown"
    assert liveproof.problems(found.proof)


# ---------------------------------------------------------------------------- the whole command


EDIT = "f = open(p + '/learnings/new.md', 'w'); f.write('new'); f.close(); os.chmod(p, 0o711)"


@contextmanager
def editor(project: Project) -> Iterator[Writer]:
    """An outsider at work in the repository."""
    project.write({"learnings/kept.md": "kept\n"}, below=".agents")
    with writer(project.repo) as other:
        other.run(f"p = {str(project.repo / '.agents')!r}")
        yield other


def edited(project: Project, command: str, *arguments: object) -> tuple[Result, int]:
    """A run while whose legs an outsider writes, and who that was."""
    path = project.suite(case("waits", LINGERING), case("needs-hint", NEEDS_HINT))
    with editor(project) as other:
        count = 2 if command == "ab" else 1
        result = project.while_waiting(count, lambda _: other.run(EDIT), command, path, *arguments)
        return result, other.pid


@pytest.mark.parametrize("command", ["ab", "run"])
def test_path_time_and_writer_are_the_first_thing_that_is_printed(
    project: Project, command: str
) -> None:
    live = project.repo / ".agents"
    result, pid = edited(project, command, "--quiet")
    assert result.code == 5, result.stderr
    first = next(line for line in result.stderr.splitlines() if line.startswith("ao-eval: "))
    assert re.match(
        rf"ao-eval: live state changed: {re.escape(str(live))}/learnings/new\.md at "
        rf"\d{{4}}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{{9}}Z by an outsider \(.*, pid {pid}\): ",
        first,
    )
    assert result.stderr.splitlines()[0] == first
    evidence = result.read("evidence/live-state.json")
    assert evidence["proof"]["changed_by"] == "by_outsider"
    assert {write["writer"]["pid"] for write in evidence["writes"]} == {pid}
    record = result.record("context_on" if command == "ab" else "none")
    assert record["degraded_detail"] == "by_outsider"


@pytest.mark.parametrize("command", ["ab", "run"])
def test_an_outsiders_change_is_tolerated_where_that_was_allowed_and_told_all_the_same(
    project: Project, command: str
) -> None:
    live = project.repo / ".agents"
    result, pid = edited(project, command, "--allow-external-live-changes")
    assert result.code == 0, result.stderr
    assert f"{live}/learnings/new.md at " in result.stderr
    assert f"pid {pid}): " in result.stderr
    assert "(allowed)" in result.stderr
    proof = result.read("evidence/live-state.json")["proof"]
    (root,) = (item for item in proof["roots"] if item["path"] == str(live))
    assert (root["fatal"], root["allowed"], root["changed_by"]) == (True, True, "by_outsider")
    if command == "ab":
        assert result.card["integrity"]["verdict"] == "clean"
        assert result.card["warnings"][0].startswith("live state was changed by outsiders")
        assert "(allowed)" in "".join(result.stdout)
        assert not [row for row in result.card["per_case"] if row["degraded_reason"]]


BROKEN = {
    "witness": (
        "live.take_manifest = witness",
        "the witness flagged 4 of 5 planted mutations, fanotify 5",
    ),
    "watch": (
        "Fanotify.drain = lambda self: (s for s in drain(self) if not s.mask & 256)",
        "the witness flagged 5 of 5 planted mutations, fanotify 4",
    ),
    "thread": (
        "Fanotify.drain = lambda self: (1 / 0 for s in drain(self))",
        "the witness flagged 5 of 5 planted mutations, fanotify 0",
    ),
    "planter": (
        "decoy._PROGRAM = 'raise SystemExit'",
        "the witness flagged 0 of 5 planted mutations, fanotify 0 (ValueError",
    ),
    "inotify": (
        "Fanotify.__init__ = refused; Inotify.drain = lambda self: iter(())",
        "the witness flagged 5 of 5 planted mutations, inotify 0",
    ),
}
HOOK = """
import sys
if sys.argv[:1] == ["-m"]:
    from dataclasses import replace
    import runner.app.live as live
    import runner.host.decoy as decoy
    from runner.host.fanotify import Fanotify
    from runner.host.inotify import Inotify
    from runner.model.tree import pack_row, unpack_row
    real, drain = live.take_manifest, Fanotify.drain
    def witness(root):
        found = real(root)
        rows = []
        for path, row in zip(found.paths, found.rows):
            e = unpack_row(path, row)
            numbers = (e.mode, e.uid, e.gid, e.size, e.device, e.inode, e.mtime, 0, e.nlink)
            rows.append(pack_row(e.kind.encode(), numbers, e.content, e.xattrs))
        return replace(found, rows=tuple(rows))
    def refused(self):
        raise PermissionError(1, "Operation not permitted")
    %s
"""


def hooked(folder: Path, statement: str) -> str:
    """A PYTHONPATH under which a command runs with something of it broken."""
    (folder / "hook").mkdir()
    (folder / "hook" / "sitecustomize.py").write_text(HOOK % statement)
    return f"{folder / 'hook'}:{TOP}"


@pytest.mark.parametrize("part", BROKEN)
def test_a_detector_that_does_not_fire_makes_the_run_void(
    project: Project, tmp_path: Path, part: str
) -> None:
    statement, line = BROKEN[part]
    path = project.suite(case("needs-hint", NEEDS_HINT))
    result = project.ao_eval("ab", path, PYTHONPATH=hooked(tmp_path, statement))
    assert result.code == 5, result.stderr
    integrity = result.card["integrity"]
    assert integrity["verdict"] == "violated"
    assert integrity["problems"][0].startswith(f"live proof is void: {line}")
    assert "not clean" in result.stdout
    assert "PROOF IS VOID" in " ".join(result.stdout.split())
    assert {item["verdict"] for item in integrity["live_state"]["decoys"]} == {"void"}


def test_where_fanotify_is_not_permitted_inotify_watches_and_no_writer_is_known(
    project: Project, tmp_path: Path
) -> None:
    path = project.suite(case("waits", LINGERING))
    hook = hooked(tmp_path, "Fanotify.__init__ = refused")
    allow = "--allow-external-live-changes"
    with editor(project) as other:
        clean = project.ao_eval("run", project.suite(case("a", NEEDS_HINT)), PYTHONPATH=hook)
        path = project.suite(case("waits", LINGERING))
        result = project.while_waiting(
            1, lambda _: other.run(EDIT), "run", path, allow, PYTHONPATH=hook
        )
    proof = clean.read("evidence/live-state.json")["proof"]
    assert proof["watch"] == {
        "method": "inotify",
        "complete": True,
        "events_total": 0,
        "note": "fanotify: Operation not permitted",
    }
    assert [(item["watched"], item["verdict"]) for item in proof["decoys"]] == [(5, "fired")]
    assert result.code == 5, result.stderr
    evidence = result.read("evidence/live-state.json")
    assert evidence["proof"]["changed_by"] == "writer_unknown"
    assert {write["writer"]["kind"] for write in evidence["writes"]} == {"unknown"}


def test_a_clean_run_is_watched_whole_and_leaves_no_decoy(project: Project, tmp_path: Path) -> None:
    project.write({"learnings/kept.md": "kept\n"}, below=".agents")
    path = project.suite(case("needs-hint", NEEDS_HINT))
    again = {"SOURCE_DATE_EPOCH": "1796000000"}
    cards = []
    for number in range(2):
        result = project.ao_eval(
            "ab", path, "--out-dir", tmp_path / f"out{number}", "--run-id", "r", **again
        )
        assert result.code == 0, result.stderr
        assert result.stderr.count("live state changed") == 0
        (directory,) = (tmp_path / f"out{number}").iterdir()
        cards.append((directory / "scorecard.json").read_bytes())
        proof = json.loads(cards[-1])["integrity"]["live_state"]
        assert proof["watch"] == {
            "method": "fanotify", "complete": True, "events_total": 0, "note": "",
        }  # fmt: skip
        (decoy,) = proof["decoys"]
        assert (decoy["planted"], decoy["witnessed"], decoy["watched"]) == (5, 5, 5)
        assert set(decoy["roots"]) == {item["path"] for item in proof["roots"]}
    assert cards[0] == cards[1]
    assert not list(tmp_path.rglob(f"{PREFIX}*"))
    assert not list(project.staging.rglob(f"{PREFIX}*"))
