"""Run the legs of a prepared suite at once, and turn each into a run record."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from pathlib import Path
from typing import NamedTuple

from runner.app import clock
from runner.app.collect import BlobStore
from runner.app.evidence import Evidence, hooks_evidence, sandbox_evidence
from runner.app.hooks import compare_receipts
from runner.app.legrunner import LegOutcome, LegRunner
from runner.app.prepare import Prepared
from runner.app.request import RunRequest
from runner.core.confine import base_environment
from runner.core.plan import LegRequest, plan_leg
from runner.core.record import Circumstances, run_record
from runner.model.leg import Axis, LegPlan
from runner.model.liveproof import LiveStateEvidence
from runner.model.record import EnvironmentRef, LegTimings, RunRecord, RuntimeRef
from runner.report.progress import Listener


class LegResult(NamedTuple):
    """A leg and its record."""

    outcome: LegOutcome
    record: RunRecord


def plan(
    request: RunRequest, prepared: Prepared, variants: Sequence[str], run_id: str
) -> tuple[LegPlan, ...]:
    """Plan the legs of the given variants."""
    environment = base_environment(prepared.hooks.passed, request.sandbox.extra_env)
    planned = []
    for variant in variants:
        item = prepared.roots.get(variant)
        planned.append(
            plan_leg(
                prepared.suite.suite,
                LegRequest(
                    variant,
                    item.root if item else None,
                    item.degraded if item else None,
                ),
                axis=Axis.CONTEXT,
                run_id=run_id if len(variants) == 1 else f"{run_id}-{variant.replace('_', '-')}",
                suite_dir=prepared.session.stage.suite_dir,
                environment=environment,
                suppressed=prepared.suppressed,
                only=request.only,
                hooks=prepared.hooks_directory,
            )
        )
    return tuple(planned)


def run(
    prepared: Prepared, plans: Sequence[LegPlan], blobs: BlobStore, listener: Listener
) -> tuple[LegResult, ...]:
    """Run legs concurrently.

    An interruption kills the containers of all legs, waits for their threads and is raised on.
    """
    session = prepared.session
    prepared.watch.start_control(prepared.decoy_places)
    started = clock.now()
    runners = [
        LegRunner(session, prepared.suite, item, blobs, listener, root=_staged(prepared, item))
        for item in plans
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


def _staged(prepared: Prepared, item: LegPlan) -> Path | None:
    root = prepared.roots.get(item.variant)
    return root.staged if root else None


def _import_writers() -> None:
    """Import what is needed after the legs while their containers start: it costs 0.3 s."""
    import runner.contracts.judge
    import runner.report.html
    import runner.report.junit
    import runner.report.markdown  # noqa: F401


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
                hooks_disabled=prepared.suppressed is not None,
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


def write_evidence(
    evidence: Evidence,
    prepared: Prepared,
    outcomes: Sequence[LegOutcome],
    live: LiveStateEvidence,
    problems: Sequence[str],
) -> None:
    """Write the evidence that every kind of run has."""
    evidence.write("live-state.v1", "evidence/live-state.json", live)
    sandbox = sandbox_evidence(prepared, outcomes, problems)
    evidence.write("sandbox.v1", "evidence/sandbox.json", sandbox)
    evidence.write("hooks.v1", "evidence/hooks.json", hooks_evidence(prepared, outcomes))
