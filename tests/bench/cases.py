"""1,000 cases in two legs against two bare loops of the same commands at once."""

from __future__ import annotations

import subprocess
import sys
import time

from tests.bench import subject

CASES = 1000
_LOOP = f"""
import subprocess
for number in range({CASES}):
    subprocess.run(["sh", "-c", f"echo case-{{number}}"], stdout=subprocess.PIPE, check=True)
"""


def floor() -> float:
    """Two loops at once, each starting every command and reading its output."""
    started = time.monotonic()
    loops = [subprocess.Popen([sys.executable, "-c", _LOOP]) for _ in range(2)]
    if any(loop.wait() for loop in loops):
        raise RuntimeError("a bare loop failed")
    return time.monotonic() - started


def pair() -> tuple[float, float]:
    """Seconds of the subject and of the floor."""
    low = floor()
    return subject.run(CASES)[0], low
