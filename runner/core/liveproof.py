"""Manifests before and after, and the mounts of the containers -> the proof about live state."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runner.core import livewatch
from runner.core.livewatch import Watching
from runner.core.treediff import differences
from runner.model.leg import Degradation, DegradedReason
from runner.model.liveproof import (
    DecoyProof,
    LiveChange,
    LiveRootProof,
    LiveStateEvidence,
    LiveStateProof,
    LiveWrite,
)
from runner.model.livewatch import Touch
from runner.model.tree import ATTRIBUTES, Change, LiveRoot, TreeManifest

CLAIM = (
    "no difference in these attributes between the manifests taken before the first leg and after "
    "the last, and no mount of a leg reached a live root"
)
MOST_CHANGES = 100
MOST_WRITES = 200
_MOST_TOLD = 5
_UNLIMITED = 1 << 62


class Watched(NamedTuple):
    """A live root with its two manifests; None for one that could not be taken."""

    root: LiveRoot
    fatal: bool
    before: TreeManifest | None
    after: TreeManifest | None

    def changes(self) -> tuple[Change, ...]:
        """All differences; none where a manifest is missing."""
        if self.before is None or self.after is None:
            return ()
        return differences(self.before, self.after, limit=_UNLIMITED).changes


def prove(
    watched: Sequence[Watched],
    *,
    mounts_checked: int,
    mounts_reaching: Iterable[str],
    watching: Watching,
    allow_external: bool = False,
) -> LiveStateProof:
    """Put the parts of the proof together.

    Args:
        watched: Every live root.
        mounts_checked: Mount sources of all containers that were compared with the live roots.
        mounts_reaching: Those that reach one, in words.
        watching: What the watch saw, and what the decoys showed.
        allow_external: A change that is positively an outsider's is not fatal.
    """
    decoys = tuple(livewatch.judge_decoy(decoy, watching) for decoy in watching.decoys)
    roots = tuple(_root(item, watching, decoys, allow=allow_external) for item in watched)
    return LiveStateProof(
        claim=CLAIM,
        attributes=tuple(name for _, name in ATTRIBUTES),
        roots=roots,
        mounts_checked=mounts_checked,
        mounts_reaching=tuple(sorted(set(mounts_reaching))),
        changed_by=_worst(
            [root.changed_by for root in roots if root.violates]
            or [root.changed_by for root in roots]
        ),
        watch=livewatch.summary(watching, [item.root for item in watched]),
        decoys=decoys,
    )


def _worst(found: Iterable[str | None]) -> str | None:
    present = [item for item in found if item is not None]
    return min(present, key=livewatch.WORST.index, default=None)


def _root(
    item: Watched, watching: Watching, decoys: Sequence[DecoyProof], *, allow: bool
) -> LiveRootProof:
    before, after, changes = item.before, item.after, item.changes()
    seen = livewatch.inside(item.root, watching)
    only = livewatch.seen_only(seen, (change.path for change in changes), watching.since)
    listed = (
        *(LiveChange(path=c.path, kind=c.kind, attributes=c.attributes) for c in changes),
        *(LiveChange(path=path, kind="seen", attributes=()) for path in only),
    )
    by: str | None = None
    if before is None or after is None:
        by = livewatch.BY_LEG if _by_leg(seen, watching) else livewatch.UNKNOWN
    elif listed or before.sha256 != after.sha256:
        fired = any(
            item.root.path in decoy.roots and decoy.verdict == "fired"
            and decoy.watched == decoy.planted
            for decoy in decoys
        )  # fmt: skip
        by = livewatch.changed_by(seen, changes, watching, fired=fired)
    return LiveRootProof(
        path=item.root.path,
        origin=item.root.origins,
        fatal=item.fatal,
        present_before=before is not None and before.present,
        present_after=after is not None and after.present,
        entries=0 if before is None else len(before),
        size=0 if before is None else sum(e.size for e in before.entries() if e.kind == "f"),
        before_sha256=None if before is None else before.sha256,
        after_sha256=None if after is None else after.sha256,
        changes=listed[:MOST_CHANGES],
        changes_total=len(listed),
        changed_by=by,
        allowed=allow and by == livewatch.BY_OUTSIDER,
    )


def _by_leg(seen: Sequence[tuple[str, Touch]], watching: Watching) -> bool:
    return any(livewatch.kind_of(touch, watching) == "leg" for _, touch in seen)


def evidence(
    proof: LiveStateProof, watched: Sequence[Watched], watching: Watching, *, t0: str, t1: str
) -> LiveStateEvidence:
    """The proof with every write to a live root: when, and by whom."""
    found: list[LiveWrite] = []
    for item in watched:
        seen = livewatch.inside(item.root, watching)
        found += livewatch.writes(item.root, seen, item.changes(), item.after, watching)
    # What has no time comes last; among equals the order of the roots.
    found.sort(key=lambda write: write.first or "~")
    return LiveStateEvidence(
        schema_version=1,
        proof=proof,
        t0=t0,
        t1=t1,
        writes=tuple(found[:MOST_WRITES]),
        writes_total=len(found),
    )


def notices(found: LiveStateEvidence) -> tuple[str, ...]:
    """Path, time and writer of changes in roots that must not change: the first thing to be said.

    Changes that were allowed are among them; the line says so.
    """
    lines = []
    for root in found.proof.roots:
        if not root.violates and not root.allowed:
            continue
        mine = [write for write in found.writes if write.root == root.path]
        note = " (allowed)" if root.allowed else ""
        lines += [livewatch.told(write) + note for write in itertools.islice(mine, _MOST_TOLD)]
        if len(mine) > _MOST_TOLD:
            lines.append(f"live state changed: {root.path}: {len(mine)} writes in all{note}")
    return tuple(lines)


def warnings(proof: LiveStateProof) -> tuple[str, ...]:
    """What is not fatal and has to be known all the same."""
    return tuple(
        f"live state was changed by outsiders during the run, which was allowed: {root.path} "
        f"({root.changes_total} entries)"
        for root in proof.roots
        if root.allowed
    )


def fatal_changes(proof: LiveStateProof) -> tuple[LiveRootProof, ...]:
    """Roots whose change makes the run unclean."""
    return tuple(root for root in proof.roots if root.violates)


def degradation(proof: LiveStateProof) -> Degradation | None:
    """What a fatal change makes of every leg."""
    if not fatal_changes(proof):
        return None
    return Degradation(
        reason=DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE,
        detail=proof.changed_by or "writer_unknown",
    )


def problems(proof: LiveStateProof) -> tuple[str, ...]:
    """One line for each thing that makes the run unclean; what changed comes first."""
    lines = []
    for root in fatal_changes(proof):
        for change in root.changes[:5]:
            what = f" ({', '.join(change.attributes)})" if change.attributes else ""
            lines.append(f"live state changed: {root.path}/{change.path}: {change.kind}{what}")
        if root.changes_total > 5:
            lines.append(f"live state changed: {root.path}: {root.changes_total} entries in all")
        if root.changes_total == 0:
            lines.append(f"live state not witnessed: {root.path}: an entry could not be read")
    lines += [f"a mount reaches live state: {item}" for item in proof.mounts_reaching]
    return (*lines, *void(proof))


def void(proof: LiveStateProof) -> tuple[str, ...]:
    """Why the proof is none, one line each: a detector that did not fire on a planted mutation."""
    lines = []
    for decoy in proof.decoys:
        if decoy.verdict == "fired":
            continue
        flagged = f"the witness flagged {decoy.witnessed} of {decoy.planted} planted mutations"
        if decoy.watched is not None:
            flagged += f", {proof.watch.method} {decoy.watched}"
        note = f" ({decoy.note})" if decoy.note else ""
        lines.append(f"live proof is void: {flagged}{note}: {', '.join(decoy.roots)}")
    stood_for = {root for decoy in proof.decoys for root in decoy.roots}
    lines += [
        f"live proof is void: no mutation was planted: {root.path}"
        for root in proof.roots
        if root.path not in stood_for
    ]
    return tuple(lines)
