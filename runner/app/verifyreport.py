"""What the checks of a verification found, as they go."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from runner.core.crosscheck import Wrong
from runner.host.evidencefiles import Changed
from runner.model.verification import CheckDone, FailedCheck

_SHOWS = {
    "files": "the directory holds what it must and nothing else",
    "documents": "every document has its published form",
    "attestation": "the statements are of these very files and this run",
    "outputs": "outputs, suite and roots have the digests that are stated",
    "judgements": "verdicts, statuses, scores and reasons follow from the stored outputs",
    "legs": "the legs are those that the controls ask for, degraded by what is shown and only so",
    "evidence": "sandbox, hooks, reads, roots and live state bear each other out",
    "scorecard": "the scorecard follows from the records and the evidence, field by field",
    "renderings": "report, test results and summary are those of this scorecard",
    "signature": "who made it",
}


class Report:
    """Collects what the checks find.

    Attributes:
        problems: Everything that is wrong.
        checks: What was checked.
        taken: Statements that nothing else bears out.
    """

    def __init__(self) -> None:
        self.problems: list[FailedCheck] = []
        self.checks: list[CheckDone] = []
        self.taken: list[str] = []

    def run(self, name: str, looked_at: int, wrong: Iterable[Wrong]) -> None:
        """Carry out one check; whatever it trips over is a problem, too."""
        before = len(self.problems)
        try:
            for item in wrong:
                self.tell(name, item.where, item.problem)
        except Changed as error:
            self.tell(name, str(error), "changed while it was read")
        except (ValueError, KeyError, IndexError, ArithmeticError) as error:
            # The documents are valid by themselves and do not fit together.
            self.tell(name, "", f"cannot be derived: {type(error).__name__}: {str(error)[:200]}")
        failed = len(self.problems) > before
        self._done(name, "failed" if failed else "passed", looked_at, _SHOWS[name])

    def impossible(self, name: str, why: str) -> None:
        """A check that could not be carried out."""
        self._done(name, "not_possible", 0, why)

    def tell(self, check: str, where: str, problem: str) -> None:
        """Note a problem."""
        self.problems.append(FailedCheck(check=check, where=where, problem=problem))

    def _done(
        self,
        name: str,
        state: Literal["passed", "failed", "not_possible"],
        looked_at: int,
        shows: str,
    ) -> None:
        self.checks.append(CheckDone(check=name, state=state, looked_at=looked_at, shows=shows))

    def in_order(self) -> tuple[CheckDone, ...]:
        """Checks in the order of the table; problems found on the way make a check failed."""
        order = list(_SHOWS)
        failed = {item.check for item in self.problems}
        return tuple(
            check.model_copy(update={"state": "failed"})
            if check.check in failed and check.state == "passed"
            else check
            for check in sorted(self.checks, key=lambda item: order.index(item.check))
        )
