"""What looking at an expectation showed, before it becomes part of a record."""

from __future__ import annotations

from dataclasses import dataclass

from runner.model.record import Verdict


@dataclass(frozen=True, slots=True)
class Finding:
    """A judgement with two wordings.

    Attributes:
        verdict: The judgement.
        safe: One line of our own words; names nothing from the suite or an output, so that it may
            be recorded for a private holdout.
        detail: What was expected and seen; only for public suites.
        fact: The evaluated fact in canonical form; None when nothing could be evaluated.
        rests_on: `exit_code`, `stdout`, `stderr`, or a container path.
    """

    verdict: Verdict
    safe: str
    detail: str = ""
    fact: str | None = None
    rests_on: str | None = None

    def message(self, *, holdout: bool) -> str:
        """One line for the record."""
        return self.safe if holdout or not self.detail else f"{self.safe}: {self.detail}"


def passed(safe: str, detail: str, fact: str, rests_on: str) -> Finding:
    """The fact is known and as expected."""
    return Finding(Verdict.PASSED, safe, detail, fact, rests_on)


def failed(safe: str, detail: str, fact: str, rests_on: str) -> Finding:
    """The fact is known and not as expected."""
    return Finding(Verdict.FAILED, safe, detail, fact, rests_on)


def undecided(safe: str, detail: str = "", rests_on: str | None = None) -> Finding:
    """What was kept cannot decide it; neither a pass nor a failure."""
    return Finding(Verdict.UNDECIDED, safe, detail, None, rests_on)
