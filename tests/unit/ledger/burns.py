"""Burns to ask for, and processes that make them."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from runner.errors import AoEvalError
from runner.ledger import jsonfile
from runner.model.burn import Burn

NOW = 1_760_000_000_000
REFUSED = 6

BURN = """
import os, signal, sys
from pathlib import Path
from runner.ledger.jsonfile import burn
from tests.unit.ledger.burns import NOW, asked

def step(name):
    if name == sys.argv[3]:
        os.kill(os.getpid(), signal.SIGKILL)

print(burn(Path(sys.argv[1]), asked(sys.argv[2]), now_ms=NOW, step=step).head.model_dump_json())
"""


def sha(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


def asked(run_id: str, score: str = "", *, suite: str = "s", gt: str = "gt-1") -> Burn:
    """A burn; without a score named, every run id has one of its own."""
    told = score or run_id
    return Burn(
        suite_ref=suite,
        gt_version=gt,
        run_id=run_id,
        score_sha256=sha(told),
        grade_sha256=sha(f"{told} {suite} {gt} {run_id}"),
    )


def ledger(folder: Path, budget: int = 3, *run_ids: str) -> Path:
    path = folder / "burn.json"
    jsonfile.init(path, budget=budget)
    for run_id in run_ids:
        jsonfile.burn(path, asked(run_id), now_ms=NOW)
    return path


def contents(path: Path) -> dict[str, bytes]:
    """Everything beside a ledger, the ledger included."""
    return {item.name: item.read_bytes() for item in path.parent.iterdir() if item.is_file()}


def killed_at(step: str, path: Path, run_id: str) -> int:
    """Exit status of a program that kills itself at a step of a burn; -9 when it got there."""
    return subprocess.run(
        [sys.executable, "-c", BURN, str(path), run_id, step],
        cwd=Path(__file__).parents[3],
        stdout=subprocess.DEVNULL,
        check=False,
    ).returncode


def in_child(work: Callable[[], None]) -> int:
    """Run in a forked process: 0 done, the exit code of a refusal, or -9 when it killed itself."""
    child = os.fork()
    if child == 0:
        code = 99
        try:
            work()
            code = 0
        except AoEvalError as error:
            code = error.exit_code
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status)


def killer(step: str | None) -> Callable[[str], None]:
    """A step function that kills its process at one step."""

    def kill(name: str) -> None:
        if name == step:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill
