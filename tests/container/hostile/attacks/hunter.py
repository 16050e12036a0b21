"""Inside a leg: look for markers in everything that can be read, by whatever way."""

from __future__ import annotations

import os
import re
import stat
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterator

from tests.container.hostile.attacks.attempt import report

MARK = re.compile(rb"MARK(?:)ER-[a-z0-9-]+")
"""Written so that it does not find itself."""

_CHUNK, _OVERLAP = 1 << 20, 256
_ENDLESS = {"kmsg", "kcore", "kpagecount", "kpageflags", "kpagecgroup", "pagemap", "mem",
            "sysrq-trigger", "clear_refs"}  # fmt: skip
_GIT = (
    ("git", "log", "--all", "--reflog", "-p", "--format=raw"),
    ("git", "cat-file", "--batch-all-objects", "--batch", "--unordered"),
    ("git", "for-each-ref"),
    ("git", "config", "--list", "--show-origin"),
    ("git", "fsck", "--lost-found", "--no-progress"),
)


def _read(path: bytes, most: int) -> Iterator[bytes]:
    """Chunks of a file, each with the end of the one before it."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return
    last, done = b"", 0
    try:
        while done < most and (data := os.read(descriptor, _CHUNK)):
            yield last + data
            last, done = data[-_OVERLAP:], done + len(data)
    except OSError:
        return
    finally:
        os.close(descriptor)


def _entries(top: bytes) -> Iterator[bytes]:
    for folder, folders, names in os.walk(top):
        if folder == b"/":
            folders[:] = [name for name in folders if name != b"proc"]
        for name in (*folders, *names):
            yield os.path.join(folder, name)


def _texts(path: bytes) -> Iterator[bytes]:
    """All that an entry says: its name, its attributes, its target or its content."""
    yield path
    try:
        mode = os.lstat(path).st_mode
        if stat.S_ISLNK(mode):
            yield os.readlink(path)
            return
        for name in os.listxattr(path, follow_symlinks=False):
            yield os.fsencode(name)
            yield os.getxattr(path, name, follow_symlinks=False)
    except OSError:
        return
    if stat.S_ISREG(mode) and os.path.basename(path).decode("latin-1") not in _ENDLESS:
        yield from _read(path, 4096 if path.startswith(b"/sys/") else 1 << 30)


def main() -> None:
    """Report where each marker was found, and how much was looked at."""
    found: dict[str, set[str]] = defaultdict(set)
    looked = 0
    for top in (b"/", b"/proc"):
        for path in _entries(top):
            looked += 1
            for text in _texts(path):
                for mark in MARK.findall(text):
                    found[mark.decode()].add(path.decode("utf-8", "backslashreplace"))
    for command in _GIT:
        done = subprocess.run(command, cwd="/workspace", capture_output=True, check=False)
        for mark in MARK.findall(done.stdout + done.stderr):
            found[mark.decode()].add(" ".join(command))
    report(
        {
            "found": {name: sorted(places)[:5] for name, places in found.items()},
            "looked": looked,
            "processes": sorted(int(n) for n in os.listdir("/proc") if n.isdigit()),
            "names": sorted(os.environ),
            "arguments": len(sys.argv),
        }
    )


if __name__ == "__main__":
    main()
