"""What is shown of the live state: no mount reached it, it is as it was, and the proof can fail."""

from __future__ import annotations

from typing import Literal

from runner.model.base import Items, Sha256, Timestamp, Token, Value
from runner.model.livewatch import Action, WatchMethod
from runner.model.observation import Count


class LiveChange(Value):
    """One entry of a live root that is not as it was."""

    path: str
    """Relative to the root, undecodable bytes as surrogate escapes."""
    kind: Literal["added", "removed", "modified", "recreated", "seen"]
    """`seen`: the watch saw a write there, and the manifests do not differ."""
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
    changed_by: Token | None
    """`by_leg`, `by_outsider`, `writer_unknown`: the worst not excluded; null: no change."""
    allowed: bool
    """It changed, all of it was positively done by outsiders, and that was allowed."""

    @property
    def violates(self) -> bool:
        """Its change makes the run unclean."""
        return self.fatal and not self.unchanged and not self.allowed

    @property
    def unchanged(self) -> bool:
        """True when both manifests were taken and nothing recorded differs."""
        seen = self.before_sha256 is not None and self.after_sha256 is not None
        return seen and self.changes_total == 0 and self.before_sha256 == self.after_sha256


class WatchProof(Value):
    """The watch of the live roots from before the first manifest until after the last."""

    method: WatchMethod
    """`fanotify` knows the writers, `inotify` does not; `none`: the kernel gave no watch."""
    complete: bool
    """Nothing is known to be missing. False without a watch."""
    events_total: Count
    """Events inside live roots."""
    note: str
    """Why it is not complete, or not the stronger method; empty otherwise."""


class DecoyProof(Value):
    """The positive control on one file system: mutations that the detectors had to flag."""

    roots: Items[str]
    """Live roots that it stands for."""
    same_filesystem: bool
    """False: no place could be had on the file system of these roots."""
    planted: Count
    witnessed: Count
    """Flagged by the manifests before and after."""
    watched: Count | None
    """Flagged by the watch, under fanotify with the right writer; null where there was none."""
    verdict: Literal["fired", "void"]
    note: str


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
    watch: WatchProof
    decoys: Items[DecoyProof]
    """Together they stand for every root; a root without one is not proved."""


class LiveWriter(Value):
    """Who wrote."""

    kind: Literal["leg", "outsider", "runner", "engine", "unknown"]
    """`leg`: a container of this run. `runner`: this program. `unknown`: gone before it could be
    looked at, in a place that cannot be told, or the watch does not tell."""
    pid: Count | None
    name: str | None
    program: str | None
    container: str | None
    """Id of the container it ran in."""


class LiveWrite(Value):
    """What one writer did at one path of a live root."""

    root: str
    path: str
    """Relative to the root; `.` is the root."""
    actions: Items[Action]
    """Empty: only the manifests show it."""
    first: Timestamp | None
    """When the watch read it; without a watch, the change time that the kernel left."""
    last: Timestamp | None
    count: Count
    writer: LiveWriter


class LiveStateEvidence(Value):
    """`evidence/live-state.json`: the proof with times and writers."""

    schema_version: Literal[1]
    proof: LiveStateProof
    t0: Timestamp
    """When the first manifest was begun."""
    t1: Timestamp
    """When the second manifest was complete."""
    writes: Items[LiveWrite]
    """In the order of time; at most 200."""
    writes_total: Count
