"""Evidence files beside the scorecard, and the file that labels a context root."""

from __future__ import annotations

from typing import Any, Literal

from runner.model.base import Items, Sha256, Token, Value
from runner.model.container import Difference, EngineInfo
from runner.model.hooks import HookRef
from runner.model.observation import Count, InsideEnd, InsideReport


class ContainerEvidence(Value):
    """One container before its start, as the engine described it."""

    leg: Token
    ordinal: Count
    profile: dict[str, Any]
    """Confinement as read back; names, ids and host paths left out."""
    differences: Items[Difference]


class LegInside(Value):
    """What the agent of one leg saw, in its first container and after its last case."""

    leg: Token
    start: InsideReport | None
    end: InsideEnd | None


class SandboxEvidence(Value):
    """`evidence/sandbox.json`."""

    schema_version: Literal[1]
    engine: EngineInfo
    containers: Items[ContainerEvidence]
    inside: Items[LegInside]
    problems: Items[str]


class LegHooks(Value):
    """The hook environment of one leg in its three places: name -> SHA-256 of the value."""

    leg: Token
    inside_at_start: dict[str, Sha256] | None
    inside_at_end: dict[str, Sha256] | None
    created_configuration: Items[str]
    """Names in the created container; their values were compared in the read-back."""
    directory_at_start: Sha256 | None = None
    """Content digest of the hooks directory as seen from inside."""
    directory_at_end: Sha256 | None = None
    preserved: bool
    """Variables and directory are inside, from start to end, what they are on the host."""


class CaseReceipts(Value):
    """What came of the hooks around one case; the receipts are in the run records."""

    case_id: str
    complete: bool
    """In every leg that ran the case, every hook was started and came to its own end."""
    equal: bool | None
    """The same hooks ended the same way in all legs; null when there are no two to compare."""


class HooksDirectoryEvidence(Value):
    """The hooks directory and what of it was run."""

    sha256: Sha256
    entries: Count
    size: Count
    hooks: Items[HookRef]
    """In the order in which they ran; empty when hooks were suppressed."""
    not_run: Items[str]
    """JSON pointers into `hooks.json`: other events, and groups whose matcher does not match."""
    cases: Items[CaseReceipts]
    """Command cases that were reached, in the order of the suite."""


class HooksEvidence(Value):
    """`evidence/hooks.json`: names and digests, never values."""

    schema_version: Literal[1]
    host: dict[str, Sha256]
    """What the invoker's environment held of the hook namespaces and was passed on."""
    dropped: Items[str]
    """Names that look like credentials."""
    scrub_prefixes_without_effect: Items[str]
    """Prefixes of the suite; a suite cannot remove hook variables."""
    directory: HooksDirectoryEvidence | None = None
    """Null without a hooks directory."""
    legs: Items[LegHooks]
