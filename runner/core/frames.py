"""What the agent tells: bounds, facts and events, and how they are read from frames.

Readers take parsed JSON and raise ValueError for anything that is not exactly as agreed; the
decoder in `runner.core.wire` turns that into a refusal of the stream.
"""

from __future__ import annotations

import binascii
import hashlib
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from runner.model.observation import InsideEnd, InsideReport

FileState = Literal["regular", "absent", "directory", "other", "unreadable"]
ByeReason = Literal["done", "dirty", "leftover"]

_SHA256 = re.compile(r"[0-9a-f]{64}")
_EMPTY = hashlib.sha256().hexdigest()
_TOKEN = re.compile(r"[a-z][a-z0-9_]{0,63}")


@dataclass(frozen=True, slots=True)
class Limits:
    """Bounds on what the agent passes on, in bytes.

    Attributes:
        stream_bytes: Leading bytes kept of each output stream.
        file_bytes: Leading bytes kept of each file that expectations name.
        hash_bytes: Size up to which a file is hashed as a whole; larger ones have no digest.
        hook_bytes: Leading bytes kept of each output stream of a hook.
    """

    stream_bytes: int = 16 << 20
    file_bytes: int = 16 << 20
    hash_bytes: int = 1 << 30
    hook_bytes: int = 64 << 10


@dataclass(frozen=True, slots=True)
class StreamFacts:
    """One output stream: bytes written, leading bytes passed on, digest of all of them."""

    size: int
    kept: int
    sha256: str


@dataclass(frozen=True, slots=True)
class ExecutionFacts:
    """One execution; the fields are those of `runner.model.observation.Execution`.

    Attributes:
        oom_killed: None where the container's OOM counter cannot be read.
    """

    exit_code: int | None
    signal: int | None
    timed_out: bool
    oom_killed: bool | None
    start_error: str | None
    duration_ms: int
    stragglers: int
    stdout: StreamFacts
    stderr: StreamFacts


@dataclass(frozen=True, slots=True)
class FileFacts:
    """One file that an expectation names.

    Attributes:
        sha256: Of the whole file; None unless regular and not larger than `Limits.hash_bytes`.
    """

    path: str
    state: FileState
    size: int
    kept: int
    sha256: str | None


@dataclass(frozen=True, slots=True)
class Hello:
    """First event of every leg."""

    report: InsideReport


@dataclass(frozen=True, slots=True)
class CaseStarted:
    """A case begins; `index` is its position in the suite."""

    index: int
    case_id: str


@dataclass(frozen=True, slots=True)
class Chunk:
    """Output. `execution` 0 is the case itself, n >= 1 its n-th probe."""

    index: int
    execution: int
    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, slots=True)
class HookChunk:
    """Output of the hook number `hook` around a case; its facts follow in `CaseEnded`."""

    index: int
    hook: int
    stream: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, slots=True)
class FileChunk:
    """Leading bytes of the case's file number `file`; its facts follow in `CaseEnded`."""

    index: int
    file: int
    data: bytes


@dataclass(frozen=True, slots=True)
class CaseEnded:
    """All facts of a case, in agreement with the chunks before it.

    Attributes:
        execution: None for a static case.
        probes: By the index of the expectation that asked for it.
        wrote_workspace: By the case or a hook around it; None: it cannot be told.
        hooks: One for every hook of the plan, in its order; empty for a static case.
    """

    index: int
    case_id: str
    execution: ExecutionFacts | None
    probes: Mapping[int, ExecutionFacts]
    files: tuple[FileFacts, ...]
    usage: Mapping[str, int] | None
    wrote_workspace: bool | None
    hooks: tuple[ExecutionFacts, ...] = ()


@dataclass(frozen=True, slots=True)
class Bye:
    """Last event of a container that ended in order.

    Attributes:
        reason: `done`; or cases remain for a fresh container, since the last one wrote to the
            workspace (`dirty`) or left something that cannot be removed (`leftover`).
    """

    end: InsideEnd
    reason: ByeReason


@dataclass(frozen=True, slots=True)
class Fatal:
    """The agent gave up; nothing follows. `reason` is a bare token."""

    reason: str
    message: str


Event = Hello | CaseStarted | Chunk | HookChunk | FileChunk | CaseEnded | Bye | Fatal


@dataclass(slots=True)
class Received:
    """Bytes of one stream or file as they arrived."""

    size: int = 0
    _digest: Any = None

    def add(self, data: bytes, limit: int) -> None:
        """Count and hash the next bytes; ValueError beyond the limit."""
        self.size += len(data)
        if self.size > limit:
            raise ValueError("more bytes than the limit")
        if self._digest is None:
            self._digest = hashlib.sha256(data)
        else:
            self._digest.update(data)

    def check(self, size: int, kept: int, sha256: str | None) -> None:
        """Compare with what the agent states about the same bytes."""
        if self.size != kept or kept > size:
            raise ValueError("sizes differ from the bytes received")
        if kept != size or sha256 is None:
            return
        digest = _EMPTY if self._digest is None else self._digest.hexdigest()
        if digest != sha256:
            raise ValueError("digest differs from the bytes received")


def read_count(value: object) -> int:
    """A non-negative integer."""
    if type(value) is not int or value < 0:
        raise ValueError("not a count")
    return value


def read_flag(value: object) -> bool | None:
    """A boolean, or None for unknown."""
    if value is not None and type(value) is not bool:
        raise ValueError("not a flag")
    return value


def read_text(value: object) -> str:
    """A string."""
    if type(value) is not str:
        raise ValueError("not a string")
    return value


def read_token(value: object) -> str:
    """A bare token."""
    text = read_text(value)
    if not _TOKEN.fullmatch(text):
        raise ValueError("not a token")
    return text


def read_sha256(value: object) -> str:
    """A hexadecimal SHA-256."""
    text = read_text(value)
    if not _SHA256.fullmatch(text):
        raise ValueError("not a digest")
    return text


def read_data(value: object) -> bytes:
    """Bytes in base64, at least one."""
    data = binascii.a2b_base64(read_text(value), strict_mode=True)
    if not data:
        raise ValueError("an empty chunk")
    return data


def read_usage(value: object) -> dict[str, int] | None:
    """What a case reported of its use."""
    if value is None:
        return None
    if type(value) is not dict or not value or value.keys() - {"tokens", "tool_calls"}:
        raise ValueError("not a usage report")
    return {name: read_count(count) for name, count in value.items()}


def read_stream_name(value: object) -> Literal["stdout", "stderr"]:
    """Which output stream."""
    if read_count(value) not in (1, 2):
        raise ValueError("not an output stream")
    return "stdout" if value == 1 else "stderr"


def read_stream(value: object, received: Received, limit: int) -> StreamFacts:
    """Facts of one output stream, compared with the bytes that arrived."""
    if type(value) is not list or len(value) != 3:
        raise ValueError("not the facts of a stream")
    size, kept, sha256 = read_count(value[0]), read_count(value[1]), read_sha256(value[2])
    if kept != min(size, limit):
        raise ValueError("kept less than it may")
    received.check(size, kept, sha256)
    return StreamFacts(size, kept, sha256)


_EXECUTION_KEYS = {"x", "g", "to", "oom", "err", "ms", "st", "o", "e"}


def read_execution(
    value: object, received: tuple[Received, Received], limit: int
) -> ExecutionFacts:
    """Facts of one execution: it could not start, it exited, or it was killed.

    Args:
        value: As the agent states them.
        received: Its two output streams as they arrived.
        limit: Bytes of each that are passed on.
    """
    if type(value) is not dict or value.keys() != _EXECUTION_KEYS:
        raise ValueError("not the facts of an execution")
    facts = ExecutionFacts(
        exit_code=None if value["x"] is None else read_count(value["x"]),
        signal=None if value["g"] is None else read_count(value["g"]),
        timed_out=read_flag(value["to"]) is True,
        oom_killed=read_flag(value["oom"]),
        start_error=None if value["err"] is None else read_token(value["err"]),
        duration_ms=read_count(value["ms"]),
        stragglers=read_count(value["st"]),
        stdout=read_stream(value["o"], received[0], limit),
        stderr=read_stream(value["e"], received[1], limit),
    )
    outcomes = [facts.exit_code, facts.signal, facts.start_error]
    if value["to"] is None or outcomes.count(None) != 2:
        raise ValueError("not exactly one outcome")
    if facts.exit_code is not None and facts.exit_code > 255:
        raise ValueError("not an exit code")
    if facts.signal is not None and not 1 <= facts.signal <= 127:
        raise ValueError("not a signal")
    if facts.start_error is not None and (
        facts.timed_out or facts.stragglers or facts.stdout.size or facts.stderr.size
    ):
        raise ValueError("a program that did not start had effects")
    return facts


def read_file(frame: Mapping[str, Any], path: str, received: Received, limits: Limits) -> FileFacts:
    """Facts of one file, compared with the bytes that arrived."""
    size, kept, state = read_count(frame["z"]), read_count(frame["kp"]), frame["st"]
    sha256 = None if frame["h"] is None else read_sha256(frame["h"])
    if state == "regular":
        whole = size <= limits.hash_bytes
        good = kept == min(size, limits.file_bytes) and (sha256 is not None) == whole
    elif state == "unreadable":
        good = sha256 is None
    else:
        good = state in ("absent", "directory", "other") and size == kept == 0 and sha256 is None
    if not good:
        raise ValueError("facts of a file contradict each other")
    received.check(size, kept, sha256)
    return FileFacts(path, state, size, kept, sha256)
