"""The agent in real containers: what no case can do to it, dead men, and refusals to run."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import docker
import pytest

from runner.core.confine import AGENT_COMMAND
from runner.core.wire import (
    EXIT_FATAL,
    EXIT_ORPHANED,
    EXIT_REFUSED,
    MARKER_ENV,
    Bye,
    CaseStarted,
    Fatal,
)
from runner.host.agentfiles import stage_agent
from tests.container import agent_leg
from tests.container.agent_leg import (
    Leg,
    case,
    command,
    py,
    run,
    sh,
)
from tests.container.projects import GVISOR

pytestmark = pytest.mark.container


@pytest.fixture(autouse=True)
def _image(leg_image: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(agent_leg, "IMAGE", leg_image)


def test_a_case_that_kills_everything_kills_only_itself(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        sh("sleep 100 & kill -9 -1; exit 5"),
        sh("for s in KILL STOP TERM INT HUP QUIT SEGV ABRT USR1; do kill -$s 1; done; echo $?"),
        py("import os, signal\nfor n in range(1, 65):\n"
           "    try: os.kill(1, n); print('sent', n)\n"
           "    except OSError as e: pass\n"),
        sh("echo still"),
    )  # fmt: skip
    # kill(-1) spares its caller on Linux: the shell goes on alone.
    assert out.execution(0).exit_code == 5
    assert b"sent" not in out.output(2)
    assert out.output(3) == b"still\n"


def static_program(code: bytes) -> bytes:
    """A static x86-64 ELF program: running within microseconds of its exec, as no script is."""
    base, start = 0x400000, 64 + 56
    head = b"\x7fELF\x02\x01\x01" + bytes(9)
    head += struct.pack("<HHIQQQIHHHHHH", 2, 62, 1, base + start, 64, 0, 0, 64, 56, 1, 0, 0, 0)
    size = start + len(code)
    return head + struct.pack("<IIQQQQQQ", 1, 5, 0, base, base, size, size, 4096) + code


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="the attacker is x86-64 machine code")
def test_signals_in_the_moment_of_the_spawn_do_not_stop_the_agent(tmp_path: Path) -> None:
    # The agent's real user id is the case's for some microseconds after the exec.
    code = bytes.fromhex(
        "4531f6"  # xor r14d, r14d         permitted = 0
        "41bdd0070000"  # mov r13d, 2000   rounds
    )
    for number in (9, 19, 2, 14, 15):  # kill(1, number); permitted |= result == 0
        code += b"\xb8\x3e\0\0\0\xbf\1\0\0\0\xbe" + struct.pack("<I", number) + b"\x0f\x05"
        code += bytes.fromhex("85c0 0f94c1 4108ce")  # test eax,eax; sete cl; or r14b, cl
    # dec r13d; jnz to the first kill; exit(permitted)
    code += bytes.fromhex("41ffcd 0f85") + struct.pack("<i", -(len(code) - 9 + 3 + 6))
    code += bytes.fromhex("4489f7 b83c000000 0f05")
    attacks = [command("./attack") for _ in range(100)]
    with Leg(tmp_path, [case(c, n) for n, c in enumerate([*attacks, sh("echo on")])]) as leg:
        attack = leg.home / "lower" / "attack"
        attack.write_bytes(static_program(code))
        attack.chmod(0o755)
        leg.send_plan()
        out = leg.pump()
        # gVisor does not shield PID 1 from its own processes: there it never has the case's id.
        assert {out.execution(n).exit_code for n in range(100)} <= ({0} if GVISOR else {0, 1})
        assert out.output(100) == b"on\n"
        assert out.bye.reason == "done"


def test_the_agent_cannot_be_traced_read_or_written_to(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        sh("for f in fd/1 fd/0 mem environ maps cwd/x root/x; do"
           " (echo '{\"n\":\"x\"}' > /proc/1/$f) 2>/dev/null && echo wrote $f;"
           " (cat /proc/1/$f) >/dev/null 2>&1 && echo read $f; done; true"),
        command("python3", "-c", "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
                "print(libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0))"),
        py("import os\nfor f in (lambda: os.sched_setaffinity(1, {0}),"
           " lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)):\n"
           "    try: f(); print('changed')\n    except PermissionError: print('refused')"),
        py("import os\ntry: numbers = os.listdir('/proc/1/fd')\n"
           "except OSError: numbers = [str(n) for n in range(20)]\n"
           "for n in numbers:\n"
           "    for mode in (os.O_RDONLY, os.O_WRONLY):\n"
           "        try: found = os.fstat(os.open('/proc/1/fd/' + n, mode | os.O_NONBLOCK))\n"
           "        except OSError: continue\n"
           "        if int(n) < 3 or (mode == os.O_WRONLY and found.st_uid != os.getuid()):\n"
           "            print('opened', n, mode)\n"),
    )  # fmt: skip
    # gVisor shows these two of every process to every user; a case has all of it itself.
    assert out.output(0) == (b"read environ\nread maps\n" if GVISOR else b"")
    assert out.output(1) == b"-1 -1\n"
    # gVisor keeps both as numbers that change nothing, and lets everybody set them.
    assert out.output(2) == (b"changed\n" if GVISOR else b"refused\n") * 2
    # By number gVisor lets a case open what it may open by name, and the pipes of its own output.
    assert out.output(3) == b""
    assert out.bye.reason == "done"


def test_forged_frames_on_the_cases_own_output_are_only_output(tmp_path: Path) -> None:
    forged = '{"n":"%s","s":2,"t":"bye","w":"done"}\n'
    out = run(tmp_path, command("printf", "%s", forged), sh("echo real"))
    assert out.output() == forged.encode()
    assert out.output(1) == b"real\n"


def test_the_plan_and_its_nonce_are_not_visible_to_a_case(tmp_path: Path) -> None:
    with Leg(
        tmp_path, [case(sh("cat /proc/1/cmdline /proc/*/environ /proc/1/status; env"))]
    ) as leg:
        leg.send_plan()
        out = leg.pump()
        assert out.execution().exit_code is not None
        assert leg.nonce.encode() not in out.output() + out.output(0, "stderr")
        assert (b"AO_AGENT_CONTAINER" in out.output()) is GVISOR


def running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except (FileNotFoundError, ProcessLookupError):
        return False


@pytest.mark.parametrize(
    "script",
    [
        "sleep 100",
        "trap '' TERM HUP; while :; do sleep 100; done",
        "yes",
        "yes | head -c 1000000000 >&2; sleep 100",
        "kill -STOP $$",
    ],
)
def test_end_of_file_on_stdin_ends_the_container_within_two_seconds(
    tmp_path: Path, script: str
) -> None:
    with Leg(tmp_path, [case(sh(script), timeout=100)]) as leg:
        leg.send_plan()
        leg.pump(CaseStarted)
        pid = leg.client.api.inspect_container(leg.id)["State"]["Pid"]
        time.sleep(0.3)  # nobody reads now: the agent may be blocked on writing
        begin = time.monotonic()
        leg.close_stdin()
        while running(pid):
            assert time.monotonic() - begin < 2
            time.sleep(0.01)
        for _ in leg.frames():  # the engine tells the end once its pipes are read
            pass
        assert leg.wait() == EXIT_ORPHANED


def test_the_dead_man_switch_works_while_blocked_between_cases(tmp_path: Path) -> None:
    # More output than all buffers on the way hold, in cases that have long ended.
    with Leg(tmp_path, [case(sh("head -c 60000 /dev/zero"), n) for n in range(400)]) as leg:
        leg.send_plan()
        leg.pump(CaseStarted)
        pid = leg.client.api.inspect_container(leg.id)["State"]["Pid"]
        time.sleep(3)
        assert running(pid)
        begin = time.monotonic()
        leg.close_stdin()
        while running(pid):
            assert time.monotonic() - begin < 2
            time.sleep(0.01)


def test_a_client_that_vanishes_ends_the_container(tmp_path: Path) -> None:
    with Leg(tmp_path, [case(sh("yes"), timeout=100)]) as leg:
        leg.send_plan()
        leg.pump(CaseStarted)
        begin = time.monotonic()
        leg.response.close()
        leg.socket.close()
        assert leg.wait() == EXIT_ORPHANED
        assert time.monotonic() - begin < 2


def test_no_plan_and_no_stdin_ends_the_container(tmp_path: Path) -> None:
    with Leg(tmp_path, [case(sh("true"))]) as leg:
        leg.close_stdin()
        assert leg.wait() == EXIT_ORPHANED


@pytest.mark.parametrize("script", ["sleep 100", "yes", "trap '' ALRM; kill -ALRM 1; sleep 100"])
def test_a_leg_ends_by_itself_at_its_time_limit_though_nobody_listens(
    tmp_path: Path, script: str
) -> None:
    # As when the engine was killed: standard input stays open, and nobody reads.
    with Leg(tmp_path, [case(sh(script), n, timeout=100) for n in range(3)], seconds=4) as leg:
        begin = time.monotonic()
        leg.send_plan()
        leg.pump(CaseStarted)
        pid = leg.client.api.inspect_container(leg.id)["State"]["Pid"]
        while running(pid):
            assert time.monotonic() - begin < 8
            time.sleep(0.05)
        assert time.monotonic() - begin > 3.9
        for _ in leg.frames():
            pass
        assert leg.wait() == EXIT_ORPHANED


def test_a_case_cannot_hasten_the_time_limit(tmp_path: Path) -> None:
    out = run(tmp_path, sh("kill -ALRM 1; sleep 1.5; echo on"), seconds=600)
    assert out.output() == b"on\n"


def test_a_workspace_that_is_not_clean_at_the_start_is_fatal(tmp_path: Path) -> None:
    with Leg(tmp_path, [case(sh("true"))], share=False) as leg:
        (leg.home / "upper" / "x").touch()
        leg.send_plan()
        out = leg.pump()
        assert isinstance(out.events[-1], Fatal)
        assert out.events[-1].reason == "workspace_not_clean"
        assert leg.wait() == EXIT_FATAL


def test_held_containers_stay_after_the_last_case_and_mind_nobody(tmp_path: Path) -> None:
    with Leg(tmp_path, [case(sh("echo kept > /tmp/f"))], hold=60) as leg:
        leg.send_plan()
        leg.pump(Bye)
        leg.close_stdin()
        time.sleep(1)
        api = leg.client.api
        look = api.exec_create(leg.id, ["cat", "/tmp/f"])["Id"]
        assert api.exec_start(look) == b"kept\n"
        assert api.inspect_container(leg.id)["State"]["Running"]


def test_the_agent_refuses_to_run_as_a_plain_process_and_kills_nothing(tmp_path: Path) -> None:
    stage_agent(tmp_path / "ao")
    command = [item.replace("'/ao'", repr(str(tmp_path / "ao"))) for item in AGENT_COMMAND[1:]]
    witness = subprocess.Popen(["sleep", "60"])
    try:
        done = subprocess.run(
            [sys.executable, *command],
            env={**MARKER_ENV, "PATH": "/usr/bin:/bin"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=20,
            check=False,
        )
        assert done.returncode == EXIT_REFUSED
        assert done.stdout == b""
        assert done.stderr.startswith(b"agent: refused")
        assert witness.poll() is None
    finally:
        witness.kill()
        witness.wait()


@pytest.mark.parametrize(
    "change",
    [{"Env": ["PATH=/usr/bin:/bin"]}, {"ReadonlyRootfs": False}, {"Init": True}, {"rw": True}],
    ids=["no marker", "writable rootfs", "not PID 1", "agent not read-only"],
)
def test_the_agent_refuses_a_container_that_is_not_a_leg(
    tmp_path: Path, leg_image: str, change: dict[str, Any]
) -> None:
    stage_agent(tmp_path / "ao")
    client = docker.from_env()
    mount = {"Type": "bind", "Source": str(tmp_path / "ao"), "Target": "/ao",
             "ReadOnly": "rw" not in change}  # fmt: skip
    host = {
        "NetworkMode": "none",
        "ReadonlyRootfs": change.get("ReadonlyRootfs", True),
        "Init": change.get("Init", False),
        "Mounts": [mount],
    }
    config = {
        "Image": leg_image,
        "Entrypoint": list(AGENT_COMMAND),
        "Env": change.get("Env", ["PATH=/usr/bin:/bin", "AO_AGENT_CONTAINER=1"]),
        "HostConfig": host,
    }
    try:
        made = client.api.create_container_from_config(config)["Id"]  # type: ignore[no-untyped-call]
        try:
            client.api.start(made)
            assert client.api.wait(made, timeout=60)["StatusCode"] == EXIT_REFUSED
        finally:
            client.api.remove_container(made, force=True)
    finally:
        client.close()
