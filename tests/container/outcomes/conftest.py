"""Fixtures of the outcomes tests: one copy of the package and one image of it for all."""

from __future__ import annotations

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.container.outcomes.commands import Outcomes, take_copy

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine

MakeOutcomes = Callable[..., Outcomes]


@pytest.fixture(scope="session")
def make_outcomes(
    engine: DockerEngine, leg_image: str, staging_base: Path
) -> Iterator[MakeOutcomes]:
    """Makes the commands for a working directory; when the session ends nothing is left behind."""
    numbers = itertools.count()
    made: list[Outcomes] = []

    def make(folder: Path, staging: Path | None = None) -> Outcomes:
        own = staging_base / f"outcomes-{next(numbers)}"
        made.append(Outcomes(package, folder, staging or own, engine))
        return made[-1]

    # Not in pytest's folder, which is root's alone: another user runs the commands as well.
    with tempfile.TemporaryDirectory(prefix="ao-eval-outcomes-test-") as top:
        Path(top).chmod(0o755)
        package = take_copy(Path(top) / "package")
        built = make(Path(top) / "build").run("images", "build", "outcomes")
        assert built.code == 0, built.stderr
        yield make
        left = [line for item in made for line in item.end()]
        assert not left, "left behind: " + "; ".join(left)


@pytest.fixture
def outcomes(tmp_path: Path, make_outcomes: MakeOutcomes) -> Iterator[Outcomes]:
    """The commands in an empty folder; the test fails if they leave anything behind."""
    made = make_outcomes(tmp_path)
    yield made
    left = made.end()
    assert not left, "left behind: " + "; ".join(left)
