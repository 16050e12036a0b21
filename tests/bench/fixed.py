"""A two-case suite against two concurrent `docker run`."""

from __future__ import annotations

import subprocess
import time

from runner.app.images import leg_reference
from tests.bench import subject


def floor() -> float:
    """Two `docker run --rm --network none IMAGE true` at once."""
    started = time.monotonic()
    runs = [
        subprocess.Popen(["docker", "run", "--rm", "--network", "none", leg_reference(), "true"])
        for _ in range(2)
    ]
    if any(run.wait() for run in runs):
        raise RuntimeError("docker run failed")
    return time.monotonic() - started


def pair() -> tuple[float, float]:
    """Seconds of the subject and of the floor."""
    low = floor()
    return subject.run(2)[0], low
