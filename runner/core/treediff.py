"""How two manifests of one root differ.

Rows are compared whole, so an attribute can be missed only if it is not recorded. A write that was
reverted leaves its ctime, a replaced file its inode: both are differences here.
"""

from __future__ import annotations

from collections.abc import Iterator

from runner.core.treehash import Kind, TreeRecord, content_digest
from runner.model.tree import (
    ATTRIBUTES,
    Change,
    ChangeKind,
    TreeDifference,
    TreeEntry,
    TreeManifest,
    TreeSummary,
    path_text,
    unpack_row,
)

DEFAULT_LIMIT = 200


def differences(
    before: TreeManifest, after: TreeManifest, *, limit: int = DEFAULT_LIMIT
) -> TreeDifference:
    """Everything that differs between two manifests of one root.

    Args:
        before: The earlier manifest.
        after: The later one.
        limit: Most changes to list; all are counted.

    Returns:
        Changes by path bytes. Creation of an absent root, or removal of a present one, is one
        change for each entry, the root `.` first.
    """
    total = 0
    listed: list[Change] = []
    for path, old, new in _unequal(before, after):
        total += 1
        if len(listed) < limit:
            listed.append(_change(path, old, new))
    return TreeDifference(total=total, changes=tuple(listed))


def summarise(manifest: TreeManifest) -> TreeSummary:
    """Counts and digests of a manifest.

    The content digest covers files, directories and links; the witness digest covers all entries.
    """
    records = []
    size = 0
    for entry in manifest.entries():
        if entry.kind == "f":
            size += entry.size
        if entry.path not in (b"", b".") and entry.kind in ("f", "d", "l"):
            records.append(_record(entry))
    return TreeSummary(
        root=path_text(manifest.root),
        present=manifest.present,
        entries=len(manifest),
        size=size,
        content_sha256=content_digest(records),
        witness_sha256=manifest.sha256,
    )


def _record(entry: TreeEntry) -> TreeRecord:
    executable = entry.kind == "f" and bool(entry.mode & 0o100)
    kind: Kind = "f" if entry.kind == "f" else "d" if entry.kind == "d" else "l"
    return TreeRecord(entry.path, kind, executable, entry.content.hex())


def _unequal(
    before: TreeManifest, after: TreeManifest
) -> Iterator[tuple[bytes, bytes | None, bytes | None]]:
    """Merge two sorted manifests; yield the paths whose rows are not equal."""
    left, right = 0, 0
    while left < len(before.paths) or right < len(after.paths):
        old = before.paths[left] if left < len(before.paths) else None
        new = after.paths[right] if right < len(after.paths) else None
        if old is not None and (new is None or old < new):
            yield old, before.rows[left], None
            left += 1
        elif new is not None and (old is None or new < old):
            yield new, None, after.rows[right]
            right += 1
        elif old is not None:
            if before.rows[left] != after.rows[right]:
                yield old, before.rows[left], after.rows[right]
            left += 1
            right += 1


def _change(path: bytes, old: bytes | None, new: bytes | None) -> Change:
    kind: ChangeKind
    attributes: tuple[str, ...] = ()
    if old is None:
        kind = "added"
    elif new is None:
        kind = "removed"
    else:
        one, other = unpack_row(path, old), unpack_row(path, new)
        attributes = tuple(
            name for field, name in ATTRIBUTES if getattr(one, field) != getattr(other, field)
        )
        recreated = {"type", "device", "inode"} & set(attributes)
        kind = "recreated" if recreated else "modified"
    return Change(path=path_text(path), kind=kind, attributes=attributes)
