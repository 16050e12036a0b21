"""A hooks directory: the hooks that run around every case, and what is told of each run."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated

from pydantic import Field

from runner.model.base import Items, Sha256, Token, Value

_Count = Annotated[int, Field(ge=0)]


class HookEvent(StrEnum):
    """Events whose hooks are run, under the names that `hooks.json` gives them."""

    SESSION_START = "SessionStart"
    SESSION_END = "SessionEnd"


class HookRef(Value):
    """Which hook: its place in `hooks.json`, and its command by digest."""

    event: HookEvent
    index: _Count
    """Position among the hooks of its event that are run."""
    command_sha256: Sha256
    timeout_seconds: Annotated[int, Field(ge=1)]


class Hook(HookRef):
    """A hook that is to run."""

    command: str
    """For `sh -c`."""

    @property
    def ref(self) -> HookRef:
        """The hook without its command, as evidence names it."""
        return HookRef(**self.model_dump(exclude={"command"}))


class HooksDirectory(Value):
    """A staged hooks directory and what of its `hooks.json` is run."""

    sha256: Sha256
    """Content digest of the staged tree."""
    entries: _Count
    size: _Count
    """Bytes of regular files."""
    hooks: Items[Hook]
    """In the order in which they run: every SessionStart, then every SessionEnd."""
    not_run: Items[str]
    """JSON pointers into `hooks.json`: other events, and groups whose matcher does not match."""

    @property
    def before(self) -> int:
        """How many hooks run before a case; the rest runs after it."""
        return sum(hook.event is HookEvent.SESSION_START for hook in self.hooks)


class HookStream(Value):
    """An output stream of one hook, by reference."""

    size: _Count
    kept: _Count
    sha256: str
    """Of all bytes, kept or not; `hmac-sha256:` prefixed and keyed for a private holdout."""
    path: str | None = None
    """Below the evidence directory; null when empty or withheld (private holdout)."""


class HookReceipt(Value):
    """What came of one hook around one case."""

    event: HookEvent
    index: _Count
    command_sha256: Sha256
    exit_code: Annotated[int, Field(ge=0, le=255)] | None
    signal: Annotated[int, Field(ge=1, le=127)] | None
    timed_out: bool
    oom_killed: bool | None
    start_error: Token | None
    duration_ms: _Count
    """Recorded only; nothing is compared with it."""
    stdout: HookStream
    stderr: HookStream
    """Output may depend on the context: it is recorded and never compared."""
