"""`ao-eval validate`."""

from __future__ import annotations

from pathlib import Path

import click

from runner.errors import AoEvalError

_LONGEST = 4096
"""Characters of a line that a file name can make arbitrarily long."""


@click.command(
    name="validate", help="Check suites and documents of ours; exit 2 if one is not valid."
)
@click.argument("files", nargs=-1, required=True, type=click.Path(path_type=Path))
def command(files: tuple[Path, ...]) -> int:
    """One line for each file; every file is checked, whatever came before."""
    from runner.app.validate import validate
    from runner.core.jsonvalue import printable

    code = 0
    for file in files:
        name = printable(str(file), _LONGEST)
        try:
            valid = validate(file)
        except AoEvalError as error:
            click.echo(f"ao-eval: {printable(error.line(), _LONGEST)}", err=True)
            code = error.exit_code
            continue
        click.echo(f"{name}: valid {valid.contract}")
        for note in valid.notes:
            click.echo(f"{name}: note: {note}", err=True)
    return code
