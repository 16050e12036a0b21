"""Trees: what was staged, what a live root looked like, how two looks differ."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, NamedTuple

from pydantic import Field

from runner.model.base import Items, Sha256, Value

Count = Annotated[int, Field(ge=0)]

Node = tuple[int, int]
"""Device and inode: the identity of a file whatever its name."""

_ESCAPED: Final = re.compile(r"(\\\\|\\x[0-9a-f]{2})")

ChangeKind = Literal["added", "removed", "modified", "recreated"]


def path_text(raw: bytes) -> str:
    r"""A path of any bytes as one line of valid Unicode, reversibly.

    Backslash becomes two of them, bytes that are not UTF-8 and control characters become `\xNN`.
    JSON has no lone surrogates, and a terminal must never be written raw.

    Args:
        raw: Path bytes.
    """
    text = raw.replace(b"\\", b"\\\\").decode("utf-8", "backslashreplace")
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else "".join(f"\\x{byte:02x}" for byte in char.encode("utf-8"))
        for char in text
    )


def path_bytes(text: str) -> bytes:
    """The path that `path_text` wrote.

    Raises:
        ValueError: It is no such text: a backslash that begins nothing.
    """
    parts = _ESCAPED.split(text)
    raw = [parts[0].encode()]
    for escape, plain in zip(parts[1::2], parts[2::2], strict=True):
        raw.append(b"\\" if escape == "\\\\" else bytes.fromhex(escape[2:]))
        raw.append(plain.encode())
    if any(b"\\" in plain for plain in raw[::2]):
        raise ValueError(f"not an escaped path: {text!r}")
    return b"".join(raw)


class Limits(Value):
    """Bounds of what may be staged. A tree beyond one of them is refused, never cut."""

    entries: Annotated[int, Field(gt=0)] = 100_000
    """Files, directories and links below the root."""
    size: Annotated[int, Field(gt=0)] = 1 << 30
    """Bytes of regular files together; the apparent size counts, so sparse files do too."""
    depth: Annotated[int, Field(gt=0)] = 64
    """Components of a path below the root."""


class Staged(Value):
    """A staged tree."""

    sha256: Sha256
    """Content digest (`core.treehash`) of the bytes that were copied."""
    entries: Count
    size: Count
    """Bytes of regular files."""


class StagedWorkspace(Staged):
    """The staged view of a repository."""

    excluded: Count
    """Listed entries that are absent on purpose."""
    not_copied: Count
    """Listed entries that are gone, or are neither file, directory nor link (nested repositories,
    FIFOs, sockets)."""
    skipped_links: Items[str]
    """Links that leave the tree, by path, the first 100 of them; they are not copied."""
    skipped_link_count: Count
    listed_by: Literal["git", "walk"]


class LiveRoot(Value):
    """One directory of live state."""

    path: str
    """Absolute, as it was named; may be or lie below a symbolic link."""
    real: str
    """The same with every link resolved."""
    origins: Items[str]
    """Why it is watched: `suite`, `cwd`, `AO_AGENTS_DIR`, `AO_HOME`, `option`, `home`, ..."""
    home: bool
    """Only the home directory's `.agents`: a change is fatal in strict mode only."""


class LiveRoots(Value):
    """Every live root of a run, without duplicates."""

    roots: Items[LiveRoot]


class TreeEntry(NamedTuple):
    """One entry of a manifest, decoded. Times in nanoseconds since 1970.

    Attributes:
        path: Bytes relative to the root; `.` is the root, empty the link that named the root.
        kind: `f`, `d`, `l`, or `p` (FIFO), `s` (socket), `c`, `b` (devices).
        content: SHA-256 of content, link target or device number; empty for a directory.
        xattrs: SHA-256 over the sorted extended attributes; empty when there are none.
    """

    path: bytes
    kind: str
    mode: int
    uid: int
    gid: int
    size: int
    device: int
    inode: int
    mtime: int
    ctime: int
    nlink: int
    content: bytes
    xattrs: bytes


# One row is a packed record: a manifest of a huge root stays at about 250 bytes an entry, and two
# rows are compared as bytes.
_ROW: Final = struct.Struct("<cBIIIQQQqqQ")
_HAS_CONTENT: Final = 1
_HAS_XATTRS: Final = 2
ATTRIBUTES: Final = (
    ("kind", "type"),
    ("mode", "mode"),
    ("uid", "uid"),
    ("gid", "gid"),
    ("size", "size"),
    ("content", "content"),
    ("device", "device"),
    ("inode", "inode"),
    ("mtime", "mtime"),
    ("ctime", "ctime"),
    ("nlink", "nlink"),
    ("xattrs", "xattrs"),
)
"""Field of `TreeEntry` -> name of the attribute in a difference."""


def pack_row(
    kind: bytes,
    numbers: tuple[int, int, int, int, int, int, int, int, int],
    content: bytes,
    xattrs: bytes,
) -> bytes:
    """One manifest row.

    Args:
        kind: Type byte of `TreeEntry.kind`.
        numbers: mode, uid, gid, size, device, inode, mtime, ctime, nlink.
        content: 32 bytes or none.
        xattrs: 32 bytes or none.
    """
    flags = (_HAS_CONTENT if content else 0) | (_HAS_XATTRS if xattrs else 0)
    return _ROW.pack(kind, flags, *numbers) + content + xattrs


def unpack_row(path: bytes, row: bytes) -> TreeEntry:
    """The entry that `pack_row` packed."""
    kind, flags, mode, uid, gid, size, device, inode, mtime, ctime, nlink = _ROW.unpack_from(row)
    start = _ROW.size
    content = row[start : start + 32] if flags & _HAS_CONTENT else b""
    xattrs = row[start + len(content) :] if flags & _HAS_XATTRS else b""
    return TreeEntry(
        path, kind.decode("ascii"), mode, uid, gid, size, device, inode, mtime, ctime, nlink,
        content, xattrs,
    )  # fmt: skip


@dataclass(frozen=True, slots=True)
class TreeManifest:
    """What a root looked like at one time. Built by `host.witness`.

    Attributes:
        root: Absolute path, links resolved.
        present: False when there was nothing at that path.
        paths: Entry paths, sorted by bytes.
        rows: One packed row for each path.
        sha256: Witness digest over paths and rows: host-local, covers owner, mode, inode, times.
    """

    root: bytes
    present: bool
    paths: tuple[bytes, ...]
    rows: tuple[bytes, ...]
    sha256: str

    def __len__(self) -> int:
        return len(self.paths)

    def entries(self) -> Iterator[TreeEntry]:
        """All entries, decoded one by one."""
        return map(unpack_row, self.paths, self.rows)

    def nodes(self) -> frozenset[Node]:
        """Device and inode of every entry; none of them may be staged under any name."""
        return frozenset((entry.device, entry.inode) for entry in self.entries())


class TreeSummary(Value):
    """A manifest in a few numbers, for evidence."""

    root: str
    present: bool
    entries: Count
    size: Count
    """Bytes of regular files."""
    content_sha256: Sha256
    """Portable: names, types, exec bits, contents, link targets (`core.treehash`)."""
    witness_sha256: Sha256
    """Host-local: every attribute of every entry."""


class Change(Value):
    """One entry that differs between two manifests."""

    path: str
    """Below the root, as `path_text` writes it; `.` is the root itself."""
    kind: ChangeKind
    """`recreated`: another type or inode under the same name."""
    attributes: Items[str]
    """What differs; empty for added and removed entries."""


class TreeDifference(Value):
    """How two manifests of one root differ."""

    total: Count
    changes: Items[Change]
    """The first ones by path; fewer than `total` when the list was cut."""
