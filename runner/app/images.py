"""Build the images once; their tags are digests of what they are made from."""

from __future__ import annotations

import hashlib
import platform
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from importlib import resources
from pathlib import Path
from typing import NamedTuple

from runner.core.confine import LABEL
from runner.engine.docker_engine import DockerEngine
from runner.errors import EngineFailure, PrerequisiteError
from runner.model.container import ImageInfo

REPOSITORY = "ao-eval/leg"
_HASHED = 12


class Built(NamedTuple):
    """An image that is there now.

    Attributes:
        reference: `repository:tag`.
        image_id: Its id.
        fresh: True when it was built just now.
    """

    reference: str
    image_id: str
    fresh: bool


def image_recipe(name: str) -> Path:
    """Folder with the recipe of an image, of the package or of the checkout."""
    packaged = resources.files("runner").joinpath("images", name)
    if isinstance(packaged, Path) and packaged.is_dir():
        return packaged
    return Path(__file__).parents[2] / "images" / name


def leg_reference(base_image: str | None = None) -> str:
    """Tag of the leg image of this version: a digest of its recipe, architecture and base."""
    digest = hashlib.sha256(f"{platform.machine()}\0{base_image or ''}\0".encode())
    for path in sorted(image_recipe("leg").iterdir()):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.name}\0{content}\0".encode())
    return f"{REPOSITORY}:{digest.hexdigest()[:_HASHED]}"


def build(engine: DockerEngine, base_image: str | None, say: Callable[[str], None]) -> Built:
    """Build the leg image unless it is there.

    Args:
        engine: The engine that gets the image.
        base_image: Image to build on; None makes a root file system with mmdebstrap.
        say: Called with a line now and then.

    Raises:
        PrerequisiteError: The base image or mmdebstrap is missing.
    """
    reference = leg_reference(base_image)
    present = engine.image(reference)
    if present is not None:
        return Built(reference, present.id, fresh=False)
    labels = {f"{LABEL}.image": "leg", f"{LABEL}.recipe": reference.rpartition(":")[2]}
    if base_image is not None:
        say(f"building {reference} on {base_image}")
        arguments = {"BASE_IMAGE": base_image}
        try:
            built = engine.build(
                str(image_recipe("leg")),
                reference,
                arguments=arguments,
                labels=labels,
                network=True,
            )
        except EngineFailure as error:
            raise PrerequisiteError(error.summary, where=f"base image {base_image}") from error
    else:
        say(f"building {reference} with mmdebstrap; this takes a minute, once")
        with tempfile.TemporaryDirectory(prefix="ao-eval-image-") as folder:
            archive = Path(folder) / "rootfs.tar"
            _make_rootfs(archive, say)
            built = engine.import_rootfs(str(archive), reference, labels=labels)
    say(f"built {reference} ({built})")
    return Built(reference, built, fresh=True)


def _make_rootfs(archive: Path, say: Callable[[str], None]) -> None:
    script = image_recipe("leg") / "make-rootfs"
    tail: list[str] = []
    with subprocess.Popen(
        ["bash", str(script), str(archive)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
    ) as process:
        for line in _lines(process.stdout or iter(())):
            tail = [*tail[-4:], line]
            say(line.removeprefix("ao-eval: "))
    if process.returncode != 0 or not archive.is_file():
        raise PrerequisiteError(
            f"make-rootfs exited {process.returncode}: {' | '.join(tail) or 'no output'}",
            where="leg image",
            remedy="install mmdebstrap (Debian/Ubuntu), or name a base with --base-image",
        )


def _lines(stream: Iterator[str]) -> Iterator[str]:
    return (line.rstrip() for line in stream if line.strip())


BASE_VARIABLES = ("AO_EVAL_BASE_IMAGE", "BASE_IMAGE")
"""Variables that name the base image, for building and for finding what was built."""


def base_image(environment: Mapping[str, str]) -> str | None:
    """Base image that the environment names; None for a root file system made here."""
    return next((environment[name] for name in BASE_VARIABLES if environment.get(name)), None)


def require(engine: DockerEngine, reference: str | None, base: str | None) -> ImageInfo:
    """The image that legs will run.

    Args:
        engine: The engine.
        reference: What the user named; None for the leg image of this version.
        base: Image that the leg image was built on; None for a root file system made here.

    Raises:
        PrerequisiteError: It is not present; it is never pulled.
    """
    wanted = reference or leg_reference(base)
    image = engine.image(wanted)
    if image is None:
        remedy = "pull or build it first" if reference else "run `ao-eval images build`"
        raise PrerequisiteError("image is not present", where=wanted, remedy=remedy)
    return image
