"""Whatever ends a run, nothing of it stays; and what stays of a live run is left alone."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from runner.core.confine import LABEL
from tests.container.hostile.relay import Relay
from tests.container.projects import (
    NEEDS_HINT,
    PATIENCE,
    WAITING,
    Project,
    Result,
    Running,
    case,
)

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine
    from tests.conftest import MakeProject

pytestmark = pytest.mark.container

IS_ROOT = os.geteuid() == 0
DEAD_MAN_SECONDS = 2.0
POINTS = 100
RUNS = 200
MOST_UNCOLLECTED = 64
SHORT = (case("writes", "touch x"), case("needs-hint", NEEDS_HINT), case("sleeps", "sleep 0.1"))


# ------------------------------------------------------------------------- SIGKILL, at any moment


@pytest.fixture(scope="module")
def elapsed(make_project: MakeProject, tmp_path_factory: pytest.TempPathFactory) -> float:
    """Seconds of the short suite when nobody interferes: the points are spread over them."""
    project = make_project(tmp_path_factory.mktemp("undisturbed"))
    path = project.suite(*SHORT)
    begun = time.monotonic()
    result = project.ao_eval("ab", path)
    assert result.code == 0, result.stderr
    return time.monotonic() - begun


class Alive(NamedTuple):
    """A run that goes on, and its containers."""

    running: Running
    containers: frozenset[str]


@pytest.fixture(scope="module")
def alive(make_project: MakeProject, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alive]:
    """A run that goes on all the while."""
    project = make_project(tmp_path_factory.mktemp("alive"))
    path = project.suite(case("waits", WAITING, timeout_seconds=6000))
    running = project.start("ab", path, "--timeout", "6000")
    made = Alive(running, frozenset(running.waiting(2)))
    yield made
    assert set(project.containers()) == made.containers
    running.release()
    result = running.finish()
    assert result.code == 0, result.stderr
    assert result.card["pairing"]["valid_pairs"] == 1


@pytest.mark.slow
@pytest.mark.timeout(600)
@pytest.mark.parametrize("point", range(POINTS))
def test_a_run_that_is_killed_at_any_point_is_reaped_whole(
    project: Project, elapsed: float, alive: Alive, point: int
) -> None:
    _kill_and_reap(project, alive, elapsed * point / POINTS)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("share", [0.5, 0.75])
def test_a_run_that_is_killed_is_reaped_whole_beside_one_that_lives(
    project: Project, elapsed: float, alive: Alive, share: float
) -> None:
    _kill_and_reap(project, alive, elapsed * share)


def _kill_and_reap(project: Project, alive: Alive, delay: float) -> None:
    # The live run shares the staging folder: its home lies where the dead one's does.
    path = project.suite(*SHORT)
    staging = alive.running.project.staging
    homes = set(staging.iterdir())
    assert homes
    running = project.start("ab", path, AO_EVAL_STAGING_DIR=str(staging))
    time.sleep(delay)  # the point itself, not a wait for something
    running.send(signal.SIGKILL)
    killed = time.time()
    running.finish()

    theirs = alive.containers
    labelled = [item for item in project.engine.owned_containers() if _below(item, staging)]
    for item in labelled:
        if item["Id"] not in theirs:
            _assert_ends(project.engine, item["Id"], killed)
    _until(lambda: not _planters(project), "planters of decoys")
    reaped = project.ao_eval("reap", AO_EVAL_STAGING_DIR=str(staging))
    assert reaped.code == 0, (reaped.stdout, reaped.stderr)
    assert "live runs" in reaped.stdout
    assert set(staging.iterdir()) == homes
    assert {
        item["Id"] for item in project.engine.owned_containers() if _below(item, staging)
    } == theirs
    assert len([item for item in project.engine.owned_volumes() if _below(item, staging)]) == 2
    assert [path for path in project.directories() if path.name.startswith(".")] == []
    assert not list(project.repo.parent.rglob(".ao-eval-decoy-*"))
    assert alive.running.process.poll() is None


def _below(item: Any, staging: Path) -> bool:
    return Path((item.get("Labels") or {}).get(f"{LABEL}.home", "")).parent == staging


def _assert_ends(engine: DockerEngine, container: str, killed: float) -> None:
    """By the dead-man switch, within its time, by the engine's clock."""
    from datetime import datetime

    from runner.errors import EngineFailure

    try:
        state = engine.inspect(container)["State"]
        if state["Status"] == "created":
            return  # it was never started, nothing runs in it
        engine.wait(container, PATIENCE)
        text = engine.inspect(container)["State"]["FinishedAt"]
    except EngineFailure:
        return  # the run itself had asked for its removal
    ended = datetime.fromisoformat(text[:19] + "+00:00").timestamp()
    assert ended - killed <= DEAD_MAN_SECONDS


def _planters(project: Project) -> list[str]:
    """Processes whose command line names this project."""
    found = []
    needle = os.fsencode(project.repo)
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and int(folder.name) != os.getpid():
            with contextlib.suppress(OSError):
                line = (folder / "cmdline").read_bytes()
                if needle in line:
                    found.append(line.decode("utf-8", "replace"))
    return found


def _until(wanted: Any, what: str) -> None:
    deadline = time.monotonic() + PATIENCE
    while not wanted():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def test_reaping_takes_unfinished_evidence_from_where_it_is_told(project: Project) -> None:
    path = project.suite(case("waits", WAITING, timeout_seconds=600))
    out = project.repo / "elsewhere"
    running = project.start("ab", path, "--out-dir", out)
    running.waiting(2)
    running.send(signal.SIGKILL)
    running.finish()
    (unfinished,) = out.iterdir()
    assert unfinished.name.startswith(".tmp-")
    mine = out / ".tmp-mine"
    mine.mkdir()
    assert project.ao_eval("reap").code == 0
    assert unfinished.is_dir()
    assert project.ao_eval("reap", "--out-dir", out).code == 0
    assert list(out.iterdir()) == [mine]


# --------------------------------------------------------------------- the engine and its images


def _image(project: Project, tag: str) -> str:
    """An image like the leg image under an id of its own, which nobody else uses."""
    folder = project.repo.parent / f"image-{tag}"
    folder.mkdir()
    (folder / "Dockerfile").write_text(
        f"ARG BASE\nFROM $BASE\nLABEL ao-eval-test={tag}-{os.getpid()}\n", encoding="utf-8"
    )
    reference = f"ao-eval-test/{tag}:{os.getpid()}"
    project.engine.build(str(folder), reference, arguments={"BASE": project.image}, labels={})
    return reference


def test_an_image_that_is_removed_in_mid_run_degrades_the_leg(
    project: Project, tmp_path: Path
) -> None:
    """Between the containers of a leg, which is when an engine lets an image go."""
    url = project.engine.endpoint.url
    assert url.startswith("unix://"), "legs need an engine on this machine"
    reference = _image(project, "removed")
    creations = []

    def shown(data: bytes) -> None:
        if data.startswith(b"POST ") and b"/containers/create" in data and b"-fill" not in data:
            creations.append(data)
            if len(creations) == 2:
                project.engine._client.remove_image(reference, force=True)

    relay = Relay(tmp_path / "e.sock", url.removeprefix("unix://"), shown)
    path = project.suite(case("first", "touch x"), case("second", "true"), case("third", "true"))
    try:
        result = project.ao_eval("run", path, "--image", reference, DOCKER_HOST=relay.address)
    finally:
        relay.close()
    assert len(creations) == 2
    assert project.engine.image(reference) is None
    assert result.code == 4, result.stderr
    assert "Traceback" not in result.stderr
    record = result.record("none")
    reason = ("runtime_unavailable", "create_failed")
    assert (record["degraded_reason"], record["degraded_detail"]) == reason
    rows = {row["case_id"]: row for row in record["case_results"]}
    assert list(rows) == ["first", "second", "third"]
    for name in ("second", "third"):
        assert (rows[name]["status"], rows[name]["score"]) == ("error", None)
    assert project.leftovers() == []


# ---------------------------------------------------------------------------------- a full disk


@contextlib.contextmanager
def _small_disk(folder: Path, size: int) -> Iterator[Path]:
    folder.mkdir()
    options = ["-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    subprocess.run(["mount", *options], check=True)
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.mark.skipif(not IS_ROOT, reason="a small file system needs root")
@pytest.mark.parametrize("size", [1 << 20, 24 << 10])
def test_a_full_disk_is_one_clear_line_and_leaves_no_half_of_a_run(
    project: Project, size: int
) -> None:
    """In the middle of the outputs, and when the documents are written at the end."""
    path = project.suite(
        case("small", "echo small"),
        case("large", "head -c 3000000 /dev/zero | tr '\\0' a" if size > 1 << 16 else "true"),
    )
    with _small_disk(project.repo / "small", size) as disk:
        (disk / "earlier").mkdir()
        (disk / "earlier" / "scorecard.json").write_text("{}", encoding="utf-8")
        result = project.ao_eval("ab", path, "--out-dir", disk, "--quiet")
        assert (result.code, result.stdout) == (3, ""), result.stderr
        line = result.stderr.splitlines()[-1]
        assert line.startswith("ao-eval: ")
        assert "No space left" in line
        assert "--out-dir" in line
        assert "Traceback" not in result.stderr
        assert [item.name for item in disk.rglob("*")] == ["earlier", "scorecard.json"]
        assert (disk / "earlier" / "scorecard.json").read_text(encoding="utf-8") == "{}"
    assert project.leftovers() == []


# ------------------------------------------------------------------------------- many at a time


def test_two_runs_of_one_suite_at_once_do_not_notice_each_other(project: Project) -> None:
    path = project.suite(case("waits", WAITING), case("needs-hint", NEEDS_HINT))
    runs = [project.start("ab", path, "--json") for _ in range(2)]
    runs[1].waiting(4)  # both legs of both: they do run at once
    runs[1].release()
    results: list[Result] = [run.finish() for run in runs]
    assert [result.code for result in results] == [0, 0], [result.stderr for result in results]
    cards = [result.document for result in results]
    assert cards[0]["run_id"] != cards[1]["run_id"]
    assert [card["aggregate_delta"] for card in cards] == [0.5, 0.5]
    assert [card["integrity"]["verdict"] for card in cards] == ["clean", "clean"]
    assert len(project.directories()) == 2
    assert project.leftovers() == []


@pytest.mark.slow
def test_two_runs_that_are_given_one_id_end_in_two_directories_or_in_one_and_a_refusal(
    project: Project,
) -> None:
    path = project.suite(case("waits", WAITING))
    options = ("--run-id", "same", "--json")
    runs = [project.start("ab", path, *options) for _ in range(2)]
    runs[1].waiting(4)
    runs[1].release()
    results = [run.finish() for run in runs]
    codes = sorted(result.code for result in results)
    # The time is part of the name: they collide only within one second.
    assert codes in ([0, 0], [0, 2]), [result.stderr for result in results]
    complete = [item for item in project.directories() if not item.name.startswith(".")]
    assert len(complete) == codes.count(0)
    for folder in complete:
        assert json.loads((folder / "scorecard.json").read_bytes())["run_id"] == "same"
    assert project.leftovers() == []


_MANY = """
import gc, json, os, shutil, sys, threading
from pathlib import Path
from runner import settings
from runner.app.request import RunRequest, Sandbox, Surroundings
from runner.app.run_ab import run_ab
from runner.report.progress import Quiet

environment = settings.environment()
surroundings = Surroundings(
    cwd=Path.cwd(), home=Path.home(), environment=environment,
    staging_base=settings.staging_base(environment),
)
request = RunRequest(
    suites=(Path(sys.argv[1]),), surroundings=surroundings, out_dir=Path("runs"),
    sandbox=Sandbox(image=environment["AO_EVAL_IMAGE"], runtime=environment.get("AO_EVAL_RUNTIME")),
    controls="none",
)
def resident():
    fields = dict(line.split(":", 1) for line in open("/proc/self/status"))
    return int(fields["VmRSS"].split()[0])
def descriptors():
    return len(os.listdir("/proc/self/fd"))
for number in range(int(sys.argv[2])):
    code = run_ab(request, Quiet()).exit_code
    shutil.rmtree("runs")
    uncollected = descriptors()
    gc.collect()
    print(json.dumps([code, threading.active_count(), descriptors(), resident(), uncollected]),
          flush=True)
"""


def _many(project: Project, count: int, timeout: float) -> list[list[int]]:
    path = project.suite(case("writes", "touch x"), case("needs-hint", NEEDS_HINT))
    done = subprocess.run(
        [sys.executable, "-c", _MANY, str(path), str(count)],
        cwd=project.repo,
        env=project.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def _assert_flat(rows: list[list[int]], warm: int) -> None:
    assert {row[0] for row in rows} == {0}
    # After the first runs, in which modules and pools are made.
    _, threads, descriptors, resident, _ = rows[warm]
    assert {row[1] for row in rows[warm:]} == {threads}
    assert {row[2] for row in rows[warm:]} == {descriptors}
    # Connections of the SDK lie in cycles: until the collector comes, some are open.
    assert max(row[4] for row in rows) <= descriptors + MOST_UNCOLLECTED
    last = min(row[3] for row in rows[-3:])
    assert last <= resident * 1.15, [row[3] for row in rows]


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_runs_in_one_process_leave_it_as_it_was(project: Project) -> None:
    _assert_flat(_many(project, RUNS, 3500), warm=20)
    assert project.leftovers() == []


@pytest.mark.timeout(300)
def test_a_few_runs_in_one_process_leave_no_thread_and_no_descriptor(project: Project) -> None:
    _assert_flat(_many(project, 3, 280), warm=1)
    assert project.leftovers() == []
