"""The folder of one run's manifest: written beforehand, named after the burn, never overwritten."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from runner.core.outcomes.manifest import is_repeat
from runner.errors import HoldoutRefusal, PrerequisiteError
from runner.host.atomic import write_all
from runner.ledger.durable import Place, locked, read
from runner.model.tree import path_text
from runner.model.verdict import RunManifest

MANIFEST: Final = "manifest.json"
RECORD: Final = "record.json"

_PATIENCE_SECONDS: Final = 60.0


class RunFolder:
    """The folder of a run, its lock held. From `run_folder`."""

    def __init__(self, place: Place) -> None:
        self._place = place
        self._folder = place.folder
        self._staged: list[str] = []
        self._kept = False

    def prepare(self, files: Mapping[str, bytes]) -> None:
        """Write whatever is missing under temporary names, durably.

        A folder that cannot be used, or a disk that is full, is so found before the burn.

        Args:
            files: Bytes by name.

        Raises:
            HoldoutRefusal: The manifest of another run or grade lies there.
            PrerequisiteError: They cannot be written.
        """
        held = read(Place(self._folder, MANIFEST, f"{self._place.where}/{MANIFEST}"))
        if held is not None:
            manifest = RunManifest.model_validate_json(files[MANIFEST])
            self._kept = is_repeat(held.data, manifest)
        # Record first: whoever finds the manifest finds all of the run.
        for name in (RECORD, MANIFEST):
            if name == RECORD or not self._kept:
                self._stage(name, files[name])

    def _stage(self, name: str, data: bytes) -> None:
        if self._kept and _exists(name, self._folder):
            return
        temporary = f".{name}.tmp"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        try:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(temporary, dir_fd=self._folder)
            # The mode that the user's umask gives.
            descriptor = os.open(temporary, flags, 0o666, dir_fd=self._folder)
            try:
                self._staged.append(name)
                write_all(descriptor, data)
                os.fsync(descriptor)
            finally:
                os.close(descriptor)
        except OSError as error:
            raise _unusable(self._place.where, error) from error

    def commit(self) -> str:
        """Give the files their names.

        Returns:
            What was done, for the user.

        Raises:
            PrerequisiteError: It failed; the same command again completes it.
        """
        try:
            while self._staged:
                name = self._staged[0]
                os.rename(f".{name}.tmp", name, src_dir_fd=self._folder, dst_dir_fd=self._folder)
                self._staged.pop(0)
            os.fsync(self._folder)
        except OSError as error:
            raise _unusable(self._place.where, error) from error
        path = f"{self._place.where}/{MANIFEST}"
        if self._kept:
            return f"manifest of this very grade is there already: {path}"
        return f"wrote run manifest: {path}"

    def discard(self) -> None:
        """Remove what has no name yet."""
        for name in self._staged:
            with contextlib.suppress(OSError):
                os.unlink(f".{name}.tmp", dir_fd=self._folder)
        self._staged.clear()


@contextmanager
def run_folder(path: Path) -> Iterator[RunFolder]:
    """Hold the folder of a run, made if missing; what was made and stayed empty is removed again.

    Args:
        path: The folder; those above it may be links, itself not.

    Raises:
        HoldoutRefusal: It is a symbolic link, or another ingest holds it for long.
        PrerequisiteError: It cannot be made or opened.
    """
    where = path_text(os.fsencode(path))
    if path.is_symlink():
        raise HoldoutRefusal("is a symbolic link", where=where)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        made = _make(path)
        folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError as error:
        raise _unusable(where, error) from error
    try:
        place = Place(folder, MANIFEST, where)
        with locked(place, patience=_PATIENCE_SECONDS):
            run = RunFolder(place)
            try:
                yield run
            finally:
                run.discard()
                if made:
                    # Goes only while nothing is in it.
                    with contextlib.suppress(OSError):
                        path.rmdir()
    finally:
        os.close(folder)


def _make(path: Path) -> bool:
    try:
        path.mkdir()
    except FileExistsError:
        return False
    return True


def _exists(name: str, folder: int) -> bool:
    try:
        os.stat(name, dir_fd=folder, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True


def _unusable(where: str, error: OSError) -> PrerequisiteError:
    return PrerequisiteError(
        f"no manifest can be written there ({error.strerror})",
        where=where,
        remedy="make it writable or name another folder, then repeat: no burn is made twice",
    )
