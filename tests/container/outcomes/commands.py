"""The real `ao-eval outcomes` command line, run as a user would, against an image of this package.

The image's tag is a digest of the package. Commands therefore run from a copy of it that is taken
once: a source file that is edited meanwhile changes neither the commands nor the image they want.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from runner.app.reap import reap
from runner.core.confine import LABEL
from runner.engine.docker_engine import DockerEngine

TOP = Path(__file__).resolve().parents[3]
HERE = Path(__file__).resolve().parent
FIXTURES = TOP / "fixtures" / "outcomes"
COMPILE, INGEST, GRADER = FIXTURES / "compile", FIXTURES / "ingest", FIXTURES / "grader"
JUDGE_HASH = "sha256:0221ee6d8d17dd809f2b56e696462498b36abb1a53d11b0f56486fdd961d310d"
MARKER = "Amber-Lantern-4711"
"""The answer that the leaking fixtures leak."""

# As parts: refusals may fold letter case and punctuation.
MARKER_PARTS = ("amber", "lantern", "4711", "qw1izxi")

PATIENCE = 300.0
AT_ONCE = 3
"""Commands that a table of them runs at the same time."""

Json = dict[str, Any]
T = TypeVar("T")


class Done(NamedTuple):
    """A command that ended."""

    code: int
    stdout: str
    stderr: str

    @property
    def document(self) -> Json:
        """Standard output, which must be one JSON document and nothing else."""
        parsed: Json = json.loads(self.stdout)
        return parsed

    @property
    def warnings(self) -> list[str]:
        """Warnings, without their prefix."""
        prefix = "ao-eval: WARN "
        lines = self.stderr.splitlines()
        return [line.removeprefix(prefix) for line in lines if line.startswith(prefix)]

    @property
    def refusal(self) -> str:
        """The one line that says why nothing was printed."""
        assert self.stdout == "", self.stdout
        lines = [line for line in self.stderr.splitlines() if "WARN" not in line]
        assert len(lines) == 1, self.stderr
        return lines[0]


def take_copy(target: Path) -> Path:
    """Copy what the command line and the image are made of."""
    ignored = shutil.ignore_patterns("__pycache__")
    for name in ("runner", "schemas", "images"):
        shutil.copytree(TOP / name, target / name, ignore=ignored)
    shutil.copy(TOP / "requirements.lock", target)
    return target


def says_the_marker(text: str) -> list[str]:
    """Parts of the leaked answer, and of its base64, that a text holds."""
    return [part for part in MARKER_PARTS if part in text.lower()]


class Outcomes:
    """The commands, and where they keep what they need.

    Args:
        package: A copy of the package, from `take_copy`.
        folder: Working directory of the commands.
        staging: Folder for run homes; nobody else's, so that leftovers are known to be ours.
        engine: The engine.
    """

    def __init__(self, package: Path, folder: Path, staging: Path, engine: DockerEngine) -> None:
        self.package, self.folder, self.staging, self.engine = package, folder, staging, engine
        self._processes: list[subprocess.Popen[str]] = []
        folder.mkdir(parents=True, exist_ok=True)
        staging.mkdir(parents=True)

    def environment(self, **more: str) -> dict[str, str]:
        """Environment: what commands need, the user's Docker settings, what is given."""
        kept = ("PATH", "BASE_IMAGE", "AO_EVAL_BASE_IMAGE")
        docker = {name: value for name, value in os.environ.items() if name.startswith("DOCKER_")}
        configuration = Path.home() / ".docker"
        if configuration.is_dir():
            docker.setdefault("DOCKER_CONFIG", str(configuration))
        return {
            **{name: os.environ[name] for name in kept if name in os.environ},
            "HOME": str(self.folder),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(self.package),
            "PYTHONDONTWRITEBYTECODE": "1",
            "AO_EVAL_STAGING_DIR": str(self.staging),
            **docker,
            **more,
        }

    def start(
        self, *arguments: object, program: Sequence[str] = ("-m", "runner"), **env: str
    ) -> subprocess.Popen[str]:
        """Start `ao-eval`, or another program, with these arguments and variables."""
        process = subprocess.Popen(
            [sys.executable, *program, *map(str, arguments)],
            cwd=self.folder,
            env=self.environment(**env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return process

    def run(
        self, *arguments: object, program: Sequence[str] = ("-m", "runner"), **env: str
    ) -> Done:
        """Run `ao-eval`, or another program, to its end."""
        return finish(self.start(*arguments, program=program, **env))

    def outcomes(self, *arguments: object, **env: str) -> Done:
        """Run `ao-eval outcomes …`."""
        return self.run("outcomes", *arguments, **env)

    def as_user(self, user: int | None, *arguments: object) -> Done:
        """Run `ao-eval` as another user who may talk to the engine; None: as we are."""
        if user is None:
            return self.run(*arguments)
        url = self.engine.endpoint.url
        socket = Path(url.removeprefix("unix://"))
        groups = {user, *({socket.stat().st_gid} if socket.is_socket() else ())}
        program = (str(HERE / "as_user.py"), str(user), ",".join(map(str, groups)))
        return self.run(*arguments, program=program)

    def table(self, rows: Mapping[str, Sequence[object]]) -> dict[str, Done]:
        """Run independent `ao-eval outcomes …` commands, a few at a time."""
        return self.together(
            {name: functools.partial(self.outcomes, *given) for name, given in rows.items()}
        )

    @staticmethod
    def together(calls: Mapping[str, Callable[[], T]]) -> dict[str, T]:
        """Call independent commands, a few at a time."""
        with ThreadPoolExecutor(AT_ONCE) as pool:
            done = pool.map(lambda call: call(), calls.values())
            return dict(zip(calls, done, strict=True))

    def write(self, name: str, content: object) -> Path:
        """Write a file in the working directory: bytes and text as they are, else as JSON."""
        path = self.folder / name
        if isinstance(content, bytes):
            path.write_bytes(content)
        else:
            text = content if isinstance(content, str) else json.dumps(content)
            path.write_text(text, encoding="utf-8")
        return path

    def ledger(self, name: str = "ledger.json", *, budget: int = 10) -> Path:
        """A new burn ledger."""
        path = self.folder / name
        done = self.outcomes("ledger", "init", path, "--budget", budget)
        assert done.code == 0, done.stderr
        return path

    def burns(self, ledger: Path) -> int:
        """Burns in a ledger, which must verify."""
        from runner.ledger import jsonfile

        return jsonfile.verify(ledger).head.count

    # ----------------------------------------------------------------------- what is there

    def containers(self) -> list[Mapping[str, Any]]:
        """Containers of these commands, in any state."""
        return [item for item in self.engine.owned_containers() if self._mine(item)]

    def running(self, process: subprocess.Popen[str]) -> str:
        """Id of the container of a command, once it runs."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            for item in self.containers():
                if item["State"] == "running":
                    return str(item["Id"])
            assert process.poll() is None, process.communicate()
            time.sleep(0.01)
        raise AssertionError("no container runs")

    def leftovers(self) -> list[str]:
        """What commands left on the engine and in the staging folder."""
        return [
            *(f"container {item['Names']}" for item in self.containers()),
            *(f"folder {path}" for path in self.staging.rglob("*ao-eval-*")),
        ]

    def end(self) -> list[str]:
        """End what still runs, remove what was left; returns what that was."""
        for process in self._processes:
            if process.poll() is None:
                process.kill()
                process.communicate()
        left = self.leftovers()
        if left:
            reap(self.engine, self.staging)
        return left

    def _mine(self, item: Mapping[str, Any]) -> bool:
        home = (item.get("Labels") or {}).get(f"{LABEL}.home", "")
        return Path(home).is_relative_to(self.staging)


def finish(process: subprocess.Popen[str], *, patience: float = PATIENCE) -> Done:
    """Wait for the end of a command."""
    stdout, stderr = process.communicate(timeout=patience)
    return Done(process.returncode, stdout, stderr)


def score(**changed: Any) -> Json:
    """The bundled holdout score that passes, changed; None removes a field."""
    made = {**json.loads((INGEST / "score-holdout-pass.json").read_bytes()), **changed}
    return {name: value for name, value in made.items() if value is not None}


def stated(**changed: object) -> list[str]:
    """Options that state everything about the bundled holdout score; None leaves one out."""
    options: dict[str, object] = {
        "expect_judge_hash": JUDGE_HASH,
        "rubric": INGEST / "rubric.json",
        "suite": "refunds",
        "split": "holdout",
        "gt_version": "2026-03",
        "threshold": "0.8",
        "run_id": "refunds-holdout-03",
        **changed,
    }
    given = ((name, value) for name, value in options.items() if value is not None)
    return [text for name, value in given for text in (f"--{name.replace('_', '-')}", str(value))]
