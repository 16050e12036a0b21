"""Who wrote, and whether the detectors fired on what was planted."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.livewatch import judge_decoy, kind_of, timestamp
from runner.model.livewatch import Decoy, Process, WatchReport
from tests.unit.core import watchings as w

ROOT = "/live/.agents"


def judged(decoy: Decoy, seen: WatchReport | None = None) -> tuple[int, int | None, str]:
    found = judge_decoy(decoy, w.watching([ROOT], seen=seen))
    return found.witnessed, found.watched, found.verdict


@pytest.mark.parametrize(
    "writer, kind",
    [
        (None, "unknown"),
        (w.process(), "outsider"),
        (w.process(w.WORKER, w.FOREIGN), "outsider"),
        (w.process(w.WORKER, w.LEG), "leg"),
        (w.process(w.WORKER, w.FOREIGN, w.LEG), "leg"),
        (w.process(same_namespace=False), "unknown"),
        (w.process(w.RUNNER), "runner"),
        (w.process(parent=w.RUNNER), "runner"),
        (w.process(name=b"dockerd"), "engine"),
        (w.process(program=b"/usr/sbin/dockerd", name=b"x"), "engine"),
        (w.process(name=b"containerd-shim"), "engine"),
        (w.process(name=b"runc:[1:CHILD]"), "engine"),
        (w.process(w.WORKER, w.LEG, name=b"dockerd"), "leg"),
    ],
)
def test_an_outsider_is_one_only_where_nothing_else_is_possible(
    writer: Process | None, kind: str
) -> None:
    assert kind_of(w.touch(b"/x", writer=writer), w.watching([ROOT])) == kind


@given(
    st.builds(
        w.process,
        st.integers(1, 1000),
        same_namespace=st.booleans(),
        name=st.binary(max_size=15),
        parent=st.integers(0, 1000),
    )
)
def test_a_process_in_a_container_of_ours_is_never_an_outsider(other: Process) -> None:
    inside = w.process(other.pid, w.LEG, name=other.name, same_namespace=other.same_namespace)
    assert kind_of(w.touch(b"/x", writer=inside), w.watching([ROOT])) == "leg"


def test_all_five_mutations_are_wanted_of_every_detector() -> None:
    assert judged(w.decoy(ROOT)) == (5, 5, "fired")
    assert judged(w.decoy(ROOT, touches=w.planted(None)), w.report(method="inotify")) == (
        5, 5, "fired",
    )  # fmt: skip
    assert judged(w.decoy(ROOT, touches=None), w.report(method="none")) == (5, None, "fired")


@pytest.mark.parametrize("name", w.PLANTED)
def test_one_mutation_that_a_detector_misses_makes_the_proof_void(name: str) -> None:
    after = {**w.AFTER, name: w.BEFORE.get(name, b"")}
    if name == "empty":
        del after[name]
    assert judged(w.decoy(ROOT, after=w.manifest(after))) == (4, 5, "void")
    touches = tuple(
        item
        for item in w.planted(w.process(w.PLANTER))
        if item.path != w.PLACE + b"/" + name.encode()
    )
    assert judged(w.decoy(ROOT, touches=touches)) == (5, 4, "void")


def test_an_event_of_another_kind_at_the_place_is_not_the_mutation() -> None:
    wrong = tuple(
        w.touch(item.path, "closed", writer=item.writer) for item in w.planted(w.process(w.PLANTER))
    )
    assert judged(w.decoy(ROOT, touches=wrong)) == (5, 0, "void")


@pytest.mark.parametrize(
    "writer",
    [
        None,
        w.process(w.OUTSIDER),
        w.process(w.PLANTER, w.LEG),
        w.process(w.PLANTER, same_namespace=False),
        w.process(w.PLANTER, name=b"dockerd"),
    ],
    ids=["nobody", "another", "leg", "elsewhere", "engine"],
)
def test_a_writer_that_fanotify_takes_for_somebody_else_makes_the_proof_void(
    writer: Process | None,
) -> None:
    assert judged(w.decoy(ROOT, touches=w.planted(writer))) == (5, 0, "void")


def test_an_orphan_that_became_the_runners_child_is_still_the_planter() -> None:
    child = w.process(w.PLANTER, parent=w.RUNNER)
    assert judged(w.decoy(ROOT, touches=w.planted(child))) == (5, 5, "fired")


def test_a_watch_that_ended_has_missed_the_mutations() -> None:
    assert judged(w.decoy(ROOT, touches=None), w.report(failed="died")) == (5, 0, "void")


def test_a_loss_that_the_kernel_reported_excuses_the_watch_but_not_the_witness() -> None:
    assert judged(w.decoy(ROOT, touches=(), lost="overflow")) == (5, 0, "fired")
    blind = w.decoy(ROOT, touches=(), lost="overflow", after=w.manifest(w.BEFORE))
    assert judged(blind) == (0, 0, "void")


def test_a_loss_later_in_the_run_excuses_nothing() -> None:
    assert judged(w.decoy(ROOT, touches=()), w.report(lost="overflow")) == (5, 0, "void")


def test_a_decoy_on_another_file_system_may_lie_where_the_watch_cannot_go() -> None:
    far = w.decoy(ROOT, same_filesystem=False, touches=None)
    assert judged(far) == (5, None, "fired")
    assert judged(w.decoy(ROOT, same_filesystem=False, touches=())) == (5, 0, "void")


def test_a_decoy_that_was_never_made_has_not_fired() -> None:
    nowhere = Decoy(b"", (ROOT,), same_filesystem=False, note="no place is writable")
    assert judged(nowhere) == (0, None, "void")


def test_times_have_all_nine_digits() -> None:
    assert timestamp(1_796_000_000_000_000_007) == "2026-11-30T00:53:20.000000007Z"
