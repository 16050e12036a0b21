"""What was observed. Outputs are blob references; bytes never travel in a value."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.model.base import Items, Sha256, Token, Value
from runner.model.hooks import HookReceipt
from runner.model.leg import Degradation

Count = Annotated[int, Field(ge=0)]


class StreamObservation(Value):
    """One output stream of one execution."""

    size: Count
    """Bytes written by the execution."""
    kept: Count
    """Leading bytes that were passed on; smaller than `size` when truncated."""
    sha256: str
    """Of all bytes, kept or not; `hmac-sha256:` prefixed and keyed for a private holdout."""
    blob: str | None = None
    """Path below the evidence directory, when the bytes were stored."""

    @property
    def truncated(self) -> bool:
        """True when something was counted and hashed but not kept."""
        return self.kept < self.size


class Execution(Value):
    """One process tree from start to the last process killed."""

    exit_code: Annotated[int, Field(ge=0, le=255)] | None = None
    signal: Annotated[int, Field(ge=1, le=127)] | None = None
    timed_out: bool = False
    oom_killed: bool | None = False
    """None where the container's counter cannot be read."""
    start_error: Token | None = None
    """Set when the program could not be started: `not_found`, `not_executable`, `bad_cwd`, ..."""
    duration_ms: Count = 0
    stragglers: Count = 0
    """Sweep rounds that found a process of the case user still alive after the leader ended."""
    stdout: StreamObservation
    stderr: StreamObservation


class FileObservation(Value):
    """A file that expectations name, as the case user saw it after the case."""

    path: str
    state: Literal["regular", "absent", "directory", "other", "unreadable"]
    size: Count = 0
    kept: Count = 0
    sha256: str | None = None
    blob: str | None = None


class CaseObservation(Value):
    """What one case did."""

    index: Count
    case_id: str
    container: Count = 0
    """Ordinal of the container of the leg that ran it."""
    execution: Execution | None = None
    """None for a static case and for one that did not run."""
    probes: dict[int, Execution] = Field(default_factory=dict)
    files: Items[FileObservation] = ()
    usage: dict[str, int] | None = None
    """`tokens` and `tool_calls` that the case reported, if it did."""
    wrote_workspace: bool | None = None
    """None: not known (the workspace mode cannot tell)."""
    hooks: Items[HookReceipt] = ()
    """What came of the hooks around it."""
    degraded: Degradation | None = None


class InsideReport(Value):
    """What the agent saw from inside, before the first case."""

    agent_sha256: Sha256
    uid: Count
    case_uid: Count
    capabilities: str
    """Effective set of the agent, hexadecimal, from /proc/self/status."""
    case_capabilities: str
    no_new_privs: bool
    seccomp: Count
    interfaces: Items[str]
    routes: Count
    mounts: Items[str]
    """`target fstype ro|rw`, sorted by target."""
    writable: Items[str]
    """Directories in which the case user could create a file, of those that were tried."""
    context_root_sha256: Sha256 | None
    environment_sha256: dict[str, Sha256]
    """Name -> SHA-256 of the value, of the environment that cases start with."""
    kernel: str
    python: str
    hooks_directory_sha256: Sha256 | None = None
    """Content digest of the hooks directory; null when there is none or it cannot be read."""


class InsideEnd(Value):
    """What the agent saw after the last case."""

    context_root_sha256: Sha256 | None
    environment_sha256: dict[str, Sha256]
    cases_done: Count
    hooks_directory_sha256: Sha256 | None = None


class LegObservation(Value):
    """One leg from create to remove."""

    leg: Token
    started_at: str
    completed_at: str
    inside: InsideReport | None = None
    end: InsideEnd | None = None
    containers: Count = 0
    cases: Items[CaseObservation] = ()
    degraded: Degradation | None = None
    """Set when the leg as a whole cannot be believed."""
