"""However a command ends, its containers end, and what is left can be reaped."""

from __future__ import annotations

import contextlib
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import pytest

from tests.container.projects import (
    NEEDS_HINT,
    PATIENCE,
    WAITING,
    Project,
    assert_no_claim,
    case,
    degraded_rows,
)

pytestmark = pytest.mark.container

DEAD_MAN_SECONDS = 2.0


class _Relay:
    """A socket that leads to the engine, until it is cut."""

    def __init__(self, path: Path, target: str) -> None:
        self._target = target
        self._frozen = threading.Event()
        self._open: list[socket.socket] = []
        self._listener = socket.socket(socket.AF_UNIX)
        self._listener.bind(str(path))
        self._listener.listen(32)
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.socket(socket.AF_UNIX)
                self._open += [near, far]
                far.connect(self._target)
                for one, other in ((near, far), (far, near)):
                    threading.Thread(target=self._pump, args=(one, other), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(1 << 16):
                if self._frozen.is_set():
                    return
                sink.sendall(data)
            sink.shutdown(socket.SHUT_WR)

    def freeze(self) -> None:
        """The engine takes every question and answers none."""
        self._frozen.set()

    def cut(self) -> None:
        """The engine is gone, as far as the other side can tell."""
        for item in (self._listener, *self._open):
            with contextlib.suppress(OSError):
                item.shutdown(socket.SHUT_RDWR)
            item.close()


@pytest.fixture
def relay(project: Project, tmp_path: Path) -> Iterator[tuple[_Relay, str]]:
    """A relay to the engine and the `DOCKER_HOST` that names it."""
    url = project.engine.endpoint.url
    assert url.startswith("unix://"), "legs need an engine on this machine"
    path = tmp_path / "engine.sock"
    made = _Relay(path, url.removeprefix("unix://"))
    yield made, f"unix://{path}"
    made.cut()


@pytest.mark.parametrize("number, code", [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_command_with_nothing_left(
    project: Project, number: signal.Signals, code: int
) -> None:
    path = project.suite(case("waits", WAITING, timeout_seconds=600))
    running = project.start("ab", path, "--json")
    running.waiting(2)
    running.send(number)
    result = running.finish()
    assert (result.code, result.stdout) == (code, ""), result.stderr
    assert number.name in result.stderr.splitlines()[-1]
    assert "Traceback" not in result.stderr
    assert project.leftovers() == []
    assert result.directories == ()


@pytest.mark.slow
@pytest.mark.parametrize("delay", [0.2 * n for n in range(1, 21)])
@pytest.mark.parametrize("sleep", ["sleep 0.1", "sleep 500"])
def test_a_signal_at_any_moment_leaves_nothing(project: Project, sleep: str, delay: float) -> None:
    path = project.suite(case("writes", "touch x"), case("sleeps", sleep, timeout_seconds=600))
    running = project.start("ab", path)
    time.sleep(delay)
    running.send(signal.SIGTERM)
    result = running.finish()
    # -15: before the handler was in place; 0: it was over already.
    assert result.code in {143, -15, 0}, result.stderr
    assert "Traceback" not in result.stderr
    assert project.leftovers() == []


SWALLOWS = """
import signal, time
from runner.cli import main

class Last:
    def __del__(self):
        signal.raise_signal(signal.SIGTERM)

def command(context):
    Last()
    time.sleep(30)

main.app.invoke = command
main.main(["doctor"])
"""


def test_a_signal_inside_a_callback_that_swallows_exceptions_is_not_lost(project: Project) -> None:
    ended = subprocess.run(
        [sys.executable, "-c", SWALLOWS],
        env=project.environment(),
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert ended.returncode == 143, ended.stderr
    (line,) = ended.stderr.splitlines()
    assert "SIGTERM" in line


def test_a_signal_that_comes_twice_at_once_is_one_wish(project: Project) -> None:
    path = project.suite(case("waits", WAITING, timeout_seconds=600))
    running = project.start("ab", path)
    running.waiting(2)
    running.send(signal.SIGTERM)
    time.sleep(0.05)  # so that the two are not merged into one
    running.send(signal.SIGTERM)
    result = running.finish()
    assert result.code == 143, result.stderr
    assert project.leftovers() == []


def test_a_second_signal_ends_a_clean_up_that_hangs(
    project: Project, relay: tuple[_Relay, str]
) -> None:
    path = project.suite(case("waits", WAITING, timeout_seconds=600))
    running = project.start("ab", path, DOCKER_HOST=relay[1])
    containers = running.waiting(2)
    relay[0].freeze()
    running.send(signal.SIGINT)
    time.sleep(1.5)
    assert running.process.poll() is None
    running.send(signal.SIGINT)
    result = running.finish()
    assert result.code == 130, result.stderr
    assert "ao-eval reap" in result.stderr
    relay[0].cut()
    for container in containers:
        project.engine.wait(container, PATIENCE)
    assert project.ao_eval("reap").code == 0
    assert project.leftovers() == []


def test_a_killed_command_takes_its_containers_with_it_and_the_rest_is_reaped(
    project: Project,
) -> None:
    path = project.suite(case("waits", WAITING, timeout_seconds=600))
    running = project.start("ab", path)
    containers = running.waiting(2)
    killed = time.time()
    running.send(signal.SIGKILL)
    assert running.finish().code == -signal.SIGKILL

    for container in containers:
        assert _ended(project, container) - killed <= DEAD_MAN_SECONDS
    assert len(project.leftovers()) > 1
    # Half a directory of evidence has a name by which nobody takes it for a whole one.
    (unfinished,) = project.directories()
    assert unfinished.name.startswith(".tmp-")
    reaped = project.ao_eval("reap")
    assert reaped.code == 0, reaped.stderr
    assert project.leftovers() == []


def _ended(project: Project, container: str) -> float:
    """When a container ended, by the engine's clock, which is this machine's."""
    project.engine.wait(container, PATIENCE)
    text = project.engine.inspect(container)["State"]["FinishedAt"]
    return datetime.fromisoformat(text[:23] + "+00:00").timestamp()


def test_an_engine_that_is_lost_degrades_the_legs_and_the_rest_is_reaped(
    project: Project, relay: tuple[_Relay, str]
) -> None:
    path = project.suite(case("before", NEEDS_HINT), case("waits", WAITING))
    running = project.start("ab", path, DOCKER_HOST=relay[1])
    containers = running.waiting(2)
    relay[0].cut()
    result = running.finish()

    assert result.code == 4, result.stderr
    assert_no_claim(result, ["before", "waits"])
    assert degraded_rows(result.card) == {("runtime_unavailable", "engine_lost")}
    assert "Traceback" not in result.stderr
    assert "reap" in result.stderr
    for container in containers:
        project.engine.wait(container, PATIENCE)
    assert project.ao_eval("reap").code == 0
    assert project.leftovers() == []
