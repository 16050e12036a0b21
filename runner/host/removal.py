"""Removal of trees that hostile programs may have filled.

Names of any bytes, modes of 000, and depths beyond what descriptors or path names allow are all
handled with two descriptors: a directory that is not empty is first moved up beside the others.
Links are never followed and mount points never entered (the kernel refuses to move them).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
from pathlib import Path
from typing import Final

from runner.host.mounts import read_mounts
from runner.model.tree import path_text

_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_PROBLEMS: Final = 20
_NOT_EMPTY: Final = frozenset({errno.ENOTEMPTY, errno.EEXIST})


def remove(path: Path) -> tuple[str, ...]:
    """Remove a tree, a file or a link; nothing there is fine.

    Args:
        path: Absolute path. If it is a link the link is removed, not what it points to.

    Returns:
        What could not be removed and why, one line each (the first 20); empty when all is gone.
    """
    problems: list[str] = []
    try:
        info = os.lstat(path)
        if not stat.S_ISDIR(info.st_mode):
            os.unlink(path)
            return ()
        real = os.path.join(os.path.realpath(path.parent), path.name)
        if any(mount.target == os.fsencode(real) for mount in read_mounts()):
            return (f"{path_text(os.fsencode(path))}: is a mount point",)
        _open_up(os.fspath(path), None)
        top = os.open(path, _FLAGS)
    except FileNotFoundError:
        return ()
    except OSError as error:
        return (f"{path_text(os.fsencode(path))}: {error.strerror}",)
    try:
        _empty(top, problems)
    finally:
        os.close(top)
    try:
        os.rmdir(path)
    except FileNotFoundError:
        pass
    except OSError as error:
        if not problems:
            problems.append(f"{path_text(os.fsencode(path))}: {error.strerror}")
    return tuple(problems[:_MOST_PROBLEMS])


def _empty(top: int, problems: list[str]) -> None:
    """Remove everything below `top`."""
    queue: list[str] = []
    _sweep(top, top, queue, problems)
    while queue:
        name = queue.pop()
        try:
            descriptor = os.open(name, _FLAGS, dir_fd=top)
        except OSError as error:
            problems.append(f"{path_text(os.fsencode(name))}: {error.strerror}")
            continue
        try:
            _sweep(top, descriptor, queue, problems)
        finally:
            os.close(descriptor)
        try:
            os.rmdir(name, dir_fd=top)
        except OSError as error:
            problems.append(f"{path_text(os.fsencode(name))}: {error.strerror}")


def _sweep(top: int, folder: int, queue: list[str], problems: list[str]) -> None:
    """Empty one directory; its directories that are not empty move to `top` and into the queue."""
    with os.scandir(folder) as listing:
        entries = [(entry.name, entry.is_dir(follow_symlinks=False)) for entry in listing]
    for name, is_directory in entries:
        try:
            if not is_directory:
                os.unlink(name, dir_fd=folder)
            elif not _removed_empty(name, folder):
                queue.append(_lift(name, folder, top))
        except FileNotFoundError:
            # Somebody else removes the same tree.
            continue
        except OSError as error:
            problems.append(f"{path_text(os.fsencode(name))}: {error.strerror}")


def _removed_empty(name: str, folder: int) -> bool:
    try:
        os.rmdir(name, dir_fd=folder)
    except OSError as error:
        if error.errno in _NOT_EMPTY:
            return False
        raise
    return True


def _lift(name: str, folder: int, top: int) -> str:
    """Move a directory to `top` and make it accessible to its owner; returns its new name.

    Moving comes first: it fails on a mount point, so that nothing mounted is ever changed.
    """
    lifted = f".remove-{secrets.token_hex(8)}"
    try:
        os.rename(name, lifted, src_dir_fd=folder, dst_dir_fd=top)
    except PermissionError:
        # Moving a directory rewrites its `..`, for which it must be writable.
        _open_up(name, folder)
        os.rename(name, lifted, src_dir_fd=folder, dst_dir_fd=top)
    _open_up(lifted, top)
    return lifted


def _open_up(name: str, folder: int | None) -> None:
    """Set mode 0700 without following a link. An `O_PATH` descriptor needs no permission on it."""
    descriptor = os.open(
        name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=folder
    )
    try:
        os.chmod(f"/proc/self/fd/{descriptor}", 0o700)
    finally:
        os.close(descriptor)
