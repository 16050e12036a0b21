"""Manifests before and after, and mounts -> the proof about live state."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from runner.core.liveproof import (
    CLAIM,
    MOST_CHANGES,
    Watched,
    degradation,
    evidence,
    fatal_changes,
    notices,
    problems,
    prove,
    warnings,
)
from runner.core.livewatch import Watching
from runner.model.leg import Degradation, DegradedReason
from runner.model.liveproof import LiveStateProof
from runner.model.livewatch import Decoy, Touch
from runner.model.tree import ATTRIBUTES, LiveRoot, TreeManifest, pack_row
from tests.unit.core import watchings as w

CONTENT = hashlib.sha256(b"x").digest()


def row(kind: bytes = b"f", size: int = 5, ctime: int = 7, inode: int = 11) -> bytes:
    return pack_row(kind, (0o644, 0, 0, size, 1, inode, 3, ctime, 1), CONTENT, b"")


def manifest(**entries: bytes) -> TreeManifest:
    """A present root with these entries."""
    named = {b".": row(b"d", 0), **{name.encode(): value for name, value in entries.items()}}
    paths = tuple(sorted(named))
    rows = tuple(named[path] for path in paths)
    digest = hashlib.sha256(repr((paths, rows)).encode()).hexdigest()
    return TreeManifest(b"/live/.agents", present=True, paths=paths, rows=rows, sha256=digest)


ABSENT = TreeManifest(b"/live/.agents", present=False, paths=(), rows=(), sha256="0" * 64)
SAME = manifest(a=row(), b=row())
REVERTED = manifest(a=row(ctime=8), b=row())


def watched(
    before: TreeManifest | None = SAME,
    after: TreeManifest | None = SAME,
    *,
    fatal: bool = True,
    path: str = "/live/.agents",
) -> Watched:
    live = LiveRoot(path=path, real=path, origins=("suite", "cwd"), home=not fatal)
    return Watched(live, fatal, before, after)


def proof(
    *roots: Watched,
    reaching: tuple[str, ...] = (),
    seen: Watching | None = None,
    allow: bool = False,
) -> LiveStateProof:
    return prove(
        roots,
        mounts_checked=6,
        mounts_reaching=reaching,
        watching=seen or w.watching(item.root.path for item in roots),
        allow_external=allow,
    )


def test_roots_that_are_as_they_were_are_a_clean_proof() -> None:
    found = proof(watched(), watched(ABSENT, ABSENT, path="/home/dev/.agents"))
    assert (found.changed_by, fatal_changes(found), problems(found)) == (None, (), ())
    assert degradation(found) is None
    assert (found.mounts_checked, found.mounts_reaching) == (6, ())
    present, absent = found.roots
    assert (present.entries, present.size, present.origin) == (3, 10, ("suite", "cwd"))
    assert (present.present_before, absent.present_before) == (True, False)
    assert present.before_sha256 == present.after_sha256 == SAME.sha256


def test_the_claim_is_no_difference_and_names_every_attribute_that_was_compared() -> None:
    found = proof(watched())
    assert found.claim == CLAIM
    assert CLAIM.startswith("no difference in these attributes")
    assert "written" not in CLAIM
    assert found.attributes == tuple(name for _, name in ATTRIBUTES)


@pytest.mark.parametrize(
    "before, after, line",
    [
        (SAME, REVERTED, "a: modified (ctime)"),
        (SAME, manifest(a=row(), b=row(), c=row()), "c: added"),
        (SAME, manifest(a=row()), "b: removed"),
        (SAME, manifest(a=row(inode=12), b=row()), "a: recreated (inode)"),
        (ABSENT, manifest(), ".: added"),
        (manifest(), ABSENT, ".: removed"),
    ],
)
def test_any_change_of_a_live_root_degrades_every_leg_and_is_named(
    before: TreeManifest, after: TreeManifest, line: str
) -> None:
    found = proof(watched(before, after))
    assert problems(found) == (f"live state changed: /live/.agents/{line}",)
    assert degradation(found) == Degradation(
        reason=DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE, detail="writer_unknown"
    )
    assert found.changed_by == "writer_unknown"


@pytest.mark.parametrize("before, after", [(SAME, None), (None, SAME), (None, None)])
def test_a_manifest_that_could_not_be_taken_is_a_change_and_never_a_proof(
    before: TreeManifest | None, after: TreeManifest | None
) -> None:
    found = proof(watched(before, after))
    assert problems(found) == (
        "live state not witnessed: /live/.agents: an entry could not be read",
    )
    assert degradation(found) == Degradation(
        reason=DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE, detail="writer_unknown"
    )
    (root,) = found.roots
    assert (root.before_sha256 is None, root.after_sha256 is None) == (
        before is None,
        after is None,
    )
    assert (root.changes_total, root.unchanged) == (0, False)
    assert degradation(proof(watched(before, after, fatal=False))) is None


def test_a_change_of_a_root_that_is_not_fatal_is_recorded_and_degrades_nothing() -> None:
    found = proof(watched(), watched(SAME, REVERTED, fatal=False))
    assert (degradation(found), problems(found)) == (None, ())
    assert found.changed_by == "writer_unknown"
    assert found.roots[1].changes_total == 1


def test_a_change_whose_writer_is_known_has_that_detail() -> None:
    found = proof(watched(SAME, REVERTED)).model_copy(update={"changed_by": "by_leg"})
    assert degradation(found) == Degradation(
        reason=DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE, detail="by_leg"
    )
    unknown = found.model_copy(update={"changed_by": None})
    assert degradation(unknown) == Degradation(
        reason=DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE, detail="writer_unknown"
    )


def test_of_many_changes_some_are_shown_and_all_are_counted() -> None:
    entries: dict[str, Any] = {f"n{index:03}": row() for index in range(MOST_CHANGES + 20)}
    found = proof(watched(manifest(), manifest(**entries)))
    (root,) = found.roots
    assert (len(root.changes), root.changes_total) == (MOST_CHANGES, MOST_CHANGES + 20)
    lines = problems(found)
    assert len(lines) == 6
    assert lines[-1] == f"live state changed: /live/.agents: {MOST_CHANGES + 20} entries in all"


def test_a_mount_that_reaches_a_live_root_is_a_problem_of_its_own() -> None:
    found = proof(watched(), reaching=("/b inside /live", "/a equals /live", "/b inside /live"))
    assert found.mounts_reaching == ("/a equals /live", "/b inside /live")
    assert problems(found) == (
        "a mount reaches live state: /a equals /live",
        "a mount reaches live state: /b inside /live",
    )


def test_what_changed_comes_first() -> None:
    lines = problems(proof(watched(SAME, REVERTED), reaching=("/a equals /live",)))
    assert lines[0].startswith("live state changed")
    assert lines[1].startswith("a mount reaches")


T0 = "2026-11-30T12:00:00Z"
LIVE = b"/live/.agents"
EDITOR = w.process()
CASE = w.process(w.WORKER, w.LEG)


def seen(*touches: Touch, **more: Any) -> Watching:
    return w.watching(["/live/.agents"], *touches, **more)


@pytest.mark.parametrize(
    "touches, by",
    [
        ((w.touch(LIVE + b"/a", writer=EDITOR),), "by_outsider"),
        ((w.touch(LIVE + b"/a", writer=CASE),), "by_leg"),
        ((w.touch(LIVE + b"/a"),), "writer_unknown"),
        ((), "writer_unknown"),
        ((w.touch(LIVE + b"/b", writer=EDITOR),), "writer_unknown"),
        ((w.touch(LIVE + b"/a", writer=EDITOR), w.touch(LIVE + b"/b")), "writer_unknown"),
        (
            (w.touch(LIVE + b"/a", writer=EDITOR), w.touch(LIVE + b"/b", writer=CASE)),
            "by_leg",
        ),
        ((w.touch(b"/live/.agents2/a", writer=EDITOR),), "writer_unknown"),
    ],
    ids=["outsider", "leg", "gone", "unseen", "elsewhere", "half", "worst", "not-inside"],
)
def test_a_change_is_only_an_outsiders_when_nothing_else_is_possible(
    touches: tuple[Touch, ...], by: str
) -> None:
    found = proof(watched(SAME, REVERTED), seen=seen(*touches))
    assert (found.changed_by, found.roots[0].changed_by) == (by, by)
    assert degradation(found) == Degradation(
        reason=DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE, detail=by
    )


@pytest.mark.parametrize("allow", [False, True])
def test_an_outsiders_change_is_tolerated_only_when_that_was_asked_for(allow: bool) -> None:
    found = proof(
        watched(SAME, REVERTED), seen=seen(w.touch(LIVE + b"/a", writer=EDITOR)), allow=allow
    )
    (root,) = found.roots
    assert (root.fatal, root.unchanged, root.allowed) == (True, False, allow)
    assert bool(problems(found)) is not allow
    assert (degradation(found) is None) is allow
    assert bool(warnings(found)) is allow


HONEST = w.touch(LIVE + b"/a", writer=EDITOR)


@pytest.mark.parametrize(
    "watching",
    [
        seen(HONEST, w.touch(LIVE + b"/b", writer=CASE)),
        seen(HONEST, w.touch(LIVE + b"/b")),
        seen(HONEST, w.touch(LIVE + b"/b", "closed", writer=w.process(w.RUNNER))),
        seen(seen=w.report(HONEST, lost="overflow")),
        seen(seen=w.report(HONEST, failed="died")),
        seen(seen=w.report(w.touch(LIVE + b"/a"), method="inotify")),
        seen(seen=w.report(method="none")),
        seen(HONEST, decoys=(w.decoy("/live/.agents", touches=None, same_filesystem=False),)),
        seen(HONEST, decoys=(w.decoy("/live/.agents", touches=w.planted(None)),)),
        seen(HONEST, decoys=()),
    ],
    ids=["leg", "unknown", "runner", "overflow", "died", "inotify", "none", "undecoyed", "blind",
         "no-control"],
)  # fmt: skip
def test_with_any_doubt_about_a_writer_an_external_change_is_fatal_all_the_same(
    watching: Watching,
) -> None:
    found = proof(watched(SAME, REVERTED), seen=watching, allow=True)
    assert not found.roots[0].allowed
    assert degradation(found) is not None
    assert problems(found)[0] == "live state changed: /live/.agents/a: modified (ctime)"


def test_a_manifest_that_is_missing_is_never_an_outsiders_doing() -> None:
    found = proof(watched(SAME, None), seen=seen(HONEST), allow=True)
    assert (found.changed_by, found.roots[0].allowed) == ("writer_unknown", False)


def test_what_only_the_watch_saw_is_a_change_of_that_root() -> None:
    temporary = w.touch(LIVE + b"/tmp", "created", "deleted", writer=EDITOR)
    found = proof(watched(), seen=seen(temporary))
    assert problems(found) == ("live state changed: /live/.agents/tmp: seen",)
    assert found.changed_by == "by_outsider"
    assert not found.roots[0].unchanged
    assert found.watch.events_total == 1


@pytest.mark.parametrize(
    "harmless",
    [
        w.touch(LIVE + b"/a", "modified", last=w.SINCE - 1),
        w.touch(LIVE + b"/a", "closed"),
        w.touch(b"/elsewhere/a", "modified"),
    ],
    ids=["before the first manifest was complete", "closed without a write", "outside"],
)
def test_what_was_no_write_between_the_manifests_is_no_change(harmless: Touch) -> None:
    assert problems(proof(watched(), seen=seen(harmless))) == ()


def test_the_folder_of_a_new_file_is_explained_by_the_file() -> None:
    before = w.manifest({"a": row()}, LIVE)
    after = w.manifest({".": w.row(b"d", mtime=9, ctime=9), "a": row(), "new": row()}, LIVE)
    made = w.touch(LIVE + b"/new", "created", writer=EDITOR)
    assert proof(watched(before, after), seen=seen(made)).changed_by == "by_outsider"
    # But not that its owner is another one since.
    taken = w.manifest({".": w.row(b"d", uid=9, ctime=9), "a": row(), "new": row()}, LIVE)
    assert proof(watched(before, taken), seen=seen(made)).changed_by == "writer_unknown"


def test_a_tree_that_was_moved_in_is_explained_by_its_top_and_a_made_one_is_not() -> None:
    before = w.manifest({}, LIVE)
    after = w.manifest({"d": w.row(b"d"), "d/e": w.row(b"d"), "d/e/f": row()}, LIVE)
    for action, by in (("moved_to", "by_outsider"), ("created", "writer_unknown")):
        made = w.touch(LIVE + b"/d", action, writer=EDITOR)  # type: ignore[arg-type]
        assert proof(watched(before, after), seen=seen(made)).changed_by == by


def test_a_link_that_names_a_root_is_part_of_it() -> None:
    live = LiveRoot(path="/repo/.agents", real="/data/agents", origins=("suite",), home=False)
    before = w.manifest({"": w.row(b"l")}, b"/data/agents")
    after = w.manifest({"": w.row(b"l", inode=5)}, b"/data/agents")
    links = {"/repo/.agents": b"/real/repo/.agents"}
    for place, by in ((b"/real/repo/.agents", "by_outsider"), (b"/x/.agents", "writer_unknown")):
        known = w.watching(
            ["/repo/.agents"], w.touch(place, "moved_to", writer=EDITOR), links=links
        )
        found = proof(Watched(live, True, before, after), seen=known)
        assert found.changed_by == by


@pytest.mark.parametrize(
    "decoys, line",
    [
        ((), "live proof is void: no mutation was planted: /live/.agents"),
        (
            (w.decoy("/live/.agents", after=w.manifest(w.BEFORE)),),
            (
                "live proof is void: the witness flagged 0 of 5 planted mutations, fanotify 5: "
                "/live/.agents"
            ),
        ),
        (
            (w.decoy("/live/.agents", touches=()),),
            (
                "live proof is void: the witness flagged 5 of 5 planted mutations, fanotify 0: "
                "/live/.agents"
            ),
        ),
        (
            (w.decoy("/live/.agents", before=None, touches=None, note="no answer"),),
            (
                "live proof is void: the witness flagged 0 of 5 planted mutations, fanotify 0 "
                "(no answer): /live/.agents"
            ),
        ),
    ],
)
def test_a_detector_that_did_not_fire_makes_the_proof_void(
    decoys: tuple[Decoy, ...], line: str
) -> None:
    found = proof(watched(), seen=seen(decoys=decoys))
    assert problems(found) == (line,)
    assert degradation(found) is None


def test_a_root_without_a_decoy_of_its_own_is_not_proved_by_another_ones() -> None:
    found = proof(watched(), watched(path="/other"), seen=seen())
    assert problems(found) == ("live proof is void: no mutation was planted: /other",)


def test_path_time_and_writer_are_told_of_every_write_in_the_order_of_time() -> None:
    second = 1_796_000_000_000_000_000
    touches = (
        w.touch(LIVE + b"/b", writer=CASE, last=second + 7),
        w.touch(LIVE + b"/a", writer=EDITOR, last=second),
    )
    roots = (watched(SAME, manifest(a=row(ctime=8), b=row(ctime=9), c=row(ctime=5))),)
    watching = seen(*touches)
    found = evidence(proof(*roots, seen=watching), roots, watching, t0=T0, t1=T0)
    assert [write.path for write in found.writes] == ["c", "a", "b"]
    assert notices(found) == (
        (
            "live state changed: /live/.agents/c at 1970-01-01T00:00:00.000000005Z by an unknown "
            "writer: seen by the manifests"
        ),
        (
            "live state changed: /live/.agents/a at 2026-11-30T00:53:20.000000000Z by an outsider "
            "(editor, pid 300): modified"
        ),
        (
            "live state changed: /live/.agents/b at 2026-11-30T00:53:20.000000007Z by a container "
            "of this run (aaaaaaaaaaaa) (editor, pid 400): modified"
        ),
    )
    assert found.writes[2].writer.container == w.LEG


def test_of_a_root_that_may_change_nothing_is_told_first() -> None:
    roots = (watched(SAME, REVERTED, fatal=False),)
    watching = seen(HONEST)
    found = evidence(proof(*roots, seen=watching), roots, watching, t0=T0, t1=T0)
    assert notices(found) == ()
    assert found.writes_total == 1


def test_a_change_that_was_allowed_is_told_as_that() -> None:
    roots = (watched(SAME, REVERTED),)
    watching = seen(HONEST)
    found = evidence(proof(*roots, seen=watching, allow=True), roots, watching, t0=T0, t1=T0)
    (line,) = notices(found)
    assert line.endswith("by an outsider (editor, pid 300): modified (allowed)")


def test_no_time_and_no_process_is_in_the_proof_so_that_its_bytes_can_be_repeated() -> None:
    one = proof(watched(SAME, REVERTED), seen=seen(HONEST))
    later = w.touch(LIVE + b"/a", writer=w.process(999), last=w.SINCE + 1_000_000)
    assert one == proof(watched(SAME, REVERTED), seen=seen(later))
