"""Leg -> container: the confinement profile, and the Engine API fields that ask for it.

Every field that confinement depends on is set here; nothing is left to a default of the engine.
What the engine then reports is compared in `core.readback`. Fields and traps: Docker Engine API
1.41-1.45, CIS Docker Benchmark 1.6 section 5.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

from pydantic import Field

from runner.model.base import Value
from runner.model.container import ContainerSpec, Mount, Tmpfs, Ulimit

CONTEXT_ROOT = "/context/agents"
WORKSPACE = "/workspace"
AGENT = "/ao"
UPPER = "/ao-upper"
HOOKS = "/hooks"
MARKS = "/ao-marks"
HOME = "/home/case"
SCRATCH = ("/tmp", HOME, "/dev/shm")
USAGE_FILE = "/tmp/ao-usage.json"
HOSTNAME = "ao-eval"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

AGENT_PACKAGE = "agent"
"""Folder of the agent's modules below AGENT, and the name of their package inside."""
_ENTRY = (
    f"import sys; sys.path.insert(0, '{AGENT}'); from {AGENT_PACKAGE}.main import start; start()"
)
AGENT_COMMAND = ("python3", "-I", "-S", "-E", "-B", "-c", _ENTRY)
AGENT_CAPABILITIES = ("KILL", "SETGID", "SETUID")
"""What the agent needs to run cases as another user and to end them; cases get none."""

MARKER = ("AO_AGENT_CONTAINER", "1")
"""Tells the agent that it is where it may kill every process."""

LABEL = "ao-eval"
RECURSIVE_READ_ONLY_API = (1, 44)
"""First API with which a recursive read-only bind can be demanded."""


def is_gvisor(runtime: str | None) -> bool:
    """Whether an OCI runtime is gVisor, by the name under which the engine knows it."""
    return runtime is not None and "runsc" in runtime


class Resources(Value):
    """Resource limits of a leg's container; the same for every leg of a run."""

    memory: int = Field(default=1 << 30, gt=6 << 20)
    """Bytes; swap is not allowed on top."""
    cpus: float = Field(default=1.0, gt=0, allow_inf_nan=False)
    pids: int = Field(default=256, ge=8)
    timeout_seconds: int = Field(default=900, ge=1)
    """For the whole leg."""
    scratch: int = Field(default=256 << 20, gt=0)
    """Bytes of each of /tmp and HOME, if memory allows."""

    @property
    def scratch_size(self) -> int:
        """Bytes of each of /tmp and HOME: with shared memory at most 5/8 of the memory limit.

        Their pages count against the limit but belong to no process: scratch that could fill it
        would have the OOM killer end every process of the leg, the agent at last.
        """
        return min(self.scratch, self.memory // 4)

    @property
    def shm_size(self) -> int:
        """Bytes of /dev/shm."""
        return min(64 << 20, self.memory // 8)


class Placement(NamedTuple):
    """Where the staged things of one container are on the host.

    Attributes:
        agent: Folder that holds the agent.
        context_root: Staged context root, if the leg has one.
        workspace_volume: Name of the volume that is the workspace.
        upper: Upper layer of an overlay workspace.
        hooks: Staged hooks directory, if there is one.
        marks: Folder of the marks of a read trace, which only the agent can open.
    """

    agent: str
    workspace_volume: str
    context_root: str | None = None
    upper: str | None = None
    hooks: str | None = None
    marks: str | None = None


def base_environment(
    hook_environment: Mapping[str, str], extra: Mapping[str, str]
) -> dict[str, str]:
    """Environment that every case of every leg starts with, but for the leg's own variables."""
    fixed = {
        "PATH": PATH,
        "LANG": "C.UTF-8",
        "TZ": "UTC",
        "HOME": HOME,
        "TMPDIR": "/tmp",
    }
    return {**fixed, **hook_environment, **extra}


def leg_variables(variant: str | None) -> dict[str, str]:
    """Variables the leg sets last; `variant` None: a run without a context root."""
    variables = {"AO_USAGE_FILE": USAGE_FILE}
    if variant is not None:
        variables |= {"AO_AGENTS_DIR": CONTEXT_ROOT, "AO_CONTEXT_VARIANT": variant}
    return variables


def leg_container(
    *,
    name: str,
    image_id: str,
    env: Mapping[str, str],
    labels: Mapping[str, str],
    placement: Placement,
    case_user: tuple[int, int],
    resources: Resources,
    runtime: str | None,
) -> ContainerSpec:
    """The container of a leg.

    Args:
        name: Container name, unique on the engine.
        image_id: Id of the leg image, not a tag.
        env: Environment that cases start with.
        labels: Labels that say whose container this is.
        placement: Host side of the mounts.
        case_user: Uid and gid of the case user.
        resources: Limits.
        runtime: OCI runtime; None for the engine's default.
    """
    uid, gid = case_user
    size = f"size={resources.scratch_size},nr_inodes=65536"
    scratch = f"rw,exec,nosuid,nodev,{size},uid={uid},gid={gid}"
    mounts = [
        Mount(kind="bind", source=placement.agent, target=AGENT, read_only=True),
        Mount(kind="volume", source=placement.workspace_volume, target=WORKSPACE, read_only=False),
    ]
    if placement.context_root is not None:
        mounts.append(
            Mount(kind="bind", source=placement.context_root, target=CONTEXT_ROOT, read_only=True)
        )
    if placement.hooks is not None:
        mounts.append(Mount(kind="bind", source=placement.hooks, target=HOOKS, read_only=True))
    if placement.marks is not None:
        mounts.append(Mount(kind="bind", source=placement.marks, target=MARKS, read_only=True))
    if placement.upper is not None:
        mounts.append(Mount(kind="bind", source=placement.upper, target=UPPER, read_only=True))
    return ContainerSpec(
        name=name,
        image_id=image_id,
        entrypoint=AGENT_COMMAND,
        user="0:0",
        working_dir="/",
        hostname=HOSTNAME,
        env={**env, MARKER[0]: MARKER[1]},
        labels=dict(labels),
        mounts=tuple(sorted(mounts, key=lambda mount: mount.target)),
        tmpfs=(
            Tmpfs(target=HOME, options=f"{scratch},mode=0700"),
            Tmpfs(target="/tmp", options=f"{scratch},mode=1777"),
        ),
        cap_add=AGENT_CAPABILITIES,
        memory=resources.memory,
        nano_cpus=round(resources.cpus * 1_000_000_000),
        pids=resources.pids,
        shm_size=resources.shm_size,
        ulimits=(
            Ulimit(name="core", value=0),
            Ulimit(name="fsize", value=1 << 30),
            Ulimit(name="nofile", value=4096),
        ),
        runtime=runtime,
        interactive=True,
    )


def plain_container(
    *,
    name: str,
    image_id: str,
    entrypoint: tuple[str, ...],
    user: tuple[int, int] = (65532, 65532),
    mounts: tuple[Mount, ...] = (),
    labels: Mapping[str, str] | None = None,
    runtime: str | None = None,
) -> ContainerSpec:
    """A container that runs one program of ours: a leg's confinement, no capability, no root.

    Args:
        name: Container name.
        image_id: Id of its image.
        entrypoint: Program and arguments.
        user: Uid and gid, not root.
        mounts: What it may see of the host.
        labels: Labels that say whose it is.
        runtime: OCI runtime; None for the engine's default.
    """
    uid, gid = user
    scratch = f"rw,noexec,nosuid,nodev,size={64 << 20},nr_inodes=1024,uid={uid},gid={gid}"
    return ContainerSpec(
        name=name,
        image_id=image_id,
        entrypoint=entrypoint,
        user=f"{uid}:{gid}",
        working_dir="/",
        hostname=HOSTNAME,
        env={"PATH": PATH, "LANG": "C.UTF-8", "TZ": "UTC", "HOME": "/tmp"},
        labels={LABEL: "1", **(labels or {})},
        mounts=tuple(sorted(mounts, key=lambda mount: mount.target)),
        tmpfs=(Tmpfs(target="/tmp", options=f"{scratch},mode=0700"),),
        cap_add=(),
        memory=1 << 30,
        nano_cpus=2_000_000_000,
        pids=64,
        shm_size=1 << 20,
        ulimits=(
            Ulimit(name="core", value=0),
            Ulimit(name="fsize", value=1 << 30),
            Ulimit(name="nofile", value=1024),
        ),
        runtime=runtime,
        interactive=False,
    )


def engine_body(spec: ContainerSpec, api: tuple[int, int]) -> dict[str, Any]:
    """The body of `POST /containers/create`.

    Args:
        spec: The container.
        api: Negotiated API version; decides whether recursive read-only can be demanded. With
            gVisor it cannot: its runtime does not state that it knows such mounts, and the engine
            refuses.
    """
    recursive = api >= RECURSIVE_READ_ONLY_API and not is_gvisor(spec.runtime)
    return {
        "Image": spec.image_id,
        "Entrypoint": list(spec.entrypoint),
        "Cmd": [],
        "User": spec.user,
        "WorkingDir": spec.working_dir,
        "Hostname": spec.hostname,
        "Env": [f"{name}={value}" for name, value in sorted(spec.env.items())],
        "Labels": dict(sorted(spec.labels.items())),
        "Tty": False,
        "OpenStdin": spec.interactive,
        "StdinOnce": spec.interactive,
        "AttachStdin": spec.interactive,
        "AttachStdout": True,
        "AttachStderr": True,
        # Together with network mode none this skips the engine's network set-up altogether.
        "NetworkDisabled": True,
        "Healthcheck": {"Test": ["NONE"]},
        "StopSignal": "SIGKILL",
        "HostConfig": {
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "CapAdd": list(spec.cap_add),
            "SecurityOpt": ["no-new-privileges:true"],
            "Privileged": False,
            "ReadonlyRootfs": True,
            "Memory": spec.memory,
            "MemorySwap": spec.memory,
            "NanoCpus": spec.nano_cpus,
            "PidsLimit": spec.pids,
            "ShmSize": spec.shm_size,
            "Ulimits": [
                {"Name": limit.name, "Soft": limit.value, "Hard": limit.value}
                for limit in spec.ulimits
            ],
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "PidMode": "",
            "UTSMode": "",
            "LogConfig": {"Type": "none", "Config": {}},
            "RestartPolicy": {"Name": "no"},
            "AutoRemove": False,
            "Init": False,
            "OomKillDisable": False,
            "Mounts": [_mount(mount, recursive=recursive) for mount in spec.mounts],
            "Tmpfs": {scratch.target: scratch.options for scratch in spec.tmpfs},
            **({"Runtime": spec.runtime} if spec.runtime else {}),
        },
    }


def _mount(mount: Mount, *, recursive: bool) -> dict[str, Any]:
    body: dict[str, Any] = {
        "Type": mount.kind,
        "Source": mount.source,
        "Target": mount.target,
        "ReadOnly": mount.read_only,
    }
    if mount.kind == "bind":
        # rprivate: nothing mounted later on the host appears inside.
        body["BindOptions"] = {"Propagation": "rprivate"}
        if mount.read_only and recursive:
            body["BindOptions"]["ReadOnlyForceRecursive"] = True
        else:
            # Submounts might be writable: none is brought in at all.
            body["BindOptions"]["NonRecursive"] = True
    else:
        body["VolumeOptions"] = {"NoCopy": True}
    return body
