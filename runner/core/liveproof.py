"""Manifests before and after, and the mounts of the containers -> the proof about live state."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from runner.core.treediff import differences
from runner.model.leg import Degradation, DegradedReason
from runner.model.liveproof import LiveChange, LiveRootProof, LiveStateProof
from runner.model.tree import ATTRIBUTES, LiveRoot, TreeDifference, TreeManifest

CLAIM = (
    "no difference in these attributes between the manifests taken before the first leg and after "
    "the last, and no mount of a leg reached a live root"
)
MOST_CHANGES = 100


class Watched(NamedTuple):
    """A live root with its two manifests; None for one that could not be taken."""

    root: LiveRoot
    fatal: bool
    before: TreeManifest | None
    after: TreeManifest | None


def prove(
    watched: Sequence[Watched], *, mounts_checked: int, mounts_reaching: Iterable[str]
) -> LiveStateProof:
    """Put the parts of the proof together.

    Args:
        watched: Every live root.
        mounts_checked: Mount sources of all containers that were compared with the live roots.
        mounts_reaching: Those that reach one, in words.
    """
    roots = tuple(_root(item) for item in watched)
    changed = any(not root.unchanged for root in roots)
    return LiveStateProof(
        claim=CLAIM,
        attributes=tuple(name for _, name in ATTRIBUTES),
        roots=roots,
        mounts_checked=mounts_checked,
        mounts_reaching=tuple(sorted(set(mounts_reaching))),
        changed_by="writer_unknown" if changed else None,
    )


def _root(item: Watched) -> LiveRootProof:
    before, after = item.before, item.after
    difference = TreeDifference(total=0, changes=())
    if before is not None and after is not None:
        difference = differences(before, after, limit=MOST_CHANGES)
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
        changes=tuple(
            LiveChange(path=change.path, kind=change.kind, attributes=change.attributes)
            for change in difference.changes
        ),
        changes_total=difference.total,
    )


def fatal_changes(proof: LiveStateProof) -> tuple[LiveRootProof, ...]:
    """Roots whose change makes the run unclean."""
    return tuple(root for root in proof.roots if root.fatal and not root.unchanged)


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
    return tuple(lines)
