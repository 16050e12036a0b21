"""What is shown of the live state: no mount reached it, and it is as it was."""

from __future__ import annotations

from typing import Literal

from runner.model.base import Items, Sha256, Timestamp, Token, Value
from runner.model.observation import Count


class LiveChange(Value):
    """One entry of a live root that is not as it was."""

    path: str
    """Relative to the root, undecodable bytes as surrogate escapes."""
    kind: Literal["added", "removed", "modified", "recreated"]
    attributes: Items[str]
    """Which recorded attributes differ, `ctime` among them for a write that was reverted."""


class LiveRootProof(Value):
    """One watched root, before and after."""

    path: str
    origin: Items[str]
    """Why it is watched: `suite`, `cwd`, `AO_AGENTS_DIR`, `AO_HOME`, `option`, `home`."""
    fatal: bool
    """False for the home directory's root unless --strict-live."""
    present_before: bool
    present_after: bool
    entries: Count
    size: Count
    before_sha256: Sha256 | None
    """Witness digest over all recorded attributes; null when an entry could not be read."""
    after_sha256: Sha256 | None
    changes: Items[LiveChange]
    """At most 100."""
    changes_total: Count

    @property
    def unchanged(self) -> bool:
        """True when both manifests were taken and nothing recorded differs."""
        seen = self.before_sha256 is not None and self.after_sha256 is not None
        return seen and self.changes_total == 0 and self.before_sha256 == self.after_sha256


class LiveStateProof(Value):
    """No difference in these attributes between two manifests, and no mount reached a root.

    Never "was not written": that is not what two looks can show.
    """

    claim: str
    attributes: Items[str]
    roots: Items[LiveRootProof]
    mounts_checked: Count
    mounts_reaching: Items[str]
    """`mount source -> live root: equals|contains|inside`; any entry is a violation."""
    changed_by: Token | None
    """`by_leg`, `by_outsider`, `writer_unknown`; null when nothing changed."""


class LiveStateEvidence(Value):
    """`evidence/live-state.json`: the proof with the times of its manifests."""

    schema_version: Literal[1]
    proof: LiveStateProof
    t0: Timestamp
    """When the first manifest was begun."""
    t1: Timestamp
    """When the second manifest was complete."""
