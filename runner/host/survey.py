"""Survey of a tree that is to be staged: every entry looked at before a byte is copied.

What is refused is refused here, in bounded time; the copy (`host.staging`) then insists that each
entry is still the one that was surveyed. All access is by directory descriptors, no link is
followed.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal, NamedTuple

from runner.errors import StagingRefused
from runner.host.mounts import mounts_below, read_mounts
from runner.model.tree import Limits, Node, path_text

DIRECTORY_FLAGS: Final = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_MOST_HOPS: Final = 40
_TYPES: Final = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class Stamp(NamedTuple):
    """What must be the same when an entry is copied as when it was surveyed."""

    device: int
    inode: int
    mode: int
    size: int
    mtime: int
    ctime: int


class Found(NamedTuple):
    """One surveyed entry.

    Attributes:
        path: Bytes relative to the root.
        kind: `f`, `d` or `l`.
        stamp: Identity and times.
        target: Link target; empty for the others.
    """

    path: bytes
    kind: Literal["f", "d", "l"]
    stamp: Stamp
    target: bytes


@dataclass(frozen=True, slots=True)
class Root:
    """An open directory that is staged from."""

    path: bytes
    descriptor: int
    stamp: Stamp

    def refuse(self, path: bytes, why: str, detail: str = "unsafe_entry") -> StagingRefused:
        """The error that names an entry of this root."""
        return StagingRefused(
            f"cannot be staged: {path_text(path)} {why}",
            detail=detail,
            where=path_text(self.path),
            remedy="remove it from the tree" if detail == "unsafe_entry" else None,
        )


@dataclass(slots=True)
class Survey:
    """Entries of a root, parents before children, siblings by name.

    Attributes:
        found: What is to be copied.
        leaving: Links that lead out of the tree, by path; part of `found` no longer.
    """

    found: list[Found]
    leaving: list[bytes] = field(default_factory=list)


def stamp_of(info: os.stat_result) -> Stamp:
    """The stamp of a stat result."""
    return Stamp(
        info.st_dev, info.st_ino, info.st_mode, info.st_size, info.st_mtime_ns, info.st_ctime_ns
    )


@contextmanager
def open_root(source: Path) -> Iterator[Root]:
    """Open the directory to stage from. Links on the way to it are followed, none below it.

    Raises:
        StagingRefused: `missing` (nothing there, or no directory) or `unreadable`.
    """
    real = os.fsencode(os.path.realpath(source))
    where = path_text(os.fsencode(source))
    try:
        descriptor = os.open(real, DIRECTORY_FLAGS)
    except (FileNotFoundError, NotADirectoryError) as error:
        raise StagingRefused(
            "is not a directory" if isinstance(error, NotADirectoryError) else "does not exist",
            detail="missing",
            where=where,
            remedy="name an existing directory",
        ) from error
    except OSError as error:
        raise StagingRefused(
            f"cannot be opened: {error.strerror}", detail="unreadable", where=where
        ) from error
    try:
        yield Root(real, descriptor, stamp_of(os.fstat(descriptor)))
    finally:
        os.close(descriptor)


def survey_tree(
    root: Root, limits: Limits, forbidden: Collection[Node], *, exclude: Collection[bytes] = ()
) -> Survey:
    """Survey everything below a root.

    Args:
        root: The open root.
        limits: Bounds; the survey ends as soon as one is exceeded.
        forbidden: Device and inode of the entries of live state.
        exclude: Paths relative to the root that are left out, with everything below.

    Returns:
        Every entry, links that leave the tree among `leaving`.

    Raises:
        StagingRefused: See `host.staging.stage_tree`.
    """
    gate = _Gate(root, limits, forbidden)
    exclude = frozenset(exclude)
    # (descriptor, prefix of its entries, subdirectories still to visit); the depth limit bounds it.
    stack: list[tuple[int, bytes, list[bytes]]] = [(os.dup(root.descriptor), b"", [])]
    try:
        stack[0][2].extend(_list(gate, root.descriptor, b"", exclude))
        while stack:
            descriptor, prefix, pending = stack[-1]
            if not pending:
                os.close(stack.pop()[0])
                continue
            name = pending.pop()
            path = prefix + name
            child = open_directory(root, name, descriptor, path)
            stack.append((child, path + b"/", []))
            stack[-1][2].extend(_list(gate, child, path + b"/", exclude))
    finally:
        for descriptor, _, _ in stack:
            os.close(descriptor)
    return gate.finish()


def survey_paths(
    root: Root, paths: Iterable[bytes], limits: Limits, forbidden: Collection[Node]
) -> tuple[Survey, int]:
    """Survey the named entries of a root and the directories on the way to them.

    Args:
        root: The open root.
        paths: Relative paths of files and links, in any order.
        limits: As in `survey_tree`.
        forbidden: As in `survey_tree`.

    Returns:
        The survey, and how many paths were passed over: gone, a directory (a nested repository),
        or neither file nor link.

    Raises:
        StagingRefused: As in `survey_tree`, but for special files.
    """
    gate = _Gate(root, limits, forbidden)
    passed_over = 0
    stack: list[tuple[bytes, int]] = [(b"", os.dup(root.descriptor))]
    dead: bytes | None = None
    try:
        for path in sorted(set(paths), key=order):
            if dead is not None and path.startswith(dead):
                passed_over += 1
                continue
            parent = _descend(gate, stack, os.path.dirname(path))
            if parent is None:
                dead = os.path.dirname(path) + b"/"
                passed_over += 1
            elif not gate.admit_leaf(parent, os.path.basename(path), path):
                passed_over += 1
    finally:
        for _, descriptor in stack:
            os.close(descriptor)
    return gate.finish(), passed_over


def order(path: bytes) -> list[bytes]:
    """Sort key: parents before children, everything below a directory together."""
    return path.split(b"/")


def open_directory(root: Root, name: bytes, parent: int, path: bytes) -> int:
    """Open a directory that was seen before.

    Raises:
        StagingRefused: `unreadable`: no permission, or it is a directory no longer.
    """
    try:
        return os.open(name, DIRECTORY_FLAGS, dir_fd=parent)
    except OSError as error:
        raise root.refuse(path, f"cannot be opened: {error.strerror}", "unreadable") from error


def leaves_tree(path: bytes, target: bytes, links: Mapping[bytes, bytes]) -> bool:
    """Whether a link leads out of its tree, followed component by component as the kernel would.

    Args:
        path: The link, relative to the root.
        target: Its target.
        links: Every link of the tree: path -> target.

    Returns:
        True when it is absolute, climbs above the root at any point (also when it would come back:
        the root has another name inside the container), does so by way of other links, or takes
        more than 40 of them. A link to nothing inside the tree does not leave it.
    """
    at = path.split(b"/")[:-1]
    if target.startswith(b"/"):
        return True
    pending = target.split(b"/")[::-1]
    hops = 0
    while pending:
        part = pending.pop()
        if part in (b"", b"."):
            continue
        if part == b"..":
            if not at:
                return True
            at.pop()
            continue
        at.append(part)
        onward = links.get(b"/".join(at))
        if onward is not None:
            hops += 1
            if onward.startswith(b"/") or hops > _MOST_HOPS:
                return True
            at.pop()
            pending.extend(onward.split(b"/")[::-1])
    return False


def _list(gate: _Gate, descriptor: int, prefix: bytes, exclude: Collection[bytes]) -> list[bytes]:
    """Admit the entries of one directory; returns the names of its subdirectories."""
    pending: list[bytes] = []
    path = prefix or b"."
    try:
        with os.scandir(descriptor) as listing:
            for entry in listing:
                name = os.fsencode(entry.name)
                path = prefix + name
                if path in exclude:
                    continue
                if gate.admit(descriptor, name, path) == "d":
                    pending.append(name)
    except OSError as error:
        raise gate.root.refuse(path, f"cannot be read: {error.strerror}", "unreadable") from error
    return pending


def _descend(gate: _Gate, stack: list[tuple[bytes, int]], folder: bytes) -> int | None:
    """Bring the stack to `folder`; None when it is no directory (any more)."""
    while stack[-1][0] and not (folder + b"/").startswith(stack[-1][0] + b"/"):
        os.close(stack.pop()[1])
    while stack[-1][0] != folder:
        base, parent = stack[-1]
        rest = folder[len(base) + 1 :] if base else folder
        name = rest.split(b"/", 1)[0]
        path = base + b"/" + name if base else name
        try:
            if not stat.S_ISDIR(os.stat(name, dir_fd=parent, follow_symlinks=False).st_mode):
                return None
            gate.admit(parent, name, path)
            stack.append((path, open_directory(gate.root, name, parent, path)))
        except FileNotFoundError:
            return None
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
            raise gate.root.refuse(path, why, "unreadable") from error
    return stack[-1][1]


class _Gate:
    """Counts, bounds and refuses; collects what may pass."""

    def __init__(self, root: Root, limits: Limits, forbidden: Collection[Node]) -> None:
        self.root = root
        self._limits = limits
        self._forbidden = frozenset(forbidden)
        self._size = 0
        self._found: list[Found] = []
        if (root.stamp.device, root.stamp.inode) in self._forbidden:
            raise root.refuse(b".", "is live state")

    def admit(self, parent: int, name: bytes, path: bytes) -> Literal["f", "d", "l"]:
        """Admit one entry of any type, or refuse the tree because of it."""
        info = os.stat(name, dir_fd=parent, follow_symlinks=False)
        kind = stat.S_IFMT(info.st_mode)
        if kind in _TYPES:
            raise self.root.refuse(path, f"is {_TYPES[kind]}")
        return self._take(parent, name, path, info)

    def admit_leaf(self, parent: int, name: bytes, path: bytes) -> bool:
        """Admit a file or link; False when there is neither."""
        try:
            info = os.stat(name, dir_fd=parent, follow_symlinks=False)
            if not (stat.S_ISREG(info.st_mode) or stat.S_ISLNK(info.st_mode)):
                return False
            self._take(parent, name, path, info)
        except FileNotFoundError:
            return False
        except OSError as error:
            why = f"cannot be read: {error.strerror}"
            raise self.root.refuse(path, why, "unreadable") from error
        return True

    def finish(self) -> Survey:
        """Checks that need the whole tree: submounts and links."""
        self._refuse_submounts()
        self._found.sort(key=lambda entry: order(entry.path))
        links = {entry.path: entry.target for entry in self._found if entry.kind == "l"}
        leaving = {path for path, target in links.items() if leaves_tree(path, target, links)}
        if not leaving:
            return Survey(self._found)
        return Survey(
            [entry for entry in self._found if entry.path not in leaving],
            sorted(leaving, key=order),
        )

    def _take(
        self, parent: int, name: bytes, path: bytes, info: os.stat_result
    ) -> Literal["f", "d", "l"]:
        if info.st_dev != self.root.stamp.device:
            raise self.root.refuse(path, "is on another file system")
        if (info.st_dev, info.st_ino) in self._forbidden:
            raise self.root.refuse(path, "is live state under another name")
        if len(self._found) >= self._limits.entries:
            raise self.root.refuse(path, f"is one entry more than {self._limits.entries}")
        if path.count(b"/") >= self._limits.depth:
            raise self.root.refuse(path, f"is deeper than {self._limits.depth} levels")
        kind: Literal["f", "d", "l"] = "d"
        target = b""
        if stat.S_ISREG(info.st_mode):
            kind = "f"
            self._admit_file(path, info)
        elif stat.S_ISLNK(info.st_mode):
            kind = "l"
            target = os.readlink(name, dir_fd=parent)
        self._found.append(Found(path, kind, stamp_of(info), target))
        return kind

    def _admit_file(self, path: bytes, info: os.stat_result) -> None:
        if info.st_mode & (stat.S_ISUID | stat.S_ISGID):
            raise self.root.refuse(path, "has the setuid or setgid bit")
        # The apparent size: a sparse file of a terabyte is refused before it is read.
        self._size += info.st_size
        if self._size > self._limits.size:
            raise self.root.refuse(path, f"makes the tree larger than {self._limits.size} bytes")

    def _refuse_submounts(self) -> None:
        below = dict(mounts_below(self.root.path, read_mounts()))
        # A bind mount of the same file system does not change st_dev; the table shows it.
        for entry in self._found if below else ():
            if entry.path in below:
                raise self.root.refuse(entry.path, "is a mount point")
