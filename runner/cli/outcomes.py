"""`ao-eval outcomes compile|ingest|hash|ledger`."""

from __future__ import annotations

import os
from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from runner.cli import options
from runner.errors import InputError, PrerequisiteError

if TYPE_CHECKING:
    from runner.app.outcomes import Shown
    from runner.ledger.account import Account
    from runner.model.burn import BurnHead

_FILE: Any = click.Path(path_type=Path)


@click.group(
    name="outcomes",
    help="""Grade against a rubric without letting a holdout answer leave the machine.

    compile and ingest work in a container of their own, without a network.""",
)
def command() -> None:
    """Commands on outcomes."""


def _named(path: str | None, option: str) -> Path | None:
    """A path that was given; an unset variable must not look like an option left out."""
    if path is None:
        return None
    if not path:
        raise InputError("empty; an unset variable must not switch a gate off", where=option)
    return Path(path)


@contextmanager
def _warned() -> Generator[None]:
    """What a command would have warned of is shown before its refusal, too."""
    from runner.app.outcomesbox import Refused

    try:
        yield
    except Refused as error:
        _warn(error.warnings)
        raise


def _warn(lines: Iterable[str]) -> None:
    for line in lines:
        click.echo(f"ao-eval: WARN {line}", err=True)


def _copy(out: str | None, *inputs: Path | None) -> Path | None:
    """Where the copy goes, looked at before anything is done: a bad place must cost no burn."""
    path = _named(out, "--out")
    if path is None:
        return None
    folder = path.parent
    if not folder.is_dir() or not os.access(folder, os.W_OK | os.X_OK):
        raise InputError("its folder is missing or cannot be written", where=f"--out {path}")
    if path.is_symlink() or (path.exists() and not path.is_file()):
        # /dev/stdout, for one, would be replaced by a file.
        raise InputError("not a regular file", where=f"--out {path}")
    target = os.path.realpath(path)
    if any(item is not None and os.path.realpath(item) == target for item in inputs):
        raise InputError("would overwrite an input", where=f"--out {path}")
    return path


def _show(shown: Shown, out: Path | None) -> int:
    from runner.host.atomic import write_atomic

    _warn(shown.warnings)
    click.echo(shown.document)
    for line in shown.notes:
        click.echo(f"ao-eval: {line}", err=True)
    if out is not None:
        try:
            write_atomic(out, f"{shown.document}\n".encode())
        except OSError as error:
            raise PrerequisiteError(
                f"the copy was not written: {error.strerror}", where=f"--out {out}"
            ) from error
    return shown.exit_code


@command.command(name="compile", help="Compile INPUT to a rubric that may leave the machine.")
@click.argument("input_file", metavar="INPUT", type=_FILE)
@click.option(
    "--holdout-file", "holdouts", multiple=True, metavar="FILE", help="JSONL with answers."
)
@click.option("--judge-spec", metavar="FILE", help="Recompute the judge content hash from it.")
@click.option("--out", metavar="FILE", help="A copy of the rubric.")
@click.option("--strict", is_flag=True, help="Refuse whatever could not be checked.")
def compile_(
    input_file: Path,
    holdouts: tuple[str, ...],
    judge_spec: str | None,
    out: str | None,
    strict: bool,
) -> int:
    """Compile, and print the rubric as canonical JSON."""
    from runner.app.outcomes import CompileRequest, compile_outcomes

    request = CompileRequest(
        surroundings=options.surroundings(),
        input=input_file,
        holdouts=_holdouts(holdouts),
        judge_spec=_named(judge_spec, "--judge-spec"),
        strict=strict,
    )
    copy = _copy(out, request.input, *request.holdouts, request.judge_spec)
    with _warned():
        shown = compile_outcomes(request)
    return _show(shown, copy)


def _holdouts(paths: tuple[str, ...]) -> tuple[Path, ...]:
    named = (_named(path, "--holdout-file") for path in paths)
    return tuple(path for path in named if path is not None)


_INGEST: tuple[Callable[[Any], Any], ...] = (
    click.argument("score_file", metavar="[SCORE]", required=False),
    click.option("--score", metavar="FILE", help="The score, instead of the argument."),
    click.option("--expect-judge-hash", metavar="HASH", help="Gate 2: hash of the active rubric."),
    click.option("--burn-ledger", metavar="FILE", help="Gate 3: ledger of holdout burns."),
    click.option("--rubric", metavar="FILE", help="The rubric that the score is bound to."),
    click.option("--holdout-file", "holdouts", multiple=True, metavar="FILE", help="JSONL."),
    click.option("--suite", metavar="REF", help="Suite whose holdout was graded."),
    click.option("--split", metavar="dev|holdout", help="Which split was graded."),
    click.option("--gt-version", metavar="V", help="Ground-truth version."),
    click.option("--threshold", type=float, metavar="T", help="Aggregate that passes."),
    click.option("--bead", metavar="ID", help="Work item, for the manifest."),
    click.option("--manifest-out", metavar="DIR", help="Where the run manifest goes."),
    click.option("--run-id", metavar="ID", help="Run id of the graded run."),
    click.option("--baseline-score", metavar="FILE", help="Earlier score to compare with."),
    click.option("--gate", type=click.Choice(["fail", "warn"]), help="Exit 1 from this band on."),
    click.option("--out", metavar="FILE", help="A copy of the verdict."),
    click.option("--strict", is_flag=True, help="Refuse whatever is not enforced."),
)


def _with_ingest_options(function: Callable[..., int]) -> Callable[..., int]:
    for decorate in reversed(_INGEST):
        function = decorate(function)
    return function


@command.command(name="ingest", help="Map a score to the council verdict, behind the gates.")
@_with_ingest_options
def ingest(score_file: str | None, score: str | None, **given: Any) -> int:
    """Ingest, and print the verdict."""
    from runner.app.outcomes import IngestRequest, ingest_outcomes

    if (score_file is None) == (score is None):
        raise InputError("name one score file, as SCORE or with --score", where="SCORE")
    path = _named(score_file if score is None else score, "SCORE")
    if path is None:
        raise InputError("no score file", where="SCORE")
    ledger = _named(given["burn_ledger"], "--burn-ledger")
    request = IngestRequest(
        surroundings=options.surroundings(),
        score=path,
        stated={
            "judge_hash": given["expect_judge_hash"],
            "suite": given["suite"],
            "split": given["split"],
            "gt_version": given["gt_version"],
            "threshold": given["threshold"],
            "run_id": given["run_id"],
        },
        ledger=ledger,
        rubric=_named(given["rubric"], "--rubric"),
        holdouts=_holdouts(given["holdouts"]),
        baseline=_named(given["baseline_score"], "--baseline-score"),
        bead=given["bead"],
        manifest_out=_named(given["manifest_out"], "--manifest-out"),
        gate=given["gate"],
        strict=given["strict"],
    )
    head = None if ledger is None else Path(f"{ledger}.head")
    inputs = (path, ledger, head, request.rubric, request.baseline, *request.holdouts)
    copy = _copy(given["out"], *inputs)
    with _warned():
        shown = ingest_outcomes(request)
    return _show(shown, copy)


@command.command(name="hash", help="Print the content hash of a judge specification.")
@click.argument("judge_spec", type=_FILE)
def hash_(judge_spec: Path) -> None:
    """Canonicalise and hash."""
    from runner.app.suites import read_bytes
    from runner.core.outcomes.judgehash import judge_hash

    click.echo(judge_hash(read_bytes(judge_spec), judge_spec.name))


@command.group(name="ledger", help="Start, show or verify a burn ledger.")
def ledger() -> None:
    """Commands on burn ledgers."""


@ledger.command(name="init", help="Start a burn ledger; never over an existing file.")
@click.argument("file", type=_FILE)
@click.option("--budget", type=int, metavar="N", help="Burns for each suite and version.")
@click.option("--adopt", is_flag=True, help="Take over a ledger of an older tool.")
def init(file: Path, budget: int | None, adopt: bool) -> None:
    """Start a ledger."""
    from runner.ledger import jsonfile

    _account(jsonfile.init(file, budget=budget, adopt=adopt), file)


@ledger.command(name="show", help="Print budget, head and burns as one JSON document.")
@click.argument("file", type=_FILE)
def show(file: Path) -> None:
    """Show a ledger, verified."""
    import json

    from runner.core.canon import document
    from runner.ledger import jsonfile

    account = jsonfile.show(file)
    plain = {
        "budget": account.budget,
        "head": document(account.head),
        "spent": [item._asdict() for item in account.spent],
        "interrupted": account.interrupted,
    }
    click.echo(json.dumps(plain, indent=2))
    _warn(account.warnings)


@ledger.command(name="verify", help="Recompute the chain and compare it with the head.")
@click.argument("file", type=_FILE)
@click.option(
    "--verdict",
    "verdicts",
    multiple=True,
    metavar="FILE",
    help="A verdict that burned; its head must lie on the chain.",
)
def verify(file: Path, verdicts: tuple[str, ...]) -> None:
    """Verify a ledger; verdicts show what file and head put back together do not."""
    from runner.ledger import jsonfile

    named = (_named(path, "--verdict") for path in verdicts)
    seen = [_head_of(path) for path in named if path is not None]
    _account(jsonfile.verify(file, seen=seen), file)


def _head_of(path: Path) -> BurnHead:
    """Head that a verdict carries."""
    from pydantic import ValidationError

    from runner.app.suites import read_bytes
    from runner.model.verdict import CouncilVerdict

    try:
        verdict = CouncilVerdict.model_validate_json(read_bytes(path))
    except ValidationError:
        raise InputError("no council verdict", where=str(path)) from None
    if verdict.burn_ledger_head is None:
        raise InputError("this verdict burned nothing", where=str(path))
    return verdict.burn_ledger_head


def _account(account: Account, file: Path) -> None:
    _warn(account.warnings)
    burns = f"{account.head.count} burns, budget {account.budget}"
    note = "; the last burn was interrupted, it counts" if account.interrupted else ""
    click.echo(f"{file}: verified: {burns}, head {account.head.sha256}{note}")
