"""The unprivileged user that containers run as."""

from __future__ import annotations

import os
from pathlib import Path

UNPRIVILEGED = 65532
"""Case user when the invoker is root."""


def case_user() -> tuple[int, int]:
    """Uid and gid: the invoker's, or an unprivileged number when the invoker is root."""
    if os.geteuid() == 0:
        return UNPRIVILEGED, UNPRIVILEGED
    return os.geteuid(), os.getegid()


def keeper() -> tuple[int, int]:
    """Owner of what cases may read and nobody may change: us, who are not the case user as root.

    A read-only mount alone does not do: gVisor of 2024 empties a file on one when its owner opens
    it with O_TRUNC, also on the host, and then says EROFS.
    """
    return os.geteuid(), os.getegid()


def give(path: Path) -> None:
    """Hand a staged entry to the case user; it is theirs already unless we are root."""
    if os.geteuid() == 0:
        os.chown(path, *case_user(), follow_symlinks=False)
