"""The confinement profile, and the Engine API fields that ask for it."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from runner.core import confine
from runner.core.confine import (
    Placement,
    Resources,
    base_environment,
    engine_body,
    leg_variables,
    plain_container,
)
from runner.core.planline import HOOKS_TARGET, MARKS_TARGET
from runner.model.container import Mount
from tests.unit.builders import GOLDEN, container_spec, sha

API_20_10, API_26_1 = (1, 41), (1, 45)


def host(**fields: Any) -> dict[str, Any]:
    """HostConfig of a leg's container."""
    found: dict[str, Any] = engine_body(container_spec(**fields), API_20_10)["HostConfig"]
    return found


@pytest.mark.parametrize("api", [API_20_10, API_26_1])
def test_the_body_sent_to_the_engine_is_the_reviewed_one(api: tuple[int, int]) -> None:
    golden = (GOLDEN / f"engine-body-{api[0]}.{api[1]}.json").read_text(encoding="utf-8")
    body = engine_body(container_spec(), api)
    assert json.dumps(body, indent=2, sort_keys=True) + "\n" == golden


@pytest.mark.parametrize(
    "field, value",
    [
        ("NetworkMode", "none"),
        ("CapDrop", ["ALL"]),
        ("CapAdd", ["KILL", "SETGID", "SETUID"]),
        ("SecurityOpt", ["no-new-privileges:true"]),
        ("Privileged", False),
        ("ReadonlyRootfs", True),
        ("IpcMode", "private"),
        ("CgroupnsMode", "private"),
        ("PidMode", ""),
        ("UTSMode", ""),
        ("LogConfig", {"Type": "none", "Config": {}}),
        ("RestartPolicy", {"Name": "no"}),
        ("AutoRemove", False),
        ("OomKillDisable", False),
        ("PidsLimit", 256),
    ],
)
def test_every_protection_is_asked_for(field: str, value: object) -> None:
    assert host()[field] == value


def test_the_network_is_off_twice_and_nothing_of_the_image_runs() -> None:
    body = engine_body(container_spec(), API_20_10)
    assert body["NetworkDisabled"] is True
    assert body["Entrypoint"][0] == "python3"
    assert (body["Cmd"], body["Healthcheck"]) == ([], {"Test": ["NONE"]})
    assert (body["Tty"], body["OpenStdin"], body["StdinOnce"]) == (False, True, True)


def test_paths_that_the_engine_masks_by_default_are_left_to_it() -> None:
    # Sending a list, even an empty one, would replace the default.
    assert not {"MaskedPaths", "ReadonlyPaths", "Binds", "Devices", "UsernsMode"} & set(host())


def test_swap_is_never_allowed_on_top_of_memory() -> None:
    limits = host(resources=Resources(memory=64 << 20))
    assert (limits["Memory"], limits["MemorySwap"]) == (64 << 20, 64 << 20)


def test_limits_are_hard_limits() -> None:
    limits = {item["Name"]: (item["Soft"], item["Hard"]) for item in host()["Ulimits"]}
    assert limits == {"core": (0, 0), "fsize": (1 << 30, 1 << 30), "nofile": (4096, 4096)}


def test_a_runtime_is_named_only_when_one_is_asked_for() -> None:
    assert "Runtime" not in host()
    assert host(runtime="runsc")["Runtime"] == "runsc"


@pytest.mark.parametrize("cpus, nano", [(1.0, 10**9), (0.29, 290_000_000), (2.3, 2_300_000_000)])
def test_processor_shares_are_rounded_not_cut(cpus: float, nano: int) -> None:
    assert host(resources=Resources(cpus=cpus))["NanoCpus"] == nano


@pytest.mark.parametrize(
    "limits",
    [
        {"memory": 6 << 20},
        {"cpus": 0.0},
        {"cpus": float("nan")},
        {"cpus": float("inf")},
        {"pids": 0},
        {"timeout_seconds": 0},
        {"scratch": 0},
        {"memory": "1g"},
    ],
)
def test_limits_that_are_none_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        Resources(**limits)


# --- mounts


def test_everything_but_the_workspace_is_read_only() -> None:
    mounts = {item["Target"]: item for item in host()["Mounts"]}
    assert list(mounts) == ["/ao", "/ao-upper", "/context/agents", "/workspace"]
    writable = [target for target, item in mounts.items() if not item["ReadOnly"]]
    assert writable == ["/workspace"]
    assert mounts["/workspace"]["VolumeOptions"] == {"NoCopy": True}


@pytest.mark.parametrize(
    "api, option",
    [
        (API_20_10, {"NonRecursive": True}),
        ((1, 43), {"NonRecursive": True}),
        ((1, 44), {"ReadOnlyForceRecursive": True}),
        (API_26_1, {"ReadOnlyForceRecursive": True}),
        ((2, 0), {"ReadOnlyForceRecursive": True}),
    ],
)
def test_submounts_of_a_bind_are_read_only_or_absent(
    api: tuple[int, int], option: dict[str, bool]
) -> None:
    for mount in engine_body(container_spec(), api)["HostConfig"]["Mounts"]:
        if mount["Type"] == "bind":
            assert mount["BindOptions"] == {"Propagation": "rprivate", **option}


@pytest.mark.parametrize("runtime", ["runsc", "runsc-kvm", "/usr/bin/runsc"])
@pytest.mark.parametrize("api", [API_20_10, API_26_1])
def test_gvisor_is_given_no_submounts_since_the_engine_refuses_to_make_them_read_only(
    runtime: str, api: tuple[int, int]
) -> None:
    spec = container_spec(runtime=runtime)
    for mount in engine_body(spec, api)["HostConfig"]["Mounts"]:
        if mount["Type"] == "bind":
            assert mount["ReadOnly"] is True
            assert mount["BindOptions"] == {"Propagation": "rprivate", "NonRecursive": True}


@pytest.mark.parametrize("runtime", [None, "runc", "crun", "kata-runtime"])
def test_every_other_runtime_is_asked_for_recursive_read_only(runtime: str | None) -> None:
    spec = container_spec(runtime=runtime)
    options = [m.get("BindOptions") for m in engine_body(spec, API_26_1)["HostConfig"]["Mounts"]]
    wanted = {"Propagation": "rprivate", "ReadOnlyForceRecursive": True}
    assert [item for item in options if item] == [wanted] * 3


def test_a_writable_bind_never_shows_submounts() -> None:
    spec = container_spec()
    loose = spec.model_copy(
        update={"mounts": tuple(m.model_copy(update={"read_only": False}) for m in spec.mounts)}
    )
    options = [m.get("BindOptions") for m in engine_body(loose, API_26_1)["HostConfig"]["Mounts"]]
    wanted = {"Propagation": "rprivate", "NonRecursive": True}
    assert [item for item in options if item] == [wanted] * 3


def test_a_leg_without_a_root_and_without_an_overlay_has_two_mounts() -> None:
    placement = Placement(agent="/srv/agent", workspace_volume="w")
    targets = [mount.target for mount in container_spec(placement=placement).mounts]
    assert targets == ["/ao", "/workspace"]


def test_a_hooks_directory_is_one_more_read_only_bind_without_submounts() -> None:
    placement = Placement(agent="/a", workspace_volume="v", hooks="/srv/stage/hooks")
    for api in (API_20_10, (1, 45)):
        mounts = {
            item["Target"]: item
            for item in engine_body(container_spec(placement=placement), api)["HostConfig"][
                "Mounts"
            ]
        }
        assert list(mounts) == ["/ao", "/hooks", "/workspace"]
        found = mounts["/hooks"]
        assert (found["Type"], found["Source"]) == ("bind", "/srv/stage/hooks")
        assert found["ReadOnly"] is True
        assert found["BindOptions"] == mounts["/ao"]["BindOptions"]
    assert confine.HOOKS == HOOKS_TARGET


def test_marks_are_one_more_read_only_bind() -> None:
    placement = Placement(agent="/a", workspace_volume="v", marks="/srv/stage/marks")
    mounts = {item.target: item for item in container_spec(placement=placement).mounts}
    assert list(mounts) == ["/ao", "/ao-marks", "/workspace"]
    found = mounts["/ao-marks"]
    assert (found.kind, found.source, found.read_only) == ("bind", "/srv/stage/marks", True)
    assert confine.MARKS == MARKS_TARGET


def test_scratch_is_sized_and_belongs_to_the_case_user() -> None:
    tmpfs = host(case_user=(1000, 100), resources=Resources(scratch=4096))["Tmpfs"]
    assert set(tmpfs) == {"/tmp", "/home/case"}
    for options in tmpfs.values():
        wanted = {"nosuid", "nodev", "size=4096", "nr_inodes=65536", "uid=1000", "gid=100"}
        assert wanted <= set(options.split(","))


@pytest.mark.parametrize(
    "memory, scratch, shm",
    [
        (1 << 30, 256 << 20, 64 << 20),
        (8 << 30, 256 << 20, 64 << 20),
        (512 << 20, 128 << 20, 64 << 20),
        (64 << 20, 16 << 20, 8 << 20),
    ],
)
def test_scratch_shrinks_with_the_memory_limit(memory: int, scratch: int, shm: int) -> None:
    found = host(resources=Resources(memory=memory))
    assert all(f"size={scratch}" in item.split(",") for item in found["Tmpfs"].values())
    assert found["ShmSize"] == shm


@given(st.integers(min_value=(6 << 20) + 1, max_value=1 << 40), st.integers(1, 1 << 40))
def test_full_scratch_leaves_three_eighths_of_the_memory(memory: int, scratch: int) -> None:
    found = host(resources=Resources(memory=memory, scratch=scratch))
    sizes = [
        int(option.removeprefix("size="))
        for options in found["Tmpfs"].values()
        for option in options.split(",")
        if option.startswith("size=")
    ]
    assert len(sizes) == 2
    assert min(*sizes, found["ShmSize"]) > 0
    assert sum(sizes) + found["ShmSize"] <= memory * 5 / 8


# --- environment


def test_the_environment_is_fixed_names_hook_variables_and_options() -> None:
    found = base_environment({"AO_PROFILE": "ci"}, {"EXTRA": "1", "TZ": "Europe/Berlin"})
    assert found == {
        "PATH": confine.PATH,
        "LANG": "C.UTF-8",
        "TZ": "Europe/Berlin",
        "HOME": "/home/case",
        "TMPDIR": "/tmp",
        "AO_PROFILE": "ci",
        "EXTRA": "1",
    }


def test_a_leg_sets_its_own_variables_last() -> None:
    assert leg_variables(None) == {"AO_USAGE_FILE": "/tmp/ao-usage.json"}
    assert leg_variables("context_off") == {
        "AO_USAGE_FILE": "/tmp/ao-usage.json",
        "AO_AGENTS_DIR": "/context/agents",
        "AO_CONTEXT_VARIANT": "context_off",
    }


@given(
    st.dictionaries(
        st.text(min_size=1, alphabet=st.characters(exclude_characters="=\0", codec="utf-8")),
        st.text(alphabet=st.characters(exclude_characters="\0", codec="utf-8")),
    )
)
def test_the_container_gets_exactly_the_environment_and_the_agents_marker(
    environment: dict[str, str],
) -> None:
    sent = engine_body(container_spec(env=environment), API_20_10)["Env"]
    received = dict(item.partition("=")[::2] for item in sent)
    assert received == {**environment, "AO_AGENT_CONTAINER": "1"}
    assert len(sent) == len(received)


def test_two_legs_that_differ_in_the_variant_alone_get_the_same_profile() -> None:
    def body(variant: str) -> dict[str, Any]:
        environment = {**base_environment({}, {}), **leg_variables(variant)}
        return engine_body(container_spec(env=environment), API_20_10)

    off, on = body("context_off"), body("context_on")
    assert {key for key in off if off[key] != on[key]} == {"Env"}
    assert set(off["Env"]) ^ set(on["Env"]) == {
        "AO_CONTEXT_VARIANT=context_off",
        "AO_CONTEXT_VARIANT=context_on",
    }


# --- programs of ours other than a leg's agent


def test_a_container_of_one_program_has_no_capability_no_root_and_no_input() -> None:
    mounts = (
        Mount(kind="bind", source="/srv/out", target="/out", read_only=False),
        Mount(kind="bind", source="/srv/in", target="/in", read_only=True),
    )
    spec = plain_container(
        name="n",
        image_id=f"sha256:{sha('3')}",
        entrypoint=("python3", "-I"),
        mounts=mounts,
        labels={"mine": "1"},
    )
    body = engine_body(spec, API_20_10)
    assert body["HostConfig"]["CapAdd"] == []
    assert body["HostConfig"]["CapDrop"] == ["ALL"]
    assert (body["User"], body["OpenStdin"], body["NetworkDisabled"]) == (
        "65532:65532",
        False,
        True,
    )
    assert body["HostConfig"]["NetworkMode"] == "none"
    assert body["HostConfig"]["ReadonlyRootfs"] is True
    assert body["Labels"] == {"ao-eval": "1", "mine": "1"}
    assert [item["Target"] for item in body["HostConfig"]["Mounts"]] == ["/in", "/out"]
    assert all("noexec" in options for options in body["HostConfig"]["Tmpfs"].values())
    names = {entry.partition("=")[0] for entry in body["Env"]}
    assert names == {"PATH", "LANG", "TZ", "HOME"}
