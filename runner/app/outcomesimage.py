"""The outcomes image: our package and its dependencies over the leg image.

Dependencies are downloaded beforehand, by hash, into a wheelhouse; both images are then built
without a network. The image of the package itself is rebuilt in a second when the package changes.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from importlib import resources
from pathlib import Path

from runner.app.images import Built, build, image_recipe
from runner.app.oneshot import run_once
from runner.core.confine import LABEL, plain_container
from runner.engine.docker_engine import DockerEngine
from runner.errors import PrerequisiteError

_HASHED = 12
_PACKAGE_SUFFIXES = (".py", ".json", ".toml", ".txt")


def lock_file() -> Path:
    """The hash-checked lock of the runtime dependencies, of the package or of the checkout."""
    packaged = resources.files("runner").joinpath("requirements.lock")
    if isinstance(packaged, Path) and packaged.is_file():
        return packaged
    return Path(__file__).parents[2] / "requirements.lock"


def outcomes_reference(leg: str) -> str:
    """Tag of the outcomes image of this very package over a leg image."""
    digest = hashlib.sha256(f"{_dependencies_reference(leg)}\0".encode())
    package = Path(str(resources.files("runner")))
    for path in sorted(_package_files(package)):
        content = hashlib.sha256(path.read_bytes()).hexdigest()
        digest.update(f"{path.relative_to(package)}\0{content}\0".encode())
    return f"ao-eval/outcomes:{digest.hexdigest()[:_HASHED]}"


def _dependencies_reference(leg: str) -> str:
    digest = hashlib.sha256(f"{leg}\0".encode())
    digest.update(lock_file().read_bytes())
    for path in sorted(image_recipe("outcomes").iterdir()):
        digest.update(path.read_bytes())
    return f"ao-eval/outcomes-dependencies:{digest.hexdigest()[:_HASHED]}"


def _package_files(package: Path) -> list[Path]:
    return [
        path
        for path in package.rglob("*")
        if path.is_file() and path.suffix in _PACKAGE_SUFFIXES and "__pycache__" not in path.parts
    ]


def build_outcomes(
    engine: DockerEngine, base_image: str | None, say: Callable[[str], None]
) -> Built:
    """Build the outcomes image, and what it stands on, unless they are there.

    Raises:
        PrerequisiteError: The dependencies cannot be downloaded, or a build failed.
    """
    leg = build(engine, base_image, say)
    reference = outcomes_reference(leg.reference)
    present = engine.image(reference)
    if present is not None:
        return Built(reference, present.id, fresh=False)
    dependencies = _dependencies_reference(leg.reference)
    if engine.image(dependencies) is None:
        _build_dependencies(engine, leg.reference, dependencies, say)
    with tempfile.TemporaryDirectory(prefix="ao-eval-image-") as folder:
        context = Path(folder)
        shutil.copy(image_recipe("outcomes") / "Dockerfile", context)
        package = Path(str(resources.files("runner")))
        for path in _package_files(package):
            target = context / "runner" / path.relative_to(package)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        built = engine.build(
            str(context),
            reference,
            arguments={"BASE_IMAGE": dependencies},
            labels={f"{LABEL}.image": "outcomes"},
        )
    say(f"built {reference} ({built})")
    return Built(reference, built, fresh=True)


def _build_dependencies(
    engine: DockerEngine, leg: str, reference: str, say: Callable[[str], None]
) -> None:
    version = _python_of(engine, leg)
    say(f"building {reference}: dependencies for Python {version} from a wheelhouse, once")
    with tempfile.TemporaryDirectory(prefix="ao-eval-image-") as folder:
        context = Path(folder)
        shutil.copy(image_recipe("outcomes") / "Dockerfile.dependencies", context / "Dockerfile")
        with tempfile.TemporaryDirectory(prefix="ao-eval-wheels-") as wheelhouse:
            _install(context / "site", Path(wheelhouse), version)
        engine.build(
            str(context),
            reference,
            arguments={"BASE_IMAGE": leg},
            labels={f"{LABEL}.image": "outcomes-dependencies"},
        )


def _python_of(engine: DockerEngine, leg: str) -> str:
    """`3.11`: the Python that the dependencies must fit."""
    image = engine.image(leg)
    if image is None:
        raise PrerequisiteError("image is not present", where=leg)
    program = "import sys; print('.'.join(map(str, sys.version_info[:2])))"
    spec = plain_container(
        name=f"{LABEL}-python-{hashlib.sha256(leg.encode()).hexdigest()[:8]}",
        image_id=image.id,
        entrypoint=("python3", "-I", "-S", "-c", program),
        runtime=engine.info().default_runtime or None,
    )
    printed = run_once(engine, spec, image, api=engine.api, seconds=60)
    version = printed.stdout.decode("ascii", "replace").strip()
    if printed.exit_code != 0 or not version.replace(".", "").isdigit():
        raise PrerequisiteError("does not run python3", where=leg)
    return version


def _install(site: Path, wheelhouse: Path, version: str) -> None:
    """Download every dependency for that Python by hash, then install from what was downloaded."""
    pip = [sys.executable, "-m", "pip", "--quiet"]
    common = ["--require-hashes", "--no-deps", "--only-binary", ":all:", "-r", str(lock_file())]
    common += ["--python-version", version]
    _pip([*pip, "download", "--dest", str(wheelhouse), *common])
    offline = ["--no-index", "--find-links", str(wheelhouse)]
    _pip([*pip, "install", "--target", str(site), "--no-compile", *offline, *common])


def _pip(command: list[str]) -> None:
    done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines()
        raise PrerequisiteError(
            f"pip cannot make the wheelhouse: {lines[-1] if lines else 'no output'}",
            where="outcomes image",
            remedy="a package index is needed when the image is built",
        )
