"""The mount table of this process, as far as staging and absence need it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runner.errors import IntegrityError

_OCTAL: Final = re.compile(rb"\\([0-7]{3})")


@dataclass(frozen=True, slots=True)
class MountPoint:
    """One line of `/proc/self/mountinfo`.

    Attributes:
        device: `major:minor` of the file system.
        source: Path inside that file system which forms the root of this mount.
        target: Where it is mounted, seen by this process.
    """

    device: str
    source: bytes
    target: bytes


def read_mounts(table: Path = Path("/proc/self/mountinfo")) -> tuple[MountPoint, ...]:
    """The mounts of this process, in mount order.

    Raises:
        IntegrityError: The table cannot be read, so submounts cannot be excluded.
    """
    try:
        lines = table.read_bytes().splitlines()
    except OSError as error:
        raise IntegrityError(
            f"the mount table cannot be read ({error.strerror})",
            where=str(table),
            remedy="mount /proc",
        ) from error
    return tuple(parse_mount(line) for line in lines if line)


def parse_mount(line: bytes) -> MountPoint:
    """One line of the table; blanks and newlines in paths are octal escapes there."""
    fields = line.split(b" ", 5)
    return MountPoint(fields[2].decode("ascii"), _unescape(fields[3]), _unescape(fields[4]))


def mounts_below(root: bytes, mounts: tuple[MountPoint, ...]) -> list[tuple[bytes, MountPoint]]:
    """Mounts strictly below a directory, with their path relative to it.

    Args:
        root: Absolute path, links resolved.
        mounts: The table.
    """
    prefix = root.rstrip(b"/") + b"/"
    return [
        (mount.target[len(prefix) :], mount)
        for mount in mounts
        if mount.target.startswith(prefix) and len(mount.target) > len(prefix)
    ]


def place(path: bytes, mounts: tuple[MountPoint, ...]) -> tuple[str, bytes] | None:
    """Where a path lies in its file system, so that two names of one directory are seen as one.

    Args:
        path: Absolute path, links resolved; need not exist.
        mounts: The table.

    Returns:
        Device and path inside that file system; None when no mount holds the path.
    """
    best: MountPoint | None = None
    for mount in mounts:
        # The last one wins among equals: a later mount hides the earlier one.
        if within(path, mount.target) and (best is None or len(mount.target) >= len(best.target)):
            best = mount
    if best is None:
        return None
    rest = path[len(best.target.rstrip(b"/")) :].strip(b"/")
    source = best.source.rstrip(b"/")
    return best.device, (source + b"/" + rest if rest else source or b"/")


def within(path: bytes, root: bytes) -> bool:
    """True when `path` is `root` or lies below it; both absolute and normalised."""
    return path == root or path.startswith(root.rstrip(b"/") + b"/")


def _unescape(field: bytes) -> bytes:
    return _OCTAL.sub(lambda match: bytes([int(match.group(1), 8)]), field)
