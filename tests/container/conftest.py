"""What all container tests share: they leave nothing, and the bundled suites are run once."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import pytest

from runner.core.confine import LABEL
from tests.container.projects import PATIENCE, TOP, Project, Result

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine
    from tests.conftest import MakeProject


@pytest.fixture(scope="session", autouse=True)
def _nothing_is_left(engine: DockerEngine, staging_base: Path) -> Iterator[None]:
    """Neither on the engine, nor in the staging folder, nor in this process.

    Runs of somebody else on the same engine are told by the staging folder in their labels.
    """
    environment, folder = dict(os.environ), Path.cwd()
    yield
    objects = [*engine.owned_containers(), *engine.owned_volumes()]
    homes = [(item.get("Labels") or {}).get(f"{LABEL}.home", "") for item in objects]
    assert not [home for home in homes if Path(home).is_relative_to(staging_base)]
    assert not list(staging_base.rglob("*ao-eval-*"))
    now = {name: value for name, value in os.environ.items() if name != "PYTEST_CURRENT_TEST"}
    environment.pop("PYTEST_CURRENT_TEST", None)
    assert now == environment
    assert Path.cwd() == folder


class Bundled(NamedTuple):
    """The bundled suites, run once with `--json`."""

    project: Project
    result: Result

    def directory(self, suite_id: str) -> Path:
        """Evidence directory of a suite."""
        (found,) = (path for path in self.result.directories if f"Z-{suite_id}-" in path.name)
        return found


@pytest.fixture(scope="session")
def bundled(make_project: MakeProject, tmp_path_factory: pytest.TempPathFactory) -> Bundled:
    """A run of all bundled suites under all controls, in a repository of their own."""
    project = make_project(tmp_path_factory.mktemp("bundled"))
    shutil.copytree(TOP / "fixtures", project.repo / "fixtures")
    project.git("add", "-A")
    project.git("commit", "-q", "-m", "suites")
    options = ("--controls", "standard", "--json")
    # Under gVisor every case of every one of these legs has a container of its own.
    return Bundled(project, project.start("ab", "fixtures/suites", *options).finish(4 * PATIENCE))
