"""The bytes of one case, held only while its expectations are evaluated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal


@dataclass(frozen=True, slots=True)
class Captured:
    """Kept bytes of a stream or file.

    Attributes:
        data: Leading bytes, at most the capture limit.
        size: Bytes that there were.
        sha256: Digest of all of them, as the observation states it.
    """

    data: bytes
    size: int
    sha256: str

    @property
    def complete(self) -> bool:
        """False when something was counted and hashed but not kept."""
        return len(self.data) == self.size


@dataclass(frozen=True, slots=True)
class CapturedFile:
    """A file that an expectation names, as the case user saw it."""

    state: Literal["regular", "absent", "directory", "other", "unreadable"]
    captured: Captured | None = None


@dataclass(frozen=True, slots=True)
class CapturedProbe:
    """Result of the extra execution of an auto-detect expectation."""

    exit_code: int | None
    timed_out: bool
    start_error: str | None
    stdout: Captured
    stderr: Captured


EMPTY = Captured(b"", 0, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855")


@dataclass(frozen=True, slots=True)
class Material:
    """All that the expectations of one case may look at.

    Attributes:
        exit_code: Exit code; None when killed by a signal. Static cases have 0.
        stdout: Captured standard output (empty for static cases).
        stderr: Captured standard error.
        files: By the container path that `core.plan` resolved for the expectation.
        probes: By expectation index.
    """

    exit_code: int | None
    stdout: Captured = EMPTY
    stderr: Captured = EMPTY
    files: Mapping[str, CapturedFile] = field(default_factory=dict)
    probes: Mapping[int, CapturedProbe] = field(default_factory=dict)
