"""One run of all hostile cases, with somebody to talk to next door."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.container.hostile.besieged import Besieged, run_siege

if TYPE_CHECKING:
    from runner.engine.docker_engine import DockerEngine
    from tests.conftest import MakeProject


@pytest.fixture(scope="session")
def besieged(
    engine: DockerEngine,
    leg_image: str,
    make_project: MakeProject,
    tmp_path_factory: pytest.TempPathFactory,
) -> Besieged:
    """The run; nothing of it is left when the tests that look at it are over."""
    project = make_project(tmp_path_factory.mktemp("siege"))
    return run_siege(project, engine, leg_image, tmp_path_factory.mktemp("siege-facts"))
