"""What the kernel tells of this container: mounts, processes, interfaces, counters."""

from __future__ import annotations

import os

PSEUDO = frozenset(
    b"proc sysfs cgroup cgroup2 mqueue devpts debugfs tracefs securityfs bpf pstore".split()
)


def read_file(path: str) -> bytes:
    """The whole of a small file; empty when it cannot be read (procfs entries may be missing)."""
    try:
        with open(path, "rb", buffering=0) as stream:
            return stream.read()
    except OSError:
        return b""


def open_first(*paths: str, flags: int = os.O_RDONLY) -> int:
    """The first of some kernel files that can be opened, or -1."""
    for path in paths:
        try:
            return os.open(path, flags | os.O_CLOEXEC)
        except OSError:
            continue
    return -1


def mounts() -> list[tuple[bytes, bytes, bool]]:
    """(target, file system type, read-only) of every mount, from mountinfo."""
    found = []
    for line in read_file("/proc/self/mountinfo").split(b"\n"):
        left, _, right = line.partition(b" - ")
        fields, source = left.split(b" "), right.split(b" ")
        if len(fields) < 6 or len(source) < 3:
            continue
        target = fields[4]
        for escape, char in ((b"\\040", b" "), (b"\\011", b"\t"), (b"\\012", b"\n")):
            target = target.replace(escape, char)
        target = target.replace(b"\\134", b"\\")
        read_only = b"ro" in fields[5].split(b",") or b"ro" in source[2].split(b",")
        found.append((target, source[0], read_only))
    return sorted(found)


def parse_status(text: bytes) -> dict[bytes, bytes]:
    """Fields of /proc/PID/status."""
    return dict(line.split(b":", 1) for line in text.split(b"\n") if b":" in line)


def no_new_privs(status: dict[bytes, bytes]) -> bool:
    """Whether no process of the container can gain privileges by an exec."""
    shown = status.get(b"NoNewPrivs")
    if shown is not None:
        return shown.strip() == b"1"
    # gVisor's procfs has no such line; its kernel answers when asked, as of yet always 1.
    try:
        import ctypes

        return bool(ctypes.CDLL(None).prctl(39, 0, 0, 0, 0) == 1)  # PR_GET_NO_NEW_PRIVS
    except (ImportError, OSError, AttributeError):
        return False


def shields_init() -> bool:
    """Whether the kernel lets no process of the container kill or stop its PID 1.

    Linux does, whoever's id PID 1 has. gVisor does not: there PID 1 must never have the id of a
    case that runs. What is not known to be Linux is taken for the worse of the two.
    """
    version = read_file("/proc/version")
    # gVisor says `4.4.0` and no more, or its own name; its status of a process lacks the line.
    gvisor = version.startswith(b"Linux version 4.4.0 ") or b"gvisor" in version.lower()
    return not gvisor and b"NoNewPrivs" in parse_status(read_file("/proc/self/status"))


def interfaces() -> list[str]:
    """Names of the network interfaces."""
    lines = read_file("/proc/net/dev").split(b"\n")[2:]
    return sorted(line.split(b":")[0].strip().decode("ascii", "replace") for line in lines if line)


def routes() -> int:
    """Number of IPv4 and IPv6 routes that do not go through the loopback interface."""
    four = read_file("/proc/net/route").split(b"\n")[1:]
    six = read_file("/proc/net/ipv6_route").split(b"\n")
    count = sum(1 for line in four if line.strip() and line.split()[0] != b"lo")
    return count + sum(1 for line in six if line.strip() and line.split()[-1] != b"lo")
