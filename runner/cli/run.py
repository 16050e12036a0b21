"""`ao-eval run`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from runner.cli import options, output
from runner.errors import InputError

KEEP_SECONDS = 3600


@click.command(
    name="run",
    help="""Run one leg of SUITE and print its run record.

    Without --variant the leg has no context root at all.""",
)
@click.argument("suite", type=click.Path(path_type=Path))
@options.option("--variant", metavar="NAME", help="context_on or context_off.")
@options.option(
    "--agents-dir",
    type=click.Path(path_type=Path),
    metavar="DIR",
    help="Context root; the default is the suite's fixture for the variant.",
)
@options.option("--case", "cases", multiple=True, metavar="ID", help="Only this case.")
@options.option(
    "--keep", is_flag=True, help="Leave the container of the one --case for inspection."
)
@options.option(
    "--out", type=click.Path(path_type=Path), metavar="FILE", help="A copy of the run record."
)
@options.option("--require-valid", is_flag=True, help="Exit 4 if any case is degraded.")
@options.shared
def command(suite: Path, **given: Any) -> int:
    """Run, print, and say by the exit code what was found."""
    from runner.app.request import Gates
    from runner.app.run_suite import run_suite

    cases: tuple[str, ...] = tuple(given["cases"])
    if given["keep"] and len(cases) != 1:
        raise InputError("--keep needs exactly one --case")
    if given["agents_dir"] is not None and given["variant"] is None:
        raise InputError("--agents-dir needs --variant context_on or context_off")
    request = options.request(
        (suite,),
        given,
        Gates(require_valid=given["require_valid"], require_pass=given["require_pass"]),
        variant=given["variant"],
        agents_dir=given["agents_dir"],
        out=given["out"],
        only=cases,
        keep_seconds=KEEP_SECONDS if given["keep"] else 0,
    )
    with output.Screen(quiet=given["quiet"], verbose=given["verbose"]) as screen:
        outcome = run_suite(request, screen.progress)
    screen.show_record(outcome, as_json=given["as_json"])
    return outcome.exit_code
