"""`ao-eval images build`."""

from __future__ import annotations

import click

from runner import settings


@click.group(name="images", help="Build the images.")
def command() -> None:
    """Commands on images."""


@command.command(name="build", help="Build the leg image unless it is there; prints its reference.")
@click.option(
    "--base-image",
    envvar=("AO_EVAL_BASE_IMAGE", "BASE_IMAGE"),
    help="Image to build on; without it a root file system is made with mmdebstrap.",
)
def build(base_image: str | None) -> None:
    """Build, and print reference and id."""
    from runner.app import images
    from runner.engine.docker_engine import DockerEngine

    engine = DockerEngine.connect(settings.environment())
    built = images.build(
        engine, base_image or None, lambda line: click.echo(f"ao-eval: {line}", err=True)
    )
    click.echo(f"{built.reference} {built.image_id}")
