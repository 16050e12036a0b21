"""One leg container with the agent, driven by the engine's plain API: what its tests share."""

from __future__ import annotations

import contextlib
import os
import secrets
import socket
import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, Self

import docker

from runner.core.confine import AGENT_COMMAND
from runner.core.wire import (
    MARKER_ENV,
    Bye,
    CaseEnded,
    Chunk,
    Decoder,
    Event,
    ExecutionFacts,
    FileChunk,
    Hello,
    Limits,
    encode_plan,
)
from runner.host.agentfiles import stage_agent
from runner.model.leg import Axis, CasePlan, Command, ContextRoot, LegPlan, Probe
from tests.container.projects import RUNTIME

IMAGE = ""
"""Reference of the leg image; each test module sets it from the fixture `leg_image`."""
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
        seconds: int = 600,
        host: dict[str, Any] | None = None,
        env: dict[str, str] | None = None,
        tamper: Callable[[Path], object] | None = None,
        verbose: bool = False,
        marks: Path | None = None,
        root_at_start: bool = True,
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
            leg_seconds=seconds,
            limits=limits,
            hold_seconds=hold,
            marks="/ao-marks" if marks else None,
            root_at_start=root_at_start,
        )
        self.decoder = Decoder(self.plan, nonce=self.nonce, limits=limits)
        self.outcome = Outcome()
        self.home = tmp / self.nonce
        self.volume: str | None = None
        self.id = ""
        self._received = b""
        self._stack = contextlib.ExitStack()
        self._context = context
        self._marks = marks
        self._overlay = overlay
        self._tamper = tamper
        self._command = [AGENT_COMMAND[0], *["-v"] * verbose, *AGENT_COMMAND[1:]]
        self._host = {**({"Runtime": RUNTIME} if RUNTIME else {}), **(host or {})}

    def __enter__(self) -> Self:
        with self._stack:
            self._create()
            self._stack = self._stack.pop_all()
        return self

    def _create(self) -> None:
        api = self.client.api
        self._stack.callback(self.client.close)
        for name in ("lower", "upper", "work"):
            (self.home / name).mkdir(parents=True, exist_ok=True)
        stage_agent(self.home / "ao")
        if self._tamper is not None:
            self._tamper(self.home / "ao" / "agent")
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
        if self._marks is not None:
            binds.append((self._marks, "/ao-marks"))
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
            "Entrypoint": self._command,
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
        name = f"ao-test-{self.nonce}"
        self.id = api.create_container_from_config(config, name=name)["Id"]  # type: ignore[no-untyped-call]
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
        while True:
            while len(self._received) >= 8:
                stream, size = struct.unpack(">BxxxL", self._received[:8])
                if len(self._received) < 8 + size:
                    break
                data = self._received[8 : 8 + size]
                # Before the caller has it: who stops listening here goes on behind it.
                self._received = self._received[8 + size :]
                yield stream, data
            data = self.socket.recv(65536)
            if not data:
                return
            self._received += data

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
    cases = [item if isinstance(item, CasePlan) else case(item, n) for n, item in enumerate(what)]
    with Leg(tmp, cases, **options) as leg:
        leg.send_plan()
        out = leg.pump()
        out.exit_code = leg.wait()
        assert out.events, bytes(out.stderr)
        leg.decoder.finish()
        return out


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()
