"""The legs of a comparison as controls look at them: which outcome each case had in which leg."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from runner.model.controls import LegName
from runner.model.leg import LegRole
from runner.model.reads import CaseReads, LegReads
from runner.model.record import CaseResult, RunRecord, Status, Verdict

OFF: LegName = "context_off"
ON: LegName = "context_on"


class Outcome(NamedTuple):
    """Status, the verdict on each required expectation in order, and sentinels that showed."""

    status: Status
    required: tuple[Verdict, ...]
    sentinels: frozenset[str] = frozenset()


class Trial(NamedTuple):
    """One leg that was run, and what was seen of its reads."""

    record: RunRecord
    reads: LegReads | None = None


def outcome(case: CaseResult | None) -> Outcome | None:
    """What a case came to in one leg; None when that leg cannot say."""
    if case is None or case.degraded_reason is not None or case.score is None:
        return None
    if case.status not in {Status.PASS, Status.FAIL}:
        return None
    verdicts = tuple(item.verdict for item in case.expectations if item.required)
    return Outcome(case.status, verdicts, frozenset(hit.artifact for hit in case.sentinels))


class Trials:
    """All legs that were run so far.

    Args:
        trials: In the order in which they were run; their records have a role.
    """

    def __init__(self, trials: Sequence[Trial]) -> None:
        self._all = [
            (trial.record.role, {case.case_id: case for case in trial.record.case_results}, trial)
            for trial in trials
            if trial.record.role is not None
        ]

    def __len__(self) -> int:
        return len(self._all)

    def ran(self, purpose: str) -> bool:
        """Whether any leg of this purpose was run."""
        return any(role.purpose == purpose for role, _, _ in self._all)

    def replicates(self, root: LegName) -> int:
        """How many legs had this root under its own label."""
        return sum(1 for _ in self._of(root))

    def full_replicates(self) -> int:
        """How often both roots were run with every case that could be compared."""
        return min(sum(role.ordinal <= 2 for role, _, _ in self._of(root)) for root in (OFF, ON))

    def order(self) -> tuple[str, ...]:
        """Case ids in the order of the suite."""
        first = next(self._of(OFF), None)
        return () if first is None else tuple(first[1])

    def first(self, root: LegName, case_id: str) -> CaseResult | None:
        """The case in the first leg of a root."""
        for role, cases, _ in self._of(root):
            if role.purpose == "first":
                return cases.get(case_id)
        return None

    def outcomes(self, root: LegName, case_id: str) -> tuple[Outcome | None, ...]:
        """Outcome in every leg with this root under its own label that was to run the case."""
        return tuple(outcome(cases[case_id]) for _, cases, _ in self._of(root) if case_id in cases)

    def swapped(self, root: LegName, case_id: str) -> tuple[Outcome | None, ...]:
        """Outcome with this root under the other label."""
        return tuple(
            outcome(cases.get(case_id))
            for role, cases, _ in self._all
            if role.purpose == "label_swap" and role.root == root
        )

    def mixed(self, case_id: str) -> Iterator[tuple[frozenset[str], LegName, Outcome | None]]:
        """For each mixed root: units at their on-version, label, outcome."""
        for role, cases, trial in self._all:
            if role.purpose == "ablation" and case_id in cases:
                label = ON if trial.record.variant == ON else OFF
                yield frozenset(role.on_units), label, outcome(cases[case_id])

    def opened(self, root: LegName, case_id: str) -> frozenset[str] | None:
        """What the case opened, over all legs with this root; None when no trace is complete."""
        found: frozenset[str] | None = None
        for reads in self._reads(root, case_id):
            found = (found or frozenset()) | frozenset(reads.opened)
        return found

    def _reads(self, root: LegName, case_id: str) -> Iterable[CaseReads]:
        for role, _, trial in self._all:
            if role.root != root or trial.reads is None or trial.reads.state != "complete":
                continue
            yield from (case for case in trial.reads.cases if case.case_id == case_id)

    def _of(self, root: LegName) -> Iterator[tuple[LegRole, dict[str, CaseResult], Trial]]:
        for item in self._all:
            if item[0].root == root and item[0].purpose in {"first", "replicate"}:
                yield item
