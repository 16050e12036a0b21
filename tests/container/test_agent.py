"""The agent as PID 1 of real containers: what it observes, and what no case can do to it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import docker
import pytest

from runner.core.treehash import TreeRecord, content_digest, directory_record, file_record
from runner.core.treehash import link_record
from runner.core.wire import (
    EXIT_ORPHANED,
    EXIT_REFUSED,
    MARKER_ENV,
    Bye,
    CaseEnded,
    CaseStarted,
    Chunk,
    Decoder,
    Event,
    ExecutionFacts,
    Fatal,
    FileChunk,
    Hello,
    Limits,
    encode_plan,
)
from runner.model.leg import Axis, CasePlan, Command, ContextRoot, LegPlan, Probe

pytestmark = pytest.mark.container

AGENT = Path(__file__).resolve().parents[2] / "runner" / "inside" / "agent.py"
IMAGE = os.environ.get("AO_EVAL_LEG_IMAGE", "ao-eval-dev/leg:manual")
CASE_UID = 65532
ENV = {
    "PATH": "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
    "LANG": "C.UTF-8",
    "HOME": "/home/case",
    "TMPDIR": "/tmp",
    "AO_AGENTS_DIR": "/context/agents",
    "AO_USAGE_FILE": "/tmp/ao-usage.json",
}
MIB = 1 << 20


@dataclass
class Outcome:
    """All that one container said."""

    events: list[Event] = field(default_factory=list)
    raw: bytearray = field(default_factory=bytearray)
    stderr: bytearray = field(default_factory=bytearray)
    exit_code: int = -1

    def ended(self, index: int = 0) -> CaseEnded:
        return next(e for e in self.events if isinstance(e, CaseEnded) and e.index == index)

    def execution(self, index: int = 0) -> ExecutionFacts:
        execution = self.ended(index).execution
        assert execution is not None
        return execution

    def output(self, index: int = 0, stream: str = "stdout", execution: int = 0) -> bytes:
        return b"".join(
            e.data
            for e in self.events
            if isinstance(e, Chunk)
            and (e.index, e.stream, e.execution) == (index, stream, execution)
        )

    def file(self, number: int, index: int = 0) -> bytes:
        chunks = [e for e in self.events if isinstance(e, FileChunk)]
        return b"".join(e.data for e in chunks if (e.index, e.file) == (index, number))

    @property
    def hello(self) -> Hello:
        return next(e for e in self.events if isinstance(e, Hello))

    @property
    def bye(self) -> Bye:
        assert isinstance(self.events[-1], Bye), (self.events[-1:], bytes(self.stderr))
        return self.events[-1]


class Leg:
    """One container with the agent, attached; removed in the end whatever happens."""

    def __init__(
        self,
        tmp: Path,
        cases: Sequence[CasePlan],
        *,
        overlay: bool = True,
        share: bool = True,
        context: Path | None = None,
        limits: Limits | None = None,
        hold: int = 0,
        host: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
    ) -> None:
        self.client = docker.from_env()
        self.nonce = secrets.token_hex(16)
        root = ContextRoot(label="on", sha256=None, path="x") if context else None
        self.plan = LegPlan(
            leg="context_on",
            axis=Axis.CONTEXT,
            variant="context_on",
            run_id="r1",
            root=root,
            env=ENV | (env or {}),
            cases=tuple(cases),
        )
        self.line = encode_plan(
            self.plan,
            nonce=self.nonce,
            uid=CASE_UID,
            gid=CASE_UID,
            upper="/ao-upper" if overlay else None,
            share_workspace=share,
            limits=limits,
            hold_seconds=hold,
        )
        self.decoder = Decoder(self.plan, nonce=self.nonce, limits=limits)
        self.outcome = Outcome()
        self.home = tmp / self.nonce
        self.volume: str | None = None
        self.id = ""
        self._stack = contextlib.ExitStack()
        self._context = context
        self._overlay = overlay
        self._host = host or {}

    def __enter__(self) -> Leg:
        with self._stack:
            self._create()
            self._stack = self._stack.pop_all()
        return self

    def _create(self) -> None:
        api = self.client.api
        self._stack.callback(self.client.close)
        for name in ("ao", "lower", "upper", "work"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        shutil.copy(AGENT, self.home / "ao" / "agent.py")
        (self.home / "lower" / "given.txt").write_text("given\n")
        (self.home / "lower" / "deep").mkdir()
        (self.home / "lower" / "deep" / "file").write_text("lower\n")
        roots = self.home / "lower" / "roots.txt"
        for path in [self.home / "upper", *(self.home / "lower").rglob("*"), self.home / "lower"]:
            os.chown(path, CASE_UID, CASE_UID)
        roots.write_text("root's own\n")
        roots.chmod(0o600)
        binds = [(self.home / "ao", "/ao")]
        if self._context is not None:
            binds.append((self._context, "/context/agents"))
        mounts: list[dict[str, Any]] = []
        if self._overlay:
            binds.append((self.home / "upper", "/ao-upper"))
            self.volume = f"ao-test-{self.nonce}"
            folders = {f"{key}dir": self.home / key for key in ("lower", "upper", "work")}
            options = ",".join(f"{key}={path}" for key, path in folders.items())
            api.create_volume(
                self.volume, "local", {"type": "overlay", "device": "overlay", "o": options}
            )
            self._stack.callback(api.remove_volume, self.volume, force=True)
            mounts.append({"Type": "volume", "Source": self.volume, "Target": "/workspace",
                           "VolumeOptions": {"NoCopy": True}})  # fmt: skip
        mounts += [
            {"Type": "bind", "Source": str(source), "Target": target, "ReadOnly": True}
            for source, target in binds
        ]
        scratch = f"rw,nosuid,nodev,size=64m,uid={CASE_UID},gid={CASE_UID}"
        host = {
            "NetworkMode": "none",
            "ReadonlyRootfs": True,
            "CapDrop": ["ALL"],
            "CapAdd": ["SETUID", "SETGID", "KILL"],
            "SecurityOpt": ["no-new-privileges:true"],
            "PidsLimit": 128,
            "Memory": 256 * MIB,
            "MemorySwap": 256 * MIB,
            "IpcMode": "private",
            "CgroupnsMode": "private",
            "LogConfig": {"Type": "none"},
            "ShmSize": 16 * MIB,
            "Tmpfs": {"/tmp": scratch + ",mode=1777", "/home/case": scratch + ",mode=0700"},
            "Mounts": mounts,
        }
        config = {
            "Image": IMAGE,
            "Entrypoint": ["python3", "-I", "-S", "-E", "-B", "/ao/agent.py"],
            "Cmd": None,
            "User": "0:0",
            "WorkingDir": "/",
            "Hostname": "leg",
            "Env": [f"{k}={v}" for k, v in {**self.plan.env, **MARKER_ENV}.items()],
            "OpenStdin": True,
            "StdinOnce": True,
            "AttachStdin": True,
            "AttachStdout": True,
            "AttachStderr": True,
            "NetworkDisabled": True,
            "HostConfig": host | self._host,
        }
        self.id = api.create_container_from_config(config, name=f"ao-test-{self.nonce}")["Id"]
        self._stack.callback(api.remove_container, self.id, force=True, v=True)
        attached = api.attach_socket(
            self.id, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
        )
        self.response = attached  # keeps the connection's owner alive
        self.socket: socket.socket = attached._sock
        self._stack.callback(self.socket.close)
        self._stack.callback(attached.close)
        self.socket.settimeout(60)
        api.start(self.id)

    def __exit__(self, *exc: object) -> None:
        self._stack.close()

    def send_plan(self) -> None:
        self.socket.sendall(self.line)

    def frames(self) -> Iterator[tuple[int, bytes]]:
        """(stream number, bytes) as the engine multiplexes them."""
        buffer = b""
        while data := self.socket.recv(65536):
            buffer += data
            while len(buffer) >= 8:
                stream, size = struct.unpack(">BxxxL", buffer[:8])
                if len(buffer) < 8 + size:
                    break
                yield stream, buffer[8 : 8 + size]
                buffer = buffer[8 + size :]

    def pump(self, until: type[Event] | None = None) -> Outcome:
        """Decode until an event of that type, or to the end of the stream."""
        out = self.outcome
        for stream, data in self.frames():
            if stream == 2:
                out.stderr += data
                continue
            out.raw += data
            events = self.decoder.feed(data)
            out.events += events
            if until is not None and any(isinstance(event, until) for event in events):
                return out
        return out

    def wait(self) -> int:
        code = self.client.api.wait(self.id, timeout=60)["StatusCode"]
        assert isinstance(code, int)
        return code

    def close_stdin(self) -> None:
        self.socket.shutdown(socket.SHUT_WR)


def command(*argv: str, cwd: str = "/workspace", **more: Any) -> Command:
    return Command(argv=argv, cwd=cwd, **more)


def sh(script: str, **more: Any) -> Command:
    return command("sh", "-c", script, **more)


def py(script: str, **more: Any) -> Command:
    return command("python3", "-I", "-S", "-c", script, **more)


def case(
    what: Command | None,
    index: int = 0,
    *,
    timeout: int = 20,
    files: Sequence[str] = (),
    probes: Sequence[Command] = (),
) -> CasePlan:
    return CasePlan(
        index=index,
        case_id=f"case-{index}",
        command=what,
        timeout_seconds=timeout,
        files=tuple(files),
        probes=tuple(Probe(expectation=3 + n, command=c) for n, c in enumerate(probes)),
    )


def run(tmp: Path, *what: CasePlan | Command | None, **options: Any) -> Outcome:
    """Run cases in one container to its orderly end."""
    cases = [
        item if isinstance(item, CasePlan) else case(item, n) for n, item in enumerate(what)
    ]
    with Leg(tmp, cases, **options) as leg:
        leg.send_plan()
        out = leg.pump()
        out.exit_code = leg.wait()
        assert out.events, bytes(out.stderr)
        leg.decoder.finish()
        return out


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


# ------------------------------------------------------------------------------ what it observes


def test_output_exit_code_and_digest_of_a_command_are_observed(tmp_path):
    out = run(tmp_path, sh("echo out; echo err >&2; exit 7"))
    facts = out.execution()
    assert (facts.exit_code, facts.signal, facts.start_error) == (7, None, None)
    assert (out.output(), out.output(stream="stderr")) == (b"out\n", b"err\n")
    assert facts.stdout.sha256 == digest(b"out\n")
    assert (facts.timed_out, facts.stragglers, out.exit_code) == (False, 0, 0)
    assert out.bye.reason == "done"
    assert out.bye.end.cases_done == 1


def test_hello_reports_the_confinement_as_it_is(tmp_path):
    report = run(tmp_path, sh("true")).hello.report
    assert (report.uid, report.case_uid) == (0, CASE_UID)
    assert int(report.capabilities, 16) == (1 << 5) | (1 << 6) | (1 << 7)  # KILL SETGID SETUID
    assert int(report.case_capabilities, 16) == 0
    assert (report.no_new_privs, report.seccomp) == (True, 2)
    assert (report.interfaces, report.routes) == (("lo",), 0)
    assert set(report.writable) == {
        "/dev/mqueue", "/dev/shm", "/home/case", "/tmp", "/workspace"
    }  # fmt: skip
    assert "/ overlay ro" in report.mounts
    assert report.environment_sha256 == {k: digest(v.encode()) for k, v in ENV.items()}
    assert report.agent_sha256 == digest(AGENT.read_bytes())


def test_a_looser_container_shows_in_hello(tmp_path):
    loose = {"CapAdd": ["SETUID", "SETGID", "KILL", "CHOWN"], "SecurityOpt": []}
    report = run(tmp_path, sh("true"), host=loose).hello.report
    assert int(report.capabilities, 16) & 1
    assert report.no_new_privs is False


def test_signals_and_exit_137_are_told_apart(tmp_path):
    out = run(tmp_path, sh("kill -9 $$"), sh("exit 137"), sh("kill -15 $$"))
    assert (out.execution(0).exit_code, out.execution(0).signal) == (None, 9)
    assert (out.execution(1).exit_code, out.execution(1).signal) == (137, None)
    assert out.execution(2).signal == 15
    assert not any(out.execution(n).timed_out or out.execution(n).oom_killed for n in range(3))


def test_programs_that_cannot_start_are_a_token_and_the_leg_goes_on(tmp_path):
    out = run(
        tmp_path,
        command("no-such-program"),
        command("./missing"),
        command("/etc/passwd"),
        command("true", cwd="/no/such/folder"),
        command("true", cwd="/workspace/given.txt"),
        command("/workspace"),
        command("x\0y"),
        command("true", "x" * 200_000),
        sh("printf '#!/no/such/interpreter\\n' > /tmp/s; chmod +x /tmp/s"),
        command("true"),
    )
    errors = [out.execution(n).start_error for n in range(10)]
    assert errors == [
        "not_found", "not_found", "not_executable", "bad_cwd", "bad_cwd", "not_executable",
        "bad_argument", "arguments_too_large", None, None,
    ]  # fmt: skip
    assert out.execution(0).stdout.sha256 == digest(b"")
    assert out.execution(9).exit_code == 0


def test_programs_are_found_on_the_path_of_the_case(tmp_path):
    tool = "#!/bin/sh\necho mine"
    script = "mkdir -p bin; printf '%s' \"$0\" > bin/tool; chmod +x bin/tool"
    out = run(
        tmp_path,
        command("sh", "-c", script, tool),
        command("tool", env={"PATH": "/workspace/bin:/bin"}),
        command("bin/tool"),
        command("tool", cwd="/workspace/bin", env={"PATH": ":/bin"}),
        command("tool"),
    )
    assert [out.output(n) for n in (1, 2, 3)] == [b"mine\n"] * 3
    assert out.execution(4).start_error == "not_found"


def test_standard_input_is_given_whole_or_empty(tmp_path):
    text = "grüße\n" * 100_000
    out = run(
        tmp_path,
        command("sha256sum", stdin=text),
        command("cat"),
        command("true", stdin=text),
        sh("exec 0<&-; sleep 0.2; echo done", stdin=text),
        command("cat", stdin=""),
    )
    assert out.output(0).split()[0].decode() == digest(text.encode())
    assert (out.execution(1).exit_code, out.output(1)) == (0, b"")
    assert [out.execution(n).exit_code for n in (2, 3, 4)] == [0, 0, 0]
    assert out.output(3) == b"done\n"


def test_a_case_starts_with_the_plans_environment_and_nothing_else(tmp_path):
    out = run(tmp_path, command("env", "-0", env={"EXTRA": "ä", "HOME": "/x"}), command("env"))
    seen = dict(item.split(b"=", 1) for item in out.output(0).split(b"\0") if item)
    expected = ENV | {"EXTRA": "ä", "HOME": "/x"}
    assert seen == {k.encode(): v.encode() for k, v in expected.items()}
    assert b"EXTRA" not in out.output(1)
    assert out.bye.end.environment_sha256 == out.hello.report.environment_sha256


def test_a_case_is_a_plain_user_in_its_own_session_with_three_descriptors(tmp_path):
    out = run(
        tmp_path,
        sh("id -u; id -g; id -G; ls /proc/self/fd | wc -l; umask"),
        py("import os; print(os.getsid(0) == os.getpid() == os.getpgid(0))"),
        sh("grep -E '^(Sig(Ign|Blk)|Cap)' /proc/self/status"),
        sh("echo by-name > /dev/stdout; echo error > /dev/stderr"),
    )
    # `ls` itself opens the fourth.
    assert out.output(0).split() == [b"65532", b"65532", b"65532", b"4", b"0022"]
    assert out.output(1) == b"True\n"
    values = dict(line.split(b":\t") for line in out.output(2).splitlines())
    # The bounding set is what no_new_privs makes useless; a case holds nothing of it.
    # The C library's posix_spawn leaves its two internal signals, 32 and 33, ignored.
    held = {int(v, 16) for k, v in values.items() if k not in {b"CapBnd", b"SigIgn"}}
    assert held == {0}
    assert int(values[b"SigIgn"], 16) & ~(3 << 31) == 0
    assert (out.output(3), out.output(3, "stderr")) == (b"by-name\n", b"error\n")


def test_output_beyond_the_limit_is_counted_and_hashed_not_kept(tmp_path):
    flood = "import sys\nfor i in range(50): sys.stdout.buffer.write(b'%07d\\n' % i * 131072)\n"
    expected = sha256()
    for i in range(50):
        expected.update(b"%07d\n" % i * 131072)
    out = run(tmp_path, py(flood), sh("head -c 40000 /dev/zero; head -c 70000 /dev/zero >&2"))
    facts = out.execution().stdout
    assert (facts.size, facts.kept) == (50 * MIB, 16 * MIB)
    assert facts.sha256 == expected.hexdigest()
    assert len(out.output()) == 16 * MIB
    assert out.output()[-8:] == b"0000015\n"
    assert out.output(1) == bytes(40000)
    assert out.output(1, "stderr") == bytes(70000)


def test_one_line_of_100_megabytes_and_binary_output_pass(tmp_path):
    out = run(tmp_path, py("import os\nfor _ in range(100): os.write(1, b'\\x1b' * (1 << 20))"))
    # A short write to the pipe would make it fewer bytes: os.write blocks until all are taken.
    assert out.execution().stdout.size == 100 * MIB
    assert out.output() == b"\x1b" * (16 * MIB)


def test_output_arrives_while_the_case_still_runs(tmp_path):
    with Leg(tmp_path, [case(sh("echo early; sleep 3; echo late"))]) as leg:
        leg.send_plan()
        leg.pump(Hello)
        begin = time.monotonic()
        leg.pump(Chunk)
        assert time.monotonic() - begin < 1.5
        assert leg.outcome.output() == b"early\n"
        leg.pump()
        assert leg.outcome.output() == b"early\nlate\n"


def test_a_reader_that_stalls_stalls_the_case_and_loses_nothing(tmp_path):
    script = "for i in $(seq 1 200000); do echo 0123456789012345678901234567890123456789; done"
    with Leg(tmp_path, [case(sh(script), timeout=60)]) as leg:
        leg.send_plan()
        leg.pump(Chunk)
        time.sleep(1.5)
        out = leg.pump()
        assert out.execution().stdout.size == out.execution().stdout.kept == 200000 * 41
        assert out.bye.reason == "done"


# ----------------------------------------------------------------------- time, processes, memory


def test_a_timeout_kills_the_tree_and_the_next_case_runs(tmp_path):
    out = run(
        tmp_path,
        case(sh("trap '' TERM INT HUP; sleep 100 & sleep 100"), 0, timeout=1),
        case(sh("kill -STOP $$"), 1, timeout=1),
        case(sh("exec >&- 2>&-; sleep 100"), 2, timeout=1),
        case(py("import os, signal\nif os.fork(): os.kill(os.getppid(), 0) if 0 else None\n"
                "os.kill(os.getpid(), signal.SIGSTOP)"), 3, timeout=1),
        case(sh("echo alive; ps -e 2>/dev/null | wc -l; ls -d /proc/[0-9]* | wc -l"), 4),
    )  # fmt: skip
    for index in range(4):
        facts = out.execution(index)
        assert facts.timed_out
        assert facts.signal == 9
        assert 900 <= facts.duration_ms < 5000
    # PID 1, the shell, and the members of its pipeline: nobody else.
    assert int(out.output(4).split()[-1]) <= 4
    assert out.execution(4).exit_code == 0


def test_a_daemon_that_holds_the_output_open_is_killed_with_the_case(tmp_path):
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
        tmp_path, command("python3", "-I", "-c", daemon), py("import os; print(os.listdir('/proc'))")
    )
    assert time.monotonic() - begin < 15
    assert out.output() == b"leader done\n"
    assert out.execution().stragglers >= 1
    assert out.execution().exit_code == 0
    assert sum(name.isdigit() for name in eval(out.output(1))) == 2


def test_orphans_are_reaped_while_the_case_runs(tmp_path):
    # More short-lived daemons than the pids limit has room for.
    script = "for i in $(seq 1 400); do (true &) ; done; echo ok"
    out = run(tmp_path, sh(script, env={}), host={"PidsLimit": 64})
    assert out.output() == b"ok\n"
    assert out.execution().exit_code == 0


def test_a_fork_bomb_ends_with_its_case(tmp_path):
    bomb = "import os\nwhile True:\n    try: os.fork()\n    except OSError: pass\n"
    out = run(tmp_path, case(py(bomb), 0, timeout=2), case(sh("echo next"), 1))
    assert out.execution(0).timed_out
    assert out.output(1) == b"next\n"


def test_oom_of_a_child_is_told_from_the_counter(tmp_path):
    eat = "import os\nif os.fork() == 0: b = bytearray(400 << 20)\nprint(os.wait()[1] & 127)\n"
    out = run(tmp_path, py(eat), sh("exit 137"), host={"Memory": 96 * MIB, "MemorySwap": 96 * MIB})
    assert out.output() == b"9\n"
    assert out.execution(0).oom_killed is True
    assert out.execution(1).oom_killed is False


# ---------------------------------------------------------------------- one case and the next one


def test_scratch_is_empty_for_the_next_case_whatever_was_left(tmp_path):
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
        "os.chmod('.', 0); os.chmod('/home/case', 0)\n"
        "os.setxattr('/tmp', 'user.note', b'hello')\n"
        "os.utime('/home/case', (1, 1))\n"
    )
    look = (
        "import os\n"
        "for top in ('/tmp', '/home/case', '/dev/shm', '/dev/mqueue'):\n"
        "    print(os.listdir(top), os.listxattr(top) if top == '/tmp' else '',"
        " oct(os.stat(top).st_mode), int(os.stat(top).st_mtime) == 1)\n"
    )
    out = run(tmp_path, py(look), py(mess), py(look))
    assert out.execution(1).exit_code == 0, out.output(1, "stderr")
    assert out.output(2) == out.output(0), (out.ended(2), out.output(2, "stderr"))
    assert out.output(0).count(b"[]") >= 4


def test_many_leftover_files_are_removed(tmp_path):
    script = "import os\nfor i in range(30000): os.close(os.open('/tmp/%d' % i, os.O_CREAT))"
    out = run(tmp_path, py(script), sh("ls -A /tmp | wc -l"))
    assert out.output(1) == b"0\n"


def test_system_v_shared_memory_asks_for_a_fresh_container(tmp_path):
    leave = (
        "import ctypes\nlibc = ctypes.CDLL(None)\nprint(libc.shmget(7, 4096, 0o1666) >= 0)"
    )
    leaver = command("python3", "-c", leave)
    for share in (True, False):
        out = run(tmp_path, leaver, sh("true"), sh("true"), share=share)
        assert out.output() == b"True\n"
        assert (out.bye.reason, out.bye.end.cases_done) == ("leftover", 1)


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
def test_a_case_that_wrote_to_the_workspace_ends_the_container(tmp_path, write):
    out = run(tmp_path, sh("cat deep/file; ls"), sh(write), sh("true"), share=False)
    assert out.execution(1).exit_code == 0
    assert [out.ended(n).wrote_workspace for n in (0, 1)] == [False, True]
    assert (out.bye.reason, out.bye.end.cases_done, out.exit_code) == ("dirty", 2, 0)


def test_a_last_case_may_write_and_a_shared_workspace_stays(tmp_path):
    out = run(tmp_path, sh("true"), sh("touch x"), share=False)
    assert out.bye.reason == "done"
    out = run(tmp_path, sh("echo 1 > x"), sh("cat x"), sh("cat x; rm x"), share=True)
    assert [out.output(n) for n in (1, 2)] == [b"1\n", b"1\n"]
    assert [out.ended(n).wrote_workspace for n in range(3)] == [True, None, True]
    assert out.bye.reason == "done"


def test_without_an_upper_layer_every_command_is_taken_to_have_written(tmp_path):
    out = run(tmp_path, None, command("true", cwd="/"), None, overlay=False, share=False)
    assert [out.ended(n).wrote_workspace for n in (0, 1)] == [False, None]
    assert (out.bye.reason, out.bye.end.cases_done) == ("dirty", 2)
    out = run(tmp_path, *[command("true", cwd="/")] * 3, overlay=False, share=True)
    assert out.bye.reason == "done"


# ------------------------------------------------------------------------------ files and probes


def test_files_are_snapshotted_as_the_case_user_sees_them(tmp_path):
    make = (
        "cd /tmp; printf content > plain; ln -s plain link; mkdir folder; mkfifo fifo;"
        " ln -s /dev/zero zero; ln -s loop loop; printf x > secret; chmod 000 secret;"
        " ln -s /proc/self/status proc; ln -s /proc/1/environ env; ln -s /dev/stdin stdin;"
        " truncate -s 1T sparse; head -c 3000000 /dev/zero > big; : > empty;"
        " python3 -I -S -c 'import socket; socket.socket(socket.AF_UNIX).bind(\"sock\")'"
    )
    names = ["plain", "link", "folder", "fifo", "zero", "loop", "secret", "proc", "env", "stdin",
             "sparse", "big", "empty", "sock", "missing", "plain/below"]  # fmt: skip
    limits = Limits(file_bytes=MIB)
    files = [f"/tmp/{name}" for name in names] + ["/proc/meminfo", "/sys/kernel/notes", "/a\0b"]
    what = case(sh(make), files=files)
    out = run(tmp_path, what, limits=limits)
    assert out.execution().exit_code == 0, out.output(0, "stderr")
    facts = {f.path.removeprefix("/tmp/"): f for f in out.ended().files}
    states = {name: f.state for name, f in facts.items()}
    assert states == {
        "plain": "regular", "link": "regular", "folder": "directory", "fifo": "other",
        "zero": "other", "loop": "unreadable", "secret": "unreadable", "proc": "other",
        "env": "other", "stdin": "other", "sparse": "regular", "big": "regular",
        "empty": "regular", "sock": "other", "missing": "absent", "plain/below": "absent",
        "/proc/meminfo": "other", "/sys/kernel/notes": "other", "/a\0b": "absent",
    }  # fmt: skip
    assert (out.file(0), out.file(1)) == (b"content", b"content")
    assert facts["plain"].sha256 == digest(b"content")
    assert (facts["big"].size, facts["big"].kept) == (3000000, MIB)
    assert facts["big"].sha256 == digest(bytes(3000000))
    assert (facts["sparse"].size, facts["sparse"].kept, facts["sparse"].sha256) == (1 << 40, MIB, None)
    assert facts["empty"].sha256 == digest(b"")


def test_files_of_root_are_not_read_with_roots_eyes(tmp_path):
    out = run(tmp_path, case(None, files=["/workspace/roots.txt", "/etc/passwd"]))
    assert [f.state for f in out.ended().files] == ["unreadable", "regular"]


def test_a_static_case_runs_nothing(tmp_path):
    out = run(tmp_path, case(None, files=["/workspace/given.txt", "/workspace/none"]), share=False)
    ended = out.ended()
    assert (ended.execution, ended.wrote_workspace, ended.usage) == (None, False, None)
    assert [f.state for f in ended.files] == ["regular", "absent"]
    assert out.file(0) == b"given\n"


def test_probes_run_after_the_files_and_like_cases(tmp_path):
    probes = [sh("echo $MARK; echo late > /tmp/f; exit 3", env={"MARK": "m"}), command("gone"),
              sh("cat /tmp/f; sleep 100")]  # fmt: skip
    what = case(sh("echo early > /tmp/f"), files=["/tmp/f"], probes=probes, timeout=2)
    out = run(tmp_path, what)
    found = out.ended().probes
    assert out.file(0) == b"early\n"
    assert out.output(execution=1) == b"m\n"
    assert (found[3].exit_code, found[4].start_error, found[5].timed_out) == (3, "not_found", True)
    assert out.output(execution=3) == b"late\n"


@pytest.mark.parametrize(
    "text, expected",
    [
        ('{"tokens": 12, "tool_calls": 0}', {"tokens": 12, "tool_calls": 0}),
        ('{"tokens": 7, "model": [1, {"x": null}]}', {"tokens": 7}),
        ('{"tokens": true}', None),
        ('{"tokens": -1}', None),
        ('{"tokens": 1.0}', None),
        ('["tokens"]', None),
        ("{}", None),
        ('{"tokens": 1} x', None),
        ("", None),
        ("[" * 4000, None),
        ('{"tokens": 1}' + " " * 5000, None),
    ],
)
def test_usage_is_passed_on_only_when_it_is_well_formed(tmp_path, text, expected):
    out = run(tmp_path, command("sh", "-c", 'printf %s "$0" > "$AO_USAGE_FILE"', text), sh("true"))
    assert out.ended().usage == expected
    assert out.ended(1).usage is None


def test_the_context_root_is_hashed_inside_as_on_the_host(tmp_path):
    root = tmp_path / "agents"
    (root / "learnings" / "deep").mkdir(parents=True)
    (root / "empty").mkdir()
    (root / "learnings" / "a.md").write_text("hello")
    (root / "learnings" / "big").write_bytes(bytes(range(256)) * 1000)
    (root / "run").write_text("#!/bin/sh\n")
    (root / "run").chmod(0o755)
    (root / "private").write_text("mine")
    (root / "private").chmod(0o600)
    odd = os.fsencode(root) + b"/learnings-\xff\n"
    Path(os.fsdecode(odd)).write_text("odd")
    (root / "link").symlink_to("learnings/a.md")
    for path in [root, *root.rglob("*")]:
        os.chown(path, CASE_UID, CASE_UID, follow_symlinks=False)
    expected = content_digest(records(root))
    out = run(tmp_path, sh("cat $AO_AGENTS_DIR/private; touch $AO_AGENTS_DIR/x"), context=root)
    assert out.hello.report.context_root_sha256 == expected
    assert out.bye.end.context_root_sha256 == expected
    assert (out.output(), out.execution().exit_code) == (b"mine", 1)


def test_a_context_root_that_cannot_be_read_has_no_digest(tmp_path):
    root = tmp_path / "agents"
    root.mkdir()
    (root / "f").write_text("x")
    (root / "f").chmod(0o600)  # and stays root's
    assert run(tmp_path, None, context=root).hello.report.context_root_sha256 is None
    (root / "f").unlink()
    os.mkfifo(root / "fifo")
    assert run(tmp_path, None, context=root).hello.report.context_root_sha256 is None


def records(root: Path) -> Iterator[TreeRecord]:
    for path in root.rglob("*"):
        name = os.fsencode(path)[len(os.fsencode(root)) + 1 :]
        if path.is_symlink():
            yield link_record(name, os.fsencode(path.readlink()))
        elif path.is_dir():
            yield directory_record(name)
        else:
            executable = bool(path.stat().st_mode & 0o100)
            yield file_record(name, digest(path.read_bytes()), executable=executable)


# ----------------------------------------------------------------------- attacks, and dead men


def test_a_case_that_kills_everything_kills_only_itself(tmp_path):
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


def test_a_storm_of_signals_during_the_spawn_window_does_not_stop_the_agent(tmp_path):
    # The storm is a child that outlives nothing: it fires while the agent forks its probes.
    storm = (
        "import os, time\nend = time.monotonic() + 1\nsent = 0\n"
        "while time.monotonic() < end:\n"
        "    for n in (9, 15, 2, 19):\n"
        "        try: os.kill(1, n); sent += 1\n"
        "        except PermissionError: pass\n"
        "print(sent)"
    )
    out = run(tmp_path, py(storm), sh("echo next"))
    assert out.output(1) == b"next\n"


def test_the_agent_cannot_be_traced_read_or_written_to(tmp_path):
    out = run(
        tmp_path,
        sh("for f in fd/1 fd/0 mem environ maps cwd/x root/x; do"
           " (echo '{\"n\":\"x\"}' > /proc/1/$f) 2>/dev/null && echo wrote $f;"
           " (cat /proc/1/$f) >/dev/null 2>&1 && echo read $f; done; ls /proc/1/fd; true"),
        command("python3", "-c", "import ctypes\nlibc = ctypes.CDLL(None, use_errno=True)\n"
                "print(libc.ptrace(16, 1, 0, 0), libc.ptrace(0x4206, 1, 0, 0))"),
        py("import os\nfor f in (lambda: os.sched_setaffinity(1, {0}),"
           " lambda: os.setpriority(os.PRIO_PROCESS, 1, 19)):\n"
           "    try: f(); print('changed')\n    except PermissionError: print('refused')"),
    )  # fmt: skip
    assert out.output(0) == b""
    assert out.output(1) == b"-1 -1\n"
    assert out.output(2) == b"refused\nrefused\n"
    assert out.bye.reason == "done"


def test_forged_frames_on_the_cases_own_output_are_only_output(tmp_path):
    forged = '{"n":"%s","s":2,"t":"bye","w":"done"}\n'
    out = run(tmp_path, command("printf", "%s", forged), sh("echo real"))
    assert out.output() == forged.encode()
    assert out.output(1) == b"real\n"


def test_the_plan_and_its_nonce_are_not_visible_to_a_case(tmp_path):
    with Leg(tmp_path, [case(sh("cat /proc/1/cmdline /proc/*/environ /proc/1/status; env"))]) as leg:
        leg.send_plan()
        out = leg.pump()
        assert out.ended()
        assert leg.nonce.encode() not in out.output() + out.output(0, "stderr")
        assert b"AO_AGENT_CONTAINER" not in out.output()


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
def test_end_of_file_on_stdin_ends_the_container_within_two_seconds(tmp_path, script):
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


def test_a_client_that_vanishes_ends_the_container(tmp_path):
    with Leg(tmp_path, [case(sh("yes"), timeout=100)]) as leg:
        leg.send_plan()
        leg.pump(CaseStarted)
        begin = time.monotonic()
        leg.response.close()
        leg.socket.close()
        assert leg.wait() == EXIT_ORPHANED
        assert time.monotonic() - begin < 2


def test_no_plan_and_no_stdin_ends_the_container(tmp_path):
    with Leg(tmp_path, [case(sh("true"))]) as leg:
        leg.close_stdin()
        assert leg.wait() == EXIT_ORPHANED


def test_a_workspace_that_is_not_clean_at_the_start_is_fatal(tmp_path):
    with Leg(tmp_path, [case(sh("true"))], share=False) as leg:
        (leg.home / "upper" / "x").touch()
        leg.send_plan()
        out = leg.pump()
        assert isinstance(out.events[-1], Fatal)
        assert out.events[-1].reason == "workspace_not_clean"
        assert leg.wait() == 95


def test_held_containers_stay_after_the_last_case_and_mind_nobody(tmp_path):
    with Leg(tmp_path, [case(sh("echo kept > /tmp/f"))], hold=60) as leg:
        leg.send_plan()
        leg.pump(Bye)
        leg.close_stdin()
        time.sleep(1)
        api = leg.client.api
        look = api.exec_create(leg.id, ["cat", "/tmp/f"])["Id"]
        assert api.exec_start(look) == b"kept\n"
        assert api.inspect_container(leg.id)["State"]["Running"]


# ------------------------------------------------------------------------- where it refuses to run


def test_the_agent_refuses_to_run_as_a_plain_process_and_kills_nothing():
    witness = subprocess.Popen(["sleep", "60"])
    try:
        done = subprocess.run(
            [sys.executable, "-I", "-S", "-E", "-B", str(AGENT)],
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
def test_the_agent_refuses_a_container_that_is_not_a_leg(tmp_path, change):
    (tmp_path / "ao").mkdir()
    shutil.copy(AGENT, tmp_path / "ao")
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
        "Image": IMAGE,
        "Entrypoint": ["python3", "-I", "-S", "-E", "-B", "/ao/agent.py"],
        "Env": change.get("Env", ["PATH=/usr/bin:/bin", "AO_AGENT_CONTAINER=1"]),
        "HostConfig": host,
    }
    try:
        made = client.api.create_container_from_config(config)["Id"]
        try:
            client.api.start(made)
            assert client.api.wait(made, timeout=60)["StatusCode"] == EXIT_REFUSED
        finally:
            client.api.remove_container(made, force=True)
    finally:
        client.close()
