"""`ao-eval schema`."""

from __future__ import annotations

from pathlib import Path

import click

from runner.contracts import registry
from runner.errors import InputError


@click.command(
    name="schema", help="List the JSON Schemas, print one, or check the files of a folder."
)
@click.argument("name", required=False)
@click.option("--check", "check", type=click.Path(path_type=Path), help="Fail if a file differs.")
@click.option("--write", "write", type=click.Path(path_type=Path), help="Write all files there.")
def command(name: str | None, check: Path | None, write: Path | None) -> None:
    """Schemas are generated from the model; the files are checked in and shipped."""
    if write is not None:
        write.mkdir(parents=True, exist_ok=True)
        for item in registry.CONTRACTS:
            (write / registry.file_name(item)).write_text(registry.generate(item), encoding="utf-8")
    elif check is not None:
        _check(check)
    elif name is not None:
        click.echo(registry.generate(_named(name)), nl=False)
    else:
        for item in registry.CONTRACTS:
            click.echo(item.name)


def _named(name: str) -> registry.Contract:
    for item in registry.CONTRACTS:
        if name in {item.name, item.name.rpartition(".")[0], registry.file_name(item)}:
            return item
    raise InputError(f"no schema {name!r}", remedy="`ao-eval schema` lists them")


def _check(folder: Path) -> None:
    wanted = {registry.file_name(item): registry.generate(item) for item in registry.CONTRACTS}
    for file, text in wanted.items():
        path = folder / file
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            raise InputError(
                "is not what the model generates",
                where=str(path),
                remedy=f"run `ao-eval schema --write {folder}`",
            )
    for path in folder.glob("*.schema.json"):
        if path.name not in wanted:
            raise InputError("belongs to no contract", where=str(path), remedy="remove it")
