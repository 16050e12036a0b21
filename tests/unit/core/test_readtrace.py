"""Opens in the kernel's order become reads of cases, or nothing at all is claimed."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.readtrace import MARK_FILES, Mark, Open, Segment, case_marks, leg_reads
from runner.model.hooks import Hook, HookEvent, HooksDirectory
from runner.model.leg import Axis, CasePlan, Command, LegPlan, Probe
from runner.model.reads import CaseReads, LegReads

FILES = frozenset({b"a", b"b", b"sub/c"})
WALK: tuple[Open, ...] = (b"a", b"b", b"sub/c")
COMMAND = Command(argv=("true",), cwd="/workspace")


def case(index: int, *, ran: bool = True, probes: int = 0) -> CasePlan:
    return CasePlan(
        index=index,
        case_id=f"case-{index}",
        command=COMMAND if ran else None,
        timeout_seconds=1,
        probes=tuple(Probe(expectation=n, command=COMMAND) for n in range(probes)),
    )


def hooks(*, start: bool, end: bool) -> HooksDirectory | None:
    events = [HookEvent.SESSION_START] * start + [HookEvent.SESSION_END] * end
    if not events:
        return None
    made = tuple(
        Hook(event=event, index=n, command="true", command_sha256="0" * 64, timeout_seconds=1)
        for n, event in enumerate(events)
    )
    return HooksDirectory(sha256="0" * 64, entries=1, size=1, hooks=made, not_run=())


def leg(cases: Sequence[CasePlan], around: HooksDirectory | None = None) -> LegPlan:
    return LegPlan(
        leg="context_on",
        axis=Axis.CONTEXT,
        variant="context_on",
        run_id="r1",
        root=None,
        env={},
        cases=tuple(cases),
        hooks=around,
    )


def container(
    cases: Sequence[CasePlan],
    opened: Sequence[Sequence[Sequence[bytes]]],
    around: HooksDirectory | None = None,
) -> list[Open]:
    """What is seen of a container that ends well; for each case, what each phase opens."""
    seen: list[Open] = [Mark.START, *WALK]
    for item, phases in zip(cases, opened, strict=True):
        for mark, paths in zip(case_marks(item, around), phases, strict=True):
            seen += [mark, *paths]
    return [*seen, *WALK, Mark.STOP]


CASES = (case(0), case(1), case(2, ran=False))
SEEN = container(CASES, [[[b"b", b"a"], [], []], [[b"a"], [b"b"], []], [[b"a"], []]])
WHOLE = (Segment(CASES, 3, whole=True),)
TRUTH = (
    CaseReads(case_id="case-0", opened=("b", "a"), by_hooks=()),
    CaseReads(case_id="case-1", opened=("a",), by_hooks=()),
    CaseReads(case_id="case-2", opened=(), by_hooks=()),
)


def judged(
    seen: Sequence[Open], segments: Sequence[Segment] = WHOLE, **more: object
) -> tuple[str, str | None, tuple[CaseReads, ...]]:
    plan = leg(segments[0].planned if segments else CASES)
    reads = leg_reads(plan, segments, seen, FILES, **more)  # type: ignore[arg-type]
    return reads.state, reads.detail, reads.cases


def test_every_open_belongs_to_the_phase_in_which_it_came_and_the_agents_to_nobody() -> None:
    assert judged(SEEN) == ("complete", None, TRUTH)


def test_hooks_and_probes_have_phases_of_their_own() -> None:
    around = hooks(start=True, end=True)
    item = case(0, probes=1)
    seen = container([item], [[[b"a"], [b"b"], [b"sub/c"], [b"a"], [b"b"], []]], around)
    reads = leg_reads(leg([item], around), [Segment((item,), 1, whole=True)], seen, FILES)
    assert reads.state == "complete"
    (found,) = reads.cases
    assert found == CaseReads(case_id="case-0", opened=("b", "a"), by_hooks=("a", "b"))


def test_an_artifact_is_told_once_and_its_path_is_printable() -> None:
    name = b"new\nline\\ \xff"
    seen = container(CASES[:1], [[[name, b"a", name], [], []]])
    state, _, (found,) = judged(seen, [Segment(CASES[:1], 1, whole=True)])
    assert (state, found.opened) == ("complete", (r"new\x0aline\\ \xff", "a"))


def test_containers_of_a_leg_follow_each_other() -> None:
    first = container(CASES[:1], [[[b"a"], [], []]])
    second = container(CASES[1:], [[[b"b"], [], []], [[], []]])
    segments = [Segment(CASES, 1, whole=True), Segment(CASES[1:], 2, whole=True)]
    state, detail, found = judged([b"a", *first, b"b", *second, b"a"], segments)
    assert (state, detail) == ("complete", None)
    assert [(item.case_id, item.opened) for item in found] == [
        ("case-0", ("a",)), ("case-1", ("b",)), ("case-2", ())
    ]  # fmt: skip


@pytest.mark.parametrize("told", [0, 1, 3])
def test_another_number_of_ends_than_the_agent_told_is_believed_in_nothing(told: int) -> None:
    seen = container(CASES[:2], [[[b"a"], [], []], [[], [], []]])
    segments = [Segment(CASES, told, whole=True)]
    assert judged(seen, segments) == ("incomplete", "boundary_mismatch", ())


def test_opens_without_any_container_are_nobodys() -> None:
    assert judged([b"a"], []) == ("complete", None, ())
    assert judged([Mark.CASE, b"a"], []) == ("incomplete", "boundary_mismatch", ())
    assert judged(SEEN, []) == ("incomplete", "boundary_mismatch", ())


def test_a_leg_that_could_not_go_on_tells_of_the_cases_that_ended() -> None:
    for length in range(len(SEEN)):
        seen = SEEN[:length]
        done = seen.count(Mark.END)
        for told in range(done + 1):
            found = judged(seen, [Segment(CASES, told, whole=False)], stopped=True)
            assert found == ("incomplete", "leg_cut_short", TRUTH[:told])


def test_a_case_that_ended_its_container_leaves_the_others_complete() -> None:
    dies = [Mark.START, *WALK, Mark.CASE, b"a"]
    lives = container(CASES[1:2], [[[b"b"], [], []]])
    segments = [Segment(CASES[:1], 0, whole=False), Segment(CASES[1:2], 1, whole=True)]
    state, _, found = judged([*dies, *lives], segments)
    assert state == "complete"
    assert [(item.case_id, item.opened) for item in found] == [("case-1", ("b",))]


@pytest.mark.parametrize("lost", range(len(SEEN) + 1))
def test_an_overflow_is_said_and_only_cases_that_ended_before_it_are_told(lost: int) -> None:
    seen = [*SEEN[:lost], Mark.LOST, b"a", Mark.CASE, b"b"]
    ended = SEEN[:lost].count(Mark.END)
    assert judged(seen) == ("incomplete", "queue_overflow", TRUTH[:ended])


@pytest.mark.parametrize("path", sorted(FILES))
@pytest.mark.parametrize("begin", [1, len(SEEN) - 4])
def test_a_file_whose_hashing_was_not_seen_shows_that_the_trace_is_not_alive(
    path: bytes, begin: int
) -> None:
    place = SEEN.index(path, begin)
    missing = SEEN[:place] + SEEN[place + 1 :]
    state, detail, _ = judged(missing)
    assert (state, detail) == ("incomplete", "not_alive")


def test_a_broken_watch_is_not_complete() -> None:
    assert judged(SEEN, lapse="watch_lost") == ("incomplete", "watch_lost", TRUTH)


def test_of_an_empty_root_the_marks_are_the_proof() -> None:
    seen = [item for item in SEEN if isinstance(item, Mark)]
    reads = leg_reads(leg(CASES), WHOLE, seen, frozenset())
    assert reads.state == "complete"
    assert leg_reads(leg(CASES), WHOLE, [], frozenset()).detail == "boundary_mismatch"


# --------------------------------------------------------------------- where opens are kept open


def one_case(
    phases: Sequence[Sequence[bytes]], item: CasePlan, *, around: bool = False
) -> LegReads:
    """A container whose runtime shows only the first open of each file."""
    hooked = hooks(start=True, end=True) if around else None
    shown: list[Open] = []
    for entry in container([item], [phases], hooked)[1 + len(WALK) :]:
        if entry not in shown:
            shown.append(entry)
    segments = [Segment((item,), 1, whole=True)]
    return leg_reads(leg([item], hooked), segments, [Mark.START, *shown], FILES, one_case=True)


def test_there_a_trace_is_exact_for_one_case_in_a_container() -> None:
    reads = one_case([[b"a"], [], [b"a", b"b"], []], case(0, probes=1))
    assert (reads.state, reads.granularity) == ("complete", "leg_of_one_case")
    assert reads.cases[0].opened == ("a", "b")


def test_there_an_open_that_may_hide_a_later_one_is_not_complete() -> None:
    hooks_first = one_case([[b"a"], [b"a"], [], [], []], case(0), around=True)
    agent_first = one_case([[], [b"a"], [b"a"], []], case(0, probes=1))
    case_first = one_case([[], [b"a"], [], [b"a"], []], case(0), around=True)
    for reads in (hooks_first, agent_first, case_first):
        assert (reads.state, reads.detail) == ("incomplete", "runtime_caches_opens")


def test_there_two_cases_in_a_container_are_not_complete() -> None:
    assert judged(SEEN, one_case=True)[:2] == ("incomplete", "runtime_caches_opens")


def test_there_the_trace_is_alive_when_every_file_was_seen_once() -> None:
    item = case(0)
    seen: list[Open] = [Mark.START, Mark.CASE, b"a", Mark.LOOK, Mark.END, b"b", Mark.STOP]
    reads = leg_reads(leg([item]), [Segment((item,), 1, whole=True)], seen, FILES, one_case=True)
    assert (reads.state, reads.detail) == ("incomplete", "not_alive")


# --------------------------------------------------------------------------- whatever else happens

paths = st.lists(st.sampled_from(sorted(FILES)), max_size=4)


@st.composite
def legs(draw: st.DrawFn) -> tuple[LegPlan, list[Segment], list[Open], list[CaseReads]]:
    """A leg of some containers that end well, what is seen of it, and what is true."""
    around = hooks(start=draw(st.booleans()), end=draw(st.booleans()))
    count = draw(st.integers(1, 6))
    cases = [case(n, ran=draw(st.booleans()), probes=draw(st.integers(0, 2))) for n in range(count)]
    segments, seen, truth, begin = [], list[Open](), [], 0
    while begin < count:
        end = draw(st.integers(begin + 1, count))
        opened = []
        for item in cases[begin:end]:
            marks = case_marks(item, around)
            phases = [draw(paths) for _ in marks]
            by = dict(zip(marks, phases, strict=True))
            own = by.get(Mark.CASE, []) + by.get(Mark.PROBE, [])
            hooked = by.get(Mark.BEFORE, []) + by.get(Mark.AFTER, [])
            truth.append(
                CaseReads(
                    case_id=item.case_id,
                    opened=tuple(path.decode() for path in dict.fromkeys(own)),
                    by_hooks=tuple(path.decode() for path in dict.fromkeys(hooked)),
                )
            )
            opened.append(phases)
        seen += container(cases[begin:end], opened, around)
        segments.append(Segment(tuple(cases[begin:]), end - begin, whole=True))
        begin = end
    return leg(cases, around), segments, seen, truth


@given(legs())
def test_any_leg_is_told_as_it_was(
    made: tuple[LegPlan, list[Segment], list[Open], list[CaseReads]],
) -> None:
    plan, segments, seen, truth = made
    reads = leg_reads(plan, segments, seen, FILES)
    assert (reads.state, list(reads.cases)) == ("complete", truth)


@given(legs(), st.data())
def test_no_mark_can_be_missing_added_or_out_of_order_without_all_being_withheld(
    made: tuple[LegPlan, list[Segment], list[Open], list[CaseReads]], data: st.DataObject
) -> None:
    plan, segments, seen, _ = made
    forged = list(seen)
    places = [n for n, item in enumerate(seen) if isinstance(item, Mark)]
    match data.draw(st.sampled_from(["drop", "add", "change", "swap"])):
        case "drop":
            del forged[data.draw(st.sampled_from(places))]
        case "add":
            place = data.draw(st.integers(0, len(seen)))
            # Right beside itself a mark is merged, by the kernel if not here.
            beside = seen[max(0, place - 1) : place + 1]
            others = [mark for mark in MARK_FILES if mark not in beside]
            forged.insert(place, data.draw(st.sampled_from(others)))
        case "change":
            place = data.draw(st.sampled_from(places))
            others = [mark for mark in MARK_FILES if mark is not seen[place]]
            forged[place] = data.draw(st.sampled_from(others))
        case _:
            number = data.draw(st.integers(0, len(places) - 2))
            one, other = places[number], places[number + 1]
            forged[one], forged[other] = forged[other], forged[one]
    reads = leg_reads(plan, segments, forged, FILES)
    assert (reads.state, reads.detail, reads.cases) == ("incomplete", "boundary_mismatch", ())


@given(legs(), st.data())
def test_a_mark_right_behind_itself_is_one(
    made: tuple[LegPlan, list[Segment], list[Open], list[CaseReads]], data: st.DataObject
) -> None:
    plan, segments, seen, truth = made
    twice = data.draw(st.sampled_from([n for n, item in enumerate(seen) if isinstance(item, Mark)]))
    reads = leg_reads(plan, segments, [*seen[:twice], seen[twice], *seen[twice:]], FILES)
    assert (reads.state, list(reads.cases)) == ("complete", truth)


@given(legs(), st.data())
def test_what_is_lost_anywhere_never_moves_an_open_to_another_case(
    made: tuple[LegPlan, list[Segment], list[Open], list[CaseReads]], data: st.DataObject
) -> None:
    plan, segments, seen, truth = made
    cut = data.draw(st.integers(0, len(seen) - 1))
    reads = leg_reads(plan, segments, [*seen[:cut], Mark.LOST, *seen[cut + 2 :]], FILES)
    assert reads.detail == "queue_overflow"
    assert list(reads.cases) == truth[: len(reads.cases)]


@given(st.lists(st.one_of(st.sampled_from(list(Mark)), st.sampled_from(sorted(FILES)))))
def test_any_noise_is_refused(seen: list[Open]) -> None:
    assert leg_reads(leg(CASES), WHOLE, seen, FILES).state == "incomplete"
