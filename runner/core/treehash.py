"""Content digest of a tree: one algorithm for the host and the inside of a container.

The digest says which names, types, owner-executable bits, contents and link targets a tree has.
Owners, other permission bits and times are no part of it: staging sets those.

Algorithm `ao-tree-v1`, byte for byte::

    digest  = SHA-256( "ao-tree-v1" 0x00  record*  )         lower-case hexadecimal
    record  = kind  exec  length  path  content              ordered by raw path bytes, unsigned
    kind    = "f" regular file | "d" directory | "l" symbolic link           1 byte
    exec    = "x" for a regular file whose owner may execute it, else "-"    1 byte
    length  = number of bytes of path, unsigned 32 bit, big-endian           4 bytes
    path    = relative to the root, "/" between components, no leading "/", no "." or ".."
    content = 64 hexadecimal digits: SHA-256 of the file's bytes, or of the link's target bytes;
              nothing for a directory

The root itself has no record, so an empty tree has the digest of the prefix alone. Every field is
of fixed size or length-prefixed: two different trees never give the same input. Other types
(FIFO, socket, device) have no record; whoever walks a tree refuses them. The agent carries a copy
of this algorithm, since it may import nothing; a test holds the two together.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Final, Literal, NamedTuple

PREFIX: Final = b"ao-tree-v1\0"

Kind = Literal["f", "d", "l"]


class TreeRecord(NamedTuple):
    """One entry of a tree.

    Attributes:
        path: Raw bytes relative to the root.
        kind: `f`, `d` or `l`.
        executable: Owner-executable bit; False for all but regular files.
        sha256: Hexadecimal SHA-256 of content or link target; empty for a directory.
    """

    path: bytes
    kind: Kind
    executable: bool
    sha256: str


def file_record(path: bytes, sha256: str, *, executable: bool) -> TreeRecord:
    """Record of a regular file whose content has the hexadecimal digest `sha256`."""
    return TreeRecord(path, "f", executable, sha256)


def directory_record(path: bytes) -> TreeRecord:
    """Record of a directory."""
    return TreeRecord(path, "d", executable=False, sha256="")


def link_record(path: bytes, target: bytes) -> TreeRecord:
    """Record of a symbolic link with the raw target bytes `target`."""
    return TreeRecord(path, "l", executable=False, sha256=hashlib.sha256(target).hexdigest())


def encode_record(record: TreeRecord) -> bytes:
    """The bytes of one record, as the module's docstring lays them out.

    Raises:
        ValueError: The path is not relative and normalised, or kind and digest do not fit.
    """
    path, kind, executable, sha256 = record
    if not path or b"\0" in path or any(part in (b"", b".", b"..") for part in path.split(b"/")):
        raise ValueError(f"not a normalised relative path: {path!r}")
    if kind not in ("f", "d", "l") or (executable and kind != "f"):
        raise ValueError(f"not a record kind: {kind!r}, executable={executable}")
    if len(sha256) != (0 if kind == "d" else 64) or sha256.strip("0123456789abcdef"):
        raise ValueError(f"digest does not fit kind {kind!r}: {sha256!r}")
    return b"%s%s%s%s%s" % (
        kind.encode("ascii"),
        b"x" if executable else b"-",
        len(path).to_bytes(4, "big"),
        path,
        sha256.encode("ascii"),
    )


def content_digest(records: Iterable[TreeRecord]) -> str:
    """Content digest of a tree.

    Args:
        records: All entries below the root, in any order.

    Returns:
        SHA-256, 64 lower-case hexadecimal digits.

    Raises:
        ValueError: Two records have the same path, or `encode_record` refuses one.
    """
    digest = hashlib.sha256(PREFIX)
    previous: bytes | None = None
    for record in sorted(records, key=lambda item: item.path):
        if record.path == previous:
            raise ValueError(f"two records for one path: {record.path!r}")
        digest.update(encode_record(record))
        previous = record.path
    return digest.hexdigest()
