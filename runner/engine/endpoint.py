"""Which daemon is the user's: DOCKER_HOST, else the active CLI context, else the default socket.

The same order as the docker command line, so that what `docker ps` shows is what we talk to.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

DEFAULT_SOCKET = "unix:///var/run/docker.sock"


class Endpoint(NamedTuple):
    """Where the daemon is.

    Attributes:
        url: Address, for people and for evidence.
        source: What named it: `DOCKER_HOST`, `context NAME`, `default socket`.
        arguments: Keyword arguments of docker-py's `APIClient`.
    """

    url: str
    source: str
    arguments: dict[str, Any]

    @property
    def local(self) -> bool:
        """True when bind mounts name paths of this machine."""
        return self.url.startswith("unix://")


def resolve(environment: Mapping[str, str]) -> Endpoint:
    """Find the daemon that the user's docker settings name."""
    from docker.context import ContextAPI
    from docker.utils import kwargs_from_env

    arguments = dict(kwargs_from_env(environment=dict(environment)))
    if "base_url" in arguments:
        return Endpoint(environment["DOCKER_HOST"], "DOCKER_HOST", arguments)
    from_context = dict(ContextAPI.kwargs_from_context(environment=dict(environment)))
    url = from_context.get("base_url")
    if url and url != DEFAULT_SOCKET:
        name = environment.get("DOCKER_CONTEXT") or "current"
        return Endpoint(str(url), f"context {name}", {**from_context, **arguments})
    return Endpoint(DEFAULT_SOCKET, "default socket", {"base_url": DEFAULT_SOCKET, **arguments})
