"""Files that are either the old one or the new one, also after a crash."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path


def write_atomic(path: Path, data: bytes, *, mode: int = 0o644) -> None:
    """Replace a file: temporary file in the same directory, fsync, rename, fsync of the directory.

    Args:
        path: The file; its directory must exist. A symbolic link there is replaced, not followed.
        data: Whole new content.
        mode: Permission bits of the new file.

    Raises:
        OSError: It could not be written; the old file is as it was and no temporary is left.
    """
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        temporary = f".tmp-{secrets.token_hex(8)}"
        try:
            write_new(temporary, data, mode=mode, dir_fd=folder)
            os.rename(temporary, path.name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=folder)
            raise
        os.fsync(folder)
    finally:
        os.close(folder)


def write_new(name: str, data: bytes, *, mode: int, dir_fd: int) -> None:
    """Create a file that must not exist, write it and fsync it.

    Args:
        name: One path component.
        data: Whole content.
        mode: Permission bits, whatever the umask is.
        dir_fd: Directory to create it in.

    Raises:
        FileExistsError: Something has that name.
        OSError: Any other failure; a partial file may be left.
    """
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(name, flags, 0o600, dir_fd=dir_fd)
    try:
        write_all(descriptor, data)
        os.fchmod(descriptor, mode)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_all(descriptor: int, data: bytes) -> None:
    """Write every byte; `os.write` may take fewer."""
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def sync_directory(path: Path) -> None:
    """Make the names in a directory durable."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
