"""What cases opened of their context root, as the kernel saw it from outside the container."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from runner.model.base import Items, Token, Value

TraceState = Literal["complete", "incomplete", "unavailable"]
Granularity = Literal["case", "leg_of_one_case"]


class CaseReads(Value):
    """Artifacts that one case opened, each once, in the order of the first open."""

    case_id: str
    opened: Items[str]
    """By the case or a probe of its expectations; paths below the root, as `path_text` has them."""
    by_hooks: Items[str]
    """By hooks around the case. An artifact can be in both."""


class LegReads(Value):
    """Read trace of one leg."""

    leg: Token
    state: TraceState
    """Only `complete` supports the claim that something was not opened."""
    detail: Token | None
    """Why it is not complete: `queue_overflow`, `boundary_mismatch`, `not_alive`, ..."""
    granularity: Granularity | None
    """`leg_of_one_case` where the runtime keeps files open, so that a second open is not seen."""
    cases: Items[CaseReads]
    """Only cases that were run to their end, in that order; empty when unavailable."""

    @model_validator(mode="after")
    def _a_gap_has_a_reason(self) -> Self:
        if (self.detail is None) != (self.state == "complete"):
            raise ValueError("a trace that is not complete says why, and only such a one")
        if (self.granularity is None) != (self.state == "unavailable"):
            raise ValueError("a trace has a granularity unless there is none")
        return self


class ContextReads(Value):
    """Read traces of every leg of a run."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    legs: Items[LegReads]
