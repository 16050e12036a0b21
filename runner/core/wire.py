"""Agent protocol, the orchestrator's side: bytes become events.

`runner.core.planline` makes the line that it reads. Pure: whoever owns the attached stream feeds
it in. docs/adr/0003-agent-protocol.md has the grammar; `runner.inside.agent` is the other side.
The stream is believed only as long as every frame carries the nonce, the next sequence number and
the CRC chained over all frames before it, comes where the grammar allows it, and agrees with the
bytes that were received. Anything else raises `ProtocolViolation`, and the decoder stays broken.
"""

from __future__ import annotations

import json
import re
import zlib
from collections.abc import Callable
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
    HookChunk,
    Limits,
    Received,
    StreamFacts,
    read_count,
    read_data,
    read_execution,
    read_file,
    read_flag,
    read_stream_name,
    read_text,
    read_token,
    read_usage,
)
from runner.core.planline import (
    AGENT_TARGET,
    CONTEXT_TARGET,
    HOOKS_TARGET,
    MARKER_ENV,
    MARKS_TARGET,
    MAX_PLAN,
    SCRATCH,
    UPPER_TARGET,
    VERSION,
    encode_plan,
    runnable,
)
from runner.errors import ProtocolViolation
from runner.model.leg import CasePlan, LegPlan
from runner.model.observation import InsideEnd, InsideReport

__all__ = [
    "AGENT_TARGET", "CONTEXT_TARGET", "EXIT_FATAL", "EXIT_ORPHANED", "EXIT_REFUSED",
    "HOOKS_TARGET", "MARKER_ENV", "MARKS_TARGET", "MAX_FRAME", "MAX_PLAN", "SCRATCH",
    "UPPER_TARGET", "VERSION",
    "Bye", "CaseEnded", "CaseStarted", "Chunk", "Decoder", "Event", "ExecutionFacts", "Fatal",
    "FileChunk", "FileFacts", "Hello", "HookChunk", "Limits", "StreamFacts", "encode_plan",
    "runnable",
]  # fmt: skip

Frame = dict[str, Any]

MAX_FRAME: Final = 256 << 10
"""Bytes of one line of the agent, newline included."""
EXIT_FATAL: Final = 95
EXIT_ORPHANED: Final = 96
"""The dead-man switch: standard input ended."""
EXIT_REFUSED: Final = 97
"""Not PID 1 of a leg container."""

_TAIL = re.compile(rb',"k":"([0-9a-f]{8})"\}')
_TAIL_BYTES = len(b',"k":"00000000"}')


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
        hooks = plan.hooks
        self._hooks_planned = len(hooks.hooks) if hooks is not None else 0
        self._hooks_before = hooks.before if hooks is not None else 0
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
            "hout": self._on_hook_out,
            "hook": self._on_hook,
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
        self._hooks: list[ExecutionFacts] = []
        self._hook_streams = (Received(), Received())

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

    def _all_looked_at(self, case: CasePlan) -> bool:
        """Whether every file and every probe of the case was reported."""
        return len(self._files) == len(case.files) and len(self._probes) == len(case.probes)

    def _next_hook(self, frame: Frame) -> tuple[CasePlan, int]:
        """Hooks come in the order of the plan, some before the case and the rest last of all."""
        case, number = self._current(frame), read_count(frame["h"])
        if case.command is None or number != len(self._hooks) or number >= self._hooks_planned:
            raise ValueError("a hook out of order")
        if number >= self._hooks_before and not self._all_looked_at(case):
            raise ValueError("a hook before all was observed")
        return case, number

    def _between_hooks(self, case: CasePlan) -> None:
        """What the case itself did is told after the first hooks and before the last."""
        wanted = 0 if case.command is None else self._hooks_before
        if len(self._hooks) != wanted or self._hook_streams_used():
            raise ValueError("a frame of the case while its hooks run")

    def _hook_streams_used(self) -> bool:
        return any(stream.size for stream in self._hook_streams)

    def _on_hook_out(self, frame: Frame) -> Event:
        case, number = self._next_hook(frame)
        name, data = read_stream_name(frame["f"]), read_data(frame["d"])
        self._hook_streams[name == "stderr"].add(data, self._limits.hook_bytes)
        return HookChunk(case.index, number, name, data)

    def _on_hook(self, frame: Frame) -> None:
        self._next_hook(frame)
        facts = read_execution(frame["e"], self._hook_streams, self._limits.hook_bytes)
        self._hooks.append(facts)
        self._hook_streams = (Received(), Received())

    def _enter_probe(self, number: int) -> None:
        case = self._case
        if case is None or len(self._files) != len(case.files) or self._file.size:
            raise ValueError("a probe before the files")
        if number != len(self._probes) + 1 or number > len(case.probes):
            raise ValueError("a probe out of order")
        self._between_hooks(case)
        if self._number != number:
            self._number = number
            self._streams = (Received(), Received())

    def _on_out(self, frame: Frame) -> Event:
        case = self._current(frame)
        number, name = read_count(frame["x"]), read_stream_name(frame["f"])
        if number:
            self._enter_probe(number)
        elif case.command is None or self._files or self._file.size or self._number:
            raise ValueError("output after the execution")
        self._between_hooks(case)
        data = read_data(frame["d"])
        self._streams[name == "stderr"].add(data, self._limits.stream_bytes)
        return Chunk(case.index, number, name, data)

    def _next_file(self, frame: Frame) -> tuple[CasePlan, int]:
        case, number = self._current(frame), read_count(frame["i"])
        if number != len(self._files) or number >= len(case.files) or self._number:
            raise ValueError("a file out of order")
        self._between_hooks(case)
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
        facts = read_execution(frame["e"], self._streams, self._limits.stream_bytes)
        self._probes[case.probes[number - 1].expectation] = facts

    def _on_end(self, frame: Frame) -> Event:
        case = self._current(frame)
        hooks = 0 if case.command is None else self._hooks_planned
        if not self._all_looked_at(case) or len(self._hooks) != hooks or self._hook_streams_used():
            raise ValueError("a case ends before all was observed")
        if (frame["e"] is None) != (case.command is None):
            raise ValueError("a static case ran, or a command did not")
        execution = None
        if frame["e"] is not None:
            execution = read_execution(frame["e"], self._first, self._limits.stream_bytes)
        usage, wrote = read_usage(frame["u"]), read_flag(frame["w"])
        if case.command is None and (usage is not None or (wrote and not case.probes)):
            raise ValueError("a static case had effects")
        files, probes, ran = tuple(self._files), self._probes, tuple(self._hooks)
        self._done += 1
        self._last_wrote = wrote
        self._forget_case()
        return CaseEnded(case.index, case.case_id, execution, probes, files, usage, wrote, ran)

    def _on_bye(self, frame: Frame) -> Event:
        reason = frame["w"]
        end = InsideEnd(
            context_root_sha256=frame["ctx"],
            hooks_directory_sha256=frame["hks"],
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
