"""`ao-eval reap`."""

from __future__ import annotations

import click

from runner import settings


@click.command(
    name="reap",
    help="Remove containers, volumes and staged folders of dead runs; live runs are left alone.",
)
def command() -> int:
    """Reap, and say what was removed."""
    from runner.app.reap import reap
    from runner.engine.docker_engine import DockerEngine

    environment = settings.environment()
    engine = DockerEngine.connect(environment)
    done = reap(engine, settings.staging_base(environment))
    click.echo(
        f"removed {done.containers} containers, {done.volumes} volumes, {done.directories} folders"
        + (f"; left {done.live} objects of live runs" if done.live else "")
    )
    for line in done.failures:
        click.echo(f"ao-eval: could not remove {line}", err=True)
    return 5 if done.failures else 0
