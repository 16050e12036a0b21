"""Inside a leg: everything that is visible, as lines of JSON, `[path, facts]`."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import socket
import stat
import time
from collections.abc import Iterator

_RECENT_SECONDS = 86_400
_MOST = 1 << 16
_ENDLESS = {"kmsg", "kcore", "kpagecount", "kpageflags", "kpagecgroup", "pagemap", "mem",
            "clear_refs", "sysrq-trigger"}  # fmt: skip


def _content(path: str, most: int | None = None) -> bytes | None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError:
        return None
    try:
        data = b""
        while more := os.read(descriptor, 1 << 20):
            data += more
            if most is not None and len(data) >= most:
                break
        return data
    except OSError:
        return None
    finally:
        os.close(descriptor)


def _time(seconds: float) -> object:
    """Of what the engine made for this container: `recent`. Everything else is exact."""
    return "recent" if time.time() - seconds < _RECENT_SECONDS else seconds


def _facts(path: str) -> dict[str, object]:
    info = os.lstat(path)
    kind = stat.S_IFMT(info.st_mode)
    facts: dict[str, object] = {"mode": oct(info.st_mode), "uid": info.st_uid, "gid": info.st_gid}
    if path.startswith(("/proc/", "/sys/")):
        if kind == stat.S_IFLNK:
            facts["target"] = _target(path)
        elif kind == stat.S_IFREG and os.path.basename(path) not in _ENDLESS:
            data = _content(path, _MOST)
            facts["text"] = None if data is None else data.decode("latin-1")
        return facts
    facts |= {"links": info.st_nlink, "device": info.st_rdev, "time": _time(info.st_mtime)}
    facts["attributes"] = sorted(
        (name, os.getxattr(path, name, follow_symlinks=False).hex())
        for name in os.listxattr(path, follow_symlinks=False)
    )
    if kind == stat.S_IFLNK:
        facts["target"] = _target(path)
    elif kind == stat.S_IFREG:
        data = _content(path)
        facts["size"] = info.st_size
        facts["sha256"] = None if data is None else hashlib.sha256(data).hexdigest()
    return facts


def _target(path: str) -> str:
    try:
        return os.readlink(path)
    except OSError:
        return ""


def _paths() -> Iterator[tuple[str, str]]:
    """Paths and the names that they go by: of processes, the agent and this one."""
    for folder, folders, names in os.walk("/"):
        if folder == "/proc":
            folders[:] = [name for name in folders if not name.isdigit() or name == "1"]
        paths = (os.path.join(folder, name) for name in (*folders, *names))
        yield from ((path, path) for path in paths)
    own = f"/proc/{os.getpid()}"
    for folder, folders, names in os.walk(own):
        if folder.endswith(("/task", "/fd", "/fdinfo", "/map_files")):
            folders.clear()
            continue
        for name in (*folders, *names):
            path = os.path.join(folder, name)
            yield path, path.replace(own, "/proc/self", 1)


def _special() -> Iterator[tuple[str, object]]:
    yield "environment", dict(os.environ)
    yield "identity", [os.getresuid(), os.getresgid(), os.getgroups(), os.getpgrp() > 0]
    yield "machine", [*os.uname()[:1], *os.uname()[1:]]
    yield "host name", socket.gethostname()
    yield "limits", [resource.getrlimit(number) for number in range(16)]
    yield "processors", [os.cpu_count(), sorted(os.sched_getaffinity(0))]
    yield "folder", os.getcwd()
    for path in ("/", "/tmp", "/workspace", "/context/agents", "/dev/shm"):
        info = os.statvfs(path)
        yield f"file system {path}", [info.f_bsize, info.f_frsize, info.f_flag, info.f_namemax]


def main() -> None:
    """Print it, sorted."""
    lines = dict(_special())
    for path, name in _paths():
        try:
            lines[name] = _facts(path)
        except OSError as error:
            lines[name] = {"error": error.errno}
    for item in sorted(lines.items()):
        print(json.dumps(item, sort_keys=True))


if __name__ == "__main__":
    main()
