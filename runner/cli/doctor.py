"""`ao-eval doctor`."""

from __future__ import annotations

import json

import click

from runner.cli import options
from runner.errors import PrerequisiteError


@click.command(name="doctor", help="Report whether this machine can run legs; changes nothing.")
@click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
def command(as_json: bool) -> int:
    """A line for each thing; exit 3 if something a run needs is missing."""
    from runner.app.doctor import examine

    checks = examine(options.surroundings())
    missing = any(check.state == "missing" for check in checks)
    if as_json:
        click.echo(json.dumps([check._asdict() for check in checks], ensure_ascii=False))
    else:
        for check in checks:
            click.echo(f"{check.state:>7}  {check.name:<16} {check.found}")
    return PrerequisiteError.exit_code if missing else 0
