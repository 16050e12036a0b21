"""The agent in real containers: time, processes, memory, and one case blind to another."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

import pytest

from runner.core.confine import Resources
from runner.core.wire import Bye, CaseEnded
from runner.errors import ProtocolViolation
from runner.model.leg import CasePlan, Command
from tests.container import agent_leg
from tests.container.agent_leg import (
    CASE_UID,
    MIB,
    Leg,
    Outcome,
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


def test_a_timeout_kills_the_tree_and_the_next_case_runs(tmp_path: Path) -> None:
    out = run(
        tmp_path,
        case(sh("trap '' TERM INT HUP; sleep 100 & sleep 100"), 0, timeout=1),
        case(sh("kill -STOP $$"), 1, timeout=1),
        case(sh("exec >&- 2>&-; sleep 100"), 2, timeout=1),
        case(py("import os, signal\nif os.fork(): os.kill(os.getppid(), 0) if 0 else None\n"
                "os.kill(os.getpid(), signal.SIGSTOP)"), 3, timeout=1),
        case(sh("echo alive; set -- /proc/[0-9]*; echo $#"), 4),
    )  # fmt: skip
    for index in range(4):
        facts = out.execution(index)
        assert facts.timed_out
        assert facts.signal == 9
        assert 900 <= facts.duration_ms < 5000
    # PID 1 and the shell: nobody else.
    assert out.output(4).split() == [b"alive", b"2"]
    assert out.execution(4).exit_code == 0


def test_a_daemon_that_holds_the_output_open_is_killed_with_the_case(tmp_path: Path) -> None:
    daemon = (
        "import os, time, signal\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        for n in range(1, 65):\n"
        "            try: signal.signal(n, signal.SIG_IGN)\n"
        "            except (OSError, ValueError): pass\n"
        "        while True: time.sleep(1)\n"
        "    os._exit(0)\n"
        "os.wait()\n"
        "print('leader done', flush=True)\n"
    )
    begin = time.monotonic()
    out = run(
        tmp_path,
        command("python3", "-I", "-c", daemon),
        py("import os; print(os.listdir('/proc'))"),
    )
    assert time.monotonic() - begin < 15
    assert out.output() == b"leader done\n"
    assert out.execution().stragglers >= 1
    assert out.execution().exit_code == 0
    assert sum(name.isdigit() for name in eval(out.output(1))) == 2


def outlived(
    tmp_path: Path, *what: CasePlan | Command, host: dict[str, Any]
) -> tuple[Outcome | None, bool]:
    """The outcome, None when the container ended in the middle; whether for lack of memory.

    gVisor is one process to the host, and limits of the container are limits of that process: a
    case that goes beyond them ends its kernel, the agent with it. What was not reported is lost,
    and the stream must show that it is.
    """
    cases = [item if isinstance(item, CasePlan) else case(item, n) for n, item in enumerate(what)]
    with Leg(tmp_path, cases, host=host) as leg:
        leg.send_plan()
        out = leg.pump()
        out.exit_code = leg.wait()
        oom = leg.client.api.inspect_container(leg.id)["State"]["OOMKilled"]
        if isinstance(out.events[-1], Bye):
            leg.decoder.finish()
            return out, oom
        assert out.exit_code != 0
        assert not [event for event in out.events if isinstance(event, CaseEnded)]
        with pytest.raises(ProtocolViolation):
            leg.decoder.finish()
        return None, oom


def test_orphans_are_reaped_while_the_case_runs(tmp_path: Path) -> None:
    # More short-lived daemons than the pids limit has room for, where dead ones count.
    script = "for i in $(seq 1 400); do (true &) ; done; sleep 0.3; set -- /proc/[0-9]*; echo $#"
    out, _ = outlived(tmp_path, sh(script), host={"PidsLimit": 64})
    # gVisor of 2022 keeps a host thread for each for too long.
    assert out is not None or GVISOR
    if out is not None:
        assert out.execution().exit_code == 0
        assert int(out.output()) <= 4


def test_cases_are_better_victims_of_the_oom_killer_than_the_agent(tmp_path: Path) -> None:
    # The agent takes its own score back once the case has started.
    out = run(tmp_path, sh("sleep 1; cat /proc/self/oom_score_adj /proc/1/oom_score_adj"))
    assert out.output().split() == [b"500", b"0"]


def test_a_fork_bomb_ends_with_its_case(tmp_path: Path) -> None:
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    out, oom = outlived(tmp_path, case(py(bomb), 0, timeout=2), case(sh("echo next"), 1), host={})
    assert not oom
    assert out is not None or GVISOR
    if out is not None:
        assert out.execution(0).timed_out
        assert out.output(1) == b"next\n"


def test_oom_of_a_child_is_told_from_the_counter(tmp_path: Path) -> None:
    eat = "import os\nif os.fork() == 0: b = bytearray(400 << 20)\nprint(os.wait()[1] & 127)\n"
    limit = {"Memory": 96 * MIB, "MemorySwap": 96 * MIB}
    out, oom = outlived(tmp_path, py(eat), sh("exit 137"), host=limit)
    # Of gVisor's processes the kernel may choose one whose end the engine does not put down to it.
    assert (out is None) is GVISOR
    if out is None:
        return
    assert oom
    assert out.output() == b"9\n"
    assert out.execution(0).oom_killed is True
    assert out.execution(1).oom_killed is False


def test_scratch_is_empty_for_the_next_case_whatever_was_left(tmp_path: Path) -> None:
    mess = (
        "import os, sys\n"
        "for top in ('/tmp', '/home/case', '/dev/shm'):\n"
        "    os.makedirs(top + '/locked/inner'); open(top + '/locked/inner/f', 'w').close()\n"
        "    os.symlink('/etc', top + '/link')\n"
        "    open(os.fsencode(top) + b'/\\xff\\n\\x01', 'w').close()\n"
        "    os.mkfifo(top + '/fifo'); open(top + '/.hidden', 'w').close()\n"
        "    for i in range(500): open(f'{top}/f{i}', 'w').close()\n"
        "    os.chmod(top + '/locked/inner', 0); os.chmod(top + '/locked', 0)\n"
        "os.chdir('/tmp')\n"
        "for i in range(3000): os.mkdir('d' * 200); os.chdir('d' * 200)\n"
        "if os.path.isdir('/dev/mqueue'): open('/dev/mqueue/queue', 'w').close()\n"
        "os.chmod('.', 0); os.chmod('/home/case', 0)\n"
        "os.setxattr('/tmp', 'user.note', b'hello')\n"
        "os.utime('/home/case', (1, 1))\n"
    )
    look = (
        "import os\n"
        "for top in ('/tmp', '/home/case', '/dev/shm', '/dev/mqueue'):\n"
        "    if not os.path.isdir(top): continue\n"
        "    print(os.listdir(top), os.listxattr(top) if top == '/tmp' else '',"
        " oct(os.stat(top).st_mode), int(os.stat(top).st_mtime) == 1)\n"
    )
    out = run(tmp_path, py(look), py(mess), py(look))
    assert out.execution(1).exit_code == 0, out.output(1, "stderr")
    assert out.output(2) == out.output(0), (out.ended(2), out.output(2, "stderr"))
    assert out.output(0).count(b"[]") >= (3 if GVISOR else 4)


def test_many_leftover_files_are_removed(tmp_path: Path) -> None:
    script = "import os\nfor i in range(30000): os.close(os.open('/tmp/%d' % i, os.O_CREAT))"
    out = run(tmp_path, py(script), sh("ls -A /tmp | wc -l"))
    assert out.output(1) == b"0\n"


def test_system_v_shared_memory_asks_for_a_fresh_container(tmp_path: Path) -> None:
    leave = "import ctypes\nlibc = ctypes.CDLL(None)\nprint(libc.shmget(7, 4096, 0o1666) >= 0)"
    leaver = command("python3", "-c", leave)
    for share in (True, False):
        out = run(tmp_path, leaver, sh("true"), sh("true"), share=share)
        assert out.output() == b"True\n"
        # gVisor does not show them: there every command has a container of its own, unless one
        # workspace is shared by all.
        unseen = GVISOR and share
        ended = (out.bye.reason, out.bye.end.cases_done)
        assert ended == (("done", 3) if unseen else ("leftover", 1))


def test_message_queues_do_not_outlive_a_case(tmp_path: Path) -> None:
    script = (
        "import ctypes, os\nlibc = ctypes.CDLL('librt.so.1')\n"
        "print(libc.mq_open(b'/left', os.O_RDWR%s, 0o600, None) >= 0)"
    )
    leaver, finder = (command("python3", "-c", script % flags) for flags in ("|os.O_CREAT", ""))
    out = run(tmp_path, leaver, finder, share=False)
    assert out.output(0) == b"True\n"
    # Removed with the scratch folders; where none shows them, with the container.
    done = out.bye.end.cases_done
    assert (out.bye.reason, done) == (("leftover", 1) if GVISOR else ("done", 2))
    assert out.output(1) == (b"" if GVISOR else b"False\n")


@pytest.mark.parametrize(
    "write",
    [
        "echo x > new",
        "echo x >> deep/file",
        "rm given.txt",
        "touch new; rm new",
        "chmod 700 .",
        "chmod 700 deep/file",
        "mv given.txt other; mv other given.txt",
        "chmod 000 .",
    ],
)
def test_a_case_that_wrote_to_the_workspace_ends_the_container(tmp_path: Path, write: str) -> None:
    readers = [] if GVISOR else [sh("cat deep/file; ls")]  # see the test below
    out = run(tmp_path, *readers, sh(write), sh("true"), share=False)
    assert out.execution(len(readers)).exit_code == 0
    ended = [event for event in out.events if isinstance(event, CaseEnded)]
    assert [event.wrote_workspace for event in ended] == [False] * len(readers) + [True]
    assert (out.bye.reason, out.bye.end.cases_done, out.exit_code) == ("dirty", len(ended), 0)


def test_a_case_that_wrote_nothing_ends_the_container_only_where_much_is_hidden(
    tmp_path: Path,
) -> None:
    out = run(tmp_path, sh("cat deep/file; find ."), sh("true"), share=False)
    assert out.ended().wrote_workspace is False
    ended = (out.bye.reason, out.bye.end.cases_done)
    assert ended == (("leftover", 1) if GVISOR else ("done", 2))


def test_a_last_case_may_write_and_a_shared_workspace_stays(tmp_path: Path) -> None:
    out = run(tmp_path, *([] if GVISOR else [sh("true")]), sh("touch x"), share=False)
    assert out.bye.reason == "done"
    out = run(tmp_path, sh("echo 1 > x"), sh("cat x"), sh("cat x; rm x"), share=True)
    assert [out.output(n) for n in (1, 2)] == [b"1\n", b"1\n"]
    assert [out.ended(n).wrote_workspace for n in range(3)] == [True, None, True]
    assert out.bye.reason == "done"


def test_without_an_upper_layer_every_command_is_taken_to_have_written(tmp_path: Path) -> None:
    out = run(tmp_path, None, command("true", cwd="/"), None, overlay=False, share=False)
    assert [out.ended(n).wrote_workspace for n in (0, 1)] == [False, None]
    assert (out.bye.reason, out.bye.end.cases_done) == ("dirty", 2)
    out = run(tmp_path, *[command("true", cwd="/")] * 3, overlay=False, share=True)
    assert out.bye.reason == "done"


def test_scratch_filled_to_the_brim_leaves_the_agent_its_memory(tmp_path: Path) -> None:
    limits = Resources(memory=64 * MIB)
    scratch = f"rw,nosuid,nodev,size={limits.scratch_size},uid={CASE_UID},gid={CASE_UID}"
    host = {
        "Memory": limits.memory,
        "MemorySwap": limits.memory,
        "ShmSize": limits.shm_size,
        "Tmpfs": {"/tmp": scratch + ",mode=1777", "/home/case": scratch + ",mode=0700"},
    }
    fill = (
        "for d in /tmp /home/case /dev/shm; do head -c 1G /dev/zero > $d/full; wc -c $d/full; done"
    )
    out = run(tmp_path, sh(fill), sh("ls /tmp /home/case /dev/shm; echo on"), host=host)
    sizes = [int(line.split()[0]) for line in out.output(0).splitlines()]
    assert sizes == [limits.scratch_size, limits.scratch_size, limits.shm_size]
    assert out.execution(0).oom_killed is (None if GVISOR else False)
    assert out.output(1).splitlines()[-1] == b"on"
    assert out.bye.reason == "done"
