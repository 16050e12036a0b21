"""`ao-eval reap`."""

from __future__ import annotations

from pathlib import Path

import click

from runner import settings
from runner.cli import options


@click.command(
    name="reap",
    help="""Remove what dead runs left: containers, volumes, staged folders, unfinished evidence.

    Live runs are left alone.""",
)
@options.option(
    "--out-dir",
    type=click.Path(path_type=Path),
    default=Path("runs"),
    help="Where unfinished evidence directories are looked for.",
)
def command(out_dir: Path) -> int:
    """Reap, and say what was removed."""
    from runner.app.reap import reap
    from runner.engine.docker_engine import DockerEngine

    environment = settings.environment()
    engine = DockerEngine.connect(environment)
    done = reap(engine, settings.staging_base(environment), [out_dir])
    click.echo(
        f"removed {done.containers} containers, {done.volumes} volumes, {done.directories} folders"
        + (f"; left {done.live} objects of live runs" if done.live else "")
    )
    for line in done.failures:
        click.echo(f"ao-eval: could not remove {line}", err=True)
    return 5 if done.failures else 0
