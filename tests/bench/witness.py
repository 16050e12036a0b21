"""Two manifests of a live tree against one plain hash of it."""

from __future__ import annotations

import functools
import os
import subprocess
import time
from pathlib import Path

from runner.host.witness import take_manifest
from tests.bench import subject

FILES = 20_000
SIZE = 116_000_000


@functools.cache
def tree() -> Path:
    """20,000 files in 200 folders, 116 MB."""
    top = subject.folder() / "live"
    for number in range(FILES):
        folder = top / f"d{number % 200}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"f{number}").write_bytes(os.urandom(SIZE // FILES))
    return top


def floor() -> float:
    """`find -type f -print0 | xargs -0 -P2 sha256sum`."""
    started = time.monotonic()
    subprocess.run(
        "find . -type f -print0 | xargs -0 -P2 sha256sum > /dev/null",
        shell=True,
        cwd=tree(),
        check=True,
    )
    return time.monotonic() - started


def pair() -> tuple[float, float]:
    """Seconds of the subject and of the floor."""
    low = floor()
    started = time.monotonic()
    before, after = take_manifest(tree()), take_manifest(tree())
    seconds = time.monotonic() - started
    if before.sha256 != after.sha256 or len(before) < FILES:
        raise RuntimeError("the witness saw something else than the tree")
    return seconds, low
