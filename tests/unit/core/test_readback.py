"""A created container against its specification: what the engine did not do is named.

The base is a real answer of Docker 20.10.24 to the body of `tests/unit/golden`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.readback import bind_sources, differences, profile, profile_digest
from runner.model.container import ContainerSpec, Difference
from tests.unit.builders import Json, container_spec, inspected

API = (1, 41)
REMOVED = object()


def compare(found: Mapping[str, Any], spec: ContainerSpec | None = None) -> set[str]:
    """Fields that differ."""
    return {item.field for item in differences(spec or container_spec(), found, api=API)}


def changed(*path: str | int, to: object) -> Json:
    """The answer with one value changed or removed."""
    found = inspected()
    node: Any = found
    for key in path[:-1]:
        node = node[key]
    if to is REMOVED:
        del node[path[-1]]
    else:
        node[path[-1]] = to
    return found


def test_a_real_answer_to_what_was_asked_for_has_no_difference() -> None:
    assert differences(container_spec(), inspected(), api=API) == ()


def test_a_difference_says_what_was_asked_for_and_what_was_found() -> None:
    found = changed("HostConfig", "NetworkMode", to="bridge")
    assert differences(container_spec(), found, api=API) == (
        Difference(field="HostConfig.NetworkMode", asked="none", found="bridge"),
    )


# Each line: a field of HostConfig, and values under which its protection is gone.
FLIPPED: dict[str, tuple[object, ...]] = {
    "NetworkMode": ("bridge", "host", "default", "container:abc", "", None, REMOVED),
    "CapDrop": ([], None, ["NET_RAW"], REMOVED),
    "CapAdd": (["KILL", "SETGID", "SETUID", "SYS_ADMIN"], ["CAP_SYS_PTRACE"], ["ALL"], []),
    "SecurityOpt": (
        None,
        [],
        ["no-new-privileges:true", "seccomp=unconfined"],
        ["no-new-privileges:true", "apparmor=unconfined"],
        ["no-new-privileges:false"],
        REMOVED,
    ),
    "Privileged": (True, None, REMOVED),
    "ReadonlyRootfs": (False, None, REMOVED),
    "Memory": (0, 2 << 30, REMOVED),
    "MemorySwap": (-1, 0, 2 << 30, REMOVED),
    "NanoCpus": (0, 2 * 10**9, REMOVED),
    "PidsLimit": (0, -1, None, 100_000, REMOVED),
    "ShmSize": (0, 1 << 30, REMOVED),
    "IpcMode": ("host", "shareable", "container:abc", "", REMOVED),
    "CgroupnsMode": ("host", "", REMOVED),
    "PidMode": ("host", "container:abc", REMOVED),
    "UTSMode": ("host", REMOVED),
    "UsernsMode": ("host",),
    "Cgroup": ("container:abc",),
    "CgroupParent": ("/elsewhere",),
    "AutoRemove": (True, REMOVED),
    "OomKillDisable": (True,),
    "OomScoreAdj": (-1000,),
    "PublishAllPorts": (True,),
    "Init": (True,),
    "RestartPolicy": ({"Name": "always", "MaximumRetryCount": 0},),
    "Tmpfs": ({}, None, {"/tmp": "rw"}, {"/": "rw"}, REMOVED),
    "Ulimits": ([], None, [{"Name": "core", "Soft": -1, "Hard": -1}], REMOVED),
    "MaskedPaths": ([], None, ["/proc/kcore"], REMOVED),
    "ReadonlyPaths": ([], None, ["/proc/bus"], REMOVED),
    "Binds": (["/:/host"],),
    "VolumesFrom": (["other"],),
    "PortBindings": ({"80/tcp": [{"HostPort": "80"}]},),
    "Links": (["other"],),
    "ExtraHosts": (["db:10.0.0.1"],),
    "Dns": (["10.0.0.1"],),
    "DnsOptions": (["ndots:5"],),
    "DnsSearch": (["example.com"],),
    "Devices": ([{"PathOnHost": "/dev/kmsg"}],),
    "DeviceRequests": ([{"Driver": "nvidia"}],),
    "DeviceCgroupRules": (["a *:* rwm"],),
    "GroupAdd": (["docker"],),
    "Sysctls": ({"net.ipv4.ip_forward": "1"},),
    "VolumeDriver": ("nfs",),
    "StorageOpt": ({"size": "1T"},),
    "Annotations": ({"dev.gvisor.flag.network": "host"},),
    "Mounts": ([], None, REMOVED),
}


@pytest.mark.parametrize(
    "field, value", [(field, value) for field, values in FLIPPED.items() for value in values]
)
def test_a_protection_that_the_engine_did_not_put_in_place_is_named(
    field: str, value: object
) -> None:
    assert f"HostConfig.{field}" in compare(changed("HostConfig", field, to=value))


@pytest.mark.parametrize(
    "field, values",
    [
        ("Entrypoint", (None, ["sh"], REMOVED)),
        ("Cmd", (["sh"],)),
        ("User", ("", "65532", REMOVED)),
        ("WorkingDir", ("/workspace", REMOVED)),
        ("Hostname", ("host-1", REMOVED)),
        ("Tty", (True, REMOVED)),
        ("OpenStdin", (False, REMOVED)),
        ("StdinOnce", (False, REMOVED)),
        ("NetworkDisabled", (False, REMOVED)),
        ("Healthcheck", (None, {"Test": ["CMD", "true"]}, REMOVED)),
        ("Volumes", ({"/data": {}},)),
        ("Labels", (None, {}, {"ao-eval": "2", "ao-eval.leg": "context_on"}, REMOVED)),
        ("Env", (None, [], REMOVED)),
    ],
)
def test_configuration_that_is_not_what_was_asked_for_is_named(
    field: str, values: tuple[object, ...]
) -> None:
    for value in values:
        assert f"Config.{field}" in compare(changed("Config", field, to=value))


def test_another_image_is_named() -> None:
    assert compare(changed("Image", to=f"sha256:{'4' * 64}")) == {"Image"}


@pytest.mark.parametrize("status", ["running", "exited", "paused"])
def test_a_container_that_is_not_merely_created_is_named(status: str) -> None:
    assert compare(changed("State", "Status", to=status)) == {"State.Status"}


def test_a_network_that_it_is_attached_to_is_named() -> None:
    networks = changed("NetworkSettings", "Networks", to={"none": {}, "bridge": {}})
    assert compare(networks) == {"NetworkSettings.Networks"}
    assert compare(changed("NetworkSettings", "Networks", to={"none": {}})) == set()


@pytest.mark.parametrize("entry", ["HTTP_PROXY=http://proxy", "LD_PRELOAD=/x.so", "AO_EXTRA="])
def test_a_variable_too_many_is_named(entry: str) -> None:
    found = inspected()
    found["Config"]["Env"].append(entry)
    assert compare(found) == {"Config.Env"}


def test_a_variable_that_is_missing_or_has_another_value_is_named() -> None:
    found = inspected()
    for index in range(len(found["Config"]["Env"])):
        lost, altered = inspected(), inspected()
        del lost["Config"]["Env"][index]
        altered["Config"]["Env"][index] += "x"
        assert compare(lost) == compare(altered) == {"Config.Env"}


def test_variables_of_the_image_are_expected_and_those_of_the_leg_win() -> None:
    found = inspected()
    found["Config"]["Env"].append("FROM_IMAGE=1")
    image = ("FROM_IMAGE=1", "HOME=/image/home")
    assert differences(container_spec(), found, api=API, image_env=image) == ()
    found["Config"]["Env"].remove("HOME=/home/case")
    found["Config"]["Env"].append("HOME=/image/home")
    (only,) = differences(container_spec(), found, api=API, image_env=image)
    assert only.field == "Config.Env"


def test_labels_that_the_image_adds_are_no_difference() -> None:
    found = inspected()
    found["Config"]["Labels"]["org.example"] = "x"
    assert compare(found) == set()


MOUNTS = range(4)


@pytest.mark.parametrize("index", MOUNTS)
def test_a_mount_whose_writability_is_not_what_was_asked_for_is_named(index: int) -> None:
    found = inspected()
    found["Mounts"][index]["RW"] = not found["Mounts"][index]["RW"]
    assert compare(found) == {"Mounts"}
    request = inspected()
    mount = request["HostConfig"]["Mounts"][index]
    mount["ReadOnly"] = not mount.get("ReadOnly", False)
    assert compare(request) == {"HostConfig.Mounts"}


@pytest.mark.parametrize("index", MOUNTS)
@pytest.mark.parametrize("key, value", [("Destination", "/etc"), ("Type", "npipe")])
def test_a_mount_somewhere_else_is_named(index: int, key: str, value: str) -> None:
    found = inspected()
    found["Mounts"][index][key] = value
    assert "Mounts" in compare(found)


@pytest.mark.parametrize("index", MOUNTS)
def test_a_mount_of_something_else_is_named(index: int) -> None:
    found = inspected()
    point = found["Mounts"][index]
    point["Name" if point["Type"] == "volume" else "Source"] = "/home/dev/.agents"
    assert compare(found) == {"Mounts"}


@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize("propagation", ["rshared", "rslave", "", None])
def test_a_bind_through_which_later_mounts_appear_is_named(index: int, propagation: object) -> None:
    found = inspected()
    found["Mounts"][index]["Propagation"] = propagation
    assert compare(found) == {"Mounts"}


@pytest.mark.parametrize("index", MOUNTS)
def test_a_mount_that_is_missing_or_comes_twice_is_named(index: int) -> None:
    lost, twice = inspected(), inspected()
    del lost["Mounts"][index]
    twice["Mounts"].append(twice["Mounts"][index])
    assert compare(lost) == compare(twice) == {"Mounts"}


@pytest.mark.parametrize(
    "extra",
    [
        {"Type": "bind", "Source": "/var/run/docker.sock", "Destination": "/s", "RW": False},
        {"Type": "volume", "Name": "x", "Destination": "/data", "RW": True},
    ],
)
def test_an_extra_mount_is_named(extra: Json) -> None:
    found = inspected()
    found["Mounts"].append(extra)
    assert compare(found) == {"Mounts"}


def test_a_scratch_mount_that_an_engine_lists_is_compared_where_it_was_asked_for() -> None:
    found = inspected()
    found["Mounts"].append({"Type": "tmpfs", "Destination": "/tmp", "RW": True})
    assert compare(found) == set()
    found["HostConfig"]["Mounts"].append({"Type": "tmpfs", "Target": "/data"})
    assert compare(found) == {"HostConfig.Mounts"}


@pytest.mark.parametrize(
    "index, kind, options",
    [
        (0, "BindOptions", {"Propagation": "rprivate"}),
        (2, "BindOptions", {"Propagation": "rshared", "NonRecursive": True}),
        (2, "BindOptions", None),
        (3, "VolumeOptions", {}),
        (3, "VolumeOptions", {"NoCopy": True, "DriverConfig": {"Name": "nfs"}}),
        (0, "TmpfsOptions", {"SizeBytes": 1}),
    ],
)
def test_options_of_a_mount_that_were_dropped_or_changed_are_named(
    index: int, kind: str, options: object
) -> None:
    found = inspected()
    found["HostConfig"]["Mounts"][index][kind] = options
    assert compare(found) == {"HostConfig.Mounts"}


def test_empty_defaults_that_an_engine_adds_are_no_difference() -> None:
    found = inspected()
    for mount in found["HostConfig"]["Mounts"]:
        mount["TmpfsOptions"] = None
        if mount["Type"] == "volume":
            mount["VolumeOptions"] |= {"Labels": {}, "DriverConfig": {}, "Subpath": ""}
        else:
            mount["BindOptions"] |= {"CreateMountpoint": False, "ReadOnlyNonRecursive": False}
    found["HostConfig"]["CapAdd"] = ["CAP_KILL", "CAP_SETGID", "CAP_SETUID"]
    found["HostConfig"]["RestartPolicy"] = {}
    found["HostConfig"]["Ulimits"].reverse()
    assert compare(found) == set()


def test_another_runtime_than_the_one_asked_for_is_named() -> None:
    spec = container_spec(runtime="runsc")
    assert compare(inspected(), spec) == {"HostConfig.Runtime"}
    assert compare(changed("HostConfig", "Runtime", to="runsc"), spec) == set()


@pytest.mark.parametrize("found", [{}, {"Config": None, "HostConfig": None, "Mounts": None}])
def test_an_answer_that_says_nothing_differs_in_every_protection(found: Json) -> None:
    fields = compare(found)
    for name in ("NetworkMode", "CapDrop", "SecurityOpt", "ReadonlyRootfs", "MaskedPaths"):
        assert f"HostConfig.{name}" in fields
    assert {"Image", "Mounts", "Config.Env", "State.Status"} <= fields


@given(st.sampled_from(sorted(FLIPPED)), st.data())
def test_a_flipped_protection_is_named_whatever_else_is_wrong(
    field: str, data: st.DataObject
) -> None:
    found = changed("HostConfig", field, to=data.draw(st.sampled_from(FLIPPED[field])))
    other = data.draw(st.sampled_from(sorted(FLIPPED)))
    if other != field:
        found["HostConfig"].pop(other, None)
    assert f"HostConfig.{field}" in compare(found)


# --- evidence of the read-back


def test_the_profile_has_the_confinement_and_no_name_id_label_value_or_host_path() -> None:
    found = inspected()
    text = json.dumps(profile(found))
    for secret in ("/srv/stage", "golden", "ao-eval.leg", '"ci"', found["Id"], "AO_PROFILE=ci"):
        assert secret not in text
    kept = profile(found)
    assert kept["host"]["NetworkMode"] == "none"
    assert kept["host"]["Runtime"] == "runc"
    assert kept["cap_add"] == ["KILL", "SETGID", "SETUID"]
    assert "AO_PROFILE" in kept["environment_names"]
    assert [(m["target"], m["read_only"]) for m in kept["mounts"]] == [
        ("/ao", True),
        ("/ao-upper", True),
        ("/context/agents", True),
        ("/workspace", False),
    ]


def test_two_containers_that_differ_in_names_only_have_one_profile() -> None:
    other = json.loads(re.sub("golden|/srv/stage", "other", json.dumps(inspected())))
    assert profile(other) == profile(inspected())


def test_an_empty_answer_has_a_profile_too() -> None:
    assert profile({})["mounts"] == []


def test_the_digest_of_a_run_depends_on_its_distinct_profiles_alone() -> None:
    one, two = profile(inspected()), profile(changed("HostConfig", "Privileged", to=True))
    assert profile_digest([one, one]) == profile_digest([one])
    assert profile_digest([one, two]) == profile_digest([two, one])
    assert profile_digest([one, two]) != profile_digest([one])


def test_host_paths_of_binds_are_listed_and_volumes_are_not() -> None:
    assert bind_sources(inspected()) == (
        "/srv/stage/agent",
        "/srv/stage/upper",
        "/srv/stage/context",
    )
    assert bind_sources({"Mounts": None}) == ()
