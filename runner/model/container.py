"""A container as it is asked for, and what the engine says it made of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import Field

from runner.model.base import ImageId, Items, Value

Bytes = Annotated[int, Field(gt=0)]


class Mount(Value):
    """A bind or volume mount. Binds never create their source."""

    kind: Literal["bind", "volume"]
    source: str
    """Host path (bind) or volume name."""
    target: str
    read_only: bool


class Tmpfs(Value):
    """Sized scratch."""

    target: str
    options: str


class Ulimit(Value):
    """One resource limit, soft = hard."""

    name: str
    value: int


class ContainerSpec(Value):
    """Everything that is asked of the engine for one container."""

    name: str
    image_id: ImageId
    entrypoint: Items[str]
    user: str
    working_dir: str
    hostname: str
    env: dict[str, str]
    labels: dict[str, str]
    mounts: Items[Mount]
    tmpfs: Items[Tmpfs]
    cap_add: Items[str]
    memory: Bytes
    nano_cpus: Bytes
    pids: Bytes
    shm_size: Bytes
    ulimits: Items[Ulimit]
    runtime: str | None
    """OCI runtime name; None: the engine's default."""
    interactive: bool
    """Standard input attached once; its end of file is the dead-man switch."""


class VolumeSpec(Value):
    """A local volume; `options` empty for a plain one."""

    name: str
    options: dict[str, str]
    labels: dict[str, str]


class Difference(Value):
    """One field in which the created container is not what was asked for."""

    field: str
    asked: Any
    found: Any


class EngineInfo(Value):
    """Which daemon this is and what it can do."""

    endpoint: str
    daemon_id: str
    version: str
    api_version: str
    kernel: str
    cgroup_version: str
    storage_driver: str
    runtimes: Items[str]
    default_runtime: str
    security: Items[str]
    rootless: bool
    operating_system: str


class ImageInfo(Value):
    """A present image."""

    reference: str
    id: ImageId
    env: Items[str]
    """`NAME=value` as configured in the image."""
    volumes: Items[str]
    labels: dict[str, str]
    size: int


class ExitState(Value):
    """State of a container that ended."""

    exit_code: int
    oom_killed: bool
    error: str
