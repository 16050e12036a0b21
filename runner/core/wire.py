"""Agent protocol, the orchestrator's side: a plan becomes bytes, bytes become events.

Pure: whoever owns the attached stream feeds it in. docs/adr/0003-agent-protocol.md has the
grammar; `runner.inside.agent` is the other side. The stream is believed only as long as every
frame carries the nonce, the next sequence number and the CRC chained over all frames before it,
comes where the grammar allows it, and agrees with the bytes that were received. Anything else
raises `ProtocolViolation`, and the decoder stays broken.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable, Sequence
from typing import Any, Final, NoReturn

from pydantic import ValidationError

from runner.core.frames import (
    Bye,
    CaseEnded,
    CaseStarted,
    Chunk,
    Event,
    ExecutionFacts,
    Fatal,
    FileChunk,
    FileFacts,
    Hello,
    Limits,
    Received,
    StreamFacts,
    read_count,
    read_data,
    read_execution,
    read_file,
    read_flag,
    read_text,
    read_token,
    read_usage,
)
from runner.errors import InputError, InternalError, ProtocolViolation
from runner.model.leg import CasePlan, LegPlan
from runner.model.observation import InsideEnd, InsideReport

__all__ = [
    "AGENT_TARGET", "CONTEXT_TARGET", "EXIT_FATAL", "EXIT_ORPHANED", "EXIT_REFUSED", "MARKER_ENV",
    "MAX_FRAME", "MAX_PLAN", "SCRATCH", "UPPER_TARGET", "VERSION", "Bye", "CaseEnded",
    "CaseStarted", "Chunk", "Decoder", "Event", "ExecutionFacts", "Fatal", "FileChunk",
    "FileFacts", "Hello", "Limits", "StreamFacts", "encode_plan", "runnable",
]  # fmt: skip

Frame = dict[str, Any]

VERSION: Final = 1
MAX_PLAN: Final = 64 << 20
"""Bytes of an encoded plan."""
MAX_FRAME: Final = 256 << 10
"""Bytes of one line of the agent, newline included."""
MARKER_ENV: Final = {"AO_AGENT_CONTAINER": "1"}
"""Environment of the container (never of a case) without which the agent refuses to run."""
AGENT_TARGET: Final = "/ao"
CONTEXT_TARGET: Final = "/context/agents"
UPPER_TARGET: Final = "/ao-upper"
SCRATCH: Final = ("/tmp", "/home/case", "/dev/shm")
EXIT_FATAL: Final = 95
EXIT_ORPHANED: Final = 96
"""The dead-man switch: standard input ended."""
EXIT_REFUSED: Final = 97
"""Not PID 1 of a leg container."""

_NONCE = re.compile(r"[0-9a-f]{32,128}")
_TAIL = re.compile(rb',"k":"([0-9a-f]{8})"\}')
_TAIL_BYTES = len(b',"k":"00000000"}')


def runnable(plan: LegPlan) -> tuple[CasePlan, ...]:
    """The cases that a container is asked to run: all but those degraded beforehand."""
    return tuple(case for case in plan.cases if case.degraded is None)


def encode_plan(
    plan: LegPlan,
    *,
    nonce: str,
    uid: int,
    gid: int,
    upper: str | None,
    share_workspace: bool,
    limits: Limits | None = None,
    scratch: Sequence[str] = SCRATCH,
    hold_seconds: int = 0,
) -> bytes:
    """The line that the agent reads from its standard input.

    The environment travels by name only: the values are those of the created container, so that
    what cases start with is what the engine was asked for.

    Args:
        plan: The leg; of its cases the `runnable` ones are sent.
        nonce: 32 to 128 hexadecimal digits, fresh for every container, secret from the cases.
        uid: Case user, not 0.
        gid: Case group, not 0.
        upper: Where the workspace's upper layer is mounted; None when there is none to look at.
        share_workspace: Keep running after a case wrote to the workspace.
        limits: Capture bounds; None: the defaults.
        scratch: Folders to empty between cases, absolute.
        hold_seconds: Stay up to this long after the last case, for inspection.

    Returns:
        One line of JSON, at most `MAX_PLAN` bytes.

    Raises:
        InputError: The plan is too large.
        InternalError: The nonce or the user is not what it must be.
    """
    limits = limits or Limits()
    if not _NONCE.fullmatch(nonce) or uid <= 0 or gid <= 0:
        raise InternalError("the agent's nonce must be hexadecimal and its case user not root")
    document = {
        "v": VERSION,
        "nonce": nonce,
        "uid": uid,
        "gid": gid,
        "env_names": sorted(plan.env),
        "limits": {
            "stream_bytes": limits.stream_bytes,
            "file_bytes": limits.file_bytes,
            "hash_bytes": limits.hash_bytes,
        },
        "context_root": None if plan.root is None else CONTEXT_TARGET,
        "upper": upper,
        "share_workspace": share_workspace,
        "scratch": list(scratch),
        "usage_file": plan.env.get("AO_USAGE_FILE"),
        "hold_seconds": hold_seconds,
        "cases": [_encode_case(case) for case in runnable(plan)],
    }
    line = json.dumps(document, separators=(",", ":"), allow_nan=False).encode("ascii") + b"\n"
    if len(line) > MAX_PLAN:
        raise InputError(
            f"the plan of leg {plan.leg} has {len(line)} bytes, more than {MAX_PLAN}",
            remedy="split the suite",
        )
    return line


def _encode_case(case: CasePlan) -> dict[str, Any]:
    command = None if case.command is None else case.command.model_dump()
    return {
        "index": case.index,
        "command": command,
        "timeout_seconds": case.timeout_seconds,
        "files": list(case.files),
        "probes": [probe.command.model_dump() for probe in case.probes],
    }


class Decoder:
    """Turns the standard output of one container into events, believing nothing unchecked.

    Memory is bounded by `MAX_FRAME`; a longer line is refused before it is stored.

    Args:
        plan: What `encode_plan` was given.
        nonce: The same.
        limits: The same.
    """

    def __init__(self, plan: LegPlan, *, nonce: str, limits: Limits | None = None) -> None:
        self._limits = limits or Limits()
        self._prefix = b'{"n":"' + nonce.encode("ascii") + b'","s":'
        self._cases = runnable(plan)
        self._tail = bytearray()
        self._sequence = 0
        self._crc = 0
        self._greeted = False
        self._ended = False
        self._broken = False
        self._done = 0
        self._last_wrote: bool | None = False
        self._handlers: dict[str, Callable[[Frame], Event | None]] = {
            "hello": self._on_hello,
            "start": self._on_start,
            "out": self._on_out,
            "data": self._on_data,
            "file": self._on_file,
            "exec": self._on_exec,
            "end": self._on_end,
            "bye": self._on_bye,
            "fatal": self._on_fatal,
        }
        self._forget_case()

    def _forget_case(self) -> None:
        self._case: CasePlan | None = None
        # Execution whose output may come: 0 the case, n its n-th probe.
        self._number = 0
        self._streams = self._first = (Received(), Received())
        self._file = Received()
        self._files: list[FileFacts] = []
        self._probes: dict[int, ExecutionFacts] = {}

    @property
    def ended(self) -> bool:
        """True after `Bye` or `Fatal`."""
        return self._ended

    @property
    def cases_done(self) -> int:
        """Cases of which `CaseEnded` was seen."""
        return self._done

    def feed(self, data: bytes) -> list[Event]:
        """Take the next bytes of the stream, cut anywhere.

        Returns:
            The events that they complete, in order.

        Raises:
            ProtocolViolation: The stream is not what the protocol allows.
        """
        if self._broken:
            self._refuse("the stream was refused before")
        events: list[Event] = []
        start = 0
        while (end := data.find(b"\n", start)) >= 0:
            if len(self._tail) + end - start >= MAX_FRAME:
                self._refuse("a frame is longer than the limit")
            line = data[start:end]
            if self._tail:
                line = bytes(self._tail) + line
                self._tail.clear()
            start = end + 1
            event = self._line(line)
            if event is not None:
                events.append(event)
        if len(self._tail) + len(data) - start >= MAX_FRAME:
            self._refuse("a frame is longer than the limit")
        self._tail += data[start:]
        if self._ended and self._tail:
            self._refuse("bytes after the last frame")
        return events

    def finish(self) -> None:
        """Declare the end of the stream.

        Raises:
            ProtocolViolation: It ended within a frame or before the last one.
        """
        if self._broken or self._tail or not self._ended:
            self._refuse("the stream ended before its last frame")

    def _refuse(self, what: str) -> NoReturn:
        self._broken = True
        self._tail.clear()
        raise ProtocolViolation(
            what, where=f"agent stream, frame {self._sequence}", remedy="the leg is not believed"
        )

    def _line(self, line: bytes) -> Event | None:
        head = self._prefix + b"%d," % self._sequence
        tail = _TAIL.fullmatch(line, max(0, len(line) - _TAIL_BYTES))
        if self._ended or tail is None or not line.startswith(head):
            self._refuse("not a frame of this agent")
        self._crc = zlib.crc32(memoryview(line)[:-_TAIL_BYTES], self._crc)
        if int(tail[1], 16) != self._crc:
            self._refuse("the checksum does not match")
        try:
            frame = json.loads(line.decode("ascii"))
            event = self._handlers[frame["t"]](frame)
        except ValidationError:
            reason = "values of the wrong type"
        except ValueError as error:  # the readers' own words, or the JSON parser's
            reason = "not JSON" if isinstance(error, json.JSONDecodeError) else str(error)
        except (KeyError, TypeError, RecursionError):
            reason = "not a frame of the protocol"
        else:
            self._sequence += 1
            return event
        return self._refuse(reason)

    def _current(self, frame: Frame) -> CasePlan:
        if self._case is None or read_count(frame["c"]) != self._case.index:
            raise ValueError("a frame of a case that is not running")
        return self._case

    def _on_hello(self, frame: Frame) -> Event:
        if self._greeted:
            raise ValueError("a second hello")
        self._greeted = True
        return Hello(InsideReport.model_validate(frame["r"]))

    def _on_start(self, frame: Frame) -> Event:
        if not self._greeted or self._case is not None or self._done >= len(self._cases):
            raise ValueError("a case starts where none may")
        self._case = case = self._cases[self._done]
        self._current(frame)
        return CaseStarted(case.index, case.case_id)

    def _enter_probe(self, number: int) -> None:
        case = self._case
        if case is None or len(self._files) != len(case.files) or self._file.size:
            raise ValueError("a probe before the files")
        if number != len(self._probes) + 1 or number > len(case.probes):
            raise ValueError("a probe out of order")
        if self._number != number:
            self._number = number
            self._streams = (Received(), Received())

    def _on_out(self, frame: Frame) -> Event:
        case = self._current(frame)
        number, name = read_count(frame["x"]), read_count(frame["f"])
        if number:
            self._enter_probe(number)
        elif case.command is None or self._files or self._file.size or self._number:
            raise ValueError("output after the execution")
        if name not in (1, 2):
            raise ValueError("not an output stream")
        data = read_data(frame["d"])
        self._streams[name - 1].add(data, self._limits.stream_bytes)
        return Chunk(case.index, number, "stdout" if name == 1 else "stderr", data)

    def _next_file(self, frame: Frame) -> tuple[CasePlan, int]:
        case, number = self._current(frame), read_count(frame["i"])
        if number != len(self._files) or number >= len(case.files) or self._number:
            raise ValueError("a file out of order")
        return case, number

    def _on_data(self, frame: Frame) -> Event:
        case, number = self._next_file(frame)
        data = read_data(frame["d"])
        self._file.add(data, self._limits.file_bytes)
        return FileChunk(case.index, number, data)

    # `file` and `exec` frames are no events: `CaseEnded` carries their facts.
    def _on_file(self, frame: Frame) -> None:
        case, number = self._next_file(frame)
        self._files.append(read_file(frame, case.files[number], self._file, self._limits))
        self._file = Received()

    def _on_exec(self, frame: Frame) -> None:
        case, number = self._current(frame), read_count(frame["x"])
        self._enter_probe(number)
        facts = read_execution(frame["e"], self._streams, self._limits)
        self._probes[case.probes[number - 1].expectation] = facts

    def _on_end(self, frame: Frame) -> Event:
        case = self._current(frame)
        if len(self._files) != len(case.files) or len(self._probes) != len(case.probes):
            raise ValueError("a case ends before all was observed")
        if (frame["e"] is None) != (case.command is None):
            raise ValueError("a static case ran, or a command did not")
        execution = None
        if frame["e"] is not None:
            execution = read_execution(frame["e"], self._first, self._limits)
        usage, wrote = read_usage(frame["u"]), read_flag(frame["w"])
        if case.command is None and (usage is not None or (wrote and not case.probes)):
            raise ValueError("a static case had effects")
        files, probes = tuple(self._files), self._probes
        self._done += 1
        self._last_wrote = wrote
        self._forget_case()
        return CaseEnded(case.index, case.case_id, execution, probes, files, usage, wrote)

    def _on_bye(self, frame: Frame) -> Event:
        reason = frame["w"]
        end = InsideEnd(
            context_root_sha256=frame["ctx"],
            environment_sha256=frame["env"],
            cases_done=frame["n"],
        )
        if not self._greeted or self._case is not None or end.cases_done != self._done:
            raise ValueError("bye in the middle of a leg")
        if reason not in ("done", "dirty", "leftover"):
            raise ValueError("bye without a reason")
        if (reason == "done") != (self._done == len(self._cases)):
            raise ValueError("bye with a reason that the cases contradict")
        if reason != "done" and (
            self._done == 0 or (reason == "dirty" and self._last_wrote is False)
        ):
            raise ValueError("a fresh container is asked for without need")
        self._ended = True
        return Bye(end, reason)

    def _on_fatal(self, frame: Frame) -> Event:
        event = Fatal(read_token(frame["w"]), read_text(frame["m"]))
        self._ended = True
        return event
