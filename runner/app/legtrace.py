"""The read trace of one leg, from before its first container until after its last."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path

from runner.core.confine import is_gvisor
from runner.core.readtrace import Segment, leg_reads, unavailable
from runner.host.contexttrace import ContextTrace, Untraceable
from runner.logs import log
from runner.model.leg import CasePlan, LegPlan
from runner.model.reads import LegReads


class LegTrace:
    """What the containers of one leg open of its root.

    Args:
        plan: The leg.
        home: Where the folder of marks goes, under a name that says nothing.
        runtime: OCI runtime.
        asked_for: False: there is none, and nothing here does anything.
    """

    def __init__(
        self, plan: LegPlan, home: Path, runtime: str | None, *, asked_for: bool = True
    ) -> None:
        self._plan = plan
        self._home = home
        self._one_case = is_gvisor(runtime)
        self._asked_for = asked_for
        self._segments: list[Segment] = []
        self._trace: ContextTrace | None = None
        self._why: str | None = None

    def begin(self, root: Path | None) -> None:
        """Watch from now on.

        Args:
            root: The staged root, which no other leg uses meanwhile; None when nothing will run.
        """
        if not self._asked_for:
            return
        if root is None:
            self._why = "no_root"
        elif self._one_case and not self._plan.isolated:
            self._why = "runtime_caches_opens"
        else:
            try:
                self._trace = ContextTrace(root, self._home / secrets.token_hex(8))
            except Untraceable as error:
                self._why = str(error)
                log.warning("no read trace", leg=self._plan.leg, reason=self._why)

    @property
    def marks(self) -> str | None:
        """Folder of the marks; None when nothing is traced."""
        return None if self._trace is None else str(self._trace.marks)

    @property
    def root_at_start(self) -> bool:
        """False when the agent must not open the root before the case does."""
        return self._trace is None or not self._one_case

    def container(self, planned: Sequence[CasePlan], ended: int, *, whole: bool) -> None:
        """Take note of a container that is gone.

        Args:
            planned: Cases that it was given.
            ended: How many of them were told to have ended.
            whole: Its agent said goodbye.
        """
        self._segments.append(Segment(tuple(planned), ended, whole))

    def end(self, *, stopped: bool) -> LegReads | None:
        """What was opened, now that no container is left; None when nobody asked.

        Args:
            stopped: The leg could not go on.
        """
        if self._trace is None:
            return None if self._why is None else unavailable(self._plan, self._why)
        seen, self._trace = self._trace.end(), None
        if seen.problem is not None:
            log.warning("the reader of a read trace failed", leg=self._plan.leg, error=seen.problem)
        return leg_reads(
            self._plan,
            self._segments,
            seen.opens,
            seen.files,
            one_case=self._one_case,
            stopped=stopped,
            lapse=seen.lapse,
        )
