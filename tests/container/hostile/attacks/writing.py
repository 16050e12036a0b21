"""Inside a leg: write where nothing may be written, by every call that writes."""

from __future__ import annotations

import fcntl
import mmap
import os
import shutil
import sys
from collections.abc import Callable

from tests.container.hostile.attacks.attempt import DONE, called, opened, report, tried

_SET_FLAGS = 0x40086602  # FS_IOC_SETFLAGS
_EXCHANGE = 2  # RENAME_EXCHANGE
_REMOUNT = 32 | 4096  # MS_REMOUNT | MS_BIND
_HERE = -100  # AT_FDCWD
_MINE = "/tmp/mine"
_ACL = b"\2\0\0\0" + b"\1\0\7\0\xff\xff\xff\xff"

Attempt = Callable[[str, str], str]

ON_FOLDERS: dict[str, Attempt] = {
    "create": lambda folder, _: opened(f"{folder}/new", os.O_WRONLY | os.O_CREAT),
    "tmpfile": lambda folder, _: opened(folder, os.O_WRONLY | os.O_TMPFILE),
    "mkdir": lambda folder, _: tried(lambda: os.mkdir(f"{folder}/new")),
    "mkfifo": lambda folder, _: tried(lambda: os.mkfifo(f"{folder}/new")),
    "symlink": lambda folder, _: tried(lambda: os.symlink("/etc/passwd", f"{folder}/new")),
    "rename in": lambda folder, _: tried(lambda: os.rename(_MINE, f"{folder}/new")),
    "chmod folder": lambda folder, _: tried(lambda: os.chmod(folder, 0o777)),
    "utime folder": lambda folder, _: tried(lambda: os.utime(folder, (1, 1))),
    "setxattr folder": lambda folder, _: tried(lambda: os.setxattr(folder, "user.x", b"x")),
    "remount": lambda folder, _: called("mount", b"none", folder.encode(), None, _REMOUNT, None),
    "unmount": lambda folder, _: called("umount2", folder.encode(), 2),
    "cover": lambda folder, _: called("mount", b"tmpfs", folder.encode(), b"tmpfs", 0, None),
}
ON_FILES: dict[str, Attempt] = {
    "open": lambda _, path: opened(path, os.O_WRONLY),
    "append": lambda _, path: opened(path, os.O_WRONLY | os.O_APPEND),
    "O_TRUNC": lambda _, path: opened(path, os.O_WRONLY | os.O_TRUNC),
    "by root": lambda _, path: opened(f"/proc/self/root{path}", os.O_RDWR),
    "reopen": lambda _, path: _read_only(path, lambda fd: opened(f"/proc/self/fd/{fd}", os.O_RDWR)),
    "truncate": lambda _, path: tried(lambda: os.truncate(path, 0)),
    "fallocate": lambda _, path: tried(lambda: _allocate(path)),
    "mmap shared": lambda _, path: tried(lambda: _map(path)),
    "chmod": lambda _, path: tried(lambda: os.chmod(path, 0o777)),
    "fchmod": lambda _, path: _read_only(path, lambda fd: tried(lambda: os.fchmod(fd, 0o777))),
    "chown": lambda _, path: tried(lambda: os.chown(path, os.getuid(), os.getgid())),
    "utime": lambda _, path: tried(lambda: os.utime(path, (1, 1))),
    "futimens": lambda _, path: _read_only(path, lambda fd: tried(lambda: os.utime(fd, (1, 1)))),
    "setxattr": lambda _, path: tried(lambda: os.setxattr(path, "user.x", b"x")),
    "removexattr": lambda _, path: tried(lambda: os.removexattr(path, "user.x")),
    "acl": lambda _, path: tried(lambda: os.setxattr(path, "system.posix_acl_access", _ACL)),
    "ioctl": lambda _, path: _read_only(
        path, lambda fd: tried(lambda: fcntl.ioctl(fd, _SET_FLAGS, b"\x10\0\0\0"))
    ),
    "rename": lambda _, path: tried(lambda: os.rename(path, path + ".away")),
    "exchange": lambda _, path: called(
        "renameat2", _HERE, path.encode(), _HERE, _MINE.encode(), _EXCHANGE
    ),
    "link": lambda _, path: tried(lambda: os.link(path, path + ".link")),
    "unlink": lambda _, path: tried(lambda: os.unlink(path)),
}


def _read_only(path: str, action: Callable[[int], str]) -> str:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return action(descriptor)
    finally:
        os.close(descriptor)


def _allocate(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR)
    os.posix_fallocate(descriptor, 0, 4096)
    os.close(descriptor)


def _map(path: str) -> None:
    descriptor = os.open(path, os.O_RDWR)
    with mmap.mmap(descriptor, 1) as memory:
        memory[0] = 120
    os.close(descriptor)


def _control() -> list[str]:
    """Which of the attempts do something where writing is allowed."""
    done = []
    for name, attempt in {**ON_FOLDERS, **ON_FILES}.items():
        shutil.rmtree("/tmp/free", ignore_errors=True)
        os.mkdir("/tmp/free")
        for path in ("/tmp/free/file", _MINE):
            with open(path, "w", encoding="ascii") as file:
                file.write("text")
        if attempt("/tmp/free", "/tmp/free/file") == DONE:
            done.append(name)
    return done


def main() -> None:
    """Attack the places that are named, `FOLDER` or `FOLDER:FILE`, and somewhere else."""
    control = _control()
    found = {}
    for place in sys.argv[1:]:
        folder, _, name = place.partition(":")
        attempts = {**ON_FOLDERS, **(ON_FILES if name else {})}
        found[folder] = {
            what: attempt(folder, f"{folder}/{name}") for what, attempt in attempts.items()
        }
    report({"found": found, "control": control})


if __name__ == "__main__":
    main()
