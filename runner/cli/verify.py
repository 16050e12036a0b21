"""`ao-eval verify`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from runner.cli import options

if TYPE_CHECKING:
    from runner.model.verification import Verification

REJECTED = 5
_LONGEST = 4096


@click.command(
    name="verify",
    help="""Check the evidence directory DIR of a comparison: offline, nothing of it is executed.

    Every digest, judgement, score, pair, statistic and rendering is derived again from what was
    stored. Exit 5 when anything differs. With --key the signature must be of that key; without,
    only consistency is shown.""",
)
@click.argument("directory", metavar="DIR", type=click.Path(path_type=Path))
@options.option(
    "--key",
    type=click.Path(path_type=Path),
    metavar="PUB",
    envvar="AO_EVAL_VERIFY_KEY",
    help="Public key, Ed25519, PEM; an unsigned or otherwise signed directory is rejected.",
)
@options.option(
    "--suite",
    type=click.Path(path_type=Path),
    metavar="FILE",
    envvar=None,
    help="The suite, where it is a private holdout: evidence does not hold those.",
)
@options.option("--json", "as_json", is_flag=True, envvar=None, help="One JSON document on stdout.")
def command(directory: Path, key: Path | None, suite: Path | None, *, as_json: bool) -> int:
    """Print every failed check, then what was shown and what was not."""
    from runner.app.verify import verify
    from runner.attest.keys import load_public_key
    from runner.core.canon import canonical, document

    public = None if key is None else load_public_key(key)
    found = verify(directory, key=public, suite=suite)
    if as_json:
        click.echo(canonical(document(found)), nl=False)
    else:
        for line in _lines(found):
            click.echo(line)
    return REJECTED if found.verdict == "rejected" else 0


def _lines(found: Verification) -> list[str]:
    from runner.core.jsonvalue import printable

    lines = [
        f"{item.check}: {item.where}: {item.problem}" if item.where
        else f"{item.check}: {item.problem}"
        for item in found.problems
    ]  # fmt: skip
    lines += [_verdict(found), "", "shown:"]
    lines += [
        f"  {item.shows} ({item.looked_at})" for item in found.checks if item.state == "passed"
    ]
    lines += ["not shown:"]
    lines += [f"  {item.check}: {item.shows}" for item in found.checks if item.state != "passed"]
    lines += [f"  {line}" for line in found.not_shown]
    return [printable(line, _LONGEST) for line in lines]


def _verdict(found: Verification) -> str:
    if found.verdict == "rejected":
        count = len(found.problems)
        return f"REJECTED: {found.directory}: {count} problem{'s' if count != 1 else ''}"
    if found.authorship == "shown":
        return f"accepted: {found.directory}: signed by key {found.key_id}"
    return f"accepted: {found.directory}: consistency only"
