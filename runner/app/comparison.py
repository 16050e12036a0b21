"""What comparisons of either axis share: their outputs, their run ids, what is told of them."""

from __future__ import annotations

import re
import secrets
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from runner import __version__
from runner.app import clock, legs
from runner.app.attest import signing_key
from runner.app.prepare import Bench, Prepared, open_bench
from runner.app.request import RunRequest
from runner.app.suites import find_suites, load_suite
from runner.attest.keys import SigningKey
from runner.core.canon import canonical, digest
from runner.core.exitcode import Wanted, highest, of_scorecard
from runner.core.stats import adjust
from runner.errors import InputError
from runner.host.atomic import write_atomic
from runner.model.scorecard import Inputs
from runner.model.skillscorecard import AnyScorecard
from runner.report.progress import Listener

_LONGEST_RUN_ID = 160
"""Leaves room for the time before it and the leg behind it."""

_RUN_ID = re.compile(rf"[A-Za-z0-9][A-Za-z0-9._:-]{{0,{_LONGEST_RUN_ID - 1}}}")


@dataclass(frozen=True)
class Compared:
    """One suite's comparison and where its evidence lies."""

    scorecard: AnyScorecard
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


CompareSuite = Callable[[RunRequest, Bench, Path, Listener, SigningKey | None], Compared]
"""Compares the legs of one suite."""


def compare_suites(request: RunRequest, listener: Listener, compare: CompareSuite) -> Comparison:
    """Compare every suite that was named, one after the other.

    Args:
        request: What was asked for.
        listener: Who is told while it runs.
        compare: What is done with each suite.

    Raises:
        AoEvalError: Something keeps the comparison from being made at all; see the exit codes.
    """
    suites = find_suites(request.suites)
    _check_outputs(request, suites)
    for suite in suites:
        load_suite(suite)  # a bad suite is refused before any leg of another one runs
    key = signing_key(request.sign_key)
    bench = open_bench(request)
    results = tuple(compare(request, bench, suite, listener, key) for suite in suites)
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


def inputs(ready: Prepared) -> Inputs:
    """Identity of everything that went in but context roots."""
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


def copy_out(request: RunRequest, scorecard: bytes, records: Mapping[str, bytes]) -> None:
    """Write copies under the names that the format's first command used.

    Args:
        request: `--out` and `--delta-out`.
        scorecard: Its canonical bytes.
        records: Variant -> canonical bytes of the record of its first leg.
    """
    if request.delta_out is not None:
        write_atomic(request.delta_out, scorecard)
    if request.out is not None:
        for variant, data in records.items():
            side = variant.replace("_", "-")
            path = request.out.with_name(f"{request.out.stem}-{side}{request.out.suffix}")
            write_atomic(path, data)
