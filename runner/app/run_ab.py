"""The main job: both legs of a context A/B, and the scorecard of what they showed."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from runner import __version__
from runner.app import clock, legs
from runner.app.attest import attest, signing_key
from runner.app.evidence import (
    Evidence,
    context_reads,
    context_roots,
    hooks_evidence,
    sandbox_evidence,
)
from runner.app.legs import LegResult
from runner.app.prepare import Bench, Prepared, open_bench, prepared
from runner.app.request import RunRequest
from runner.app.roots import default_root, helpful_in_off
from runner.app.rounds import Rounds
from runner.app.suites import find_suites, load_suite
from runner.attest.keys import SigningKey
from runner.core import liveproof
from runner.core.assemble import EXCERPT_BYTES, Observed, as_reported, assemble, excerpts
from runner.core.canon import canonical, digest
from runner.core.confine import is_gvisor
from runner.core.controls import Rules
from runner.core.exitcode import Wanted, highest, of_scorecard
from runner.core.pair import Excerpt
from runner.core.stats import adjust
from runner.core.trials import OFF, ON
from runner.errors import InputError
from runner.host.atomic import write_atomic
from runner.model.liveproof import LiveStateEvidence, LiveStateProof
from runner.model.scorecard import ContextScorecard, Inputs
from runner.report.progress import Listener

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
    key = signing_key(request.sign_key)
    bench = open_bench(request)
    results = tuple(_compare(request, bench, suite, listener, key=key) for suite in suites)
    wanted = Wanted(
        delta=request.gates.require_delta,
        valid=request.gates.require_valid,
        passing=request.gates.require_pass,
    )
    cards = [result.canonical.decode().rstrip("\n") for result in results]
    return Comparison(
        results=results,
        document=cards[0] if len(cards) == 1 else _together(results, cards),
        exit_code=highest([of_scorecard(result.scorecard, wanted) for result in results]),
    )


def _together(results: Sequence[Compared], cards: Sequence[str]) -> str:
    """The document of several suites; a scorecard's bytes do not depend on the others."""
    head = (
        canonical([item._asdict() for item in adjust([r.scorecard for r in results])])
        .decode()
        .rstrip("\n")
    )
    return f'{{"holm":{head},"runs":[{",".join(cards)}]}}'


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


def _compare(
    request: RunRequest,
    bench: Bench,
    suite_path: Path,
    listener: Listener,
    *,
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
        inputs=_inputs(ready),
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


def _copies(request: RunRequest, written: _Written) -> None:
    """Copies under the names that the format's first command used."""
    if request.delta_out is not None:
        write_atomic(request.delta_out, written.scorecard)
    if request.out is not None:
        for variant, data in written.records.items():
            side = variant.replace("_", "-")
            path = request.out.with_name(f"{request.out.stem}-{side}{request.out.suffix}")
            write_atomic(path, data)
