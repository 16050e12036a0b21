"""Engines and runtimes of the matrix: starting them, giving them the images, running the tests."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import tempfile
import time
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from runner.app import images
from runner.app.outcomesimage import build_outcomes, outcomes_reference
from runner.core.confine import is_gvisor
from runner.engine.docker_engine import DockerEngine
from runner.errors import PrerequisiteError

TOP = Path(__file__).resolve().parents[2]
SCRIPT = TOP / "scripts" / "matrix-engine"
ENGINES = {"bookworm": "20.10", "trixie": "26.1"}
"""Debian releases that the engines come from, and the versions that they must have."""
RUNTIMES = ("runc", "runsc")
MARKS = "container and not slow and not soak and not bench"
GVISOR_SECONDS = 1200
"""Patience for one test under gVisor, where a container may take seconds and some start many."""


class Result(NamedTuple):
    """How the tests of one cell went.

    Attributes:
        cell: Engine version and runtime.
        passed: Tests that passed.
        failed: Names of those that did not, errors included.
        skipped: Tests that were skipped.
        seconds: Wall time.
        code: Exit code of pytest.
    """

    cell: str
    passed: int
    failed: tuple[str, ...]
    skipped: int
    seconds: float
    code: int

    @property
    def good(self) -> bool:
        """True when tests ran and nothing went wrong."""
        return self.code == 0 and self.passed > 0 and not self.failed


def start(release: str) -> str:
    """Start the engine of a release, making its root file system if need be.

    Returns:
        Its address.

    Raises:
        PrerequisiteError: It cannot be started; the script has said why.
    """
    done = subprocess.run(
        [str(SCRIPT), release, "start"], stdout=subprocess.PIPE, text=True, check=False
    )
    if done.returncode != 0:
        raise PrerequisiteError("the engine could not be started", where=f"{SCRIPT.name} {release}")
    return done.stdout.strip()


def stop(release: str) -> None:
    """Stop the engine of a release; its root file system and images stay."""
    subprocess.run([str(SCRIPT), release, "stop"], check=True)


def prepare(address: str, release: str, environment: Mapping[str, str]) -> DockerEngine:
    """See to it that an engine is the one that is meant, and has the images of this version.

    Images that the user's own engine has are copied, under the same ids; others are built.
    """
    engine = DockerEngine.connect({**environment, "DOCKER_HOST": address})
    info = engine.info()
    if not info.version.startswith(f"{ENGINES[release]}."):
        raise PrerequisiteError(f"is Docker {info.version}, not {ENGINES[release]}", where=address)
    base = images.base_image(environment)
    leg = images.leg_reference(base)
    wanted = (leg, outcomes_reference(leg))
    absent = [reference for reference in wanted if engine.image(reference) is None]
    if absent:
        _copy(absent, engine, environment)
        build_outcomes(engine, base, lambda line: print(f"ao-eval: {line}", file=sys.stderr))
    return engine


def _copy(references: Sequence[str], target: DockerEngine, environment: Mapping[str, str]) -> None:
    """Copy the images that the user's own engine has."""
    import docker

    try:
        source = DockerEngine.connect(environment)
    except PrerequisiteError:
        return
    into: Any = docker.APIClient(base_url=target.endpoint.url, version=target.info().api_version)
    out: Any = docker.APIClient(**source.endpoint.arguments, version=source.info().api_version)
    with contextlib.closing(into), contextlib.closing(out):
        for reference in references:
            before = source.image(reference)
            if before is None:
                continue
            with tempfile.TemporaryFile() as spool:
                spool.writelines(out.get_image(reference))
                spool.seek(0)
                said = [line["error"] for line in into.load_image(spool) if "error" in line]
            after = target.image(reference)
            if said or after is None or after.id != before.id:
                raise PrerequisiteError(f"could not be copied: {said}", where=reference)


def run_cell(engine: DockerEngine, release: str, runtime: str, arguments: Sequence[str]) -> Result:
    """Run the container tests in one cell; their output goes to the terminal.

    Args:
        engine: The engine.
        release: Debian release that it comes from: some tests stop it and start it again.
        runtime: OCI runtime of every container.
        arguments: More arguments for pytest.
    """
    info = engine.info()
    cell = f"Docker {info.version}, {runtime}"
    if runtime not in info.runtimes:
        raise PrerequisiteError(f"the engine has no runtime {runtime}", where=cell)
    print(f"=== {cell} (API {info.api_version}, cgroup v{info.cgroup_version})", flush=True)
    environment = {
        **os.environ,
        "DOCKER_HOST": engine.endpoint.url,
        "AO_EVAL_RUNTIME": runtime,
        "MATRIX_ENGINE": release,
        "TMPDIR": "/tmp",  # what the engine shares with the machine
    }
    for name in ("DOCKER_CONTEXT", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH"):
        environment.pop(name, None)
    patience = [f"--timeout={GVISOR_SECONDS}"] if is_gvisor(runtime) else []
    with tempfile.TemporaryDirectory(prefix="ao-eval-matrix-") as folder:
        report = Path(folder) / "junit.xml"
        begin = time.monotonic()
        done = subprocess.run(
            [sys.executable, "-m", "pytest", "tests/container", "-m", MARKS, "-q",
             "-p", "no:cacheprovider", f"--junitxml={report}", *patience, *arguments],
            cwd=TOP, env=environment, check=False,
        )  # fmt: skip
        seconds = time.monotonic() - begin
        passed, failed, skipped = _read(report)
    return Result(cell, passed, failed, skipped, seconds, done.returncode)


def _read(report: Path) -> tuple[int, tuple[str, ...], int]:
    """(passed, names of failed, skipped) of a JUnit file; nothing when there is none."""
    if not report.is_file():
        return 0, (), 0
    passed, skipped = 0, 0
    failed: dict[str, None] = {}
    for item in ET.parse(report).iter("testcase"):
        if item.find("failure") is not None or item.find("error") is not None:
            failed[f"{item.get('classname')}::{item.get('name')}"] = None
        elif item.find("skipped") is not None:
            skipped += 1
        else:
            passed += 1
    return passed, tuple(failed), skipped
