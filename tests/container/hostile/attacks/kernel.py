"""Inside a leg: open every file of the kernel and every device for writing; nothing is written."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator

from tests.container.hostile.attacks.attempt import DONE, opened, report


def _files(top: str, own: frozenset[str]) -> Iterator[str]:
    for folder, folders, names in os.walk(top):
        if folder == "/proc":
            folders[:] = [name for name in folders if name not in own]
        for name in names:
            yield f"{folder}/{name}"


def _is_link(path: str) -> bool:
    try:
        return stat.S_ISLNK(os.lstat(path).st_mode)
    except OSError:
        return True


def main() -> None:
    """Report which files could be opened, and how many were tried."""
    own = frozenset({"self", "thread-self", str(os.getpid()), str(os.getppid())})
    found: dict[str, object] = {}
    for top in ("/proc", "/sys", "/dev"):
        paths = [path for path in _files(top, own) if not _is_link(path)]
        found[top] = sorted(path for path in paths if opened(path, os.O_WRONLY) == DONE)
        found[f"tried in {top}"] = len(paths)
    for path in ("/proc/kcore", "/dev/mem", "/dev/kmsg", "/proc/keys", "/proc/timer_list"):
        found[path] = _content(path)
    report(found)


def _content(path: str) -> int:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except OSError:
        return 0
    try:
        return len(os.read(descriptor, 4096))
    except OSError:
        return 0
    finally:
        os.close(descriptor)


if __name__ == "__main__":
    main()
