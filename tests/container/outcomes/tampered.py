"""Runs `ao-eval` against an engine that makes another container than it is asked for.

    tampered.py WHAT ARGUMENT...

The engine is the real one and the container is real; only the request is altered on its way. If the
container is started nevertheless, the program exits 99.
"""

from __future__ import annotations

import os
import sys
from typing import Any

from runner.cli.main import main
from runner.engine import docker_engine
from runner.engine.docker_engine import DockerEngine

STARTED = 99


def network(body: dict[str, Any]) -> None:
    """A network."""
    body["NetworkDisabled"] = False
    body["HostConfig"]["NetworkMode"] = "bridge"


def capability(body: dict[str, Any]) -> None:
    """A capability."""
    body["HostConfig"]["CapAdd"] = ["NET_RAW"]


def root(body: dict[str, Any]) -> None:
    """Root."""
    body["User"] = "0:0"


def writable_input(body: dict[str, Any]) -> None:
    """Inputs that can be written."""
    for mount in body["HostConfig"]["Mounts"]:
        mount["ReadOnly"] = False
        mount["BindOptions"] = {"Propagation": "rprivate"}


def another_mount(body: dict[str, Any]) -> None:
    """A folder of the host that nobody named."""
    mount = {"Type": "bind", "Source": "/etc", "Target": "/host", "ReadOnly": True}
    body["HostConfig"]["Mounts"].append(mount)


TAMPERINGS = {
    item.__name__: item for item in (network, capability, root, writable_input, another_mount)
}


def start(engine: DockerEngine, container_id: str) -> None:
    """It must never come to this."""
    engine.remove(container_id)
    os._exit(STARTED)


if __name__ == "__main__":
    tamper = TAMPERINGS[sys.argv[1]]
    real = getattr(docker_engine, "engine_body")  # noqa: B009

    def altered(*arguments: Any) -> dict[str, Any]:
        """The body of the request, altered."""
        body: dict[str, Any] = real(*arguments)
        tamper(body)
        return body

    setattr(docker_engine, "engine_body", altered)  # noqa: B010
    setattr(DockerEngine, "start", start)  # noqa: B010
    main(sys.argv[2:])
