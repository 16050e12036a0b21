"""Commit and dirtiness of a repository, told without running its filters."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Collection
from pathlib import Path
from typing import Final, NamedTuple

from runner.errors import StagingRefused
from runner.host.git import git, git_program, is_repository, split_paths
from runner.host.mounts import within

_HASH_LIMIT: Final = 1 << 30
_CHUNK: Final = 1 << 20
_CONVERTING: Final = ("filter", "text", "eol", "crlf", "ident", "working-tree-encoding")
_READ_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY


class Head(NamedTuple):
    """State of a repository.

    Attributes:
        commit: Object id; None outside a repository or before the first commit.
        dirty: Whether the files differ from the commit; None when it cannot be told without
            running a configured program.
    """

    commit: str | None
    dirty: bool | None


class _Entry(NamedTuple):
    tag: str
    mode: str
    blob: str
    stage: str
    path: bytes


def head(top: Path, *, ignoring: Collection[bytes] = ()) -> Head:
    """Commit and dirtiness of a repository.

    Dirtiness is computed here, from object ids and raw contents: `git status` would run the
    repository's clean filters. Where a file differs but attributes say that git would convert it
    first, the answer is None. Untracked files that are not ignored make it dirty, since they are
    part of the workspace; submodules do not count, since they are not.

    Args:
        top: Result of `repository_of`.
        ignoring: Relative paths that do not count, with everything below (the runs directory).

    Raises:
        StagingRefused: `unreadable`: git cannot read the repository.
    """
    if not is_repository(top) or git_program() is None:
        return Head(None, None)
    try:
        commit = git(top, "rev-parse", "--verify", "--quiet", "HEAD").decode("ascii").strip()
    except StagingRefused:
        return Head(None, None)
    untracked = split_paths(git(top, "ls-files", "-z", "--others", "--exclude-standard"))
    if any(not any(within(path, skip) for skip in ignoring) for path in untracked):
        return Head(commit, dirty=True)
    entries = _index(top)
    index = {entry.path: (entry.mode, entry.blob) for entry in entries}
    if any(entry.stage != "0" for entry in entries) or index != _commit_tree(top, commit):
        return Head(commit, dirty=True)
    return Head(commit, _worktree_differs(top, entries))


def _index(top: Path) -> list[_Entry]:
    entries = []
    for line in git(top, "ls-files", "-z", "-v", "--stage").split(b"\0"):
        if line:
            facts, path = line.split(b"\t", 1)
            tag, mode, blob, stage = facts.decode("ascii").split(" ")
            entries.append(_Entry(tag, mode, blob, stage, path))
    return entries


def _commit_tree(top: Path, commit: str) -> dict[bytes, tuple[str, str]]:
    tree = {}
    for line in git(top, "ls-tree", "-r", "-z", "--full-tree", commit).split(b"\0"):
        if line:
            facts, path = line.split(b"\t", 1)
            mode, _, blob = facts.decode("ascii").split(" ")
            tree[path] = (mode, blob)
    return tree


def _worktree_differs(top: Path, entries: list[_Entry]) -> bool | None:
    """Compare raw contents with blob ids. None: differs, but perhaps by a conversion only."""
    root = os.fsencode(top)
    budget = _HASH_LIMIT
    differing: list[bytes] = []
    for entry in entries:
        # Submodules are not in the workspace, nor are files outside a sparse checkout.
        if entry.mode == "160000" or entry.tag in ("S", "s"):
            continue
        path = os.path.join(root, entry.path)
        try:
            info = os.lstat(path)
            budget -= info.st_size
            if budget < 0:
                return None
            if _mode(info) != entry.mode:
                return True
            if _blob(path, info, entry.blob) != entry.blob:
                differing.append(entry.path)
        except (FileNotFoundError, NotADirectoryError):
            return True
        except OSError:
            return None
    if not differing:
        return False
    converted = _converted(top, differing)
    return True if any(path not in converted for path in differing) else None


def _mode(info: os.stat_result) -> str:
    if stat.S_ISLNK(info.st_mode):
        return "120000"
    if not stat.S_ISREG(info.st_mode):
        return "other"
    return "100755" if info.st_mode & 0o100 else "100644"


def _blob(path: bytes, info: os.stat_result, like: str) -> str:
    """Object id of the raw content; the hash is that of the repository."""
    digest = hashlib.sha256() if len(like) == 64 else hashlib.sha1(usedforsecurity=False)
    digest.update(b"blob %d\0" % info.st_size)
    if stat.S_ISLNK(info.st_mode):
        digest.update(os.readlink(path))
        return digest.hexdigest()
    descriptor = os.open(path, _READ_FLAGS)
    try:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise FileNotFoundError
        while data := os.read(descriptor, _CHUNK):
            digest.update(data)
    finally:
        os.close(descriptor)
    return digest.hexdigest()


def _converted(top: Path, paths: list[bytes]) -> set[bytes]:
    """Those paths whose content git would, or might, convert before comparing."""
    setting = git(top, "config", "--default", "false", "--get", "core.autocrlf", configured=True)
    if setting.strip().lower() != b"false":
        return set(paths)
    asked = b"".join(path + b"\0" for path in paths)
    fields = git(top, "check-attr", "-z", "--stdin", *_CONVERTING, stdin=asked).split(b"\0")
    facts = zip(fields[0::3], fields[2::3], strict=False)
    return {path for path, value in facts if value not in (b"unspecified", b"unset")}
