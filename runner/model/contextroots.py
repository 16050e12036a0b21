"""What the two context roots hold, entry by entry, so that digests can be recomputed."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from runner.model.base import Items, Sha256, Value
from runner.model.contextfile import ContextFile
from runner.model.controls import LegName


class RootEntry(Value):
    """One entry of a staged context root."""

    path: str
    """Below the root, as `path_text` writes it."""
    kind: Literal["f", "d", "l"]
    executable: bool
    sha256: Sha256 | None
    """Of content or link target; null for a directory."""


class RootContent(Value):
    """One staged context root."""

    leg: LegName
    label: str
    sha256: Sha256 | None
    """Content digest over the entries (`core.treehash`); null when it could not be staged."""
    refusal: str | None
    """Why it was refused, when that is an integrity problem and not a mere absence."""
    entries: Items[RootEntry]
    """Sorted by path bytes."""
    context: ContextFile | None
    """`context.json` beside it."""


class ContextRoots(Value):
    """`evidence/context-roots.json`."""

    schema_version: Annotated[int, Field(ge=1, le=1)]
    roots: Items[RootContent]
