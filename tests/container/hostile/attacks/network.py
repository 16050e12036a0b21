"""Inside a leg: reach somebody. Targets are given by the test and are on this machine only."""

from __future__ import annotations

import json
import os
import socket

from tests.container.hostile.attacks.attempt import DONE, report, tried

_SECONDS = 2.0
_MESSAGE = b"from a leg"


def _connect(family: int, kind: int, address: object, protocol: int = 0) -> None:
    with socket.socket(family, kind, protocol) as sender:
        sender.settimeout(_SECONDS)
        sender.connect(address)  # type: ignore[arg-type]
        sender.send(_MESSAGE)


def _netlink() -> list[str]:
    """Names of the interfaces that the kernel tells by netlink (RTM_GETLINK)."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        request = (32).to_bytes(4, "little") + (18).to_bytes(2, "little") + b"\x01\x03" + bytes(24)
        link.settimeout(_SECONDS)
        link.send(request)
        answer = link.recv(1 << 16)
    return sorted(name for _, name in socket.if_nameindex()) if answer else []


def _rerouted() -> None:
    """Ask netlink to bring the loopback interface down (RTM_NEWLINK): needs CAP_NET_ADMIN."""
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 0) as link:
        head = (32).to_bytes(4, "little") + (16).to_bytes(2, "little") + b"\x05\x00" + bytes(8)
        body = bytes(4) + (1).to_bytes(4, "little") + bytes(4) + (1).to_bytes(4, "little")
        link.settimeout(_SECONDS)
        link.send(head + body)
        answer = link.recv(4096)
        error = int.from_bytes(answer[16:20], "little", signed=True)
        if error:
            raise OSError(-error, "refused")


def main() -> None:
    """Report what came of every way to every target."""
    targets = json.loads(os.environ["TARGETS"])
    found: dict[str, object] = {}
    for host, port in targets["hosts"]:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        raw = socket.IPPROTO_ICMPV6 if ":" in host else socket.IPPROTO_ICMP
        for name, kind, protocol in (
            ("tcp", socket.SOCK_STREAM, 0),
            ("udp", socket.SOCK_DGRAM, 0),
            ("ping", socket.SOCK_DGRAM, raw),
            ("raw", socket.SOCK_RAW, raw),
        ):
            found[f"{name} {host}"] = tried(
                lambda f=family, k=kind, a=(host, port), p=protocol: _connect(f, k, a, p)  # type: ignore[misc]
            )
    for name in targets["abstract"]:
        address = b"\0" + name.encode()
        found["abstract socket"] = tried(
            lambda a=address: _connect(socket.AF_UNIX, socket.SOCK_STREAM, a)  # type: ignore[misc]
        )
    for name in targets["names"]:
        found[f"name {name}"] = tried(lambda n=name: socket.getaddrinfo(n, 80))  # type: ignore[misc]
    found["packet"] = tried(
        lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW, socket.htons(3)).close()
    )
    found["link down"] = tried(_rerouted)
    report(
        {
            "reached": found,
            "interfaces": _netlink(),
            "families": _families(),
            "sockets": _socket_files(),
            "loopback": _own_loopback(),
        }
    )


def _families() -> list[int]:
    """Address families of which a socket can be made at all; none is used for anything."""
    kinds = (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_SEQPACKET, socket.SOCK_RAW)
    return [
        family
        for family in range(1, 64)
        if any(
            tried(lambda f=family, k=kind: socket.socket(f, k).close()) == DONE  # type: ignore[misc]
            for kind in kinds
        )
    ]


def _socket_files() -> list[str]:
    """Socket files anywhere, and where an engine's would be."""
    found = [
        path for path in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd")
        if os.path.lexists(path)
    ]  # fmt: skip
    for folder, folders, names in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in ("proc", "sys")]
        found += [p for p in (f"{folder}/{name}" for name in names) if _is_socket(p)]
    return found


def _is_socket(path: str) -> bool:
    try:
        return os.stat(path).st_mode & 0o170000 == 0o140000
    except OSError:
        return False


def _own_loopback() -> str:
    """The control: these very calls do work, within the container."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        return tried(lambda: _connect(socket.AF_INET, socket.SOCK_STREAM, listener.getsockname()))


if __name__ == "__main__":
    main()
