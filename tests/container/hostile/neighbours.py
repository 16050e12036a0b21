"""Somebody on this machine whom a leg would like to talk to, and what reached them."""

from __future__ import annotations

import contextlib
import json
import secrets
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from runner.engine.docker_engine import DockerEngine
from tests.container.projects import PATIENCE

_SERVER = """
import os, select, socket, sys
abstract, watched = sys.argv[1], []
one = socket.socket(); one.bind(("0.0.0.0", 0)); one.listen(); port = one.getsockname()[1]
watched.append(one)
def add(family, kind, address):
    try:
        s = socket.socket(family, kind)
        if family == socket.AF_INET6: s.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        s.bind(address)
        if kind == socket.SOCK_STREAM: s.listen()
        watched.append(s)
    except OSError: pass
add(socket.AF_INET, socket.SOCK_DGRAM, ("0.0.0.0", port))
add(socket.AF_INET6, socket.SOCK_STREAM, ("::", port))
add(socket.AF_INET6, socket.SOCK_DGRAM, ("::", port))
add(socket.AF_UNIX, socket.SOCK_STREAM, "\\0" + abstract)
print("port", port, flush=True)
while True:
    for s in select.select(watched, [], [])[0]:
        if s.type == socket.SOCK_STREAM:
            other = s.accept()[0]; other.settimeout(5); data = other.recv(99); other.close()
        else: data = s.recv(99)
        print("reached", s.family.name, s.type.name, data, flush=True)
"""
_KNOCK = """
import socket, sys
port, abstract = int(sys.argv[1]), sys.argv[2]
for family, kind, address in (
    (socket.AF_INET, socket.SOCK_STREAM, ("127.0.0.1", port)),
    (socket.AF_INET, socket.SOCK_DGRAM, ("127.0.0.1", port)),
    (socket.AF_UNIX, socket.SOCK_STREAM, "\\0" + abstract),
):
    s = socket.socket(family, kind); s.connect(address); s.send(b"control")
"""


@dataclass(frozen=True)
class Neighbour:
    """A container that listens on everything it has.

    Attributes:
        container: Its id.
        addresses: Where it can be reached.
        port: Its port, the same for TCP and UDP.
        abstract: Name of its abstract Unix socket.
    """

    engine: DockerEngine
    container: str
    addresses: tuple[str, ...]
    port: int
    abstract: str

    def control(self) -> None:
        """Reach it from beside it, so that silence means something."""
        client = self.engine._client
        knock = ["python3", "-c", _KNOCK, str(self.port), self.abstract]
        made = client.exec_create(self.container, knock)["Id"]
        client.exec_start(made)
        assert client.exec_inspect(made)["ExitCode"] == 0

    def reached(self, least: int = 0) -> list[str]:
        """What it heard, once there are at least that many lines."""
        deadline = time.monotonic() + PATIENCE
        while True:
            lines = _log(self.engine._client, self.container)
            found = [line for line in lines if line.startswith("reached")]
            if len(found) >= least or time.monotonic() > deadline:
                return found
            time.sleep(0.05)


def targets(neighbours: list[Neighbour]) -> str:
    """For the attacker, as JSON."""
    return json.dumps(
        {
            "hosts": [(host, item.port) for item in neighbours for host in item.addresses],
            "abstract": [item.abstract for item in neighbours],
            "names": ["localhost.example", "neighbour", "host.docker.internal"],
        }
    )


@contextlib.contextmanager
def neighbourhood(engine: DockerEngine, image: str) -> Iterator[list[Neighbour]]:
    """A container on the engine's default bridge, where it has one, and one on its host's network.

    The second one stands for the host: it listens on the loopback interface and on the bridge's
    gateway, wherever the engine's host is.
    """
    with contextlib.ExitStack() as stack:
        client = engine._client
        found, gateways = [], []
        if any(item["Name"] == "bridge" for item in client.networks(names=["bridge"])):
            found.append(_start(engine, image, "bridge", [], stack))
            described = client.inspect_container(found[0].container)["NetworkSettings"]
            gateways = [described["Gateway"]]
        found.append(_start(engine, image, "host", ["127.0.0.1", "::1", *gateways], stack))
        yield found


def _start(
    engine: DockerEngine, image: str, network: str, known: list[str], stack: contextlib.ExitStack
) -> Neighbour:
    client, abstract = engine._client, f"ao-eval-test-{secrets.token_hex(8)}"
    made = client.create_container(
        image,
        ["python3", "-u", "-c", _SERVER, abstract],
        name=abstract,
        host_config=client.create_host_config(network_mode=network),
    )["Id"]
    stack.callback(client.remove_container, made, force=True, v=True)
    client.start(made)
    port = _port(client, made)
    described = client.inspect_container(made)["NetworkSettings"]
    own = [described.get("IPAddress"), described.get("GlobalIPv6Address")]
    return Neighbour(engine, made, (*filter(None, own), *known), port, abstract)


def _port(client: Any, container: str) -> int:
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        for line in _log(client, container):
            if line.startswith("port "):
                return int(line.split()[1])
        assert client.inspect_container(container)["State"]["Running"], _log(client, container)
        time.sleep(0.05)
    raise AssertionError("the neighbour does not listen")


def _log(client: Any, container: str) -> list[str]:
    text: bytes = client.logs(container)
    return text.decode().splitlines()
