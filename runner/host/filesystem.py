"""Which file system a path lies on."""

from __future__ import annotations

import os
from pathlib import Path


def filesystem_type(path: Path) -> str:
    """Type name of the file system that holds a path, as `/proc/self/mounts` has it.

    Returns:
        For instance `ext4`, `overlay`; `unknown` when it cannot be told.
    """
    real = os.path.realpath(path)
    best, kind = "", "unknown"
    try:
        lines = Path("/proc/self/mounts").read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return kind
    for line in lines:
        fields = line.split(" ")
        target = fields[1].replace("\\040", " ")
        inside = real == target or real.startswith(target.rstrip("/") + "/")
        # Later mounts cover earlier ones of the same length.
        if inside and len(target) >= len(best):
            best, kind = target, fields[2]
    return kind
