"""A fanotify watch of whole file systems, which knows the writer.

One mark sees every change of a file system, through any mount and in any container, also in
folders made a moment ago. Events name the folder by file handle; those outside live roots are
dropped at the cost of one dictionary look-up. For the others the writer is looked at at once,
through the pid descriptor that comes with the event, so that a reused number fools nobody.
"""

from __future__ import annotations

import ctypes
import errno
import os
import re
import select
import struct
from collections.abc import Iterator
from typing import Final, NamedTuple

from runner.host.inotify import (
    ACTIONS,
    ISDIR,
    MOVED_FROM,
    MOVED_TO,
    Q_OVERFLOW,
    Sighting,
    below_any,
    existing_above,
    folders,
)
from runner.host.mounts import mounts_below, read_mounts, within
from runner.model.livewatch import Process

_CLOEXEC: Final = 0x1
_NONBLOCK: Final = 0x2
_REPORT_PIDFD: Final = 0x80
_REPORT_DFID_NAME: Final = 0xC00
_MARK_ADD: Final = 0x1
_MARK_FILESYSTEM: Final = 0x100
_AT_FDCWD: Final = -100
_INFO_DFID_NAME: Final = 2
_INFO_PIDFD: Final = 4

_MASK: Final = sum(bit for bit, _ in ACTIONS) | ISDIR
_HEAD: Final = struct.Struct("=IBBHQii")
_INFO: Final = struct.Struct("=BBH")
_HANDLE: Final = struct.Struct("=8sIi")
_NUMBER: Final = struct.Struct("=i")
# Every event brings a descriptor, so few of them are read at once.
_BUFFER: Final = 1 << 13
_MOST_READS: Final = 1 << 16
_MOST_KNOWN: Final = 1 << 17
_MOST_HANDLE: Final = 128

# Flags of /proc/PID/stat. A process that exits has left its cgroup already on some kernels, and a
# kernel thread writes for somebody else.
_EXITING: Final = 0x4
_KERNEL_THREAD: Final = 0x200000
_CONTAINER: Final = re.compile(rb"[0-9a-f]{64}")

_libc = ctypes.CDLL(None, use_errno=True)
_libc.fanotify_init.argtypes = (ctypes.c_uint, ctypes.c_uint)
_libc.fanotify_mark.argtypes = (
    ctypes.c_int, ctypes.c_uint, ctypes.c_uint64, ctypes.c_int, ctypes.c_char_p,
)  # fmt: skip
_libc.open_by_handle_at.argtypes = (ctypes.c_int, ctypes.c_char_p, ctypes.c_int)
_libc.name_to_handle_at.argtypes = (
    ctypes.c_int, ctypes.c_char_p, ctypes.c_char_p, ctypes.POINTER(ctypes.c_int), ctypes.c_int,
)  # fmt: skip


class _Anchor(NamedTuple):
    """A mount through which handles of one file system are resolved."""

    filesystem: bytes
    mount: int
    descriptor: int


class Fanotify:
    """A source of sightings for `host.watch`; used by one thread.

    Attributes:
        lost: Why events may be missing; empty: nothing is known to be.
    """

    def __init__(self) -> None:
        """Open a group.

        Raises:
            OSError: Not permitted (needs CAP_SYS_ADMIN), or the kernel is older than 5.15.
        """
        flags = _CLOEXEC | _NONBLOCK | _REPORT_DFID_NAME | _REPORT_PIDFD
        self._descriptor: int = _libc.fanotify_init(flags, os.O_RDONLY | os.O_CLOEXEC)
        if self._descriptor < 0:
            raise _last_error()
        self.lost = ""
        self._roots: tuple[bytes, ...] = ()
        self._anchors: list[_Anchor] = []
        # File system and handle of a folder -> its path; None: nothing to do with a root.
        self._folders: dict[bytes, bytes | None] = {}

    def fileno(self) -> int:
        """To be polled."""
        return self._descriptor

    def close(self) -> None:
        """Give the marks back."""
        for anchor in self._anchors:
            os.close(anchor.descriptor)
        self._anchors = []
        os.close(self._descriptor)

    def cover(self, root: bytes) -> None:
        """Watch the file systems of a root, present or not, and of everything mounted in it.

        Raises:
            OSError: One of them cannot be watched, or handles cannot be resolved.
        """
        self._roots += (root,)
        self._folders = {key: path for key, path in self._folders.items() if path is not None}
        top = root if os.path.isdir(root) and not os.path.islink(root) else existing_above(root)
        for folder in (top, *(mount.target for _, mount in mounts_below(root, read_mounts()))):
            if os.path.isdir(folder):
                self._mark(folder)
        self._learn(root)

    def _mark(self, folder: bytes) -> None:
        result = _libc.fanotify_mark(
            self._descriptor, _MARK_ADD | _MARK_FILESYSTEM, _MASK, _AT_FDCWD, folder
        )
        if result < 0:
            raise _last_error()
        key, mount = _key(folder)
        if any(item.filesystem == key[:8] and item.mount == mount for item in self._anchors):
            return
        descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._anchors.append(_Anchor(key[:8], mount, descriptor))
        # A handle that cannot be resolved would be an event that is not seen.
        os.close(self._open(descriptor, key))

    def _learn(self, root: bytes) -> None:
        """Remember the handles of all folders of a root: of one that is gone there is no path."""
        if os.path.isdir(root) and not os.path.islink(root):
            for folder in folders(root):
                try:
                    self._folders[_key(folder)[0]] = folder
                except OSError as error:
                    if error.errno not in (errno.ENOENT, errno.ENOTDIR):
                        raise

    def drain(self) -> Iterator[Sighting]:
        """What has happened since the last call; never waits."""
        for _ in range(_MOST_READS):
            try:
                data = os.read(self._descriptor, _BUFFER)
            except BlockingIOError:
                return
            yield from self._parse(data)
        self.lost = self.lost or "events came faster than they could be read"

    def _parse(self, data: bytes) -> Iterator[Sighting]:
        # Within one buffer a pid is one process: it lived when the last of these was queued.
        known: dict[int, Process] = {}
        offset = 0
        while offset < len(data):
            length, _, _, head, mask, _, pid = _HEAD.unpack_from(data, offset)
            end = offset + length
            at, folder, name, descriptor = offset + head, None, b"", -1
            while at < end:
                kind, _, size = _INFO.unpack_from(data, at)
                if kind == _INFO_PIDFD:
                    (descriptor,) = _NUMBER.unpack_from(data, at + _INFO.size)
                elif kind == _INFO_DFID_NAME:
                    start = at + _INFO.size
                    (handle,) = _NUMBER.unpack_from(data, start + 8)
                    close = start + _HANDLE.size + handle
                    folder = self._folder(data[start:close])
                    if folder is not None:
                        name = data[close : at + size].split(b"\0", 1)[0]
                at += size
            try:
                if mask & Q_OVERFLOW:
                    self.lost = "the fanotify queue overflowed"
                if folder is not None:
                    path = folder if name in (b"", b".") else os.path.join(folder, name)
                    touched = tuple(self._touched(path, mask))
                    if touched and pid not in known and (found := look_at(pid, descriptor)):
                        known[pid] = found
                    for each in touched:
                        yield Sighting(each, mask, pid, known.get(pid))
            finally:
                if descriptor >= 0:
                    os.close(descriptor)
            offset = end

    def _touched(self, path: bytes, mask: int) -> Iterator[bytes]:
        """The path if it is in a root; the roots below it if it is a folder that moved."""
        if below_any(path, self._roots):
            yield path
        if mask & ISDIR and mask & (MOVED_FROM | MOVED_TO):
            below = [root for root in self._roots if within(root, path) and root != path]
            if below or below_any(path, self._roots):
                self._folders.clear()  # paths of everything below are others now
            yield from below

    def _folder(self, key: bytes) -> bytes | None:
        try:
            return self._folders[key]
        except KeyError:
            pass
        if len(self._folders) >= _MOST_KNOWN:
            self._folders.clear()
        found = self._folders[key] = self._resolve(key)
        return found

    def _resolve(self, key: bytes) -> bytes | None:
        """Path of a folder that lies in a root or above one."""
        for anchor in self._anchors:
            if anchor.filesystem != key[:8]:
                continue
            try:
                descriptor = self._open(anchor.descriptor, key)
            except OSError as error:
                if error.errno not in (errno.ESTALE, errno.ENOENT):
                    self.lost = self.lost or f"a folder cannot be told: {error.strerror}"
                continue
            try:
                path = os.readlink(b"/proc/self/fd/%d" % descriptor)
                if not (
                    below_any(path, self._roots) or any(within(each, path) for each in self._roots)
                ):
                    continue
                # A folder that this mount does not show has a path that means something else.
                seen, named = os.fstat(descriptor), os.lstat(path)
                if (seen.st_dev, seen.st_ino) == (named.st_dev, named.st_ino):
                    return path
            except OSError:
                continue
            finally:
                os.close(descriptor)
        return None

    @staticmethod
    def _open(mount: int, key: bytes) -> int:
        descriptor: int = _libc.open_by_handle_at(mount, key[8:], os.O_PATH | os.O_CLOEXEC)
        if descriptor < 0:
            raise _last_error()
        return descriptor


def _key(folder: bytes) -> tuple[bytes, int]:
    """File system and handle of a folder, as events have them; and the mount it is seen by."""
    buffer = ctypes.create_string_buffer(8 + _MOST_HANDLE)
    struct.pack_into("=I", buffer, 0, _MOST_HANDLE)
    mount = ctypes.c_int()
    if _libc.name_to_handle_at(_AT_FDCWD, folder, buffer, ctypes.byref(mount), 0) < 0:
        raise _last_error()
    (size,) = struct.unpack_from("=I", buffer, 0)
    return _filesystem(folder) + buffer.raw[: 8 + size], mount.value


def _filesystem(folder: bytes) -> bytes:
    """The id of a file system, as events have it."""
    number = os.statvfs(folder).f_fsid
    return struct.pack("=II", number & 0xFFFFFFFF, number >> 32)


def look_at(pid: int, descriptor: int) -> Process | None:
    """Who a process is, if it is certain that it is the one meant.

    Args:
        pid: Its number here; 0 for one that this process namespace does not show.
        descriptor: A pid descriptor of it; negative when the kernel had none to give.

    Returns:
        None when it is gone or going, is a kernel thread, or cannot be looked at.
    """
    if pid <= 0 or descriptor < 0:
        return None
    place = f"/proc/{pid}"
    try:
        with open(f"{place}/cgroup", "rb") as file:
            cgroups = file.read()
        with open(f"{place}/stat", "rb") as file:
            head, _, tail = file.read().rpartition(b") ")
        fields = tail.split()
        flags, parent = int(fields[6]), int(fields[1])
        same = os.stat(f"{place}/ns/pid").st_ino == os.stat("/proc/self/ns/pid").st_ino
        program = os.fsencode(_program(place))
    except (OSError, ValueError, IndexError):
        return None
    gone = select.poll()
    gone.register(descriptor, select.POLLIN)
    if gone.poll(0) or flags & (_EXITING | _KERNEL_THREAD) or not cgroups:
        return None
    return Process(
        pid=pid,
        parent=parent,
        name=head.partition(b"(")[2],
        program=program,
        containers=tuple(sorted({item.decode() for item in _CONTAINER.findall(cgroups)})),
        same_namespace=same,
    )


def _program(place: str) -> str:
    try:
        return os.readlink(f"{place}/exe")
    except OSError:
        return ""


def _last_error() -> OSError:
    number = ctypes.get_errno()
    return OSError(number, os.strerror(number))
