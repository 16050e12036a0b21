"""Which repository a suite belongs to, and which of its files make up the workspace."""

from __future__ import annotations

import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from runner.errors import InputError, StagingRefused
from runner.host.git import git, git_program, is_repository, split_paths
from runner.host.globs import compile_glob
from runner.model.tree import path_text


@dataclass(frozen=True, slots=True)
class Listing:
    """Files and links of a folder, relative to it; not checked to exist.

    Attributes:
        paths: Raw bytes, sorted, no duplicates.
        listed_by: `walk` outside a repository, or when git is not installed; then ignored files
            are among them.
    """

    paths: tuple[bytes, ...]
    listed_by: Literal["git", "walk"]


def repository_of(path: Path) -> Path:
    """The git top level that contains a file or folder, else the folder itself.

    Args:
        path: A suite file or a folder; links are resolved first.
    """
    real = Path(os.path.realpath(path))
    folder = real if real.is_dir() else real.parent
    for candidate in (folder, *folder.parents):
        if is_repository(candidate):
            return candidate
    return folder


def list_files(top: Path, include: Sequence[str] = ()) -> Listing:
    """The files a workspace is made of.

    Tracked files, and untracked ones that the repository's `.gitignore` and `info/exclude` do not
    name (the invoker's personal ignore file does not count: the same commit gives the same list on
    every machine). Files inside submodules and nested repositories are not listed. Without git,
    or outside a repository, every file below the folder but those in `.git`.

    Args:
        top: Result of `repository_of`.
        include: Globs (`host.globs`) of ignored files to add.

    Raises:
        InputError: A glob is malformed or matches nothing.
        StagingRefused: `unreadable`: git cannot read the repository, or the folder cannot be read.
    """
    matchers = [(_matcher(pattern), pattern) for pattern in include]
    if not is_repository(top) or git_program() is None:
        paths = set(_walk(top))
        candidates = paths
        by: Literal["git", "walk"] = "walk"
    else:
        arguments = ("ls-files", "-z", "--cached", "--others", "--exclude-standard")
        paths = split_paths(git(top, *arguments))
        candidates = set(paths)
        by = "git"
        if matchers:
            ignored = ("ls-files", "-z", "--others", "--ignored", "--exclude-standard")
            candidates |= split_paths(git(top, *ignored))
    for matcher, pattern in matchers:
        matched = {path for path in candidates if matcher.fullmatch(path)}
        if not matched:
            raise InputError(
                "matches no file of the workspace",
                where=f"--include {pattern}",
                remedy=f"give a path relative to {path_text(os.fsencode(top))}",
            )
        paths |= matched
    return Listing(tuple(sorted(paths)), by)


def _matcher(pattern: str) -> re.Pattern[bytes]:
    try:
        return compile_glob(pattern)
    except ValueError as error:
        raise InputError(str(error), where=f"--include {pattern}") from error


def _walk(top: Path) -> list[bytes]:
    """Files and links below a folder; neither `.git` nor other file systems are entered."""
    paths: list[bytes] = []
    pending = [b""]
    root = os.fsencode(top)
    current = root
    try:
        device = os.stat(root).st_dev
        while pending:
            prefix = pending.pop()
            current = os.path.join(root, prefix)
            with os.scandir(current) as listing:
                entries = list(listing)
            for entry in entries:
                path = prefix + entry.name
                if entry.is_dir(follow_symlinks=False):
                    if entry.name != b".git" and _device(entry) == device:
                        pending.append(path + b"/")
                elif entry.is_file(follow_symlinks=False) or entry.is_symlink():
                    paths.append(path)
    except OSError as error:
        raise StagingRefused(
            f"cannot be listed: {error.strerror}", detail="unreadable", where=path_text(current)
        ) from error
    return paths


def _device(entry: os.DirEntry[bytes]) -> int:
    return entry.stat(follow_symlinks=False).st_dev
