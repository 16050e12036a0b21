"""The main job: both legs of a context A/B, and the scorecard of what they showed."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from runner import __version__
from runner.app import clock, legs
from runner.app.evidence import Evidence, hooks_evidence
from runner.app.legrunner import LegOutcome
from runner.app.legs import LegResult
from runner.app.prepare import Bench, Prepared, open_bench, prepared
from runner.app.request import RunRequest
from runner.app.roots import default_root, helpful_in_off
from runner.app.suites import find_suites, load_suite
from runner.core import liveproof
from runner.core.canon import digest
from runner.core.degrade import degrade_record
from runner.core.exitcode import Wanted, highest, of_scorecard
from runner.core.pair import Excerpt, leg_summary, paired_cases, pairing
from runner.core.readback import profile_digest
from runner.core.stats import resolution
from runner.errors import InputError
from runner.host.atomic import write_atomic
from runner.model.controls import Attribution, Controls, TraceSummary
from runner.model.evidence import HooksEvidence
from runner.model.leg import Variant
from runner.model.liveproof import LiveStateEvidence
from runner.model.record import RunRecord
from runner.model.scorecard import (
    ContextScorecard,
    HooksProof,
    Inputs,
    Integrity,
    SandboxProof,
)
from runner.report.progress import Listener

OFF, ON = Variant.CONTEXT_OFF.value, Variant.CONTEXT_ON.value
_EXCERPT_BYTES = 400
_LONGEST_RUN_ID = 160
"""Leaves room for the time before it and the leg behind it."""

_RUN_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:-]{{0,{_LONGEST_RUN_ID - 1}}}")


@dataclass(frozen=True)
class Compared:
    """One suite's comparison and where its evidence lies."""

    scorecard: ContextScorecard
    canonical: bytes
    directory: Path
    notices: tuple[str, ...]
    """Path, time and writer of changes of live state: to be told first."""


@dataclass(frozen=True)
class Comparison:
    """What the command found.

    Attributes:
        results: One for each suite.
        document: The one JSON document of `--json`.
        exit_code: Highest ranking over all suites.
    """

    results: tuple[Compared, ...]
    document: str
    exit_code: int


def run_ab(request: RunRequest, listener: Listener) -> Comparison:
    """Compare context absent and context present on every suite that was named.

    Args:
        request: What was asked for.
        listener: Who is told while it runs.

    Raises:
        AoEvalError: Something keeps the comparison from being made at all; see the exit codes.
    """
    suites = find_suites(request.suites)
    _check_outputs(request, suites)
    for suite in suites:
        load_suite(suite)  # a bad suite is refused before any leg of another one runs
    bench = open_bench(request)
    results = tuple(_compare(request, bench, suite, listener) for suite in suites)
    wanted = Wanted(
        delta=request.gates.require_delta,
        valid=request.gates.require_valid,
        passing=request.gates.require_pass,
    )
    cards = [result.canonical.decode().rstrip("\n") for result in results]
    return Comparison(
        results=results,
        document=cards[0] if len(cards) == 1 else f'{{"runs":[{",".join(cards)}]}}',
        exit_code=highest([of_scorecard(result.scorecard, wanted) for result in results]),
    )


def _check_outputs(request: RunRequest, suites: Sequence[Path]) -> None:
    """Refuse outputs that would overwrite each other or cannot be written, before any leg runs."""
    check_run_id(request.run_id)
    single = ("--out", request.out), ("--delta-out", request.delta_out)
    for option, path in single:
        if path is None:
            continue
        if len(suites) > 1:
            raise InputError(f"{option} takes one suite", where=str(path), remedy="use --out-dir")
        if not path.resolve().parent.is_dir():
            raise InputError("its folder does not exist", where=f"{option} {path}")
    if len(suites) > 1 and (request.off_root or request.on_root):
        raise InputError("--context-off-agents-dir and --context-on-agents-dir take one suite")
    if len(suites) > 1 and request.run_id:
        raise InputError("--run-id takes one suite")


@dataclass(frozen=True)
class _Finished:
    """Both legs are done; what the scorecard is made of."""

    request: RunRequest
    ready: Prepared
    run_id: str
    off: LegResult
    on: LegResult
    live: LiveStateEvidence
    evidence: Evidence

    @property
    def results(self) -> tuple[LegResult, LegResult]:
        """Off first, as everywhere."""
        return self.off, self.on

    @property
    def outcomes(self) -> tuple[LegOutcome, LegOutcome]:
        """What came of the legs."""
        return self.off.outcome, self.on.outcome


def _compare(request: RunRequest, bench: Bench, suite_path: Path, listener: Listener) -> Compared:
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
            plans = legs.plan(request, ready, (OFF, ON), run_id)
            off, on = legs.run(ready, plans, evidence, listener)
            live = legs.live_state(ready, t0)
            finished = _Finished(request, ready, run_id, off, on, live, evidence)
            records = _records(finished)
            scorecard = _scorecard(finished, records)
            written = _write(finished, scorecard, records)
            directory = evidence.finish()
    _copies(request, written)
    return Compared(scorecard, written.scorecard, directory, liveproof.notices(live))


def default_run_id(suite_id: str) -> str:
    """`eval-<time>-<suite id>-<random>`: two runs in one second do not collide."""
    short = suite_id[: _LONGEST_RUN_ID // 2]
    return f"eval-{clock.compact(time.time())}-{short}-{secrets.token_hex(3)}"


def check_run_id(run_id: str | None) -> None:
    """Refuse a run id that could not name a directory or a leg.

    Raises:
        InputError: It is not one.
    """
    if run_id is not None and not _RUN_ID.fullmatch(run_id):
        raise InputError(
            "is not a run id",
            where=f"--run-id {run_id}",
            remedy=f"use letters, digits and . _ : -, at most {_LONGEST_RUN_ID}",
        )


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


def _records(finished: _Finished) -> tuple[RunRecord, RunRecord]:
    """The records, degraded when live state changed."""
    off, on = finished.off.record, finished.on.record
    changed = liveproof.degradation(finished.live.proof)
    if changed is not None:
        return degrade_record(off, changed), degrade_record(on, changed)
    return off, on


def _scorecard(finished: _Finished, records: tuple[RunRecord, RunRecord]) -> ContextScorecard:
    request, ready, suite = finished.request, finished.ready, finished.ready.suite
    off, on = records
    rows = paired_cases(off, on, excerpt=_excerpts(finished, records))
    block, delta = pairing(off, on, suite.suite.scoring)
    return ContextScorecard(
        schema_version=1,
        suite_id=suite.suite.id,
        suite_path=suite.path,
        generated_at=clock.stamp(request.surroundings.epoch),
        context_off=leg_summary(off, "context_off", ready.roots[OFF].root.entries),
        context_on=leg_summary(on, "context_on", ready.roots[ON].root.entries),
        aggregate_delta=delta,
        per_case=rows,
        run_id=finished.run_id,
        pairing=block,
        resolution=resolution([row.score_delta for row in rows if row.score_delta is not None]),
        controls=Controls(
            mode=request.controls,
            null_check=request.null_check,
            legs=2,
            replicates=1,
            extra_replicates=0,
            cases=(),
            trace=TraceSummary(state="unavailable", detail="not_traced", granularity=None),
            sentinels=(),
        ),
        attribution=Attribution(mode="none", units_total=0, units=(), ablation_legs=0, cases=()),
        inputs=_inputs(ready),
        integrity=_integrity(finished),
        warnings=(
            *liveproof.warnings(finished.live.proof),
            *ready.warnings,
            *_root_warnings(request, ready),
        ),
    )


def _root_warnings(request: RunRequest, ready: Prepared) -> tuple[str, ...]:
    return () if request.null_check else helpful_in_off(ready.roots[OFF], ready.roots[ON])


def _excerpts(finished: _Finished, records: Sequence[RunRecord]) -> Excerpt:
    holdout = finished.ready.suite.suite.is_holdout
    cases = {(record.leg, case.case_id): case for record in records for case in record.case_results}

    def excerpt(leg: str, case_id: str, stream: str) -> str | None:
        case = cases[leg, case_id]
        record = case.stdout if stream == "stdout" else case.stderr
        if holdout or record is None:
            return None
        if record.path is None:
            return ""
        data = finished.evidence.head(record.path, _EXCERPT_BYTES).decode("utf-8", "replace")
        return "".join(c if c.isprintable() or c == "\n" else "\ufffd" for c in data)

    return excerpt


def _inputs(ready: Prepared) -> Inputs:
    session = ready.session
    info = session.engine.info()
    return Inputs.model_validate(
        {
            "suite_sha256": ready.suite.sha256,
            "workspace_sha256": session.stage.workspace_sha256,
            "workspace_mode": legs.workspace_mode(ready),
            "image": session.image.reference,
            "image_id": session.image.id,
            "agent_sha256": session.stage.agent_sha256,
            "hook_environment_sha256": digest(ready.hooks.fingerprint()),
            "oci_runtime": session.runtime or info.default_runtime,
            "engine": f"docker {info.version}",
            "runner_version": __version__,
        }
    )


def _integrity(finished: _Finished) -> Integrity:
    ready, outcomes, proof = finished.ready, finished.outcomes, finished.live.proof
    session = ready.session
    hooks = hooks_evidence(ready, outcomes)
    refused = [item.refusal for item in ready.roots.values() if item.refusal]
    sandbox = [line for outcome in outcomes for line in outcome.problems]
    problems = (*liveproof.problems(proof), *refused, *sandbox)
    seen = [outcome.inside for outcome in outcomes if outcome.inside]
    verdict: Literal["clean", "violated", "unknown"] = "clean"
    if problems:
        verdict = "violated"
    elif any(outcome.containers and outcome.inside is None for outcome in outcomes):
        # A container that never reported from inside leaves its sandbox unshown.
        verdict = "unknown"
    return Integrity(
        verdict=verdict,
        live_state=proof,
        sandbox=SandboxProof(
            containers=len(session.readbacks),
            differences=sum(len(item.differences) for item in session.readbacks),
            network="none",
            interfaces=tuple(sorted({name for item in seen for name in item.interfaces})),
            capabilities=tuple(sorted({item.case_capabilities for item in seen})),
            no_new_privs=bool(seen) and all(item.no_new_privs for item in seen),
            profile_sha256=profile_digest(item.profile for item in session.readbacks),
        ),
        hooks=HooksProof(
            names=tuple(sorted(hooks.host)),
            dropped=hooks.dropped,
            equal_in_both_legs=_equal_hooks(hooks),
            preserved=all(leg.preserved for leg in hooks.legs),
            directory_sha256=hooks.directory.sha256 if hooks.directory else None,
            hooks=hooks.directory.hooks if hooks.directory else (),
            receipts_equal=_equal_receipts(hooks),
        ),
        problems=problems,
    )


def _equal_hooks(hooks: HooksEvidence) -> bool:
    """Equal but for the variables that make the legs what they are."""
    legs_seen = [
        {k: v for k, v in (leg.inside_at_start or {}).items() if k != "AO_CONTEXT_VARIANT"}
        for leg in hooks.legs
    ]
    return all(item == legs_seen[0] for item in legs_seen)


def _equal_receipts(hooks: HooksEvidence) -> bool | None:
    """Whether hooks completed and ended the same way around every case that can be compared."""
    cases = hooks.directory.cases if hooks.directory else ()
    compared = [case for case in cases if case.equal is not None]
    return all(case.equal and case.complete for case in compared) if compared else None


class _Written(NamedTuple):
    """Canonical bytes of what was written: the scorecard, and the record of each variant."""

    scorecard: bytes
    records: dict[str, bytes]


def _write(
    finished: _Finished, scorecard: ContextScorecard, records: Sequence[RunRecord]
) -> _Written:
    from runner.report.html import render_html
    from runner.report.junit import render_junit
    from runner.report.markdown import render_summary

    evidence = finished.evidence
    legs.write_evidence(
        evidence,
        finished.ready,
        finished.outcomes,
        finished.live,
        scorecard.integrity.problems,
    )
    written = {
        record.variant: evidence.write("eval-run.v1", f"legs/{record.leg}/record.json", record)
        for record in records
    }
    card = evidence.write("context-scorecard.v1", "scorecard.json", scorecard)
    evidence.write_text("report.html", render_html(scorecard))
    evidence.write_text("junit.xml", render_junit(scorecard))
    evidence.write_text("summary.md", render_summary(scorecard))
    return _Written(card, written)


def _copies(request: RunRequest, written: _Written) -> None:
    """Copies under the names that the format's first command used."""
    if request.delta_out is not None:
        write_atomic(request.delta_out, written.scorecard)
    if request.out is not None:
        for variant, data in written.records.items():
            side = variant.replace("_", "-")
            path = request.out.with_name(f"{request.out.stem}-{side}{request.out.suffix}")
            write_atomic(path, data)
