"""The stored proof about live state, held against itself: what it concludes must follow."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from runner.core.crosscheck import Wrong
from runner.core.liveproof import CLAIM, MOST_CHANGES, MOST_WRITES
from runner.core.livewatch import BY_OUTSIDER, PLANTED, WORST
from runner.model.evidence import SandboxEvidence
from runner.model.liveproof import DecoyProof, LiveRootProof, LiveStateEvidence
from runner.model.tree import ATTRIBUTES

LIVE: Final = "evidence/live-state.json"


def check_live(live: LiveStateEvidence, sandbox: SandboxEvidence) -> Iterator[Wrong]:
    """Everything in the proof that follows from something else in it.

    The manifests themselves are not stored, only their digests: that nothing differed between them
    is what the machine observed.
    """
    proof, at = live.proof, f"{LIVE}#/proof"
    if proof.claim != CLAIM:
        yield Wrong(f"{at}/claim", "is not what such a proof claims")
    if proof.attributes != tuple(name for _, name in ATTRIBUTES):
        yield Wrong(f"{at}/attributes", "are not those that are compared")
    for index, root in enumerate(proof.roots):
        yield from _root(root, f"{at}/roots/{index}")
    by = [root.changed_by for root in proof.roots if root.violates]
    by = by or [root.changed_by for root in proof.roots]
    known = [item for item in by if item is not None]
    if any(item not in WORST for item in known):
        yield Wrong(f"{at}/changed_by", "is no kind of writer")
    elif proof.changed_by != min(known, key=WORST.index, default=None):
        yield Wrong(f"{at}/changed_by", "does not follow from the roots")
    for index, decoy in enumerate(proof.decoys):
        yield from _decoy(decoy, f"{at}/decoys/{index}", complete=proof.watch.complete)
    if proof.watch.method == "none" and proof.watch.complete:
        yield Wrong(f"{at}/watch/complete", "there was no watch")
    if proof.mounts_checked < _binds(sandbox):
        yield Wrong(f"{at}/mounts_checked", "is less than what the containers had")
    yield from _writes(live)


def _root(root: LiveRootProof, at: str) -> Iterator[Wrong]:
    if len(root.changes) != min(root.changes_total, MOST_CHANGES):
        yield Wrong(f"{at}/changes", "are not as many as it says")
    witnessed = any(change.kind != "seen" for change in root.changes)
    both = root.before_sha256 is not None and root.after_sha256 is not None
    differ = root.before_sha256 != root.after_sha256
    if both and witnessed and not differ:
        yield Wrong(f"{at}/changes", "something changed, yet the manifests have the same digest")
    if both and differ and not root.changes_total:
        yield Wrong(f"{at}/after_sha256", "differs from the one before, yet nothing changed")
    changed = not both or differ or bool(root.changes_total)
    if changed != (root.changed_by is not None):
        yield Wrong(f"{at}/changed_by", "a change has a writer, and only a change")
    if root.allowed and root.changed_by != BY_OUTSIDER:
        yield Wrong(f"{at}/allowed", "only a change by an outsider can be allowed")


def _decoy(decoy: DecoyProof, at: str, *, complete: bool) -> Iterator[Wrong]:
    if decoy.planted != PLANTED:
        yield Wrong(f"{at}/planted", f"{PLANTED} mutations are planted")
    seen = decoy.witnessed == decoy.planted
    # A watch that lost events may have missed some; it then says that it is not complete.
    watched = decoy.watched in {None, decoy.planted}
    if decoy.verdict == "fired" and not (seen and (watched or not complete)):
        yield Wrong(f"{at}/verdict", "not every planted mutation was flagged")
    if decoy.verdict == "void" and seen and watched:
        yield Wrong(f"{at}/verdict", "every planted mutation was flagged")


def _binds(sandbox: SandboxEvidence) -> int:
    count = 0
    for container in sandbox.containers:
        mounts = container.profile.get("mounts")
        count += sum(
            isinstance(mount, dict) and mount.get("type") == "bind"
            for mount in (mounts if isinstance(mounts, list) else [])
        )
    return count


def _writes(live: LiveStateEvidence) -> Iterator[Wrong]:
    if len(live.writes) != min(live.writes_total, MOST_WRITES):
        yield Wrong(f"{LIVE}#/writes", "are not as many as it says")
    roots = {root.path: root for root in live.proof.roots}
    for index, write in enumerate(live.writes):
        root = roots.get(write.root)
        if root is None:
            yield Wrong(f"{LIVE}#/writes/{index}/root", "is no live root")
        elif write.writer.kind == "leg" and root.changed_by not in {None, "by_leg"}:
            yield Wrong(f"{LIVE}#/writes/{index}", "a leg wrote, yet its root says otherwise")
    # A change that has a time has a write; a change without one was told by the manifests.
    for root in live.proof.roots:
        if root.changes_total and live.writes_total == 0:
            yield Wrong(f"{LIVE}#/writes", f"{root.path} changed, yet nobody wrote")
