"""`context.json`: which artifacts a context root holds, and the part each of them plays."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.model.base import Items, Value

SentinelRole = Literal["stale_sentinel", "toxic_sentinel", "irrelevant"]
"""Negative controls: there on purpose, and no output may show that they had a part."""

Role = Literal["helpful", "curated_only", "stale_sentinel", "toxic_sentinel", "irrelevant"]


class ContextArtifact(Value):
    """One artifact of a context root and the part it plays."""

    path: Annotated[str, Field(min_length=1)]
    """Relative to the root."""
    role: Role
    tokens: Items[str] = ()


class ContextFile(Value):
    """`context.json` beside a context root; travels with it, is never mounted."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    label: Annotated[str, Field(pattern=r"^[a-z0-9][a-z0-9._-]*$", max_length=100)]
    artifacts: Items[ContextArtifact] = ()
