"""One leg of a suite, and its run record."""

from __future__ import annotations

import time
from dataclasses import dataclass
from pathlib import Path

from runner.app import clock, legs
from runner.app.comparison import check_run_id, default_run_id
from runner.app.evidence import Evidence, hooks_evidence, sandbox_evidence
from runner.app.legs import Job
from runner.app.prepare import Prepared, open_bench, prepared
from runner.app.request import RunRequest
from runner.app.roots import default_root
from runner.core import liveproof
from runner.core.canon import canonical, document
from runner.core.confine import HOME
from runner.core.degrade import degrade_record
from runner.core.exitcode import Wanted, of_record
from runner.core.plan import LegRequest, supported_variants
from runner.errors import InputError
from runner.host.atomic import write_atomic
from runner.model.leg import Axis, Variant
from runner.model.record import RunRecord
from runner.report.progress import Listener


@dataclass(frozen=True)
class SingleRun:
    """What the command found.

    Attributes:
        record: The run record.
        document: The same as canonical JSON.
        directory: Evidence directory.
        notices: Path, time and writer of changes of live state: to be told first.
        problems: Integrity problems, worst first.
        kept: Lines that say how to enter a kept container.
        exit_code: See the README.
    """

    record: RunRecord
    document: str
    directory: Path
    notices: tuple[str, ...]
    problems: tuple[str, ...]
    kept: tuple[str, ...]
    exit_code: int


def run_suite(request: RunRequest, listener: Listener) -> SingleRun:
    """Run one leg.

    Args:
        request: What was asked for; `variant` None runs without a context root.
        listener: Who is told while it runs.
    """
    (suite_path,) = request.suites
    if suite_path.is_dir():
        raise InputError("is a folder", where=str(suite_path), remedy="name one suite file")
    check_run_id(request.run_id)
    if request.out is not None and not request.out.resolve().parent.is_dir():
        raise InputError("its folder does not exist", where=f"--out {request.out}")
    variant = request.variant or Variant.NONE.value
    rooted = variant in supported_variants(Axis.CONTEXT) and variant != Variant.NONE
    roots = {}
    if rooted:
        roots[variant] = request.agents_dir or default_root(suite_path, variant)
    with prepared(request, open_bench(request), suite_path, roots) as ready:
        run_id = request.run_id or default_run_id(ready.suite.suite.id)
        name = f"{clock.compact(time.time())}-{run_id}"
        with Evidence(request.out_dir, name) as evidence:
            t0 = clock.now()
            item = ready.roots.get(variant)
            wanted_leg = LegRequest(
                variant, item.root if item else None, item.degraded if item else None
            )
            job = Job(legs.plan(request, ready, wanted_leg, run_id), item.staged if item else None)
            (leg,) = legs.run(ready, (job,), evidence, listener)
            live = legs.live_state(ready, t0)
            record = leg.record
            changed = liveproof.degradation(live.proof)
            if changed is not None:
                record = degrade_record(record, changed)
            refused = [item.refusal for item in ready.roots.values() if item.refusal]
            problems = (*liveproof.problems(live.proof), *refused, *leg.outcome.problems)
            evidence.write("live-state.v1", "evidence/live-state.json", live)
            # There is no scorecard to say the rest.
            sandbox = sandbox_evidence(ready, (leg.outcome,)).model_copy(
                update={"problems": problems}
            )
            evidence.write("sandbox.v1", "evidence/sandbox.json", sandbox)
            hooks = hooks_evidence(ready, (leg.outcome,))
            evidence.write("hooks.v1", "evidence/hooks.json", hooks)
            evidence.write("eval-run.v1", f"legs/{record.leg}/record.json", record)
            directory = evidence.finish()
        kept = _how_to_enter(ready)
    text = canonical(document(record))
    if request.out is not None:
        write_atomic(request.out, text)
    wanted = Wanted(valid=request.gates.require_valid, passing=request.gates.require_pass)
    return SingleRun(
        record=record,
        document=text.decode().rstrip("\n"),
        directory=directory,
        notices=liveproof.notices(live),
        problems=problems,
        kept=kept,
        exit_code=of_record(record, clean=not problems, wanted=wanted),
    )


def _how_to_enter(ready: Prepared) -> tuple[str, ...]:
    """The command that enters a kept container as the case user."""
    uid, gid = ready.session.case_user
    lines = []
    for name in ready.session.kept:
        lines.append(
            f"docker exec -it -u {uid}:{gid} -w {ready.session.stage.suite_dir} {name} bash"
        )
        lines.append(f"# HOME is {HOME}; remove the container with: ao-eval reap")
    return tuple(lines)
