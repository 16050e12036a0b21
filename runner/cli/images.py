"""`ao-eval images build`."""

from __future__ import annotations

import click

from runner import settings


@click.group(name="images", help="Build the images.")
def command() -> None:
    """Commands on images."""


@command.command(name="build", help="Build images unless they are there; prints their references.")
@click.argument("names", nargs=-1, type=click.Choice(["leg", "outcomes"]))
@click.option(
    "--base-image",
    envvar=("AO_EVAL_BASE_IMAGE", "BASE_IMAGE"),
    help="Image to build on; without it a root file system is made with mmdebstrap.",
)
def build(names: tuple[str, ...], base_image: str | None) -> None:
    """Build, and print reference and id of each; without names all of them."""
    from runner.app import images, outcomesimage
    from runner.engine.docker_engine import DockerEngine

    engine = DockerEngine.connect(settings.environment())

    def say(line: str) -> None:
        click.echo(f"ao-eval: {line}", err=True)

    builders = {"leg": images.build, "outcomes": outcomesimage.build_outcomes}
    for name in names or tuple(builders):
        built = builders[name](engine, base_image or None, say)
        click.echo(f"{built.reference} {built.image_id}")
