"""The whole command, from shell to exit, on a generated suite."""

from __future__ import annotations

import functools
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

COMMAND = (sys.executable, "-m", "runner")
_NO_BYTECODE = "PYTHONDONTWRITEBYTECODE"


@functools.cache
def folder() -> Path:
    """A folder for generated suites, removed by nobody: the system's temporary folder."""
    return Path(tempfile.mkdtemp(prefix="ao-bench-"))


@functools.cache
def suite_of(cases: int) -> Path:
    """A suite of so many `echo` cases, with its two roots."""
    top = folder() / f"echo-{cases}"
    document = {
        "schema_version": 1,
        "id": f"echo-{cases}",
        "name": "echo",
        "visibility": "public_canary",
        "tier": "deterministic",
        "scoring": {"dimensions": [{"name": "correctness", "weight": 1}]},
        "baseline_policy": {"mode": "none"},
        "cases": [
            {
                "id": f"case-{number}",
                "title": "echo",
                "kind": "command",
                "objective": "echo",
                "inputs": {"shell": f"echo case-{number}"},
                "expectations": [
                    {"type": "exit_code", "value": 0},
                    {"type": "stdout_contains", "value": f"case-{number}"},
                ],
            }
            for number in range(cases)
        ],
    }
    for side in ("context-off", "context-on"):
        root = top / "fixtures" / "echo" / side / "agents"
        root.mkdir(parents=True)
        (root / "note.md").write_text(side)
    suite = top / "echo.json"
    suite.write_text(json.dumps(document))
    return suite


def _environment() -> dict[str, str]:
    """That of a user whose command is byte-compiled, as an installed one is.

    With PYTHONDONTWRITEBYTECODE, as some shells have it, every start would compile the whole source
    tree again: 0.5 s that no installed command takes.
    """
    kept = {name: value for name, value in os.environ.items() if name != _NO_BYTECODE}
    return {
        **kept,
        "PYTHONPATH": str(Path(__file__).parents[2]),
        "PYTHONPYCACHEPREFIX": str(folder() / "bytecode"),
    }


def run(cases: int, *, controls: str = "none") -> tuple[float, int]:
    """Run the whole command once.

    Args:
        cases: Size of the suite.
        controls: `none` is what the floors are compared with: two legs.

    Returns:
        Wall seconds, and peak resident memory of the largest child so far in KiB.
    """
    options = ("--controls", controls, "--out-dir", str(folder() / "runs"))
    started = time.monotonic()
    done = subprocess.run(
        [*COMMAND, "ab", str(suite_of(cases)), "-q", "--json", *options],
        stdout=subprocess.PIPE,
        cwd=folder(),
        env=_environment(),
        check=True,
    )
    seconds = time.monotonic() - started
    card = json.loads(done.stdout)
    if card["pairing"]["valid_pairs"] != cases or card["aggregate_delta"] != 0:
        raise RuntimeError("the benchmark measured something else than it says")
    return seconds, resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss


def alone(cases: int) -> tuple[float, int]:
    """Like `run`, in a process of its own, so that its peak memory is its own."""
    program = "from tests.bench import subject; print(*subject.run(int(__import__('sys').argv[1])))"
    done = subprocess.run(
        [sys.executable, "-c", program, str(cases)],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        cwd=Path(__file__).parents[2],
    )
    seconds, memory = done.stdout.split()
    return float(seconds), int(memory)
