"""Docker through docker-py's low-level client.

Containers are created from the exact JSON that `core.confine` renders: the high-level keywords of
the SDK cannot express all of it, and inject proxies from the user's configuration.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Generator, Mapping
from typing import IO, Any

from runner.core.confine import LABEL, engine_body
from runner.engine.attachment import DockerAttachment
from runner.engine.endpoint import Endpoint, resolve
from runner.errors import EngineFailure, PrerequisiteError
from runner.model.container import ContainerSpec, EngineInfo, ExitState, ImageInfo, VolumeSpec

MINIMUM_API = (1, 41)
"""Docker 20.10: the oldest engine this is tested with."""

_GONE = 404
_CONFLICT = 409


class DockerEngine:
    """The engine that the user's docker settings name.

    One SDK client per thread: its HTTP session is not thread-safe.

    Args:
        endpoint: Where the daemon is.
    """

    def __init__(self, endpoint: Endpoint) -> None:
        self.endpoint = endpoint
        self._threads = threading.local()
        self._version: str | None = None
        self._info: EngineInfo | None = None

    @classmethod
    def connect(cls, environment: Mapping[str, str]) -> DockerEngine:
        """Connect to the daemon of these settings.

        Raises:
            PrerequisiteError: It does not answer, or is too old.
        """
        engine = cls(resolve(environment))
        if engine.api < MINIMUM_API:
            raise PrerequisiteError(
                f"the engine speaks API {engine._version}, 1.41 is needed",
                where=engine.endpoint.url,
                remedy="use Docker 20.10 or newer",
            )
        return engine

    @property
    def _client(self) -> Any:
        client = getattr(self._threads, "client", None)
        if client is None:
            client = self._threads.client = self._new_client()
        return client

    def _new_client(self) -> Any:
        import docker
        import requests

        arguments = {**self.endpoint.arguments, "version": self._version or "auto"}
        try:
            client = docker.APIClient(**arguments)
            self._version = str(client.api_version)
        except (docker.errors.DockerException, requests.exceptions.RequestException, OSError) as e:
            raise PrerequisiteError(
                f"no container engine answers ({self.endpoint.source})",
                where=self.endpoint.url,
                remedy="start one, or set DOCKER_HOST; `make engine` does it on Debian as root",
            ) from e
        return client

    @property
    def api(self) -> tuple[int, int]:
        """Negotiated API version."""
        version = self._version or str(self._client.api_version)
        major, minor = version.split(".")[:2]
        return int(major), int(minor)

    def info(self) -> EngineInfo:
        """Which daemon this is and what it can do; asked once."""
        if self._info is None:
            with _translated("engine_lost", "the engine does not describe itself"):
                info = self._client.info()
            self._info = EngineInfo(
                endpoint=self.endpoint.url,
                daemon_id=str(info.get("ID", "")),
                version=str(info.get("ServerVersion", "")),
                api_version=".".join(map(str, self.api)),
                kernel=str(info.get("KernelVersion", "")),
                cgroup_version=str(info.get("CgroupVersion", "1")),
                storage_driver=str(info.get("Driver", "")),
                runtimes=tuple(sorted(info.get("Runtimes") or {})),
                default_runtime=str(info.get("DefaultRuntime", "runc")),
                security=tuple(sorted(info.get("SecurityOptions") or [])),
                rootless=any("rootless" in item for item in info.get("SecurityOptions") or []),
                operating_system=str(info.get("OperatingSystem", "")),
            )
        return self._info

    def image(self, reference: str) -> ImageInfo | None:
        """The image if it is present; never pulls."""
        with _translated("engine_lost", f"cannot look up image {reference}"):
            try:
                found = self._client.inspect_image(reference)
            except Exception as error:
                if _status(error) == _GONE:
                    return None
                raise
        config = found.get("Config") or {}
        return ImageInfo(
            reference=reference,
            id=found["Id"],
            env=tuple(config.get("Env") or ()),
            volumes=tuple(sorted(config.get("Volumes") or {})),
            labels=config.get("Labels") or {},
            size=int(found.get("Size", 0)),
        )

    def create(self, spec: ContainerSpec) -> str:
        """Create a container, return its id."""
        with _translated("create_failed", f"cannot create container {spec.name}"):
            created = self._client.create_container_from_config(
                engine_body(spec, self.api), spec.name
            )
        return str(created["Id"])

    def inspect(self, container_id: str) -> Mapping[str, Any]:
        """The engine's own description of the container."""
        with _translated("engine_lost", "cannot inspect a container"):
            found: Mapping[str, Any] = self._client.inspect_container(container_id)
        return found

    def create_volume(self, spec: VolumeSpec) -> None:
        """Create a local volume."""
        with _translated("create_failed", f"cannot create volume {spec.name}"):
            self._client.create_volume(
                name=spec.name, driver="local", driver_opts=spec.options, labels=spec.labels
            )

    def inspect_volume(self, name: str) -> Mapping[str, Any]:
        """The engine's own description of the volume."""
        with _translated("engine_lost", f"cannot inspect volume {name}"):
            found: Mapping[str, Any] = self._client.inspect_volume(name)
        return found

    def fill_volume(self, spec: ContainerSpec, path: str, archive: IO[bytes]) -> None:
        """Unpack a tar archive below `path` of a container that is never started."""
        container_id = self.create(spec)
        try:
            with _translated("create_failed", "cannot fill a volume"):
                self._client.put_archive(container_id, path, archive)
        finally:
            self.remove(container_id)

    def attach(self, container_id: str) -> DockerAttachment:
        """Attach the standard streams; before the start, so that nothing is missed."""
        with _translated("engine_lost", "cannot attach to a container"):
            wrapped = self._client.attach_socket(
                container_id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
        return DockerAttachment(getattr(wrapped, "_sock", wrapped))

    def start(self, container_id: str) -> None:
        """Start a created container."""
        with _translated("start_failed", "cannot start a container"):
            self._client.start(container_id)

    def wait(self, container_id: str, timeout: float) -> ExitState:
        """Wait until it has ended, by asking: a blocking wait cannot be bounded reliably.

        Raises:
            TimeoutError: It still runs after `timeout` seconds.
        """
        deadline = time.monotonic() + timeout
        pause = 0.005
        while True:
            state = self.inspect(container_id).get("State") or {}
            if not state.get("Running") and state.get("Status") != "created":
                return ExitState(
                    exit_code=int(state.get("ExitCode", -1)),
                    oom_killed=bool(state.get("OOMKilled")),
                    error=str(state.get("Error", "")),
                )
            if time.monotonic() >= deadline:
                raise TimeoutError
            time.sleep(pause)
            pause = min(pause * 2, 0.2)

    def kill(self, container_id: str) -> None:
        """SIGKILL; no error when it has ended or is gone."""
        with _translated("engine_lost", "cannot kill a container"):
            try:
                self._client.kill(container_id)
            except Exception as error:
                if _status(error) not in {_GONE, _CONFLICT}:
                    raise

    def remove(self, container_id: str) -> None:
        """Kill and remove with anonymous volumes; no error when it is gone."""
        with _translated("engine_lost", "cannot remove a container"):
            try:
                self._client.remove_container(container_id, force=True, v=True)
            except Exception as error:
                if _status(error) not in {_GONE, _CONFLICT}:
                    raise

    def remove_volume(self, name: str) -> None:
        """Remove a volume; no error when it is gone."""
        with _translated("engine_lost", f"cannot remove volume {name}"):
            try:
                self._client.remove_volume(name)
            except Exception as error:
                if _status(error) != _GONE:
                    raise

    def owned_containers(self) -> list[Mapping[str, Any]]:
        """All containers that carry our labels, in any state."""
        with _translated("engine_lost", "cannot list containers"):
            return list(self._client.containers(all=True, filters={"label": LABEL}))

    def owned_volumes(self) -> list[Mapping[str, Any]]:
        """All volumes that carry our labels."""
        with _translated("engine_lost", "cannot list volumes"):
            return list(self._client.volumes(filters={"label": LABEL}).get("Volumes") or [])

    def import_rootfs(self, archive: str, reference: str, *, labels: Mapping[str, str]) -> str:
        """Make an image of a root file system archive.

        Args:
            archive: Path of the tar file.
            reference: `repository:tag` of the image.
            labels: Labels of the image.

        Returns:
            The image id.
        """
        repository, _, tag = reference.rpartition(":")
        changes = [f'LABEL {name}="{value}"' for name, value in sorted(labels.items())]
        with _translated("create_failed", "cannot import the root file system"):
            # By path: the SDK's streaming import breaks on files that can be rewound.
            self._client.import_image(archive, repository=repository, tag=tag, changes=changes)
        return self._built(reference)

    def build(
        self,
        context: str,
        reference: str,
        *,
        arguments: Mapping[str, str],
        labels: Mapping[str, str],
        network: bool = False,
    ) -> str:
        """Build an image from a folder with a Dockerfile, by default without a network.

        Returns:
            The image id.
        """
        with _translated("create_failed", "cannot build the image"):
            output = self._client.build(
                path=context,
                tag=reference,
                buildargs=dict(arguments),
                labels=dict(labels),
                rm=True,
                forcerm=True,
                network_mode=None if network else "none",
                decode=True,
            )
            for line in output:
                if "error" in line:
                    raise EngineFailure(
                        str(line["error"]).strip(), detail="create_failed", where=reference
                    )
        return self._built(reference)

    def _built(self, reference: str) -> str:
        image = self.image(reference)
        if image is None:
            raise EngineFailure("the image is not there after its build", detail="create_failed")
        return image.id


def _status(error: BaseException) -> int | None:
    """HTTP status of an SDK error, if it has one."""
    response = getattr(error, "response", None)
    status = getattr(response, "status_code", None)
    return status if isinstance(status, int) else None


@contextlib.contextmanager
def _translated(detail: str, summary: str) -> Generator[None]:
    """No SDK exception leaves this room."""
    import docker
    import requests
    import urllib3

    try:
        yield
    except (
        docker.errors.DockerException,
        requests.exceptions.RequestException,
        urllib3.exceptions.HTTPError,
        OSError,
    ) as error:
        reason = getattr(error, "explanation", None) or str(error) or type(error).__name__
        raise EngineFailure(f"{summary}: {reason}", detail=detail) from error
