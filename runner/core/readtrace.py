"""Opens of a context root, in the kernel's order -> what each case opened.

The agent opens a mark when a phase of its work begins; a case can open none. Marks and artifacts
come out of one queue, so an open between two marks belongs to the phase of the first. Which marks
come in which order follows from the plan: what deviates is believed in nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from enum import StrEnum
from typing import Final, NamedTuple

from runner.model.hooks import HooksDirectory
from runner.model.leg import CasePlan, LegPlan
from runner.model.reads import CaseReads, Granularity, LegReads
from runner.model.tree import path_text


class Mark(StrEnum):
    """Phases of the agent's work. All but `LOST` are names of mark files.

    Each is entered at most once a case, and never twice in a row: gVisor shows a file's first open
    in a container only, as two events at times, and inotify merges equal events that follow each
    other if they were not read yet. So a mark right behind itself is one.
    """

    START = "start"
    """The container has begun: the agent looks around and hashes the root."""
    BEFORE = "before"
    """Hooks before the case."""
    CASE = "case"
    """The case's own command."""
    LOOK = "look"
    """Its processes are gone, the agent looks at what it left."""
    PROBE = "probe"
    """Commands of its expectations."""
    AFTER = "after"
    """Hooks after the case."""
    END = "end"
    """The case is over. After the last one the agent hashes the root again."""
    STOP = "stop"
    """The agent has seen all that it will see."""
    LOST = "lost"
    """No file: here the kernel's queue overflowed."""


MARK_FILES: Final = tuple(mark for mark in Mark if mark is not Mark.LOST)

Open = Mark | bytes
"""A mark, or the path of a regular file below the root."""


class Segment(NamedTuple):
    """One container of a leg, as its agent told of it.

    Attributes:
        planned: Cases that it was given, in order.
        ended: How many of them were told to have ended.
        whole: The agent said goodbye.
    """

    planned: tuple[CasePlan, ...]
    ended: int
    whole: bool


class _Phase(NamedTuple):
    mark: Mark
    opened: tuple[bytes, ...]


class _Doubt(Exception):
    """Why a trace is not complete."""


_MISMATCH: Final = "boundary_mismatch"
_OWN_READS: Final = {Mark.CASE, Mark.PROBE}
_HOOK_READS: Final = {Mark.BEFORE, Mark.AFTER}


def unavailable(leg: LegPlan, why: str) -> LegReads:
    """The trace of a leg that has none.

    Args:
        leg: The leg.
        why: Bare token.
    """
    return LegReads(leg=leg.leg, state="unavailable", detail=why, granularity=None, cases=())


def leg_reads(
    leg: LegPlan,
    segments: Sequence[Segment],
    opens: Iterable[Open],
    files: frozenset[bytes],
    *,
    one_case: bool = False,
    stopped: bool = False,
    lapse: str | None = None,
) -> LegReads:
    """Attribute every open to a case, to its hooks, or to nobody.

    Args:
        leg: The leg.
        segments: Its containers, in the order in which they ran.
        opens: What was seen, in the kernel's order.
        files: All regular files of the root.
        one_case: The runtime shows only the first open of a file in a container: each container
            was given one case, and its agent hashed the root only afterwards.
        stopped: The leg could not go on.
        lapse: Bare token, if the watch itself broke.

    Returns:
        Complete only when every boundary is where the plan has it, nothing was lost, and the
        agent's own opens of every file of the root were seen. Otherwise with the reason; cases
        are those whose own boundaries are beyond doubt.
    """
    granularity: Granularity = "leg_of_one_case" if one_case else "case"
    detail = lapse or ("leg_cut_short" if stopped else None)
    if one_case and any(len(segment.planned) > 1 for segment in segments):
        detail = detail or "runtime_caches_opens"
    cases: list[CaseReads] = []
    try:
        runs, lost = _runs(opens)
        for segment, phases, last in _pair(segments, runs, lost=lost):
            found = _segment(leg.hooks, segment, phases, open_ended=last and lost)
            cases += found
            if one_case:
                detail = detail or _hidden(phases)
            if (
                segment.whole
                and not (last and lost)
                and not _alive(phases, files, one_case=one_case)
            ):
                detail = detail or "not_alive"
        if lost:
            detail = "queue_overflow"
    except _Doubt as doubt:
        cases, detail = [], str(doubt)
    return LegReads(
        leg=leg.leg,
        state="complete" if detail is None else "incomplete",
        detail=detail,
        granularity=granularity,
        cases=tuple(cases),
    )


def case_marks(case: CasePlan, hooks: HooksDirectory | None) -> tuple[Mark, ...]:
    """The phases of a case, in order."""
    before = hooks is not None and hooks.before > 0
    after = hooks is not None and hooks.before < len(hooks.hooks)
    wanted = {
        Mark.BEFORE: case.command is not None and before,
        Mark.CASE: case.command is not None,
        Mark.LOOK: True,
        Mark.PROBE: bool(case.probes),
        Mark.AFTER: case.command is not None and after,
        Mark.END: True,
    }
    return tuple(mark for mark, has in wanted.items() if has)


def _runs(opens: Iterable[Open]) -> tuple[list[list[_Phase]], bool]:
    """The phases of each container; True when the queue overflowed, where they end.

    What was opened before the first container ran is nobody's.
    """
    runs: list[list[_Phase]] = []
    mark: Mark | None = None
    opened: dict[bytes, None] = {}

    def close() -> None:
        if mark is Mark.START:
            runs.append([])
        if mark is not None:
            if not runs:
                raise _Doubt(_MISMATCH)
            runs[-1].append(_Phase(mark, tuple(opened)))
        opened.clear()

    for item in opens:
        if not isinstance(item, Mark):
            opened[item] = None
            continue
        if item is mark and not opened:
            continue
        close()
        if item is Mark.LOST:
            return runs, True
        mark = item
    close()
    return runs, False


def _pair(
    segments: Sequence[Segment], runs: Sequence[list[_Phase]], *, lost: bool
) -> Iterator[tuple[Segment, list[_Phase], bool]]:
    """Containers with what was seen of each; True with the last one."""
    silent = bool(segments) and not segments[-1].whole and segments[-1].ended == 0
    least = 0 if lost else len(segments) - silent
    if not least <= len(runs) <= len(segments):
        raise _Doubt(_MISMATCH)
    for number, phases in enumerate(runs, 1):
        yield segments[number - 1], phases, number == len(runs)


def _segment(
    hooks: HooksDirectory | None, segment: Segment, phases: list[_Phase], *, open_ended: bool
) -> list[CaseReads]:
    """What the cases of one container opened.

    Args:
        hooks: What runs around each case.
        segment: What the agent told.
        phases: What was seen.
        open_ended: What was seen ends anywhere.
    """
    seen = [phase.mark for phase in phases]
    done = seen.count(Mark.END)
    if done > len(segment.planned):
        raise _Doubt(_MISMATCH)
    full = [Mark.START]
    ranges = []
    for case in segment.planned[:done]:
        begin = len(full)
        full += case_marks(case, hooks)
        ranges.append((case, begin, len(full)))
    rest = seen[len(full) :]
    if seen[: len(full)] != full or not _may_follow(hooks, segment, done, rest):
        raise _Doubt(_MISMATCH)
    if not open_ended and (done < segment.ended or (segment.whole and rest != [Mark.STOP])):
        raise _Doubt(_MISMATCH)
    if segment.whole and done > segment.ended:
        raise _Doubt(_MISMATCH)
    return [_case(case, phases[begin:end]) for case, begin, end in ranges[: segment.ended]]


def _may_follow(
    hooks: HooksDirectory | None, segment: Segment, done: int, rest: list[Mark]
) -> bool:
    """Whether these marks may be the last of a container in which so many cases ended."""
    if rest == [Mark.STOP]:
        return done > 0
    following = segment.planned[done : done + 1]
    marks = [mark for case in following for mark in case_marks(case, hooks)]
    return rest == marks[: len(rest)]


def _case(case: CasePlan, phases: Sequence[_Phase]) -> CaseReads:
    return CaseReads(
        case_id=case.case_id,
        opened=_of(phases, _OWN_READS),
        by_hooks=_of(phases, _HOOK_READS),
    )


def _of(phases: Sequence[_Phase], marks: set[Mark]) -> tuple[str, ...]:
    opened = (path for phase in phases if phase.mark in marks for path in phase.opened)
    return tuple(path_text(path) for path in dict.fromkeys(opened))


def _alive(phases: Sequence[_Phase], files: frozenset[bytes], *, one_case: bool) -> bool:
    """Whether the agent's opens of every file of the root were seen.

    The marks are opened in the same way, so they are the proof where the root has no file.
    """
    if one_case:
        return files <= {path for phase in phases for path in phase.opened}
    first, last = phases[0].opened, phases[-2].opened
    return files <= set(first) and files <= set(last)


def _hidden(phases: Sequence[_Phase]) -> str | None:
    """`runtime_caches_opens` when somebody's open may have hidden that of another one later."""
    opened_by: set[str] = set()
    for phase in phases:
        if phase.mark in {Mark.END, Mark.STOP}:
            break
        who = _who(phase.mark)
        if who != "nobody" and opened_by - {who}:
            return "runtime_caches_opens"
        if phase.opened:
            opened_by.add(who)
    return None


def _who(mark: Mark) -> str:
    if mark in _OWN_READS:
        return "case"
    return "hooks" if mark in _HOOK_READS else "nobody"
