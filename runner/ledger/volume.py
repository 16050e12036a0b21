"""Which file system a folder lies on, and whether its locks can be believed."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from runner.errors import HoldoutRefusal

LOCAL: Final = frozenset({
    "bcachefs", "btrfs", "ext2", "ext3", "ext4", "f2fs", "jfs", "overlay", "ramfs", "reiserfs",
    "tmpfs", "xfs", "zfs",
})  # fmt: skip
"""Types on which flock, fsync and rename are this machine's own. An unknown type is not local."""

_MOUNT_ID: Final = re.compile(rb"^mnt_id:\s*(\d+)$", re.MULTILINE)


def require_local(folder: int, where: str) -> None:
    """Refuse a folder on a network file system, where two machines would not see each other's lock.

    Args:
        folder: Descriptor of the folder.
        where: The ledger's name in messages.

    Raises:
        HoldoutRefusal: It is on a network file system, or it cannot be shown not to be.
    """
    kind = filesystem_of(folder)
    if kind not in LOCAL:
        raise HoldoutRefusal(
            f"it lies on a file system of type {kind}, which is not known to be local, so locks on "
            "it prove nothing",
            where=where,
            remedy="keep the burn ledger on a local one, such as ext4, xfs or btrfs",
        )


def filesystem_of(descriptor: int, proc: Path = Path("/proc/self")) -> str:
    """Type of the file system that holds an open file; `unknown` when it cannot be told.

    The mount is found by its id, not by the path: paths can be covered by later mounts.

    Args:
        descriptor: Any open file or folder.
        proc: What `/proc/self` is.
    """
    try:
        info = (proc / "fdinfo" / str(descriptor)).read_bytes()
        table = (proc / "mountinfo").read_bytes()
    except OSError:
        return "unknown"
    found = _MOUNT_ID.search(info)
    return "unknown" if found is None else _type_of(found.group(1), table)


def _type_of(mount: bytes, table: bytes) -> str:
    for line in table.splitlines():
        left, _, right = line.partition(b" - ")
        if left.split(b" ", 1)[0] == mount and right:
            kind = os.fsdecode(right.split(b" ", 1)[0])
            return kind if kind.isascii() and kind.isprintable() else "unknown"
    return "unknown"
