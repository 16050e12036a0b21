"""Watches and decoys as the tests of the live proof need them: all detectors fire."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

from runner.core.livewatch import Watching
from runner.model.livewatch import Action, Decoy, Process, Touch, WatchMethod, WatchReport
from runner.model.tree import TreeManifest, pack_row

RUNNER, PLANTER, OUTSIDER, WORKER = 100, 200, 300, 400
"""Process ids."""

LEG, FOREIGN = "a" * 64, "f" * 64
"""Container ids: one of this run, one of somebody else's."""

SINCE = 1_000
PLACE = b"/tmp/decoy"


def row(kind: bytes = b"f", **numbers: int) -> bytes:
    """A manifest row; `content` tells contents apart."""
    values = {
        "mode": 0o644, "uid": 0, "gid": 0, "size": 6, "device": 1, "inode": 11, "mtime": 3,
        "ctime": 7, "nlink": 1,
    } | numbers  # fmt: skip
    content = hashlib.sha256(b"%d" % values.pop("content", 0)).digest()
    m, u, g, s, d, i, t, c, n = values.values()
    return pack_row(kind, (m, u, g, s, d, i, t, c, n), content, b"")


def manifest(rows: Mapping[str, bytes], root: bytes = PLACE) -> TreeManifest:
    """A present root with these entries."""
    named = {b".": row(b"d"), **{name.encode(): value for name, value in rows.items()}}
    paths = tuple(sorted(named))
    lines = tuple(named[path] for path in paths)
    digest = hashlib.sha256(repr((paths, lines)).encode()).hexdigest()
    return TreeManifest(root, present=True, paths=paths, rows=lines, sha256=digest)


BEFORE = {name: row() for name in ("content", "mode", "reverted", "replaced")}
AFTER = {
    "content": row(content=1, mtime=4, ctime=8),
    "mode": row(mode=0o600, ctime=8),
    "reverted": row(ctime=8),
    "empty": row(b"d"),
    "replaced": row(inode=12, ctime=8),
}
PLANTED: dict[str, Action] = {
    "content": "modified",
    "mode": "attributes",
    "reverted": "modified",
    "empty": "created",
    "replaced": "moved_to",
}


def process(pid: int = OUTSIDER, *containers: str, **more: Any) -> Process:
    """A program in the runner's process namespace."""
    values: dict[str, Any] = {
        "pid": pid, "parent": 1, "name": b"editor", "program": b"/usr/bin/editor",
        "containers": containers, "same_namespace": not containers,
    }  # fmt: skip
    return Process(**(values | more))


def touch(
    path: bytes,
    *actions: Action,
    writer: Process | None = None,
    last: int = SINCE + 5,
) -> Touch:
    """One event."""
    return Touch(
        path,
        frozenset(actions or ("modified",)),
        last,
        last,
        1,
        None if writer is None else writer.pid,
        writer,
    )


def planted(writer: Process | None) -> tuple[Touch, ...]:
    """What the watch saw of the five mutations."""
    return tuple(
        touch(PLACE + b"/" + name.encode(), action, writer=writer)
        for name, action in PLANTED.items()
    )


def decoy(*roots: str, **more: Any) -> Decoy:
    """A control that fired, for fanotify and inotify alike."""
    values: dict[str, Any] = {
        "path": PLACE,
        "roots": roots,
        "same_filesystem": True,
        "planter": PLANTER,
        "before": manifest(BEFORE),
        "after": manifest(AFTER),
        "touches": planted(process(PLANTER)),
    }
    return Decoy(**(values | more))


def report(*touches: Touch, method: WatchMethod = "fanotify", **more: str) -> WatchReport:
    """What a watch saw."""
    return WatchReport(method, touches, **more)


def watching(
    roots: Iterable[str],
    *touches: Touch,
    seen: WatchReport | None = None,
    decoys: tuple[Decoy, ...] | None = None,
    links: Mapping[str, bytes] | None = None,
) -> Watching:
    """A complete fanotify watch with a control that fired."""
    return Watching(
        report=report(*touches) if seen is None else seen,
        decoys=(decoy(*roots),) if decoys is None else decoys,
        legs=frozenset({LEG}),
        runner=RUNNER,
        since=SINCE,
        links=links or {},
    )
