"""What the use cases need from the world."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import IO, Any, Protocol

from runner.model.container import ContainerSpec, EngineInfo, ExitState, ImageInfo, VolumeSpec


class Attachment(Protocol):
    """The standard streams of one started container."""

    def send(self, data: bytes) -> None:
        """Write to the container's standard input; blocks until all is written."""

    def chunks(self, deadline: float) -> Iterator[tuple[int, bytes]]:
        """Yield `(stream, data)`, stream 1 or 2, until the streams end.

        Args:
            deadline: `time.monotonic()` value at which `TimeoutError` is raised.
        """

    def close(self) -> None:
        """Close both directions; the container sees end-of-file on its standard input."""


class Engine(Protocol):
    """A container engine. Every method raises `EngineFailure`, never an SDK exception."""

    def info(self) -> EngineInfo:
        """Which daemon this is and what it can do."""

    def image(self, reference: str) -> ImageInfo | None:
        """The image if it is present; never pulls."""

    def create(self, spec: ContainerSpec) -> str:
        """Create a container, return its id. Nothing runs yet."""

    def inspect(self, container_id: str) -> Mapping[str, Any]:
        """The engine's own description of the container."""

    def create_volume(self, spec: VolumeSpec) -> None:
        """Create a local volume."""

    def inspect_volume(self, name: str) -> Mapping[str, Any]:
        """The engine's own description of the volume."""

    def fill_volume(self, spec: ContainerSpec, path: str, archive: IO[bytes]) -> None:
        """Unpack a tar archive below `path` in the container described (never started)."""

    def attach(self, container_id: str) -> Attachment:
        """Attach the standard streams; before the start, so that nothing is missed."""

    def start(self, container_id: str) -> None:
        """Start a created container."""

    def wait(self, container_id: str, timeout: float) -> ExitState:
        """Wait until it has ended.

        Raises:
            TimeoutError: It still runs after `timeout` seconds.
        """

    def kill(self, container_id: str) -> None:
        """SIGKILL; no error when it has ended or is gone."""

    def remove(self, container_id: str) -> None:
        """Remove with its anonymous volumes; no error when it is gone."""

    def remove_volume(self, name: str) -> None:
        """Remove a volume; no error when it is gone."""

    def owned_containers(self) -> list[Mapping[str, Any]]:
        """All containers that carry our labels, in any state."""

    def owned_volumes(self) -> list[Mapping[str, Any]]:
        """All volumes that carry our labels."""
