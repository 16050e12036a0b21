"""The main job: both legs of a context A/B, and the scorecard of what they showed."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

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
from runner.app.evidence import (
    Evidence,
    context_reads,
    context_roots,
    hooks_evidence,
    sandbox_evidence,
)
from runner.app.legs import LegResult
from runner.app.prepare import Bench, Prepared, prepared
from runner.app.request import RunRequest
from runner.app.roots import default_root, helpful_in_off
from runner.app.rounds import Rounds
from runner.attest.keys import SigningKey
from runner.core import liveproof
from runner.core.assemble import EXCERPT_BYTES, Observed, as_reported, assemble, excerpts
from runner.core.confine import is_gvisor
from runner.core.controls import Rules
from runner.core.decision import Excerpt
from runner.core.trials import OFF, ON
from runner.errors import InputError
from runner.model.liveproof import LiveStateEvidence, LiveStateProof
from runner.model.scorecard import ContextScorecard
from runner.report.progress import Listener


def run_ab(request: RunRequest, listener: Listener) -> Comparison:
    """Compare context absent and context present on every suite that was named.

    Args:
        request: What was asked for.
        listener: Who is told while it runs.

    Raises:
        AoEvalError: Something keeps the comparison from being made at all; see the exit codes.
    """
    return compare_suites(request, listener, _compare)


def _compare(
    request: RunRequest,
    bench: Bench,
    suite_path: Path,
    listener: Listener,
    key: SigningKey | None,
) -> Compared:
    on_root = request.on_root or default_root(suite_path, ON)
    off_root = request.off_root or default_root(suite_path, OFF)
    if request.null_check:
        off_root = on_root
    with prepared(request, bench, suite_path, {OFF: off_root, ON: on_root}) as ready:
        _check_roots(request, ready)
        run_id = request.run_id or default_run_id(ready.suite.suite.id)
        name = f"{clock.compact(time.time())}-{run_id}"
        with Evidence(request.out_dir, name) as evidence:
            t0 = clock.now()
            rules = _rules(request, ready)
            rounds = Rounds(
                request=request,
                prepared=ready,
                rules=rules,
                run_id=run_id,
                blobs=evidence,
                listener=listener,
            )
            results = rounds.run()
            live = legs.live_state(ready, t0)
            observed = _observed(rounds, results, live.proof)
            scorecard = assemble(observed, _excerpts(evidence, observed))
            written = _write(evidence, observed, scorecard, live, key)
            directory = evidence.finish()
    copy_out(request, written.scorecard, written.records)
    return Compared(scorecard, written.scorecard, directory, liveproof.notices(live))


def _check_roots(request: RunRequest, ready: Prepared) -> None:
    off, on = ready.roots[OFF].root, ready.roots[ON].root
    if request.null_check or off.sha256 is None or on.sha256 is None:
        return
    if off.sha256 == on.sha256:
        raise InputError(
            "both context roots have the same content, so nothing is varied",
            where=f"{off.path} and {on.path}",
            remedy="name different roots, or use --aa for the null check",
        )


def _rules(request: RunRequest, ready: Prepared) -> Rules:
    session = ready.session
    runtime = session.runtime or session.engine.info().default_runtime
    return Rules(
        mode=request.controls,
        attribute=request.attribute,
        isolated=is_gvisor(runtime),
        ablation_legs=request.ablation_legs,
    )


def _observed(rounds: Rounds, results: Sequence[LegResult], live: LiveStateProof) -> Observed:
    request, ready = rounds.request, rounds.prepared
    outcomes = [result.outcome for result in results]
    notes = () if request.null_check else helpful_in_off(ready.roots[OFF], ready.roots[ON])
    return Observed(
        suite=ready.suite,
        records=as_reported([result.record for result in results], live),
        live=live,
        sandbox=sandbox_evidence(ready, outcomes),
        hooks=hooks_evidence(ready, outcomes),
        reads=context_reads(outcomes),
        roots=context_roots(ready),
        inputs=inputs(ready),
        rules=rounds.rules,
        null_check=request.null_check,
        run_id=rounds.run_id,
        generated_at=clock.stamp(request.surroundings.epoch),
        notes=(*ready.warnings, *notes),
    )


def _excerpts(evidence: Evidence, observed: Observed) -> Excerpt:
    return excerpts(
        observed.records,
        lambda path: evidence.head(path, EXCERPT_BYTES),
        holdout=observed.suite.suite.is_holdout,
    )


class _Written(NamedTuple):
    """Canonical bytes of what was written: the scorecard, and the record of each variant."""

    scorecard: bytes
    records: dict[str, bytes]


def _write(
    evidence: Evidence,
    observed: Observed,
    scorecard: ContextScorecard,
    live: LiveStateEvidence,
    key: SigningKey | None,
) -> _Written:
    from runner.report.html import render_html
    from runner.report.junit import render_junit
    from runner.report.markdown import render_summary

    evidence.write("live-state.v1", "evidence/live-state.json", live)
    evidence.write("sandbox.v1", "evidence/sandbox.json", observed.sandbox)
    evidence.write("hooks.v1", "evidence/hooks.json", observed.hooks)
    evidence.write("context-reads.v1", "evidence/context-reads.json", observed.reads)
    evidence.write("context-roots.v1", "evidence/context-roots.json", observed.roots)
    written = {
        record.leg: evidence.write("eval-run.v1", f"legs/{record.leg}/record.json", record)
        for record in observed.records
    }
    card = evidence.write("context-scorecard.v1", "scorecard.json", scorecard)
    evidence.write_text("report.html", render_html(scorecard))
    evidence.write_text("junit.xml", render_junit(scorecard))
    evidence.write_text("summary.md", render_summary(scorecard))
    if not observed.suite.suite.is_holdout:
        evidence.write_text("suite.json", observed.suite.source)
    attest(evidence, scorecard, observed.sandbox, key)
    return _Written(card, {leg: written[leg] for leg in (OFF, ON)})
