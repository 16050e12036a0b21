"""Run homes: the directory that holds what a run stages, and the lock that says the run lives.

The lock is the kernel's: it goes when the process goes, however it ends. A process id in a file
would be wrong after a reboot or in another namespace.
"""

from __future__ import annotations

import fcntl
import os
import re
import secrets
import stat
import time
from pathlib import Path
from types import TracebackType
from typing import Final, Self

from runner.errors import PrerequisiteError
from runner.host.removal import remove
from runner.model.tree import path_text

PREFIX: Final = "ao-eval-"
LOCK: Final = ".lock"

_UNBORN_PREFIX: Final = ".new-ao-eval-"
# Exactly the names we give: a folder `ao-eval-main` of somebody's is none of ours.
_NAME: Final = re.compile(r"(\.new-)?ao-eval-[0-9a-f]{32}")
_UNBORN_SECONDS: Final = 60
_LOCK_FLAGS: Final = os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK


class RunHome:
    """A private directory of one run, locked while the run lives.

    Attributes:
        path: `<base>/ao-eval-<token>`, mode 0700.
        token: 128 random bits, hexadecimal.
    """

    def __init__(self, path: Path, token: str, lock: int) -> None:
        self.path = path
        self.token = token
        self._lock = lock

    @classmethod
    def create(cls, base: Path) -> RunHome:
        """Make and lock a run home.

        Args:
            base: Folder of run homes; made when missing.

        Raises:
            PrerequisiteError: It cannot be made there.
        """
        token = secrets.token_hex(16)
        path = base / f"{PREFIX}{token}"
        # It is locked before it has its name, so no reaper ever sees it unlocked under that name.
        unborn = base / f"{_UNBORN_PREFIX}{token}"
        lock: int | None = None
        try:
            base.mkdir(parents=True, exist_ok=True)
            unborn.mkdir(mode=0o700)
            lock = os.open(unborn / LOCK, _LOCK_FLAGS | os.O_CREAT | os.O_EXCL, 0o600)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(unborn, path)
        except OSError as error:
            if lock is not None:
                os.close(lock)
            remove(unborn)
            raise PrerequisiteError(
                f"no directory for staging can be made: {error.strerror}",
                where=path_text(os.fsencode(base)),
                remedy="set AO_EVAL_STAGING_DIR to a directory you may write",
            ) from error
        return cls(path, token, lock)

    def close(self) -> tuple[str, ...]:
        """Remove the directory, then let go of the lock.

        Returns:
            What could not be removed; the directory then counts as left over.
        """
        if self._lock < 0:
            return ()
        try:
            return remove(self.path)
        finally:
            os.close(self._lock)
            self._lock = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()


def is_live(path: Path) -> bool:
    """Whether the run of a run home still lives.

    Args:
        path: A run home.

    Returns:
        True when its lock is held, and also when that cannot be told: a live run is never reaped.
        False when it is free, or when there is no lock file.
    """
    try:
        descriptor = os.open(path / LOCK, _LOCK_FLAGS)
    except (FileNotFoundError, NotADirectoryError):
        return False
    except OSError:
        return True
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(descriptor)
    return False


def leftovers(base: Path) -> list[Path]:
    """Run homes whose run is dead. Other users' are left alone.

    Args:
        base: Folder of run homes; need not exist.

    Returns:
        Directories, sorted; among them those of runs that died while making theirs, a minute old.
    """
    found = []
    try:
        names = sorted(os.listdir(base))
    except OSError:
        return []
    for name in names:
        path = base / name
        match = _NAME.fullmatch(name)
        if match is None:
            continue
        unborn = match.group(1) is not None
        try:
            info = os.lstat(path)
        except OSError:
            continue
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.geteuid():
            continue
        if unborn and time.time() - info.st_mtime < _UNBORN_SECONDS:
            continue
        if not is_live(path):
            found.append(path)
    return found
