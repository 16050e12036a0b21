"""The evidence directory: written aside, renamed into place when it is complete."""

from __future__ import annotations

import contextlib
import fcntl
import functools
import os
import re
import secrets
import time
from collections.abc import Iterable
from pathlib import Path, PurePosixPath
from types import TracebackType
from typing import Final, Self

from runner.errors import InputError, PrerequisiteError
from runner.host.absence import reaches
from runner.host.atomic import sync_directory, write_all, write_new
from runner.host.removal import remove
from runner.model.tree import path_text

_LONGEST_NAME: Final = 200
_UNBORN_SECONDS: Final = 60
_UNBORN_PREFIX: Final = ".new-"
_TEMPORARY_PREFIX: Final = ".tmp-"
_TEMPORARY: Final = re.compile(r"\.(new|tmp)-.+-[0-9a-f]{8}", re.DOTALL)
_FOLDER_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def check_out_dir(out_dir: Path, live_roots: Iterable[Path]) -> None:
    """Refuse an evidence folder that would be live state.

    Args:
        out_dir: `--out-dir`; need not exist.
        live_roots: Every live root.

    Raises:
        InputError: It is a live root or lies inside one.
    """
    for root in live_roots:
        if reaches(out_dir, root) in ("equals", "inside"):
            raise InputError(
                f"lies inside the live agents directory {path_text(os.fsencode(root))}",
                where=f"--out-dir {path_text(os.fsencode(out_dir))}",
                remedy="name a directory outside",
            )


def abandoned(out_dir: Path) -> list[Path]:
    """Temporary directories of runs that died before `finalize`.

    Args:
        out_dir: Folder of evidence directories; need not exist.

    Returns:
        Directories of the same user whose lock is free, sorted; among them those of runs that died
        while making theirs, a minute old. What cannot be looked at counts as in use.
    """
    found = []
    try:
        names = sorted(os.listdir(out_dir))
    except OSError:
        return []
    for name in names:
        match = _TEMPORARY.fullmatch(name)
        if match is None:
            continue
        try:
            descriptor = os.open(out_dir / name, _FOLDER_FLAGS)
        except OSError:
            continue
        try:
            info = os.fstat(descriptor)
            unborn = match[1] == "new" and time.time() - info.st_mtime < _UNBORN_SECONDS
            if info.st_uid == os.geteuid() and not unborn:
                fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
                found.append(out_dir / name)
        except OSError:
            continue
        finally:
            os.close(descriptor)
    return found


class RunDirectory:
    """One evidence directory in the making. Leaving the context without `finalize` removes it."""

    def __init__(self, out_dir: Path, name: str) -> None:
        """Make the temporary directory `.tmp-<name>-<random>` beside the final one.

        Args:
            out_dir: Folder of evidence directories; made when missing.
            name: Name of the evidence directory.

        Raises:
            InputError: The name is unsafe, or a directory of that name exists.
            PrerequisiteError: The folder cannot be written.
        """
        self.final = out_dir / safe_name(name)
        self._refuse_existing()
        rest = f"{name}-{secrets.token_hex(4)}"
        self.path = out_dir / f"{_TEMPORARY_PREFIX}{rest}"
        self._done = False
        # The lock says that somebody still writes here; it ends with the process. The directory is
        # locked before it has its name, so no reaper ever sees it unlocked under that name.
        unborn = out_dir / f"{_UNBORN_PREFIX}{rest}"
        lock: int | None = None
        try:
            out_dir.mkdir(parents=True, exist_ok=True)
            unborn.mkdir(mode=0o755)
            lock = os.open(unborn, _FOLDER_FLAGS)
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.rename(unborn, self.path)
        except OSError as error:
            if lock is not None:
                os.close(lock)
            remove(unborn)
            raise _cannot_write(out_dir, error) from error
        self._lock = lock

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.abandon()

    def write_json(self, relative: str, data: bytes) -> Path:
        """Write one document, durably; it must not exist yet.

        Args:
            relative: Path below the directory, `/` between components.
            data: The whole document.

        Returns:
            Where it is until `finalize`.

        Raises:
            InputError: The path is unsafe or taken.
            PrerequisiteError: It cannot be written.
        """
        target = self._place(relative)
        folder = os.open(target.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            write_new(target.name, data, mode=0o644, dir_fd=folder)
        except FileExistsError as error:
            raise InputError("is written twice", where=relative) from error
        except OSError as error:
            raise _cannot_write(target, error) from error
        finally:
            os.close(folder)
        return target

    def write_blob(self, parts: tuple[str, ...], data: bytes) -> str:
        """Write output bytes to a new file; safe to call from several threads.

        Not synced: there may be thousands, and a blob that a power cut emptied does not match the
        digest that its document states.

        Args:
            parts: Path components below the directory.
            data: All of the bytes.

        Returns:
            The path below the directory, `/` between components.

        Raises:
            InputError: The path is unsafe or taken.
            PrerequisiteError: It cannot be written.
        """
        relative = "/".join(safe_name(part) for part in parts)
        path = f"{self.path}/{relative}"
        try:
            descriptor = self._create(path)
            try:
                write_all(descriptor, data)
            finally:
                os.close(descriptor)
        except FileExistsError as error:
            raise InputError("is written twice", where=relative) from error
        except OSError as error:
            raise _cannot_write(Path(path), error) from error
        return relative

    @staticmethod
    def _create(path: str) -> int:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            return os.open(path, flags, 0o644)
        except FileNotFoundError:
            folder = os.path.dirname(path)
            try:
                os.mkdir(folder)  # the folder of a case: only the first one lacks more than this
            except FileNotFoundError:
                os.makedirs(folder, exist_ok=True)
            except FileExistsError:
                pass
            return os.open(path, flags, 0o644)

    def finalize(self) -> Path:
        """Give the directory its name, durably; its documents were synced when written.

        Returns:
            The final path.

        Raises:
            InputError: A directory of that name exists by now; nothing is overwritten.
            PrerequisiteError: It cannot be renamed or synced.
        """
        try:
            sync_directory(self.path)
            self._refuse_existing()
            # rename(2) replaces an empty directory only; one with content fails with ENOTEMPTY.
            os.rename(self.path, self.final)
            self._close()
            sync_directory(self.final.parent)
        except OSError as error:
            raise _cannot_write(self.final, error) from error
        return self.final

    def abandon(self) -> None:
        """Remove the temporary directory, unless it was finalized."""
        if not self._done:
            remove(self.path)
            self._close()

    def _close(self) -> None:
        self._done = True
        os.close(self._lock)

    def _refuse_existing(self) -> None:
        if os.path.lexists(self.final):
            raise InputError(
                "exists already",
                where=path_text(os.fsencode(self.final)),
                remedy="choose another --run-id or --out-dir",
            )

    def _place(self, relative: str) -> Path:
        parts = PurePosixPath(relative).parts
        if not parts:
            raise InputError("names no file", where=relative)
        target = self.path.joinpath(*(safe_name(part) for part in parts))
        with contextlib.suppress(FileExistsError):
            target.parent.mkdir(parents=True, exist_ok=True)
        return target


@functools.lru_cache(maxsize=1024)  # the same few names, for every output of every case
def safe_name(name: str) -> str:
    """One path component that is nothing else.

    Args:
        name: A run id, leg, case id or file name.

    Returns:
        The same name.

    Raises:
        InputError: It is empty, `.`, `..`, begins as a temporary directory does, is longer than
            200 bytes, or holds a separator, control character, or what UTF-8 cannot write.
    """
    bad = (
        name in ("", ".", "..")
        or name.startswith((_TEMPORARY_PREFIX, _UNBORN_PREFIX))
        or "/" in name
        or "\\" in name
        or not name.isprintable()
        or len(name.encode("utf-8", "surrogatepass")) > _LONGEST_NAME
    )
    if bad:
        shown = path_text(name.encode("utf-8", "surrogatepass"))[:_LONGEST_NAME]
        raise InputError("is not a safe file name", where=shown or "(empty)")
    return name


def _cannot_write(path: Path, error: OSError) -> PrerequisiteError:
    return PrerequisiteError(
        f"evidence cannot be written: {error.strerror}",
        where=path_text(os.fsencode(path)),
        remedy="free space there, or name another --out-dir",
    )
