"""Files of one folder that are replaced as a whole, durably, under a lock."""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import stat
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

from runner.errors import HoldoutRefusal, InputError
from runner.model.tree import path_text

MAX_BYTES: Final = 16 * 1024 * 1024
"""Longest file; some 40,000 burns."""

NEW_MODE: Final = 0o600

_MAX_NAME: Final = 240
_POLL_SECONDS: Final = 0.01
_READ: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

Step = Callable[[str], None]
"""Called between every two steps with the name of the step just done."""


class Held(NamedTuple):
    """A file as it was read.

    Attributes:
        data: Whole content.
        mode: Permission bits.
        owner: User and group id.
    """

    data: bytes
    mode: int
    owner: tuple[int, int]


class Place(NamedTuple):
    """Where a file lies.

    Attributes:
        folder: Descriptor of its folder; everything goes through it, so that the folder cannot be
            exchanged in between.
        name: Its name there.
        where: Its path in messages.
    """

    folder: int
    name: str
    where: str

    def beside(self, suffix: str) -> Place:
        """The file of that name with a suffix."""
        return Place(self.folder, self.name + suffix, self.where + suffix)


@contextlib.contextmanager
def at(path: Path) -> Iterator[Place]:
    """Open the folder of a file.

    Args:
        path: The file; it need not exist. Links among its folders are followed, as users have them.

    Raises:
        InputError: It names no file.
        HoldoutRefusal: The folder cannot be opened.
    """
    where = path_text(os.fsencode(path))
    named = path.name not in {"", "..", "."} and len(os.fsencode(path.name)) <= _MAX_NAME
    if not named or "\0" in str(path):
        raise InputError("does not name a burn ledger", where=where or "--burn-ledger")
    try:
        folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError as error:
        raise HoldoutRefusal(
            f"its folder cannot be opened ({_reason(error)})",
            where=where,
            remedy="make the folder, then `ao-eval outcomes ledger init FILE --budget N`",
        ) from None
    try:
        yield Place(folder, path.name, where)
    finally:
        os.close(folder)


def read(place: Place) -> Held | None:
    """Read a file whole, never through a link.

    Returns:
        None when nothing has that name.

    Raises:
        HoldoutRefusal: It is a link, no regular file, has a second name, is too long, or cannot be
            read.
    """
    try:
        descriptor = os.open(place.name, _READ, dir_fd=place.folder)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise _unreadable(place, error) from None
    try:
        info = os.fstat(descriptor)
        _require_plain(info, place)
        chunks = []
        left = MAX_BYTES + 1
        while left and (chunk := os.read(descriptor, min(left, 1 << 20))):
            chunks.append(chunk)
            left -= len(chunk)
    except OSError as error:
        raise _unreadable(place, error) from None
    finally:
        os.close(descriptor)
    if not left:
        raise HoldoutRefusal(f"it has more than {MAX_BYTES} bytes", where=place.where)
    return Held(b"".join(chunks), stat.S_IMODE(info.st_mode) & 0o777, (info.st_uid, info.st_gid))


def replace(place: Place, data: bytes, like: Held | None, *, step: Step, label: str) -> None:
    """Replace a file: temporary beside it, fsync, rename, fsync of the folder.

    The caller holds the lock, hence the fixed name of the temporary: one that a killed process left
    is overwritten by the next.

    Args:
        place: The file.
        data: Its new content.
        like: Keep mode and owner of this one; None for a new private file.
        step: Called after `<label>_temporary`, `_written`, `_synced`, `_renamed`, `_durable`.
        label: Prefix of those names.

    Raises:
        HoldoutRefusal: It could not be written. Before `_renamed` the old file is as it was.
    """
    if len(data) > MAX_BYTES:
        raise HoldoutRefusal(f"it would have more than {MAX_BYTES} bytes", where=place.where)
    temporary = f".{place.name}.tmp"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary, dir_fd=place.folder)
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(temporary, flags, NEW_MODE, dir_fd=place.folder)
        try:
            step(f"{label}_temporary")
            _write_all(descriptor, data)
            _dress(descriptor, like, place)
            step(f"{label}_written")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        step(f"{label}_synced")
        os.rename(temporary, place.name, src_dir_fd=place.folder, dst_dir_fd=place.folder)
        step(f"{label}_renamed")
        os.fsync(place.folder)
        step(f"{label}_durable")
    except OSError as error:
        raise HoldoutRefusal(
            f"it cannot be written ({_reason(error)})", where=place.where
        ) from None
    finally:
        with contextlib.suppress(OSError):
            os.unlink(temporary, dir_fd=place.folder)


@contextlib.contextmanager
def locked(place: Place, *, patience: float) -> Iterator[None]:
    """Hold the lock of a file's folder for the time of the block.

    The folder itself is locked: a lock file could be removed while it is held, and then two
    processes would hold two of them. The lock is the kernel's, it goes with the process.

    Args:
        place: A file of the folder.
        patience: Seconds to wait for another process.

    Raises:
        HoldoutRefusal: It is held by another for longer, or there are no locks.
    """
    deadline = time.monotonic() + patience
    while not _try(place):
        if time.monotonic() >= deadline:
            raise HoldoutRefusal(
                f"another process has held the lock of its folder for {patience:g} s",
                where=place.where,
                remedy="wait for it, or end it, then repeat",
            )
        time.sleep(_POLL_SECONDS)
    try:
        yield
    finally:
        fcntl.flock(place.folder, fcntl.LOCK_UN)


def _try(place: Place) -> bool:
    try:
        fcntl.flock(place.folder, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        raise HoldoutRefusal(
            f"its folder cannot be locked ({_reason(error)})", where=place.where
        ) from None
    return True


def _dress(descriptor: int, like: Held | None, place: Place) -> None:
    """Give a new file the owner and mode of the one it belongs to."""
    if like is None:
        return
    made = os.fstat(descriptor)
    if (made.st_uid, made.st_gid) != like.owner:
        try:
            os.fchown(descriptor, *like.owner)
        except PermissionError:
            raise HoldoutRefusal(
                "its owner or group could not be kept", where=place.where, remedy="run as its owner"
            ) from None
    os.fchmod(descriptor, like.mode)


def _require_plain(info: os.stat_result, place: Place) -> None:
    if not stat.S_ISREG(info.st_mode):
        raise HoldoutRefusal("not a regular file", where=place.where)
    # None at all: it was replaced since it was opened, and is whole all the same.
    if info.st_nlink > 1:
        raise HoldoutRefusal(
            "it has a second name (hard link), which would keep the old content",
            where=place.where,
            remedy="remove the other name",
        )


def _write_all(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _unreadable(place: Place, error: OSError) -> HoldoutRefusal:
    # ELOOP is how O_NOFOLLOW says so.
    told = (
        "it is a symbolic link"
        if error.errno == errno.ELOOP
        else f"it cannot be read ({_reason(error)})"
    )
    return HoldoutRefusal(told, where=place.where)


def _reason(error: OSError) -> str:
    return error.strerror or "unknown reason"
