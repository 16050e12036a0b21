"""One error tree; every class knows its exit code. Imports nothing of ours.

A result that is merely bad (a failed case, a degraded leg) is a value, never an exception. What is
raised here ends the command, and says in one line what is wrong, where, and what to do about it.
"""

from __future__ import annotations

from typing import ClassVar


class AoEvalError(Exception):
    """Root of all errors that a user is meant to read.

    Args:
        summary: What is wrong, one line, no trailing full stop.
        where: File, JSON pointer, option or object that is wrong.
        remedy: What the user can do.
    """

    exit_code: ClassVar[int] = 70

    def __init__(
        self, summary: str, *, where: str | None = None, remedy: str | None = None
    ) -> None:
        self.summary = summary
        self.where = where
        self.remedy = remedy
        super().__init__(self.line())

    def line(self) -> str:
        """The whole message on one line: `where: summary; remedy`."""
        text = self.summary if self.where is None else f"{self.where}: {self.summary}"
        if self.remedy is not None:
            text = f"{text}; {self.remedy}"
        return " ".join(text.split())


class InputError(AoEvalError):
    """Usage or invalid input: options, suites, documents."""

    exit_code = 2


class PrerequisiteError(AoEvalError):
    """Something needed before the start is missing: engine, image, OCI runtime."""

    exit_code = 3


class IntegrityError(AoEvalError):
    """The measurement cannot be clean: live state changed, staging refused, read-back differs."""

    exit_code = 5


class StagingRefused(IntegrityError):
    """A tree holds an entry that must not enter a container.

    Args:
        detail: Bare token of the degraded detail (`missing`, `unreadable`, `unsafe_entry`).
    """

    def __init__(
        self, summary: str, *, detail: str, where: str | None = None, remedy: str | None = None
    ) -> None:
        self.detail = detail
        super().__init__(summary, where=where, remedy=remedy)


class HoldoutRefusal(AoEvalError):
    """A holdout gate refused. Never carries a holdout value."""

    exit_code = 6


class EngineFailure(AoEvalError):
    """The engine, an image or the OCI runtime failed.

    Before a leg started this ends the command (exit 3); afterwards the app turns it into the
    degraded reason `runtime_unavailable`.

    Args:
        detail: Bare token: `engine_lost`, `image_missing`, `start_failed`, `create_failed`, ...
    """

    exit_code = 3

    def __init__(
        self, summary: str, *, detail: str, where: str | None = None, remedy: str | None = None
    ) -> None:
        self.detail = detail
        super().__init__(summary, where=where, remedy=remedy)


class ProtocolViolation(AoEvalError):
    """The agent's stream is not what the wire protocol allows; the leg cannot be believed."""

    exit_code = 5


class InternalError(AoEvalError):
    """A defect of ours."""

    exit_code = 70
