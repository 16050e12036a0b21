"""The scratch folders, which the next case finds as the first one did."""

from __future__ import annotations

import os

from .procfs import open_first

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .link import Link
    from .spawn import CaseUser

MESSAGE_QUEUES = "/dev/mqueue"
DIRECTORY = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class Scratch:
    """Scratch folders, held open: a case may take their mode bits away, not the handle."""

    def __init__(self, link: Link, user: CaseUser, paths: list[str]) -> None:
        self._link = link
        self._user = user
        self._folders: list[tuple[int, os.stat_result]] = []
        with user:
            for path in [*paths, MESSAGE_QUEUES]:
                try:
                    fd = os.open(path, DIRECTORY)
                except FileNotFoundError:
                    continue
                self._folders.append((fd, os.fstat(fd)))
        kinds = map(open_first, ("/proc/sysvipc/shm", "/proc/sysvipc/sem", "/proc/sysvipc/msg"))
        self._ipc = [fd for fd in kinds if fd >= 0]
        # gVisor has System V objects and message queues and shows none of them: nobody can tell
        # whether a case left any for the next one.
        self.ipc_hidden = len(self._ipc) < 3 or not os.path.isdir(MESSAGE_QUEUES)

    def empty(self) -> bool:
        """Empty the folders and reset their own attributes, as the case user.

        Returns:
            False when something stays: the next case needs a fresh container.
        """
        with self._user:
            clean = True
            for fd, first in self._folders:
                clean = self._reset(fd, first) and clean
            return clean and not self._ipc_objects()

    def _reset(self, fd: int, first: os.stat_result) -> bool:
        try:
            owned = first.st_uid == self._user.uid
            if owned and os.fstat(fd).st_mode != first.st_mode:
                os.fchmod(fd, first.st_mode & 0o7777)  # else nothing below can be removed
            clean = clear_folder(fd, self._link)
            if owned:
                for name in list_attributes(fd):
                    os.removexattr(fd, name)
                if os.fstat(fd).st_mtime_ns != first.st_mtime_ns:
                    os.utime(fd, ns=(first.st_mtime_ns, first.st_mtime_ns))
        except OSError:
            return False
        return clean

    def _ipc_objects(self) -> bool:
        """Whether System V IPC objects are left, or might be."""
        try:
            for fd in self._ipc:
                if os.pread(fd, 4096, 0).count(b"\n") > 1:  # more than the heading
                    return True
        except OSError:
            return True
        return False


def list_attributes(fd: int) -> list[str]:
    """Extended attributes; none where the file system has none."""
    try:
        return os.listxattr(fd)
    except OSError:
        return []


def clear_folder(fd: int, link: Link) -> bool:
    """Remove everything below an open folder; True when it is empty.

    Sub-folders are hoisted into the folder itself before they are removed, so neither depth nor
    path length matters, and two descriptors suffice. The new names carry the nonce: nobody can
    have taken them.
    """
    serial = 0
    while True:
        empty, progress = True, False
        with os.scandir(fd) as entries:
            for entry in entries:
                empty = False
                serial += 1
                if serial & 1023 == 0:
                    link.check()
                try:
                    if not entry.is_dir(follow_symlinks=False):
                        os.unlink(entry.name, dir_fd=fd)
                        progress = True
                        continue
                    os.chmod(entry.name, 0o700, dir_fd=fd)
                    inner = os.open(entry.name, DIRECTORY, dir_fd=fd)
                    try:
                        with os.scandir(inner) as children:
                            for child in children:
                                serial += 1
                                if serial & 1023 == 0:
                                    link.check()
                                if child.is_dir(follow_symlinks=False):
                                    os.chmod(child.name, 0o700, dir_fd=inner)
                                    name = f"ao-{link.nonce.decode()}-{serial}"
                                    os.rename(child.name, name, src_dir_fd=inner, dst_dir_fd=fd)
                                else:
                                    os.unlink(child.name, dir_fd=inner)
                                progress = True
                    finally:
                        os.close(inner)
                    os.rmdir(entry.name, dir_fd=fd)
                    progress = True
                except OSError:
                    continue  # whether it matters shows in the next pass
        if empty or not progress:
            return empty
