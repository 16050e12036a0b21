"""What takes an engine that a test may stop, kill and configure: one of the matrix, never yours."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from runner.engine.docker_engine import DockerEngine
from tests.container.projects import (
    NEEDS_HINT,
    TOP,
    WAITING,
    Project,
    assert_no_claim,
    case,
    degraded_rows,
)

pytestmark = [pytest.mark.container, pytest.mark.matrix, pytest.mark.timeout(480)]

LEG_SECONDS = 15
LATE_SECONDS = 15
"""The agent's own limit is ten seconds later than the leg's."""
RELOAD_SECONDS = 20.0


class MatrixEngine:
    """The engine of this cell, which is `make test-matrix`'s own."""

    def __init__(self, release: str) -> None:
        self._release = release
        self.folder = Path("/run/ao-eval-matrix") / release

    def control(self, action: str) -> None:
        """Start it, or stop it and everything that a killed one left running."""
        script = str(TOP / "scripts" / "matrix-engine")
        subprocess.run([script, self._release, action], check=True, stdout=subprocess.DEVNULL)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to dockerd itself."""
        os.kill(int((self.folder / "dockerd.pid").read_text()), number)


@pytest.fixture
def own(engine: DockerEngine) -> Iterator[MatrixEngine]:
    """The engine of this cell; runs, as it was configured, when the test is over."""
    made = MatrixEngine(os.environ["MATRIX_ENGINE"])
    assert engine.endpoint.url == f"unix://{made.folder}/docker.sock"
    yield made
    # A reload takes nothing back that was configured.
    made.control("stop")
    made.control("start")


@pytest.mark.parametrize("how", ["stopped", "killed"])
def test_an_engine_that_ends_in_mid_leg_degrades_the_legs_and_reap_leaves_nothing(
    project: Project, own: MatrixEngine, how: str
) -> None:
    names = ["before", "waits", "after"]
    path = project.suite(
        case("before", "true"), case("waits", WAITING, timeout_seconds=600), case("after", "true")
    )
    running = project.start("ab", path, "--timeout", LEG_SECONDS)
    containers = running.waiting(2)
    agents = [project.engine.inspect(item)["State"]["Pid"] for item in containers]
    if how == "stopped":
        own.control("stop")
    else:
        own.signal(signal.SIGKILL)
    result = running.finish()
    _end_by_themselves(agents)
    own.control("stop")
    own.control("start")

    assert result.code == 4, result.stderr
    assert "Traceback" not in result.stderr
    assert_no_claim(result, names)
    assert degraded_rows(result.card) == {("runtime_unavailable", "engine_lost")}
    for leg in ("context_off", "context_on"):
        record = result.record(leg)
        assert [row["case_id"] for row in record["case_results"]] == names
        assert record["verdict"] == "inconclusive"
    assert result.card["integrity"]["verdict"] == "clean"
    # What it could not remove waits for the reaper, which is told of it.
    assert "ao-eval reap" in result.stderr
    reaped = project.ao_eval("reap")
    assert reaped.code == 0, reaped.stderr
    assert project.leftovers() == []
    assert project.ao_eval("ab", project.suite(case("hint", NEEDS_HINT))).code == 0


def _end_by_themselves(pids: list[int]) -> None:
    """Without an engine nobody ends a leg but its agent, at the leg's time limit."""
    begun = time.monotonic()
    while [pid for pid in pids if _runs(pid)]:
        assert time.monotonic() - begun < LEG_SECONDS + LATE_SECONDS, (
            "the legs go on without an engine"
        )
        time.sleep(0.2)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


def test_the_engines_default_runtime_decides_like_one_that_is_asked_for(
    project: Project, own: MatrixEngine
) -> None:
    """Recursive read-only mounts, which gVisor's engines refuse, are where this shows."""
    place = own.folder / "daemon.json"
    place.write_text(json.dumps({**json.loads(place.read_text()), "default-runtime": "runsc"}))
    own.signal(signal.SIGHUP)
    deadline = time.monotonic() + RELOAD_SECONDS
    while DockerEngine.connect(os.environ).info().default_runtime != "runsc":
        assert time.monotonic() < deadline, "the engine did not take its new configuration"
        time.sleep(0.2)

    path = project.suite(case("hint", NEEDS_HINT))
    result = project.ao_eval("ab", path, AO_EVAL_RUNTIME="")
    assert result.code == 0, result.stderr
    assert result.card["aggregate_delta"] == 1.0
    assert result.card["inputs"]["oci_runtime"] == "runsc"
    assert any(line.startswith("gVisor: ") for line in result.card["warnings"])
    sandbox = result.read("evidence/sandbox.json")
    assert {item["profile"]["host"]["Runtime"] for item in sandbox["containers"]} == {"runsc"}
    assert {leg["start"]["seccomp"] for leg in sandbox["inside"]} == {0}
