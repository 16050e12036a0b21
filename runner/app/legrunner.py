"""Run one leg: container after container until its cases are done, and judge them as they end."""

from __future__ import annotations

import math
import secrets
import time
from dataclasses import dataclass, field
from pathlib import Path

from runner.app.collect import BlobStore, Collector
from runner.app.legcontainer import create_container
from runner.app.legtrace import LegTrace
from runner.app.postmortem import post_mortem
from runner.app.session import Session
from runner.app.workspace import Workspace, make_workspace
from runner.core import gvisor, inside
from runner.core.confine import MARKS, UPPER, is_gvisor
from runner.core.degrade import insufficient, runtime_unavailable, worst
from runner.core.score import case_result
from runner.core.wire import (
    Bye,
    CaseEnded,
    CaseStarted,
    Chunk,
    Decoder,
    Event,
    Fatal,
    FileChunk,
    Hello,
    HookChunk,
    encode_plan,
    runnable,
)
from runner.errors import EngineFailure, ProtocolViolation
from runner.logs import log
from runner.model.leg import CasePlan, Degradation, DegradedReason, LegPlan
from runner.model.observation import InsideEnd, InsideReport
from runner.model.reads import LegReads
from runner.model.record import CaseResult
from runner.model.suite import SuiteFile
from runner.report.progress import Listener

_MOST_DIAGNOSTICS = 4096
_LATE_SECONDS = 10
"""The agent's own time limit lies so far behind the orchestrator's, which says why."""


@dataclass
class Timings:
    """Milliseconds spent, over all containers of a leg."""

    create: float = 0.0
    start: float = 0.0
    run: float = 0.0
    teardown: float = 0.0


@dataclass
class LegOutcome:
    """What came of one leg.

    Attributes:
        plan: What was to run.
        results: One for every case of the plan, in its order.
        degraded: Why the whole leg cannot be believed.
        problems: Ways in which its sandbox was not what was asked for; an integrity violation.
    """

    plan: LegPlan
    results: tuple[CaseResult, ...] = ()
    degraded: Degradation | None = None
    problems: list[str] = field(default_factory=list)
    inside: InsideReport | None = None
    end: InsideEnd | None = None
    containers: int = 0
    timings: Timings = field(default_factory=Timings)
    reads: LegReads | None = None
    """Read trace; None when it was not asked for."""


class _Stopped(Exception):
    """The leg cannot go on; carries why."""

    def __init__(self, degradation: Degradation) -> None:
        self.degradation = degradation
        super().__init__(degradation.detail)


class LegRunner:
    """One leg of a run.

    Args:
        session: The run.
        suite: The suite.
        plan: The leg.
        blobs: Where outputs go.
        listener: Who is told.
        root: Staged context root on the host.
        traced: What its cases open of the root is to be told.
    """

    def __init__(
        self,
        session: Session,
        suite: SuiteFile,
        plan: LegPlan,
        blobs: BlobStore,
        listener: Listener,
        *,
        root: Path | None,
        traced: bool = False,
    ) -> None:
        self._session = session
        self._suite = suite
        self._plan = plan
        self._root = root
        self._trace = LegTrace(plan, session.stage.home, session.runtime, asked_for=traced)
        self._listener = listener
        self._collector = Collector(
            suite,
            session.stage.suite_dir,
            plan.leg,
            blobs,
            hooks=plan.hooks,
            sentinels=plan.root.sentinels if plan.root is not None else (),
        )
        self._results: dict[int, CaseResult] = {}
        self._outcome = LegOutcome(plan=plan, degraded=plan.degraded)
        self._cases = {case.index: case for case in plan.cases}
        self._deadline = 0.0
        self._workspace: Workspace | None = None
        self._begun: CasePlan | None = None
        """The case that began in the present container and has not ended."""
        self._ended: list[CasePlan] = []
        """Cases that ended in the present container."""

    def run(self) -> LegOutcome:
        """Run the leg. What goes wrong becomes a degradation; only defects of ours are raised."""
        outcome, plan = self._outcome, self._plan
        self._listener.leg_started(self._suite.suite.id, plan.leg, len(plan.cases))
        self._deadline = time.monotonic() + self._session.resources.timeout_seconds
        stopped: Degradation | None = None
        runs = self._runs()
        self._trace.begin(self._root if runs else None)
        try:
            if runs:
                stopped = self._run_to_end()
        finally:
            outcome.reads = self._trace.end(stopped=stopped is not None)
        outcome.degraded = worst([outcome.degraded, stopped])
        outcome.results = tuple(self._result(case) for case in plan.cases)
        self._listener.leg_done(self._suite.suite.id, plan.leg, outcome.degraded)
        return outcome

    def _run_to_end(self) -> Degradation | None:
        """Run the containers; returns why the leg could not go on, if it could not."""
        try:
            try:
                self._run_containers()
            finally:
                self._leave_workspace()
        except _Stopped as stop:
            return stop.degradation
        except EngineFailure as failure:
            log.warning("the engine failed", leg=self._plan.leg, error=failure.line())
            return runtime_unavailable(failure.detail)
        return None

    def _runs(self) -> bool:
        """A leg whose hooks are off still reports what happened; one without its root cannot."""
        degraded, root = self._plan.degraded, self._plan.root
        possible = degraded is None or degraded.reason is DegradedReason.HOOKS_DISABLED
        rooted = root is None or root.sha256 is not None
        return possible and rooted and bool(runnable(self._plan))

    def _result(self, case: CasePlan) -> CaseResult:
        if case.index in self._results:
            return self._results[case.index]
        stopped = self._outcome.degraded
        blamed = case.model_copy(update={"degraded": case.degraded or stopped})
        return case_result(self._suite.suite.cases[case.index], blamed, None, ())

    def _run_containers(self) -> None:
        remaining = runnable(self._plan)
        while remaining:
            self._go_on()
            before = len(self._results)
            given = remaining[:1] if self._plan.isolated else remaining
            reason = self._run_container(self._plan.model_copy(update={"cases": given}))
            remaining = tuple(case for case in remaining if case.index not in self._results)
            if reason != "done" and len(self._results) == before:
                raise _Stopped(insufficient("protocol_violation"))

    def _go_on(self) -> None:
        """An interruption kills the containers it knows of; what starts later must not."""
        if self._session.cancelled.is_set():
            raise _Stopped(insufficient("interrupted"))

    def _enter_workspace(self) -> Workspace:
        """A fresh one for every container, or the one that all containers of the leg share."""
        if self._workspace is None:
            self._workspace = make_workspace(self._session)
        return self._workspace

    def _leave_workspace(self) -> None:
        workspace, self._workspace = self._workspace, None
        if workspace is not None:
            self._session.release(None, workspace.volume)

    def _run_container(self, plan: LegPlan) -> str:
        """Create, read back, compare, start, stream; gone when this returns.

        Returns:
            Why it ended: the agent's reason, or `blamed` when a case ended it.
        """
        session, ordinal = self._session, self._outcome.containers
        self._outcome.containers += 1
        timings = self._outcome.timings
        begun = time.monotonic()
        container_id: str | None = None
        self._begun, self._ended = None, []
        reason = ""
        try:
            workspace = self._enter_workspace()
            made = create_container(
                session, plan, workspace, ordinal, root=self._root, marks=self._trace.marks
            )
            container_id = made.container_id
            self._outcome.problems += made.problems
            if made.problems:
                raise _Stopped(runtime_unavailable("sandbox_differs"))
            created = time.monotonic()
            timings.create += created - begun
            reason = self._stream(plan, container_id, workspace)
            timings.run += time.monotonic() - created
            if session.keep_seconds:
                session.keep(container_id, workspace.volume, made.name)
                container_id, self._workspace = None, None
            return reason
        finally:
            begun = time.monotonic()
            said_goodbye = reason not in ("", "blamed")
            self._trace.container(plan.cases, len(self._ended), whole=said_goodbye)
            session.release(container_id, None)
            if not session.shared:
                self._leave_workspace()
            timings.teardown += time.monotonic() - begun

    def _stream(self, plan: LegPlan, container_id: str, workspace: Workspace) -> str:
        session = self._session
        nonce = secrets.token_hex(16)
        uid, gid = session.case_user
        line = encode_plan(
            plan,
            nonce=nonce,
            uid=uid,
            gid=gid,
            upper=UPPER if workspace.upper is not None else None,
            share_workspace=session.shared,
            leg_seconds=max(0, math.ceil(self._deadline - time.monotonic())) + _LATE_SECONDS,
            hold_seconds=session.keep_seconds,
            marks=None if self._trace.marks is None else MARKS,
            root_at_start=self._trace.root_at_start,
        )
        attachment = session.engine.attach(container_id)
        diagnostics = bytearray()
        decoder = Decoder(plan, nonce=nonce)
        bye: Bye | None = None
        try:
            begun = time.monotonic()
            session.engine.start(container_id)
            self._go_on()
            self._outcome.timings.start += time.monotonic() - begun
            attachment.send(line)
            for stream, data in attachment.chunks(self._deadline):
                if stream != 1:
                    diagnostics += data[: _MOST_DIAGNOSTICS - len(diagnostics)]
                    continue
                for event in decoder.feed(data):
                    bye = self._on_event(event, plan) or bye
                if bye is not None:
                    break
            if bye is None:
                return self._cut_short(decoder, container_id, bytes(diagnostics))
        except TimeoutError as error:
            raise _Stopped(insufficient("leg_timeout")) from error
        except ProtocolViolation as error:
            end = post_mortem(session, container_id, error, bytes(diagnostics))
            raise _Stopped(end) from error
        except OSError as error:
            log.warning("the stream broke", leg=plan.leg, error=str(error))
            raise _Stopped(runtime_unavailable("engine_lost")) from error
        finally:
            attachment.close()
        return bye.reason

    def _cut_short(self, decoder: Decoder, container_id: str, diagnostics: bytes) -> str:
        """The stream ended, in order as far as it goes: one case bears that, or the leg does."""
        try:
            decoder.finish()
        except ProtocolViolation as error:
            session, blamed = self._session, None
            end = post_mortem(session, container_id, error, diagnostics)
            if is_gvisor(session.runtime) and not session.shared:
                blamed = gvisor.to_blame(end, begun=self._begun, ended=self._ended)
            if blamed is None:
                raise _Stopped(end) from error
            self._lose(blamed, end)
            return "blamed"
        raise _Stopped(insufficient("agent_gave_up"))

    def _lose(self, case: CasePlan, why: Degradation) -> None:
        """Record a case that began and was never told of again."""
        self._collector.forget()
        result = case_result(
            self._suite.suite.cases[case.index],
            case.model_copy(update={"degraded": worst([case.degraded, why])}),
            None,
            (),
        )
        container = self._outcome.containers - 1
        self._results[case.index] = result.model_copy(update={"container": container})
        self._listener.case_done(
            self._suite.suite.id, self._plan.leg, result.case_id, result.status
        )

    def _on_event(self, event: Event, plan: LegPlan) -> Bye | None:
        match event:
            case CaseStarted(index):
                self._begun = self._cases[index]
            case Chunk() | HookChunk() | FileChunk():
                self._collector.add(event)
            case CaseEnded():
                self._case_ended(event)
            case Hello(report):
                self._hello(report)
            case Bye(end):
                self._goodbye(end)
                return event
            case Fatal(reason, message):
                log.warning("the agent gave up", leg=plan.leg, reason=reason, message=message)
                raise _Stopped(insufficient(reason))
        return None

    def _case_ended(self, event: CaseEnded) -> None:
        result = self._collector.judge(
            self._cases[event.index], event, self._outcome.containers - 1
        )
        self._results[event.index] = result
        self._begun = None
        self._ended.append(self._cases[event.index])
        self._listener.case_done(self._suite.suite.id, self._plan.leg, event.case_id, result.status)

    def _hello(self, report: InsideReport) -> None:
        session = self._session
        found = inside.sandbox_problems(
            report,
            case_user=session.case_user,
            agent_sha256=session.stage.agent_sha256,
            gvisor=is_gvisor(session.runtime),
        )
        self._outcome.inside = self._outcome.inside or report
        if found:
            self._outcome.problems += [f"{self._plan.leg}: {line}" for line in found]
            raise _Stopped(runtime_unavailable("sandbox_differs"))
        self._check(report)

    def _goodbye(self, end: InsideEnd) -> None:
        self._outcome.end = end
        self._check(end)

    def _check(self, seen: InsideReport | InsideEnd) -> None:
        """What the leg was given, seen from inside at start and at end."""
        plan = self._plan
        wrong = (
            inside.root_degradation(plan.root, seen, at_start=self._trace.root_at_start)
            or inside.hooks_degradation(plan.hooks, seen)
            or inside.environment_degradation(plan.env, seen)
        )
        if wrong is not None:
            raise _Stopped(wrong)
