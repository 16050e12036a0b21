"""The other axis: hooks on against hooks off, no context root in either leg."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

from runner.app import clock, legs
from runner.app.attest import attest
from runner.app.comparison import (
    Compared,
    Comparison,
    compare_suites,
    copy_out,
    default_run_id,
    inputs,
)
from runner.app.evidence import Evidence, hooks_evidence, sandbox_evidence
from runner.app.legs import Job, LegResult
from runner.app.prepare import Bench, Prepared, prepared
from runner.app.request import RunRequest
from runner.attest.keys import SigningKey
from runner.core import liveproof
from runner.core.assemble import EXCERPT_BYTES, as_reported, excerpts
from runner.core.plan import LegRequest
from runner.core.skillcontrols import SKILL_OFF, SKILL_ON, SkillOrder, SkillRound, next_rounds
from runner.core.skillpair import SkillObserved, assemble_skill
from runner.errors import InputError
from runner.model.liveproof import LiveStateEvidence, LiveStateProof
from runner.model.skillscorecard import SkillScorecard
from runner.report.progress import Listener
from runner.report.text import plural

_OF_CONTEXT = ("AO_AGENTS_DIR", "AO_CONTEXT_VARIANT")


def run_skill(request: RunRequest, listener: Listener) -> Comparison:
    """Compare hooks off and hooks on, on every suite that was named.

    Args:
        request: What was asked for.
        listener: Who is told while it runs.

    Raises:
        AoEvalError: Something keeps the comparison from being made at all; see the exit codes.
    """
    _refuse_both_axes(request)
    return compare_suites(request, listener, _compare)


def _refuse_both_axes(request: RunRequest) -> None:
    """Refuse whatever would vary, choose or explain context: then two things would differ."""
    asked = [
        ("--context-off-agents-dir", request.off_root is not None),
        ("--context-on-agents-dir", request.on_root is not None),
        ("--aa", request.null_check),
        ("--attribute ablate", request.attribute == "ablate"),
        *((f"--env {name}", name in request.sandbox.extra_env) for name in _OF_CONTEXT),
    ]
    found = next((option for option, given in asked if given), None)
    if found is not None:
        raise InputError(
            "is about context, and one run varies one axis",
            where=f"{found} with --axis skill",
            remedy="leave it out, or compare context in a run of its own",
        )


def _compare(
    request: RunRequest,
    bench: Bench,
    suite_path: Path,
    listener: Listener,
    key: SigningKey | None,
) -> Compared:
    with prepared(request, bench, suite_path, {}) as ready:
        run_id = request.run_id or default_run_id(ready.suite.suite.id)
        with Evidence(request.out_dir, f"{clock.compact(time.time())}-{run_id}") as evidence:
            t0 = clock.now()
            results = _run_legs(request, ready, run_id, evidence, listener)
            live = legs.live_state(ready, t0)
            observed = _observed(request, ready, run_id, results, live.proof)
            excerpt = excerpts(
                observed.records,
                lambda path: evidence.head(path, EXCERPT_BYTES),
                holdout=observed.suite.suite.is_holdout,
            )
            scorecard = assemble_skill(observed, excerpt)
            written = _write(evidence, observed, scorecard, live, key)
            directory = evidence.finish()
    records: dict[str, bytes] = {leg: written[leg] for leg in (SKILL_OFF, SKILL_ON)}
    copy_out(request, written["scorecard"], records)
    return Compared(scorecard, written["scorecard"], directory, liveproof.notices(live))


def _run_legs(
    request: RunRequest, ready: Prepared, run_id: str, evidence: Evidence, listener: Listener
) -> tuple[LegResult, ...]:
    """Run the first two legs, then the replicates that their outcomes ask for."""
    done: list[LegResult] = []
    while rounds := next_rounds(request.controls, [result.record for result in done]):
        _announce(rounds, listener)
        for orders in rounds:
            jobs = [_job(request, ready, order, run_id) for order in orders]
            done += legs.run(ready, jobs, evidence, listener)
    return tuple(done)


def _announce(rounds: Sequence[SkillRound], listener: Listener) -> None:
    order = rounds[0][0]
    if order.cases is not None:
        more = plural(2 * len(rounds), "leg")
        listener.note(f"replicates: {more} of {plural(len(order.cases), 'case')}")


def _job(request: RunRequest, ready: Prepared, order: SkillOrder, run_id: str) -> Job:
    leg = LegRequest(order.variant, None, leg=order.name, role=order.role)
    mine = f"{run_id}-{order.name.replace('_', '-')}"
    return Job(legs.plan(request, ready, leg, mine, order.cases or ()), None)


def _observed(
    request: RunRequest,
    ready: Prepared,
    run_id: str,
    results: Sequence[LegResult],
    live: LiveStateProof,
) -> SkillObserved:
    outcomes = [result.outcome for result in results]
    return SkillObserved(
        suite=ready.suite,
        records=as_reported([result.record for result in results], live),
        live=live,
        sandbox=sandbox_evidence(ready, outcomes),
        hooks=hooks_evidence(ready, outcomes),
        inputs=inputs(ready),
        controls=request.controls,
        run_id=run_id,
        generated_at=clock.stamp(request.surroundings.epoch),
        notes=ready.warnings,
    )


def _write(
    evidence: Evidence,
    observed: SkillObserved,
    scorecard: SkillScorecard,
    live: LiveStateEvidence,
    key: SigningKey | None,
) -> dict[str, bytes]:
    """Write everything; canonical bytes of the records by leg, and of the `scorecard`."""
    from runner.report.skilldocuments import (
        render_skill_html,
        render_skill_junit,
        render_skill_summary,
    )

    evidence.write("live-state.v1", "evidence/live-state.json", live)
    evidence.write("sandbox.v1", "evidence/sandbox.json", observed.sandbox)
    evidence.write("hooks.v1", "evidence/hooks.json", observed.hooks)
    written = {
        record.leg: evidence.write("eval-run.v1", f"legs/{record.leg}/record.json", record)
        for record in observed.records
    }
    written["scorecard"] = evidence.write("skill-scorecard.v1", "scorecard.json", scorecard)
    evidence.write_text("report.html", render_skill_html(scorecard))
    evidence.write_text("junit.xml", render_skill_junit(scorecard))
    evidence.write_text("summary.md", render_skill_summary(scorecard))
    if not observed.suite.suite.is_holdout:
        evidence.write_text("suite.json", observed.suite.source)
    attest(evidence, scorecard, observed.sandbox, key)
    return written
