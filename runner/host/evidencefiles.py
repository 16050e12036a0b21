"""An evidence directory as somebody else gives it: read, never followed, never executed."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from runner.errors import InputError
from runner.model.tree import path_text

MOST_FILES: Final = 2_000_000
MOST_DEPTH: Final = 16
_CHUNK: Final = 1 << 20
_FOLDER: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_FILE: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


@dataclass(frozen=True, slots=True)
class Found:
    """One regular file."""

    size: int
    sha256: str


class Changed(Exception):
    """A file is not what it was when the directory was listed."""


class EvidenceFiles:
    """Every regular file below a directory, hashed, and everything that is none.

    Attributes:
        files: Path below the directory, `/` between components -> size and digest.
        refused: Path -> why it has no place there: a link, a device, an empty folder, ...
    """

    def __init__(self, directory: Path, *, marks: Collection[str] = ()) -> None:
        """List and hash.

        Args:
            directory: An evidence directory; itself may be named by a link.
            marks: Names of which it holds at least one; none: any folder will do. A folder named
                by mistake can be a whole file system, so this is looked at first.

        Raises:
            InputError: It is no evidence directory, cannot be read, or holds too much.
        """
        self.files: dict[str, Found] = {}
        self.refused: dict[str, str] = {}
        self._named = path_text(os.fsencode(directory))
        try:
            self._root = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=self._named) from error
        try:
            self._insist(marks)
            self._list(self._root, "", 0)
        except BaseException:
            os.close(self._root)
            raise

    def _insist(self, marks: Collection[str]) -> None:
        try:
            names = set(os.listdir(self._root))
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=self._named) from error
        if marks and names.isdisjoint(marks):
            raise InputError(
                "is no evidence directory of a comparison",
                where=self._named,
                remedy=f"it would hold {' and '.join(marks)}",
            )

    def close(self) -> None:
        """Let the directory go."""
        os.close(self._root)

    @property
    def digests(self) -> Mapping[str, str]:
        """Path -> SHA-256."""
        return {path: found.sha256 for path, found in self.files.items()}

    def read(self, path: str) -> bytes:
        """Content of a listed file, the very bytes that were hashed.

        Args:
            path: A key of `files`.

        Raises:
            Changed: They are other bytes by now.
        """
        *folders, name = path.split("/")
        opened: list[int] = []
        try:
            at = self._root
            for folder in folders:
                at = os.open(folder, _FOLDER, dir_fd=at)
                opened.append(at)
            with os.fdopen(os.open(name, _FILE, dir_fd=at), "rb") as file:
                data = file.read(self.files[path].size + 1)
        except OSError as error:
            raise Changed(path) from error
        finally:
            for descriptor in opened:
                os.close(descriptor)
        if hashlib.sha256(data).hexdigest() != self.files[path].sha256:
            raise Changed(path)
        return data

    def _list(self, folder: int, above: str, depth: int) -> None:
        names = sorted(os.listdir(folder), key=os.fsencode)
        if not names and above:
            self.refused[above.removesuffix("/")] = "an empty folder"
        for raw in names:
            path = above + raw
            try:
                self._entry(folder, raw, path, depth)
            except OSError as error:
                self.refused[path_text(os.fsencode(path))] = f"cannot be read: {error.strerror}"

    def _entry(self, folder: int, raw: str, path: str, depth: int) -> None:
        shown = path_text(os.fsencode(path))
        if shown != path:
            self.refused[shown] = "a name that none of our files has"
            return
        mode = os.lstat(raw, dir_fd=folder).st_mode
        if stat.S_ISDIR(mode):
            if depth >= MOST_DEPTH:
                self.refused[shown] = "nested too deeply"
                return
            inner = os.open(raw, _FOLDER, dir_fd=folder)
            try:
                self._list(inner, path + "/", depth + 1)
            finally:
                os.close(inner)
        elif stat.S_ISREG(mode):
            if len(self.files) >= MOST_FILES:
                raise InputError(f"holds more than {MOST_FILES} files", where=self._named)
            self.files[path] = _hash(os.open(raw, _FILE, dir_fd=folder))
        else:
            self.refused[shown] = _KINDS.get(stat.S_IFMT(mode), "no regular file")


_KINDS: Final = {
    stat.S_IFLNK: "a symbolic link",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}


def _hash(descriptor: int) -> Found:
    digest, size = hashlib.sha256(), 0
    with os.fdopen(descriptor, "rb", buffering=0) as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(0, "no regular file")
        while chunk := file.read(_CHUNK):
            digest.update(chunk)
            size += len(chunk)
    return Found(size, digest.hexdigest())
