"""The run of the hostile cases, and how its records are looked at."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from runner.engine.docker_engine import DockerEngine
from tests.container.hostile.measured import Measured, measured
from tests.container.hostile.neighbours import neighbourhood, targets
from tests.container.hostile.siege import MEMORY, exhaustion, place_attacks, siege
from tests.container.projects import PATIENCE, Json, Project

LEGS = ("context_off", "context_on")
SECONDS = 8 * PATIENCE


@dataclass(frozen=True)
class Besieged:
    """What the run left.

    Attributes:
        run: The command.
        reached: What each neighbour heard: of the control and, if anything, of the legs.
        roots: Digest of the context roots of the repository, before and after.
    """

    run: Measured
    reached: tuple[tuple[str, ...], ...]
    roots: tuple[str, str]

    def directory(self, suite: str) -> Path:
        """Evidence directory of a suite."""
        (found,) = (item for item in self.run.result.directories if f"Z-{suite}-" in item.name)
        return found

    def read(self, suite: str, relative: str) -> Json:
        """A document of it."""
        parsed: Json = json.loads((self.directory(suite) / relative).read_bytes())
        return parsed

    def rows(self, suite: str, leg: str) -> dict[str, Json]:
        """Results of the cases of a leg, by case id."""
        record = self.read(suite, f"legs/{leg}/record.json")
        return {item["case_id"]: item for item in record["case_results"]}

    def output(self, suite: str, leg: str, case_id: str, stream: str = "stdout") -> bytes:
        """What a case wrote, as it was stored."""
        path = self.directory(suite) / "legs" / leg / "cases" / case_id / stream
        return path.read_bytes() if path.exists() else b""

    def facts(self, case_id: str) -> Iterator[Json]:
        """What an attacker found out, in each leg."""
        for leg in LEGS:
            parsed: Json = json.loads(self.output("siege", leg, case_id))
            yield parsed


def run_siege(project: Project, engine: DockerEngine, image: str, folder: Path) -> Besieged:
    """Run both suites in one command; the cases that use everything up are a suite of their own."""
    place_attacks(project)
    project.suite(*(item for item, _ in siege()), name="siege")
    project.suite(*(item for item, _ in exhaustion()), name="exhaustion")
    before = _digest(project.repo / "evals")
    with neighbourhood(engine, image) as neighbours:
        for item in neighbours:
            item.control()
        run = measured(
            project,
            folder / "status",
            "ab",
            "evals",
            "--memory",
            str(MEMORY),
            "--env",
            f"TARGETS={targets(neighbours)}",
            timeout=SECONDS,
        )
        reached = tuple(tuple(item.reached(least=3)) for item in neighbours)
    return Besieged(run, reached, (before, _digest(project.repo / "evals")))


def _digest(top: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(top.rglob("*")):
        info = path.lstat()
        found.update(repr((str(path), info.st_mode, info.st_mtime_ns, info.st_ctime_ns)).encode())
        if path.is_file():
            found.update(path.read_bytes())
    return found.hexdigest()
