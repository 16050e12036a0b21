"""What the engine says it created, compared with what was asked for.

Old engines drop unknown fields, a compatible engine may reinterpret them, an image may add to them.
Anything that differs is a difference, and a leg with one is not started.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from runner.core.confine import engine_body
from runner.model.container import ContainerSpec, Difference

_HOST_EXACT = (
    "NetworkMode",
    "Privileged",
    "ReadonlyRootfs",
    "Memory",
    "MemorySwap",
    "NanoCpus",
    "PidsLimit",
    "ShmSize",
    "IpcMode",
    "CgroupnsMode",
    "PidMode",
    "UTSMode",
    "AutoRemove",
    "Tmpfs",
)
"""Fields of HostConfig that must come back as they were sent."""

_HOST_EMPTY = (
    "Binds",
    "VolumesFrom",
    "PortBindings",
    "Links",
    "ExtraHosts",
    "Dns",
    "Devices",
    "DeviceRequests",
    "DeviceCgroupRules",
    "DnsOptions",
    "DnsSearch",
    "GroupAdd",
    "Sysctls",
    "Cgroup",
    "CgroupParent",
    "UsernsMode",
    "VolumeDriver",
    "StorageOpt",
    "OomScoreAdj",
    "Annotations",
)
"""Fields of HostConfig that must be empty: each would widen what the leg can reach."""

_MASKED = ("/proc/kcore", "/proc/keys", "/proc/timer_list", "/sys/firmware")
_READ_ONLY = ("/proc/bus", "/proc/fs", "/proc/irq", "/proc/sys", "/proc/sysrq-trigger")


def differences(
    spec: ContainerSpec,
    found: Mapping[str, Any],
    *,
    api: tuple[int, int],
    image_env: Sequence[str] = (),
) -> tuple[Difference, ...]:
    """Compare a created container with its specification.

    Args:
        spec: What was asked for.
        found: `GET /containers/{id}/json`.
        api: Negotiated API version.
        image_env: `NAME=value` entries that the image itself brings; they are part of what is
            expected, since the engine merges them.

    Returns:
        Every field that differs; empty when the container is what was asked for.
    """
    asked = engine_body(spec, api)
    return tuple(
        Difference(field=field, asked=wanted, found=got)
        for field, wanted, got in _fields(spec, asked, found, image_env)
        if wanted != got
    )


def _fields(
    spec: ContainerSpec,
    asked: Mapping[str, Any],
    found: Mapping[str, Any],
    image_env: Sequence[str],
) -> Iterable[tuple[str, Any, Any]]:
    config = found.get("Config") or {}
    host = found.get("HostConfig") or {}
    wanted = asked["HostConfig"]
    yield "Image", spec.image_id, found.get("Image")
    yield "Config.Entrypoint", asked["Entrypoint"], config.get("Entrypoint")
    yield "Config.Cmd", [], config.get("Cmd") or []
    for name in ("User", "WorkingDir", "Hostname", "Tty", "OpenStdin", "StdinOnce"):
        yield f"Config.{name}", asked[name], config.get(name)
    yield "Config.NetworkDisabled", True, config.get("NetworkDisabled", False)
    yield "Config.Healthcheck", ["NONE"], (config.get("Healthcheck") or {}).get("Test")
    yield "Config.Volumes", {}, config.get("Volumes") or {}
    yield "Config.Env", _merged_env(image_env, spec), sorted(config.get("Env") or [])
    labels = config.get("Labels") or {}
    yield "Config.Labels", dict(spec.labels), {k: labels.get(k) for k in spec.labels}
    for name in _HOST_EXACT:
        yield f"HostConfig.{name}", wanted[name], host.get(name)
    for name in _HOST_EMPTY:
        yield f"HostConfig.{name}", None, host.get(name) or None
    yield "HostConfig.CapDrop", ["ALL"], host.get("CapDrop")
    yield "HostConfig.CapAdd", list(spec.cap_add), _capabilities(host.get("CapAdd"))
    yield "HostConfig.SecurityOpt", wanted["SecurityOpt"], host.get("SecurityOpt")
    yield "HostConfig.LogConfig.Type", "none", (host.get("LogConfig") or {}).get("Type")
    yield "HostConfig.OomKillDisable", False, bool(host.get("OomKillDisable"))
    yield "HostConfig.PublishAllPorts", False, bool(host.get("PublishAllPorts"))
    yield "HostConfig.Init", False, bool(host.get("Init"))
    restart = (host.get("RestartPolicy") or {}).get("Name")
    yield "HostConfig.RestartPolicy", "no", restart or "no"
    yield "HostConfig.Ulimits", _by_name(wanted["Ulimits"]), _by_name(host.get("Ulimits") or [])
    if spec.runtime is not None:
        yield "HostConfig.Runtime", spec.runtime, host.get("Runtime")
    yield "HostConfig.MaskedPaths", [], _missing(_MASKED, host.get("MaskedPaths"))
    yield "HostConfig.ReadonlyPaths", [], _missing(_READ_ONLY, host.get("ReadonlyPaths"))
    yield "HostConfig.Mounts", _mounts(wanted["Mounts"]), _mounts(host.get("Mounts") or [])
    yield "Mounts", _asked_points(spec), _found_points(found.get("Mounts") or [])
    networks = sorted(((found.get("NetworkSettings") or {}).get("Networks") or {}).keys())
    yield "NetworkSettings.Networks", [], [name for name in networks if name != "none"]
    state = found.get("State") or {}
    yield "State.Status", "created", state.get("Status")


def _merged_env(image_env: Sequence[str], spec: ContainerSpec) -> list[str]:
    merged = dict(entry.partition("=")[::2] for entry in image_env)
    merged |= spec.env
    return sorted(f"{name}={value}" for name, value in merged.items())


def _capabilities(found: Sequence[str] | None) -> list[str]:
    return sorted(name.removeprefix("CAP_") for name in found or [])


def _by_name(limits: Iterable[Mapping[str, Any]]) -> list[tuple[Any, Any, Any]]:
    return sorted((limit.get("Name"), limit.get("Soft"), limit.get("Hard")) for limit in limits)


def _missing(wanted: Sequence[str], found: Sequence[str] | None) -> list[str]:
    return [path for path in wanted if path not in (found or [])]


def _mounts(mounts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Mount requests without fields that engines add as empty defaults."""
    kept = []
    for mount in mounts:
        options = {
            kind: {k: v for k, v in (mount.get(kind) or {}).items() if v}
            for kind in ("BindOptions", "VolumeOptions", "TmpfsOptions")
        }
        kept.append(
            {
                "Type": mount.get("Type"),
                "Source": mount.get("Source"),
                "Target": mount.get("Target"),
                "ReadOnly": bool(mount.get("ReadOnly")),
                **{kind: given for kind, given in options.items() if given},
            }
        )
    return sorted(kept, key=lambda mount: str(mount["Target"]))


Point = tuple[str, str, str, bool, str]
"""Target, type, source, whether it is writable, and the propagation of a bind."""


def _asked_points(spec: ContainerSpec) -> list[Point]:
    return sorted(
        (
            mount.target,
            mount.kind,
            mount.source,
            not mount.read_only,
            "rprivate" if mount.kind == "bind" else "",
        )
        for mount in spec.mounts
    )


def _found_points(points: Iterable[Mapping[str, Any]]) -> list[Point]:
    found = []
    for point in points:
        kind = str(point.get("Type"))
        if kind == "tmpfs":
            continue  # compared through HostConfig.Tmpfs
        source = point.get("Name") if kind == "volume" else point.get("Source")
        propagation = str(point.get("Propagation")) if kind == "bind" else ""
        found.append(
            (str(point.get("Destination")), kind, str(source), bool(point.get("RW")), propagation)
        )
    return sorted(found)


def profile(found: Mapping[str, Any]) -> dict[str, Any]:
    """The confinement profile as read back, without names, ids, labels, values and host paths.

    Two runs with the same settings on the same engine have the same profile.
    """
    config = found.get("Config") or {}
    host = found.get("HostConfig") or {}
    keep = (*_HOST_EXACT, "CapDrop", "SecurityOpt", "Ulimits", "Runtime", "MaskedPaths")
    return {
        "image": found.get("Image"),
        "entrypoint": config.get("Entrypoint"),
        "user": config.get("User"),
        "hostname": config.get("Hostname"),
        "network_disabled": config.get("NetworkDisabled", False),
        "environment_names": sorted(entry.partition("=")[0] for entry in config.get("Env") or []),
        "cap_add": _capabilities(host.get("CapAdd")),
        "host": {name: host.get(name) for name in (*keep, "ReadonlyPaths")},
        "mounts": [
            {
                "target": mount["Target"],
                "type": mount["Type"],
                "read_only": mount["ReadOnly"],
                "options": mount.get("BindOptions", {}),
            }
            for mount in _mounts(host.get("Mounts") or [])
        ],
    }


def profile_digest(profiles: Iterable[Mapping[str, Any]]) -> str:
    """SHA-256 over the distinct profiles of a run."""
    texts = sorted({json.dumps(item, sort_keys=True, separators=(",", ":")) for item in profiles})
    return hashlib.sha256("\n".join(texts).encode()).hexdigest()


def bind_sources(found: Mapping[str, Any]) -> tuple[str, ...]:
    """Host paths of all binds that a container has.

    Volumes are ours: made empty, or of layers that are looked at by themselves.
    """
    return tuple(
        str(point["Source"])
        for point in found.get("Mounts") or []
        if point.get("Type") == "bind" and point.get("Source")
    )
