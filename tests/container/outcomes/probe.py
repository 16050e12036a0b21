"""Runs inside a container of any kind and prints what it can see and do there.

python3 - HOST:PORT... < probe.py
"""

from __future__ import annotations

import json
import os
import socket
import sys
from collections.abc import Callable, Iterator
from functools import partial


def tried(action: Callable[[], object]) -> str:
    """`done`, or the name of the error."""
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return "done"


def connect(address: str) -> str:
    """Try to reach a TCP server."""
    host, _, port = address.rpartition(":")
    return tried(lambda: socket.create_connection((host, int(port)), timeout=2).close())


def write(path: str) -> str:
    """Try to open a file for writing, or to make it."""
    return tried(lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)))


def writable(top: str) -> Iterator[str]:
    """Folders that a file can be made in."""
    for folder, names, _ in os.walk(top):
        names[:] = [name for name in names if f"{folder}/{name}" not in ("//proc", "//sys")]
        if os.access(folder, os.W_OK) and write(f"{folder}/new") == "done":
            os.unlink(f"{folder}/new")
            yield folder


def main() -> None:
    """Look."""
    with open("/proc/self/status") as file:
        status = dict(line.rstrip("\n").split(":\t", 1) for line in file if ":\t" in line)
    with open("/proc/self/mountinfo") as file:
        mounts = {line.split()[4]: line.split()[5].split(",") for line in file}
    with open("/proc/net/route") as file:
        routes = len(file.readlines()) - 1
    inputs = [f"/in/{name}" for name in sorted(os.listdir("/in"))] if os.path.isdir("/in") else []
    print(
        json.dumps(
            {
                "ids": [*os.getresuid(), *os.getresgid()],
                "groups": os.getgroups(),
                "capabilities": [
                    status[name] for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
                ],
                "no_new_privileges": status["NoNewPrivs"],
                "seccomp": status["Seccomp"],
                "interfaces": sorted(os.listdir("/sys/class/net")),
                "routes": routes,
                "reached": {address: connect(address) for address in sys.argv[1:]},
                "resolved": tried(lambda: socket.getaddrinfo("example.org", 80)),
                "mounts": mounts,
                "writable": sorted(writable("/")),
                "inputs": inputs,
                "changed": {
                    "new input": write("/in/new"),
                    "setuid": tried(lambda: os.setuid(0)),
                    "chroot": tried(lambda: os.chroot("/tmp")),
                    "package": write("/opt/ao-eval/site/runner/__init__.py"),
                    **{f"write {path}": write(path) for path in inputs},
                    **{f"remove {path}": tried(partial(os.unlink, path)) for path in inputs},
                    **{f"chmod {path}": tried(partial(os.chmod, path, 0o666)) for path in inputs},
                },
                "sockets": [
                    path
                    for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd")
                    if os.path.lexists(path)
                ],
            }
        )
    )


main()
