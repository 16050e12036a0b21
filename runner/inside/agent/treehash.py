"""Digests of streams, files and trees; `runner.core.treehash` is the reference for trees."""

from __future__ import annotations

import errno
import os

try:
    from _sha256 import sha256 as small_sha256  # type: ignore[import-not-found]
except ImportError:  # Python >= 3.12
    try:
        from _sha2 import sha256 as small_sha256  # type: ignore[import-not-found]
    except ImportError:
        from hashlib import sha256 as small_sha256

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .link import Link

READ_BYTES = 64 << 10
SMALL_HASH = 32 << 10
S_IFMT, S_IFREG = 0o170000, 0o100000


def small_digest(data: bytes) -> str:
    """SHA-256 of little data, hexadecimal."""
    text: str = small_sha256(data).hexdigest()
    return text


class Digest:
    """SHA-256 of a stream: the small module's for little data, OpenSSL's for much."""

    __slots__ = ("_large", "_parts", "_size")

    def __init__(self) -> None:
        self._large: Any = None
        self._parts: list[bytes] = []
        self._size = 0

    def update(self, data: bytes) -> None:
        """Add bytes."""
        if self._large is None:
            self._parts.append(data)
            self._size += len(data)
            if self._size <= SMALL_HASH:
                return
            import hashlib  # 5 ms, and eight times as fast

            self._large = hashlib.sha256()
            data = b"".join(self._parts)
            self._parts = []
        self._large.update(data)

    def hex(self) -> str:
        """Hexadecimal digest of all bytes so far."""
        if self._large is None:
            return small_digest(b"".join(self._parts))
        text: str = self._large.hexdigest()
        return text


def tree_digest(root: bytes, link: Link, *, leave_out: bytes = b"") -> str:
    """Content digest `ao-tree-v1` of the tree below `root`; `runner.core.treehash` defines it.

    Args:
        root: Folder; it has no record of its own.
        link: Watched meanwhile.
        leave_out: Path of an entry below `root` that does not count.

    Raises:
        OSError: Something cannot be read, or is neither file, folder nor link.
    """
    records = []
    waiting = [b""]
    while waiting:
        folder = waiting.pop()
        with os.scandir(root + b"/" + folder) as entries:
            for entry in entries:
                link.check()
                path = folder + entry.name
                if path == leave_out:
                    continue
                kind, execute, content = b"f", b"-", b""
                if entry.is_symlink():
                    kind = b"l"
                    content = small_digest(os.readlink(entry.path)).encode()
                elif entry.is_dir(follow_symlinks=False):
                    kind = b"d"
                    waiting.append(path + b"/")
                else:
                    content, executable = file_digest(entry.path)
                    execute = b"x" if executable else b"-"
                head = kind + execute + len(path).to_bytes(4, "big")
                records.append((path, head, content))
    total = Digest()
    total.update(b"ao-tree-v1\0")
    for path, head, content in sorted(records):
        total.update(head + path + content)
    return total.hex()


def file_digest(path: bytes) -> tuple[bytes, bool]:
    """(hexadecimal digest, owner may execute) of a regular file; OSError for anything else."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        mode = os.fstat(fd).st_mode
        if mode & S_IFMT != S_IFREG:
            raise OSError(errno.EINVAL, "not a regular file")
        digest = Digest()
        while True:
            data = os.read(fd, READ_BYTES)
            if not data:
                return digest.hex().encode(), bool(mode & 0o100)
            digest.update(data)
    finally:
        os.close(fd)
