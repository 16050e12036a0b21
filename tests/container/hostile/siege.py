"""The hostile cases, and what each has to be reported as."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from tests.container.projects import EXIT_0, TOP, Json, Project, case

HERE = Path(__file__).parent
PACKAGE = HERE.relative_to(TOP) / "attacks"
GIB = 1 << 30
LINE = 100_000_000
DEPTH = 100_000
MEMORY = 256 << 20
"""Bytes, of each container."""

INSUFFICIENT = "insufficient_decision_evidence"
FOLDERS = (
    "/context/agents:learnings/other.md", "/ao:agent/main.py", "/ao-upper", "/etc:passwd",
    "/usr/bin:env", "/", "/var/tmp", "/run", "/root", "/context", "/opt",
)  # fmt: skip

BACKTRACKS = "^(([a-z])+.)+[A-Z]([a-z])+$|(a|aa)+(a|aa)+(a|aa)+b"
"""Takes a backtracking engine for ever on a text of many `a`."""


class Expected(NamedTuple):
    """What both legs must report of a case."""

    status: str
    degraded: tuple[str, str] | None = None


PASS, FAIL = Expected("pass"), Expected("fail")
TIMEOUT = Expected("error", (INSUFFICIENT, "timeout"))
OOM = Expected("error", (INSUFFICIENT, "oom"))
CRASH = Expected("error", (INSUFFICIENT, "crash"))
TRUNCATED = Expected("inconclusive", (INSUFFICIENT, "output_truncated"))
UNDECIDED = Expected("inconclusive", (INSUFFICIENT, "undecided"))


def attack(name: str, *arguments: str) -> str:
    """Shell text that runs a module of `attacks`, leaving nothing in the workspace."""
    module = ".".join((*PACKAGE.parts, name))
    return " ".join(["cd /workspace && exec python3 -B -m", module, *arguments])


def place_attacks(project: Project) -> None:
    """Make the attackers part of the repository."""
    shutil.copytree(
        HERE / "attacks",
        project.repo / PACKAGE,
        ignore=shutil.ignore_patterns("__pycache__"),
    )


def _daemon() -> str:
    return (
        'python3 -c "import os, time\n'
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        while True: time.sleep(1)\n"
        "    os._exit(0)\n"
        'os.wait()"; echo leader done'
    )


def _odd_files() -> tuple[str, list[Json]]:
    """Things at the paths of expectations that must not be opened, followed for ever or kept."""
    shell = (
        "cd /tmp && mkfifo fifo && ln -s /dev/zero zero && ln -s /dev/tty tty && ln -s loop loop "
        "&& ln -s /proc/1/environ environ && ln -s /proc/self/mem memory && mkdir folder "
        "&& python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('socket')\" "
        "&& touch secret && chmod 0 secret"
    )
    names = ("fifo", "zero", "tty", "environ", "memory", "folder", "socket")
    exists = [{"type": "file_exists", "target": f"/tmp/{name}"} for name in names]
    holds = [
        {"type": "artifact_contains", "target": f"/tmp/{name}", "value": "x"} for name in names
    ]
    return shell, [*exists, *holds]


def siege() -> list[tuple[Json, Expected]]:
    """Cases that leave the leg as it was, in an order in which each could spoil the next."""
    odd_shell, odd = _odd_files()
    never: Json = {"type": "stdout_contains", "value": "never written"}
    deep: Json = {"type": "json_path", "target": "stdout:$.x", "value": 1}
    auto: Json = {
        "type": "stdout_contains_auto_detect",
        "value": {
            "command": "head -c 1000000 /dev/zero | tr '\\0' a; echo !",
            "pattern": BACKTRACKS,
            "expected_group": 0,
        },
    }
    fifo = "rm -rf /tmp/ao-usage.json; mkfifo /tmp/ao-usage.json"
    return [
        (case("writing", attack("writing", *FOLDERS)), PASS),
        (case("kernel", attack("kernel")), PASS),
        (case("calls", attack("calls")), PASS),
        (case("network", attack("network"), timeout_seconds=120), PASS),
        (case("forger", attack("forger")), PASS),
        (case("exit-137", "exit 137", {"type": "exit_code", "value": 137}), PASS),
        (case("exit-137-unwanted", "exit 137"), FAIL),
        (case("kills-its-user", "kill -9 -1; exit 5", {"type": "exit_code", "value": 5}), PASS),
        (case("is-killed", "(kill -9 -1) & wait; sleep 30"), CRASH),
        (case("ignores-signals", "trap '' TERM INT HUP QUIT; while :; do sleep 30; done",
              timeout_seconds=1), TIMEOUT),
        (case("stops-itself", "kill -STOP $$", timeout_seconds=1), TIMEOUT),
        (case("daemon", _daemon()), PASS),
        (case("after-daemon", "set -- /proc/[0-9]*; echo $#"), PASS),
        (case("noise", attack("noise"), never), FAIL),
        (case("noise-by-context", f'({attack("noise")}); cat "$AO_AGENTS_DIR"/*/*',
              {"type": "stdout_contains", "value": "HELPFUL"}), PASS),
        (case("line", f"head -c {LINE} /dev/zero | tr '\\0' a", EXIT_0, never), TRUNCATED),
        (case("flood", f"head -c {GIB} /dev/zero | tr '\\0' a", timeout_seconds=300), PASS),
        (case("odd-files", odd_shell, *odd), FAIL),
        (case("loop", "ln -s loop /tmp/loop", {"type": "file_exists", "target": "/tmp/loop"}),
         UNDECIDED),
        (case("sparse", "truncate -s 1073741823 /tmp/huge", EXIT_0,
              {"type": "artifact_contains", "target": "/tmp/huge", "value": "x"}), UNDECIDED),
        (case("usage-fifo", fifo), PASS),
        (case("usage-deep", f"{_nested()} > /tmp/ao-usage.json"), PASS),
        (case("deep", _nested(), EXIT_0, deep), FAIL),
        (case("backtracks", "head -c 1000000 /dev/zero | tr '\\0' a", auto), FAIL),
        (case("last", "echo still here", EXIT_0, {"type": "stdout_contains", "value": "still"}),
         PASS),
    ]  # fmt: skip


def _nested() -> str:
    return f"python3 -c \"print('[' * {DEPTH} + ']' * {DEPTH})\""


def exhaustion() -> list[tuple[Json, Expected]]:
    """Cases that use up what a container has, and what the next ones find."""
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    eater = "import os\nif os.fork() == 0: b = bytearray(500 << 20)\nos.wait()\n"
    scratch = ("/tmp", "$HOME", "/dev/shm")
    return [
        (case("fork-bomb", f"exec python3 -c '{bomb}'", timeout_seconds=2), TIMEOUT),
        (case("after-bomb", "set -- /proc/[0-9]*; echo $#"), PASS),
        (case("eaten-in-a-child", f"exec python3 -c '{eater}'"), OOM),
        (case("after-eater", "true"), PASS),
        (case("bytes", attack("filler", "bytes", *scratch)), PASS),
        (case("inodes", attack("filler", "inodes", "/tmp"), timeout_seconds=120), PASS),
        (case("everything", attack("filler", "both", *scratch), timeout_seconds=120), OOM),
        (case("after-filled", 'find /tmp "$HOME" /dev/shm -mindepth 1 | wc -l; echo > /tmp/x'),
         PASS),
    ]  # fmt: skip


def expected(cases: list[tuple[Json, Expected]]) -> Mapping[str, Expected]:
    """By case id."""
    return {str(item["id"]): outcome for item, outcome in cases}
