"""What was done to show that an outcome follows the context, and what that showed."""

from __future__ import annotations

from typing import Literal, Self

from pydantic import model_validator

from runner.model.base import Items, Token, Value
from runner.model.contextfile import Role, SentinelRole
from runner.model.observation import Count
from runner.model.reads import Granularity, TraceState

LegName = Literal["context_off", "context_on"]


class CaseControl(Value):
    """Controls of one case whose outcome differed between the first legs, or that failed one."""

    case_id: str
    runs_off: Count
    """Legs with the off-root and its label in which the case ended, the first one included."""
    runs_on: Count
    label_swapped: bool
    """Each root was also run under the other root's label."""
    finding: Token | None
    """Why the pair is degraded; null when every control held."""


class TraceSummary(Value):
    """The weakest read trace among the legs."""

    state: TraceState
    detail: Token | None
    granularity: Granularity | None


class SentinelCheck(Value):
    """One sentinel of one root."""

    root: LegName
    artifact: str
    role: SentinelRole
    present: Literal[True]
    """Part of the staged root, whose digest was seen from inside; a run without it is refused."""
    hits: Items[str]
    """Cases of that leg whose output held one of its tokens."""


class Controls(Value):
    """Which controls were run."""

    mode: Literal["none", "standard"]
    null_check: bool
    """True for `--aa`: both legs had the same root."""
    legs: Count
    """All legs that were run, the first two included."""
    replicates: Count
    """How often each root was run with every case."""
    extra_replicates: Count
    """How often more with the cases whose outcome differed."""
    cases: Items[CaseControl]
    trace: TraceSummary
    sentinels: Items[SentinelCheck]


class Unit(Value):
    """One entry of the difference between the two roots: what can be varied by itself."""

    path: str
    change: Literal["added", "changed", "removed"]
    """From the off-root to the on-root."""
    role: Role | None
    """In `context.json` of the on-root, else of the off-root."""


class CaseAttribution(Value):
    """What decided one changed case."""

    case_id: str
    method: Literal["trace", "checked_file", "ablation"]
    """`trace`: the case opened it (or under gVisor looked at it); `checked_file`: an expectation
    looked at it; `ablation`: the outcome changed with it."""
    opened_off: Items[str]
    """Units opened in the off-legs."""
    opened_on: Items[str]
    necessary: Items[str]
    """Units without whose on-version the on-outcome is lost; empty unless ablated."""
    sufficient: Items[str]
    """Units whose on-version alone brings the on-outcome."""
    pattern: Literal["single", "joint", "either", "mixed", "unresolved"] | None
    """`joint`: needed together; `either`: each suffices; null unless ablated."""

    @model_validator(mode="after")
    def _ablation_has_a_pattern(self) -> Self:
        if self.pattern is None and (self.necessary or self.sufficient):
            raise ValueError("what is necessary or sufficient is known from ablation only")
        return self


class Attribution(Value):
    """Causal detail behind `artifact_attribution`."""

    mode: Literal["none", "trace", "ablate"]
    units_total: Count
    units: Items[Unit]
    """The first 1,000 by path."""
    ablation_legs: Count
    ablation_limit: Count
    """Most legs of an ablation; units were varied together where they are too many."""
    cases: Items[CaseAttribution]
