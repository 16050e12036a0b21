"""Witness manifests: what a live root looks like, entry by entry, nothing skipped.

Everything is read through directory descriptors without following links, so a swap during the walk
can make it fail but not look elsewhere. What cannot be read ends the walk with an error: a witness
with holes proves nothing. Every manifest hashes every file again; nothing is taken over from an
earlier one, so the claim rests on bytes and not on time stamps.
"""

from __future__ import annotations

import errno
import hashlib
import os
import stat
import struct
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from runner.errors import IntegrityError
from runner.model.tree import TreeManifest, pack_row, path_text

MAX_DEPTH: Final = 256
"""Directory levels; one descriptor is held for each."""

_TRIES: Final = 3
_CHUNK: Final = 1 << 20
_KINDS: Final = {
    stat.S_IFREG: b"f",
    stat.S_IFDIR: b"d",
    stat.S_IFLNK: b"l",
    stat.S_IFIFO: b"p",
    stat.S_IFSOCK: b"s",
    stat.S_IFCHR: b"c",
    stat.S_IFBLK: b"b",
}
_MOVED: Final = frozenset({errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ESTALE, errno.ENXIO})
_NO_XATTRS: Final = frozenset({errno.ENOTSUP, errno.EOPNOTSUPP})
# The type was looked at before, but O_NONBLOCK keeps a FIFO swapped in since then from hanging us.
_FILE_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_LENGTH: Final = struct.Struct(">I").pack
_ENCODING: Final = sys.getfilesystemencoding(), sys.getfilesystemencodeerrors()

_Rows = list[tuple[bytes, bytes]]


def take_manifest(root: Path) -> TreeManifest:
    """Manifest of one root.

    Args:
        root: Absolute path. Links on the way to it are followed; when it is a link itself, the
            link is an entry too (empty path), so pointing it elsewhere is seen.

    Returns:
        All entries below the root and the root itself (path `.`). An absent root is a manifest
        with `present=False`. Submounts are walked: they are live state too.

    Raises:
        IntegrityError: An entry cannot be read, keeps changing while it is read, or lies deeper
            than `MAX_DEPTH`. The message names it.
    """
    tries = 0
    while True:
        try:
            return _take(root)
        except _Changed as change:
            tries += 1
            if tries == _TRIES:
                raise IntegrityError(
                    f"live state keeps changing while it is read: {path_text(change.path)}",
                    where=path_text(change.root),
                    remedy="stop whatever writes there and run again",
                ) from change


class _Changed(Exception):
    """An entry was not the same at the end of reading it as at the beginning."""

    def __init__(self, root: bytes, path: bytes) -> None:
        self.root = root
        self.path = path
        super().__init__(path)


def _take(root: Path) -> TreeManifest:
    real = os.fsencode(os.path.realpath(root))
    rows: _Rows = []
    _link_row(os.fsencode(root), rows)
    info = _stat(real)
    present = info is not None
    if info is not None:
        parent = _open_parent(real)
        try:
            if stat.S_ISDIR(info.st_mode):
                _Walk(real, rows).run(parent, os.path.basename(real) or b".")
            else:
                rows.append((b".", _leaf(parent, real, info)))
        finally:
            os.close(parent)
    rows.sort()
    digest = hashlib.sha256(b"ao-witness-v1\0" + (b"+" if present else b"-"))
    for path, row in rows:
        digest.update(b"%b%b%b%b" % (_LENGTH(len(path)), path, _LENGTH(len(row)), row))
    return TreeManifest(
        root=real,
        present=present,
        paths=tuple([path for path, _ in rows]),
        rows=tuple([row for _, row in rows]),
        sha256=digest.hexdigest(),
    )


def _stat(path: bytes) -> os.stat_result | None:
    try:
        return os.lstat(path)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as error:
        raise _unreadable(path, b".", error) from error


def _open_parent(real: bytes) -> int:
    try:
        return os.open(os.path.dirname(real), os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise _unreadable(real, b".", error) from error


def _link_row(named: bytes, rows: _Rows) -> None:
    info = _stat(named)
    if info is None or not stat.S_ISLNK(info.st_mode):
        return
    try:
        target = os.readlink(named)
    except OSError as error:
        raise _unreadable(named, b".", error) from error
    rows.append((b"", _pack(b"l", info, hashlib.sha256(target).digest(), b"")))


def _leaf(parent: int, real: bytes, info: os.stat_result) -> bytes:
    """The row of a root that is no directory."""
    try:
        return _row(parent, os.path.basename(real), info, real, b".")
    except OSError as error:
        raise _unreadable(real, b".", error) from error


@dataclass(slots=True)
class _Walk:
    """A depth-first walk in progress.

    Attributes:
        root: For messages.
        rows: What was recorded.
        stack: For each level: descriptor, prefix of its entries, subdirectories still to visit.
    """

    root: bytes
    rows: _Rows
    stack: list[tuple[int, bytes, list[bytes]]] = field(default_factory=list)

    def run(self, parent: int, name: bytes) -> None:
        """Walk the directory `name` of `parent`."""
        try:
            self._enter(parent, name, b".")
            while self.stack:
                descriptor, prefix, pending = self.stack[-1]
                if not pending:
                    self.stack.pop()
                    os.close(descriptor)
                    continue
                child = pending.pop()
                if len(self.stack) >= MAX_DEPTH:
                    raise IntegrityError(
                        f"deeper than {MAX_DEPTH} directories: {path_text(prefix + child)}",
                        where=path_text(self.root),
                        remedy="flatten the live tree",
                    )
                self._enter(descriptor, child, prefix + child)
        finally:
            for descriptor, _, _ in self.stack:
                os.close(descriptor)

    def _enter(self, parent: int, name: bytes, path: bytes) -> None:
        """Record a directory and its entries that are none; push it on the stack."""
        try:
            descriptor = _open(name, _DIRECTORY_FLAGS, parent)
        except OSError as error:
            raise _unreadable(self.root, path, error) from error
        pending: list[bytes] = []
        prefix = b"" if path == b"." else path + b"/"
        self.stack.append((descriptor, prefix, pending))
        current = path
        try:
            before = os.fstat(descriptor)
            with os.scandir(descriptor) as listing:
                children = list(listing)
            self.rows.append((path, _pack(b"d", before, b"", _xattrs(descriptor))))
            for entry in children:
                # The descriptor makes scandir yield text; surrogateescape gives the bytes back.
                child = entry.name.encode(*_ENCODING)
                current = prefix + child
                if entry.is_file(follow_symlinks=False):
                    row = _file_row(descriptor, child, self.root, current)
                    self.rows.append((current, row))
                elif entry.is_dir(follow_symlinks=False):
                    pending.append(child)
                else:
                    info = os.stat(child, dir_fd=descriptor, follow_symlinks=False)
                    self.rows.append((current, _row(descriptor, child, info, self.root, current)))
            current = path
            if os.fstat(descriptor).st_ctime_ns != before.st_ctime_ns:
                raise _Changed(self.root, path)
        except OSError as error:
            raise _unreadable(self.root, current, error) from error


def _row(parent: int, name: bytes, info: os.stat_result, root: bytes, path: bytes) -> bytes:
    kind = _KINDS[stat.S_IFMT(info.st_mode)]
    if kind == b"d":
        # It was no directory when it was listed.
        raise _Changed(root, path)
    if kind == b"f":
        return _file_row(parent, name, root, path)
    if kind == b"l":
        content = hashlib.sha256(os.readlink(name, dir_fd=parent)).digest()
    elif kind in (b"c", b"b"):
        content = hashlib.sha256(b"%d" % info.st_rdev).digest()
    else:
        content = b""
    # Extended attributes of these cannot be read through a descriptor without opening them (which
    # a FIFO or device must not be). Setting one changes the ctime, which is recorded.
    return _pack(kind, info, content, b"")


def _file_row(parent: int, name: bytes, root: bytes, path: bytes) -> bytes:
    for _ in range(_TRIES):
        descriptor = _open(name, _FILE_FLAGS, parent)
        try:
            before = os.fstat(descriptor)
            if not stat.S_ISREG(before.st_mode):
                raise _Changed(root, path)
            content = _digest(descriptor, before.st_size)
            xattrs = _xattrs(descriptor)
            after = os.fstat(descriptor)
        finally:
            os.close(descriptor)
        if (
            before.st_ctime_ns == after.st_ctime_ns
            and before.st_mtime_ns == after.st_mtime_ns
            and before.st_size == after.st_size
        ):
            return _pack(b"f", before, content, xattrs)
    raise _Changed(root, path)


def _digest(descriptor: int, size: int) -> bytes:
    if size < _CHUNK:
        # One byte more than it should have: end of file in one call.
        data = os.read(descriptor, size + 1)
        if len(data) == size:
            return hashlib.sha256(data).digest()
        os.lseek(descriptor, 0, os.SEEK_SET)
    digest = hashlib.sha256()
    buffer = bytearray(_CHUNK)
    view = memoryview(buffer)
    while count := os.readv(descriptor, [buffer]):
        digest.update(view[:count])
    return digest.digest()


def _xattrs(descriptor: int) -> bytes:
    try:
        names = os.listxattr(descriptor)
    except OSError as error:
        if error.errno in _NO_XATTRS:
            return b""
        raise
    if not names:
        return b""
    digest = hashlib.sha256()
    for name in sorted(os.fsencode(name) for name in names):
        value = os.getxattr(descriptor, name)
        digest.update(b"%d:%s%d:%s" % (len(name), name, len(value), value))
    return digest.digest()


def _open(name: bytes, flags: int, parent: int) -> int:
    """Open without touching the access time where we may (owner or root)."""
    try:
        return os.open(name, flags | os.O_NOATIME, dir_fd=parent)
    except PermissionError:
        return os.open(name, flags, dir_fd=parent)


def _pack(kind: bytes, info: os.stat_result, content: bytes, xattrs: bytes) -> bytes:
    return pack_row(
        kind,
        (
            info.st_mode,
            info.st_uid,
            info.st_gid,
            info.st_size,
            info.st_dev,
            info.st_ino,
            info.st_mtime_ns,
            info.st_ctime_ns,
            info.st_nlink,
        ),
        content,
        xattrs,
    )


def _unreadable(root: bytes, path: bytes, error: OSError) -> IntegrityError | _Changed:
    if error.errno in _MOVED:
        return _Changed(root, path)
    return IntegrityError(
        f"live state cannot be witnessed: {path_text(path)}: {error.strerror}",
        where=path_text(root),
        remedy="make it readable, or run as its owner",
    )
