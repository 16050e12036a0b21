"""Staging: copies of trees that may be shown to a container.

A tree is surveyed (`host.survey`), refused or copied. The copy has normalised owner, modes and
times, so that two staged trees differ in nothing but names, contents, exec bits and link targets.
Decisions: `docs/adr/0004-staging.md`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from runner.core.treehash import (
    TreeRecord,
    content_digest,
    directory_record,
    file_record,
    link_record,
)
from runner.errors import PrerequisiteError, StagingRefused
from runner.host.atomic import write_all
from runner.host.removal import remove
from runner.host.survey import (
    DIRECTORY_FLAGS,
    Found,
    Root,
    Survey,
    open_directory,
    open_root,
    stamp_of,
    survey_tree,
)
from runner.model.tree import Limits, Node, Staged, path_text

EPOCH_NS: Final = 315_532_800 * 1_000_000_000
"""Modification time of every staged entry: 1980-01-01, the earliest that archive formats hold."""

_CHUNK: Final = 1 << 20
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY
_WRITE_FLAGS: Final = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class Copied(NamedTuple):
    """A copy, and the record of every entry in it, ordered by path bytes."""

    staged: Staged
    records: tuple[TreeRecord, ...]


def stage_tree(
    source: Path,
    destination: Path,
    *,
    owner: tuple[int, int],
    limits: Limits | None = None,
    forbidden: Collection[Node] = (),
    exclude: Collection[bytes] = (),
) -> Staged:
    """Copy a tree, or refuse it whole.

    Args:
        source: Directory; links on the way to it are followed, none below it.
        destination: Must not exist; a missing parent is made with mode 0700.
        owner: uid and gid of the copy (set when we are root; else it belongs to us).
        limits: Bounds; the defaults when not given.
        forbidden: Device and inode of every entry of live state, root included.
        exclude: Relative paths left out, with everything below.

    Returns:
        Content digest, number of entries and bytes of what was copied.

    Raises:
        StagingRefused: `missing`; `unreadable` (no permission, or it changed meanwhile);
            `unsafe_entry`: FIFO, socket, device, setuid or setgid file, submount, link out of the
            tree, entry of live state under another name, or a bound exceeded. Nothing is left at
            the destination.
        PrerequisiteError: The destination cannot be written.
    """
    return stage_records(
        source, destination, owner=owner, limits=limits, forbidden=forbidden, exclude=exclude
    ).staged


def stage_records(
    source: Path,
    destination: Path,
    *,
    owner: tuple[int, int],
    limits: Limits | None = None,
    forbidden: Collection[Node] = (),
    exclude: Collection[bytes] = (),
) -> Copied:
    """The same as `stage_tree`, with the records of what was copied."""
    with open_root(source) as root:
        survey = survey_tree(root, limits or Limits(), forbidden, exclude=exclude)
        if survey.leaving:
            raise root.refuse(survey.leaving[0], "is a link that leaves the tree")
        return _copy(root, survey, destination, owner=owner, strict_directories=True)


def copy_survey(
    root: Root,
    survey: Survey,
    destination: Path,
    *,
    owner: tuple[int, int],
    strict_directories: bool = True,
) -> Staged:
    """Copy what was surveyed, insisting that it is still the same.

    Args:
        root: The root that was surveyed.
        survey: Its entries.
        destination: As in `stage_tree`.
        owner: As in `stage_tree`.
        strict_directories: Refuse when a directory gained or lost an entry since the survey.

    Raises:
        StagingRefused: `unreadable`: an entry is not the surveyed one any more.
        PrerequisiteError: The destination cannot be written.
    """
    return _copy(
        root, survey, destination, owner=owner, strict_directories=strict_directories
    ).staged


def _copy(
    root: Root,
    survey: Survey,
    destination: Path,
    *,
    owner: tuple[int, int],
    strict_directories: bool,
) -> Copied:
    try:
        destination.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        destination.mkdir(mode=0o700)
    except OSError as error:
        raise _cannot_write(destination, error) from error
    try:
        return _Copy(root, owner, strict_directories=strict_directories).run(
            survey.found, destination
        )
    except OSError as error:
        remove(destination)
        raise _cannot_write(destination, error) from error
    except BaseException:
        remove(destination)
        raise


def normalise(descriptor: int, mode: int, owner: tuple[int, int]) -> None:
    """Give an open file or directory the owner, mode and times of staged entries."""
    if os.geteuid() == 0:
        os.fchown(descriptor, *owner)
    os.fchmod(descriptor, mode)
    os.utime(descriptor, ns=(EPOCH_NS, EPOCH_NS))


class _Copy:
    """One copy in progress: a stack of open directory pairs, one pair for each level."""

    def __init__(self, root: Root, owner: tuple[int, int], *, strict_directories: bool) -> None:
        self._root = root
        self._owner = owner
        self._strict = strict_directories
        self._stack: list[tuple[Found | None, int, int]] = []
        self._records: list[TreeRecord] = []
        self._size = 0

    def run(self, found: list[Found], destination: Path) -> Copied:
        try:
            top = os.open(destination, DIRECTORY_FLAGS)
            self._stack.append((None, os.dup(self._root.descriptor), top))
            for entry in found:
                self._close_to(os.path.dirname(entry.path))
                self._copy(entry, os.path.basename(entry.path))
            self._close_to(None)
        finally:
            for _, source, target in self._stack:
                os.close(source)
                os.close(target)
        staged = Staged(
            sha256=content_digest(self._records), entries=len(self._records), size=self._size
        )
        return Copied(staged, tuple(sorted(self._records)))

    def _close_to(self, folder: bytes | None) -> None:
        """Finish directories until `folder` is on top; None: all of them."""
        while self._stack:
            entry, source, target = self._stack[-1]
            if (entry.path if entry else b"") == folder:
                return
            self._verify_directory(entry, source)
            normalise(target, 0o755, self._owner)
            self._stack.pop()
            os.close(source)
            os.close(target)

    def _verify_directory(self, entry: Found | None, source: int) -> None:
        expected = entry.stamp if entry else self._root.stamp
        found = stamp_of(os.fstat(source))
        same = found == expected if self._strict else found[:2] == expected[:2]
        if not same:
            raise self._changed(entry.path if entry else b".")

    def _copy(self, entry: Found, name: bytes) -> None:
        _, source, target = self._stack[-1]
        if entry.kind == "d":
            child = open_directory(self._root, name, source, entry.path)
            try:
                if stamp_of(os.fstat(child))[:2] != entry.stamp[:2]:
                    raise self._changed(entry.path)
                os.mkdir(name, 0o700, dir_fd=target)
                made = os.open(name, DIRECTORY_FLAGS, dir_fd=target)
            except BaseException:
                os.close(child)
                raise
            self._stack.append((entry, child, made))
            self._records.append(directory_record(entry.path))
        elif entry.kind == "l":
            # The surveyed target is what was judged, so it is what is made.
            os.symlink(entry.target, name, dir_fd=target)
            if os.geteuid() == 0:
                os.chown(name, *self._owner, dir_fd=target, follow_symlinks=False)
            times = (EPOCH_NS, EPOCH_NS)
            os.utime(name, ns=times, dir_fd=target, follow_symlinks=False)
            self._records.append(link_record(entry.path, entry.target))
        else:
            self._copy_file(entry, name, source, target)

    def _copy_file(self, entry: Found, name: bytes, source: int, target: int) -> None:
        executable = bool(entry.stamp.mode & 0o100)
        reader = self._open_file(entry, name, source)
        try:
            writer = os.open(name, _WRITE_FLAGS, 0o600, dir_fd=target)
            try:
                digest = self._pour(entry, reader, writer)
                normalise(writer, 0o755 if executable else 0o644, self._owner)
            finally:
                os.close(writer)
        finally:
            os.close(reader)
        self._size += entry.stamp.size
        self._records.append(file_record(entry.path, digest, executable=executable))

    def _open_file(self, entry: Found, name: bytes, source: int) -> int:
        try:
            reader = os.open(name, _READ_FLAGS, dir_fd=source)
        except OSError as error:
            why = f"cannot be opened: {error.strerror}"
            raise self._root.refuse(entry.path, why, "unreadable") from error
        if stamp_of(os.fstat(reader)) != entry.stamp:
            os.close(reader)
            raise self._changed(entry.path)
        return reader

    def _pour(self, entry: Found, reader: int, writer: int) -> str:
        digest = hashlib.sha256()
        count = 0
        while True:
            try:
                data = os.read(reader, min(_CHUNK, entry.stamp.size + 1))
            except OSError as error:
                why = f"cannot be read: {error.strerror}"
                raise self._root.refuse(entry.path, why, "unreadable") from error
            if not data:
                break
            count += len(data)
            if count > entry.stamp.size:
                raise self._changed(entry.path)
            digest.update(data)
            write_all(writer, data)
        if count != entry.stamp.size or stamp_of(os.fstat(reader)) != entry.stamp:
            raise self._changed(entry.path)
        return digest.hexdigest()

    def _changed(self, path: bytes) -> StagingRefused:
        return self._root.refuse(path, "changed while it was staged", "unreadable")


def _cannot_write(destination: Path, error: OSError) -> PrerequisiteError:
    return PrerequisiteError(
        f"staging failed: {error.strerror}",
        where=path_text(os.fsencode(destination)),
        remedy="free space there, or set AO_EVAL_STAGING_DIR to another directory",
    )
