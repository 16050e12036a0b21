"""Run the legs of a prepared suite at once, and turn each into a run record."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from runner.app import clock
from runner.app.collect import BlobStore
from runner.app.hooks import compare_receipts
from runner.app.legrunner import LegOutcome, LegRunner
from runner.app.prepare import Prepared
from runner.app.request import RunRequest
from runner.core.confine import base_environment
from runner.core.plan import LegRequest, plan_leg
from runner.core.record import Circumstances, run_record
from runner.errors import InternalError
from runner.model.leg import LegPlan, Variant
from runner.model.liveproof import LiveStateEvidence
from runner.model.record import EnvironmentRef, LegTimings, RunRecord, RuntimeRef
from runner.report.progress import Listener


class LegResult(NamedTuple):
    """A leg and its record."""

    outcome: LegOutcome
    record: RunRecord


class Job(NamedTuple):
    """A leg that is to be run, and where its staged context root lies."""

    plan: LegPlan
    root: Path | None


def plan(
    request: RunRequest,
    prepared: Prepared,
    leg: LegRequest,
    run_id: str,
    only: Sequence[str] = (),
) -> LegPlan:
    """Plan one leg.

    Args:
        request: The command.
        prepared: The run.
        leg: Variant, root, and why.
        run_id: Run id of the leg.
        only: Case ids; empty for those of the command.
    """
    return plan_leg(
        prepared.suite.suite,
        leg,
        axis=request.axis,
        run_id=run_id,
        suite_dir=prepared.session.stage.suite_dir,
        environment=base_environment(prepared.hooks.passed, request.sandbox.extra_env),
        suppressed=prepared.suppressed,
        only=only or request.only,
        hooks=prepared.hooks_directory,
    )


def run(
    prepared: Prepared,
    jobs: Sequence[Job],
    blobs: BlobStore,
    listener: Listener,
    *,
    traced: bool = False,
) -> tuple[LegResult, ...]:
    """Run legs concurrently.

    An interruption kills the containers of all legs, waits for their threads and is raised on.

    Args:
        prepared: The run.
        jobs: The legs. When they are traced, each has a staged root of its own.
        blobs: Where outputs go.
        listener: Who is told.
        traced: What cases open of the roots is to be told.

    Raises:
        InternalError: Two legs would be traced at one root.
    """
    session = prepared.session
    roots = [job.root for job in jobs if job.root is not None]
    if traced and len(set(roots)) < len(roots):
        raise InternalError("two legs at once on one root: their reads could not be told apart")
    prepared.watch.start_control(prepared.decoy_places)
    started = clock.now()
    runners = [
        LegRunner(session, prepared.suite, job.plan, blobs, listener, root=job.root, traced=traced)
        for job in jobs
    ]
    with ThreadPoolExecutor(max_workers=len(runners), thread_name_prefix="leg") as pool:
        try:
            futures = [pool.submit(runner.run) for runner in runners]
            _import_writers()
            wait(futures, return_when=FIRST_EXCEPTION)
            outcomes = [future.result() for future in futures]
        except BaseException:
            session.cancel()
            raise
    completed = clock.now()
    compare_receipts(outcomes)
    return tuple(
        LegResult(outcome, _record(prepared, outcome, started, completed)) for outcome in outcomes
    )


def _import_writers() -> None:
    """Import what is needed after the legs while their containers start: it costs 0.3 s."""
    import runner.contracts.judge
    import runner.report.junit
    import runner.report.markdown  # noqa: F401
    from runner.report.html import compile_page

    compile_page()


def workspace_mode(prepared: Prepared) -> str:
    """How workspaces were made, as records name it."""
    session = prepared.session
    return f"shared_{session.mode}" if session.shared else session.mode


def _record(prepared: Prepared, outcome: LegOutcome, started: str, completed: str) -> RunRecord:
    session = prepared.session
    info = session.engine.info()
    commands = any(case.is_command for case in prepared.suite.suite.cases)
    timings = outcome.timings
    return run_record(
        prepared.suite,
        outcome.plan,
        outcome.results,
        degraded=outcome.degraded,
        inside=outcome.inside,
        inside_end=outcome.end,
        circumstances=Circumstances(
            started_at=started,
            completed_at=completed,
            git=prepared.git,
            runtime=RuntimeRef.model_validate(
                {
                    "name": "shell" if commands else "static",
                    "engine": f"docker {info.version}",
                    "oci_runtime": session.runtime or info.default_runtime,
                    "image": session.image.reference,
                    "image_id": session.image.id,
                    "agent_sha256": session.stage.agent_sha256,
                    "workspace_mode": workspace_mode(prepared),
                }
            ),
            environment=EnvironmentRef(
                network_access="none",
                isolated_home=True,
                hook_environment=prepared.hooks.fingerprint(),
                dropped=prepared.hooks.dropped,
                hooks_disabled=(
                    prepared.suppressed is not None or outcome.plan.variant == Variant.SKILL_OFF
                ),
            ),
            timings=LegTimings(
                staging_ms=prepared.staging_ms,
                create_ms=int(timings.create * 1000),
                start_ms=int(timings.start * 1000),
                run_ms=int(timings.run * 1000),
                teardown_ms=int(timings.teardown * 1000),
            ),
            folder=session.stage.suite_dir,
        ),
    )


def live_state(prepared: Prepared, t0: str) -> LiveStateEvidence:
    """Take the second manifests, now that every leg is over, and compare.

    Args:
        prepared: The run.
        t0: When the first leg was begun.
    """
    session = prepared.session
    return prepared.watch.end(
        mounts_checked=sum(len(item.mounts) for item in session.readbacks),
        reaching=tuple(session.reaching),
        legs=frozenset(session.created),
        t0=t0,
    )
