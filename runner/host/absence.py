"""Absence: no mount source of a container reaches a live root.

Asked three ways, because each alone can be fooled: by resolved path, by device:inode on the way up
from either side, and by the place inside the file system, which sees through bind mounts.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

from runner.host.mounts import MountPoint, mounts_below, place, read_mounts, within
from runner.model.tree import Node

Reach = Literal["equals", "contains", "inside"]


def reaches(
    mount_source: Path, live_root: Path, *, mounts: tuple[MountPoint, ...] | None = None
) -> Reach | None:
    """How a mount source reaches a live root.

    Args:
        mount_source: Host path that a container is given.
        live_root: A live root; need not exist.
        mounts: Mount table; read when not given.

    Returns:
        `equals`, `contains` (the source holds the live root, or a part of it by a mount below the
        source), `inside` (the source lies in the live root), or None when it does not reach it.

    Raises:
        IntegrityError: The mount table cannot be read.
        OSError: A part of either path cannot be looked at; the answer is not known.
    """
    source = os.fsencode(os.path.realpath(mount_source))
    live = os.fsencode(os.path.realpath(live_root))
    table = read_mounts() if mounts is None else mounts
    return _by_path(source, live) or _by_node(source, live) or _by_place(source, live, table)


def _by_path(source: bytes, live: bytes) -> Reach | None:
    if source == live:
        return "equals"
    if within(live, source):
        return "contains"
    return "inside" if within(source, live) else None


def _by_node(source: bytes, live: bytes) -> Reach | None:
    source_node, live_node = _node(source), _node(live)
    if source_node is not None and source_node == live_node:
        return "equals"
    if source_node is not None and source_node in _ancestors(live):
        return "contains"
    return "inside" if live_node is not None and live_node in _ancestors(source) else None


def _by_place(source: bytes, live: bytes, table: tuple[MountPoint, ...]) -> Reach | None:
    source_place, live_place = place(source, table), place(live, table)
    if source_place is not None and live_place is not None and source_place[0] == live_place[0]:
        relation = _by_path(source_place[1], live_place[1])
        if relation is not None:
            return relation
    # Binds are recursive: whatever is mounted below the source comes along, and whatever is
    # mounted below a live root is live state.
    for mine in _mounted(source, table):
        for theirs in (live_place, *_mounted(live, table)):
            if theirs is not None and _touch(mine, theirs):
                return "contains"
    for theirs in _mounted(live, table):
        if source_place is not None and _touch(source_place, theirs):
            return "inside" if within(source_place[1], theirs[1]) else "contains"
    return None


def _mounted(root: bytes, table: tuple[MountPoint, ...]) -> list[tuple[str, bytes]]:
    return [(mount.device, mount.source) for _, mount in mounts_below(root, table)]


def _touch(one: tuple[str, bytes], other: tuple[str, bytes]) -> bool:
    return one[0] == other[0] and (within(one[1], other[1]) or within(other[1], one[1]))


def _node(path: bytes) -> Node | None:
    try:
        found = os.stat(path, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_dev, found.st_ino


def _ancestors(path: bytes) -> Iterator[Node]:
    while path != b"/":
        path = os.path.dirname(path)
        node = _node(path)
        if node is not None:
            yield node
