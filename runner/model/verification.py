"""What came of checking an evidence directory."""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from runner.model.base import Items, RunId, Token, Value
from runner.model.observation import Count


class FailedCheck(Value):
    """One thing that is wrong."""

    check: Token
    where: str
    """File, with a JSON pointer behind `#` where there is one."""
    problem: str


class CheckDone(Value):
    """One kind of check, and how far it could be carried out."""

    check: Token
    state: Literal["passed", "failed", "not_possible"]
    looked_at: Count
    """How many things it compared."""
    shows: str
    """What it shows, or why it was not possible."""


class Verification(Value):
    """The whole verification of one directory."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    directory: str
    run_id: RunId | None
    verdict: Literal["accepted", "rejected"]
    authorship: Literal["shown", "refuted", "consistency_only"]
    """`consistency_only`: no key was given, so nothing is said of who made it."""
    key_id: str | None
    """The key that was given."""
    signed_by: Items[str]
    """Key ids that the envelopes name; unauthenticated unless authorship is shown."""
    checks: Items[CheckDone]
    problems: Items[FailedCheck]
    not_shown: Items[str]
    """What this verification cannot show, whatever the verdict."""

    @model_validator(mode="after")
    def _a_problem_rejects(self) -> Self:
        if (self.verdict == "rejected") != bool(self.problems):
            raise ValueError("rejected with a problem, accepted without one")
        if self.authorship == "shown" and self.key_id is None:
            raise ValueError("authorship is shown with a key only")
        return self
