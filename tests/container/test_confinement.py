"""How a leg is confined, as its cases and the engine see it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.container.projects import CASE_USER, GVISOR, Project, case

pytestmark = pytest.mark.container

PROBE = r"""
import json, os, socket

def tried(action):
    try:
        action()
    except OSError as error:
        return type(error).__name__
    return "done"

def write(path):
    return tried(lambda: os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600)))

def connect(family, address):
    with socket.socket(family, socket.SOCK_STREAM) as s:
        s.settimeout(2)
        return tried(lambda: s.connect(address))

status = dict(line.split(":\t", 1) for line in open("/proc/self/status").read().splitlines())
root = os.environ["AO_AGENTS_DIR"]
os.chdir(root)
print(json.dumps({
    "uid": os.getresuid(), "gid": os.getresgid(), "groups": os.getgroups(),
    "capabilities": [status[k] for k in ("CapInh", "CapPrm", "CapEff")]
                    + [status.get("CapAmb", "0")],
    "no_new_privs": status.get("NoNewPrivs"), "seccomp": status["Seccomp"],
    # gVisor of 2024 has no /sys/class/net.
    "interfaces": [line.split(":")[0].strip() for line in open("/proc/net/dev").readlines()[2:]],
    "internet": connect(socket.AF_INET, ("192.0.2.1", 80)),
    "resolved": tried(lambda: socket.getaddrinfo("example.org", 80)),
    "sockets": [p for p in ("/var/run/docker.sock", "/run/docker.sock", "/run/containerd")
                if os.path.lexists(p)],
    "written": {p: write(p + "/new") for p in
                ("/", "/etc", "/usr/bin", "/var/lib", "/ao", "/ao-upper", root)},
    "changed": {
        "root": tried(lambda: os.unlink(root + "/learnings/hint.md")),
        "append": write(root + "/learnings/hint.md"),
        "chmod": tried(lambda: os.chmod(root + "/learnings", 0o777)),
        "agent": write("/ao/agent/main.py"),
        "setuid": tried(lambda: os.setuid(0)),
        "chroot": tried(lambda: os.chroot("/tmp")),
        "kill": tried(lambda: os.kill(1, 9)),
        "memory": write("/proc/1/mem"),
        "sysctl": write("/proc/sys/kernel/core_pattern"),
    },
    "allowed": {p: write(p + "/new") for p in
                ("/tmp", os.environ["HOME"], "/dev/shm", "/workspace")},
    "hostname": os.uname().nodename,
    "pids": sorted(int(p) for p in os.listdir("/proc") if p.isdigit())[:1],
    "parent": os.getppid(),
}))
"""


def test_a_case_is_an_ordinary_user_without_network_who_can_change_nothing_of_the_leg(
    project: Project,
) -> None:
    project.write({"evals/probe.py": PROBE})
    path = project.suite(case("probe", "python3 probe.py"))
    result = project.ao_eval("run", path, "--variant", "context_on")
    assert result.code == 0, (result.stderr, result.output("probe", name="stderr"))
    assert result.output("probe"), (result.record(), result.output("probe", name="stderr"))
    seen = json.loads(result.output("probe"))

    assert seen["uid"] == [CASE_USER] * 3
    assert 0 not in seen["gid"]
    assert seen["groups"] in ([], [seen["gid"][0]])
    assert {int(text, 16) for text in seen["capabilities"]} == {0}
    # gVisor shows neither; what it says when asked is in the record.
    assert (seen["no_new_privs"], seen["seccomp"]) == ((None, "0") if GVISOR else ("1", "2"))
    assert result.record()["inside"]["no_new_privs"] is True
    assert seen["interfaces"] == ["lo"]
    assert seen["internet"] == "OSError"
    assert seen["resolved"] == "gaierror"
    assert seen["sockets"] == []
    refused = {"PermissionError", "OSError"}
    assert set(seen["written"].values()) <= refused, seen["written"]
    assert set(seen["changed"].values()) <= refused, seen["changed"]
    assert set(seen["allowed"].values()) == {"done"}, seen["allowed"]
    assert seen["hostname"] == "ao-eval"
    assert seen["pids"] == [1]
    assert result.record()["inside"]["interfaces"] == ["lo"]
    assert result.record()["inside"]["routes"] == 0


def test_limits_are_those_that_were_asked_for_and_bind(project: Project) -> None:
    fork = (
        "import os, time\nfor n in range(100):\n    if os.fork() == 0: time.sleep(9); os._exit(0)"
    )
    project.write({"evals/fork.py": fork})
    forks = case(
        "forks", "python3 fork.py", {"type": "stderr_contains", "value": "BlockingIOError"}
    )
    fills = case(
        "fills",
        "head -c 400m /dev/zero > /tmp/big",
        {"type": "stderr_contains", "value": "No space left"},
    )
    options = ("--memory", "600m", "--cpus", "0.5", "--env", "MINE=yes")
    # gVisor itself counts: it does not start with so few, and ends when it can have no more.
    pids, cases = (200, [fills]) if GVISOR else (24, [forks, fills])
    if GVISOR:
        few = project.ao_eval("run", project.suite(fills), *options, "--pids", "8")
        (row,) = few.record("none")["case_results"]
        assert (row["degraded_reason"], row["degraded_detail"]) == (
            "runtime_unavailable",
            "start_failed",
        )
    result = project.ao_eval("run", project.suite(*cases), *options, "--pids", str(pids))

    assert result.code == 0, result.stderr
    statuses = [item["status"] for item in result.record("none")["case_results"]]
    assert statuses == ["pass"] * len(cases)
    (container,) = result.read("evidence/sandbox.json")["containers"]
    host = container["profile"]["host"]
    assert (host["Memory"], host["MemorySwap"]) == (600 << 20, 600 << 20)
    assert host["NanoCpus"] == 500_000_000
    assert host["PidsLimit"] == pids
    assert host["NetworkMode"] == "none"
    assert host["ReadonlyRootfs"] is True
    assert host["CapDrop"] == ["ALL"]
    assert container["differences"] == []
    assert "MINE" in container["profile"]["environment_names"]


def test_an_unknown_runtime_is_a_missing_prerequisite(project: Project) -> None:
    path = project.suite(case("one", "true"))
    result = project.ao_eval("ab", path, "--runtime", "no-such-runtime")
    assert (result.code, result.stdout) == (3, "")
    (line,) = result.stderr.splitlines()
    assert "no-such-runtime" in line
    assert "runc" in line
    assert not result.directories


def test_an_image_with_a_writable_volume_is_refused(project: Project, tmp_path: Path) -> None:
    dockerfile = "ARG BASE\nFROM $BASE\nVOLUME /data\n"
    (tmp_path / "Dockerfile").write_text(dockerfile, encoding="utf-8")
    reference = "ao-eval-test/volume:1"
    (tmp_path / "empty").mkdir()
    project.engine.build(str(tmp_path), reference, arguments={"BASE": project.image}, labels={})
    try:
        result = project.ao_eval("ab", project.suite(case("one", "true")), "--image", reference)
    finally:
        project.engine._client.remove_image(reference)
    assert (result.code, result.stdout) == (2, "")
    (line,) = result.stderr.splitlines()
    assert "/data" in line
