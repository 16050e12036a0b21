"""Fixtures of tests that use a real engine.

An engine that does not answer is a failure, never a skip: where these tests are run, one belongs.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine
    from tests.container.projects import Project

MakeProject = Callable[[Path], "Project"]


@pytest.fixture(scope="session")
def engine() -> DockerEngine:
    """The engine that the invoker's docker settings name."""
    from runner.engine.docker_engine import DockerEngine

    return DockerEngine.connect(os.environ)


@pytest.fixture(scope="session")
def leg_image(engine: DockerEngine) -> str:
    """The leg image: what `AO_EVAL_LEG_IMAGE` names, else that of this version, built if absent."""
    from runner.app import images

    named = os.environ.get("AO_EVAL_LEG_IMAGE")
    if named is not None:
        assert engine.image(named) is not None, f"AO_EVAL_LEG_IMAGE={named} is not present"
        return named
    return images.build(engine, os.environ.get("BASE_IMAGE") or None, print).reference


@pytest.fixture(scope="session")
def staging_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Folder of the staging folders of all projects of this session."""
    return tmp_path_factory.mktemp("staging")


@pytest.fixture(scope="session")
def make_project(engine: DockerEngine, leg_image: str, staging_base: Path) -> Iterator[MakeProject]:
    """Makes projects; when the session ends, none of them has left anything behind."""
    from tests.container.projects import Project

    made: list[Project] = []

    def make(folder: Path) -> Project:
        made.append(Project(folder, staging_base / str(len(made)), engine, leg_image))
        return made[-1]

    yield make
    left = [line for project in made for line in project.end()]
    assert not left, "left behind: " + "; ".join(left)


@pytest.fixture
def project(tmp_path: Path, make_project: MakeProject) -> Iterator[Project]:
    """An empty project; the test fails if its commands leave anything behind."""
    made = make_project(tmp_path)
    yield made
    left = made.end()
    assert not left, "left behind: " + "; ".join(left)
