"""A repository on disk, and the real command line run in it as a user would.

A `Project` is a small git repository with suites, context roots and scripts. Commands run in a
process of their own, with an environment that holds nothing but what a test put there.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from runner.app.reap import reap
from runner.app.verify import verify
from runner.attest.statement import ATTESTATION
from runner.core.confine import LABEL, is_gvisor
from runner.engine.docker_engine import DockerEngine

TOP = Path(__file__).resolve().parents[2]
CASE_USER = os.geteuid() or 65532
RUNTIME = os.environ.get("AO_EVAL_RUNTIME")
"""OCI runtime that the tests are run under; None: the engine's default."""
GVISOR = is_gvisor(RUNTIME)
VERIFIED = bool(os.environ.get("AO_EVAL_TEST_VERIFY"))
"""Every honest evidence directory that a test makes, whatever it shows, has to be accepted."""
PATIENCE = 240.0 if GVISOR else 100.0
"""Seconds for anything that takes a few on an idle machine; gVisor starts a container a case."""

Json = dict[str, Any]
EXIT_0: Json = {"type": "exit_code", "value": 0}
HELPFUL = {"learnings/hint.md": "HELPFUL\n", "learnings/other.md": "of no use\n"}
PLAIN = {"learnings/other.md": "of no use\n"}
NEEDS_HINT = 'grep -q HELPFUL "$AO_AGENTS_DIR"/learnings/*'
"""Passes with the default context_on root, fails with the default context_off root."""

WAITING = "touch /tmp/ready; until [ -e /tmp/go ]; do sleep 0.02; done"
"""A case that waits until `Running.release` is called."""


def case(case_id: str, shell: str | None = None, *expectations: Json, **fields: Any) -> Json:
    """A command case; without expectations it must exit 0."""
    inputs = {} if shell is None else {"inputs": {"shell": shell}}
    return {
        "id": case_id,
        "title": case_id,
        "kind": "command",
        "objective": "show one thing",
        "expectations": list(expectations) or [EXIT_0],
        **inputs,
        **fields,
    }


def suite(suite_id: str, cases: Iterable[Json], **fields: Any) -> Json:
    """A suite with one dimension."""
    return {
        "schema_version": 1,
        "id": suite_id,
        "name": suite_id,
        "visibility": "public_canary",
        "tier": "deterministic",
        "scoring": {
            "aggregate_threshold": 1,
            "dimensions": [{"name": "correctness", "weight": 1, "threshold": 1}],
        },
        "baseline_policy": {"mode": "none"},
        "cases": list(cases),
        **fields,
    }


@dataclass(frozen=True)
class Result:
    """A command that ended, and the evidence directories that it made."""

    code: int
    stdout: str
    stderr: str
    directories: tuple[Path, ...]

    @property
    def document(self) -> Json:
        """Standard output, which must be one JSON document and nothing else."""
        parsed: Json = json.loads(self.stdout)
        return parsed

    @property
    def evidence(self) -> Path:
        """The one evidence directory."""
        assert len(self.directories) == 1, (self.directories, self.stderr)
        return self.directories[0]

    @property
    def card(self) -> Json:
        """The scorecard in the evidence directory."""
        return self.read("scorecard.json")

    def read(self, relative: str) -> Json:
        """A document of the evidence directory."""
        parsed: Json = json.loads((self.evidence / relative).read_bytes())
        return parsed

    def record(self, leg: str = "context_on") -> Json:
        """The run record of a leg."""
        return self.read(f"legs/{leg}/record.json")

    def case(self, case_id: str, leg: str = "context_on") -> Json:
        """The result of a case of a leg."""
        found: Json = next(
            item for item in self.record(leg)["case_results"] if item["case_id"] == case_id
        )
        return found

    def output(self, case_id: str, leg: str = "context_on", name: str = "stdout") -> str:
        """What a case wrote, as it was stored."""
        path = self.evidence / "legs" / leg / "cases" / case_id / name
        return path.read_text(encoding="utf-8") if path.exists() else ""


class Running:
    """A command that runs, the containers it started, and a way to let waiting cases go on."""

    def __init__(self, project: Project, process: subprocess.Popen[str], before: set[Path]) -> None:
        self.project = project
        self.process = process
        self._before = before
        self._waiting: list[str] = []

    def waiting(self, count: int) -> list[str]:
        """Ids of the containers, once `count` of them run a case that waits."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            found = self.project.containers()
            self._waiting = [item for item in found if self._has(item, "/tmp/ready")]
            if len(self._waiting) >= count:
                return self._waiting
            assert self.process.poll() is None, self.process.communicate()
            time.sleep(0.02)
        raise AssertionError(f"{count} waiting containers: there are {len(self._waiting)}")

    def release(self) -> None:
        """Let the waiting cases go on."""
        for container in self._waiting:
            # Its exit code says nothing: the end of the case ends it too, perhaps before its own.
            # Had it not worked, the case would go on waiting.
            self.project.execute(container, "touch", "/tmp/go")

    def finish(self, seconds: float = PATIENCE) -> Result:
        """Wait for the end."""
        stdout, stderr = self.process.communicate(timeout=seconds)
        directories = self.project.new_directories(self._before)
        if VERIFIED:
            _assert_verified(directories)
        return Result(self.process.returncode, stdout, stderr, directories)

    def send(self, number: signal.Signals) -> None:
        """Send a signal to the command itself, not to its children."""
        self.process.send_signal(number)

    def _has(self, container: str, path: str) -> bool:
        return self.project.execute(container, "test", "-e", path) == 0


def _assert_verified(directories: Iterable[Path]) -> None:
    for directory in directories:
        if (directory / ATTESTATION).exists():
            found = verify(directory)
            assert found.verdict == "accepted", (directory, found.problems)


class Project:
    """A git repository `repo` beside a `home`; commands run in the repository.

    Args:
        folder: Where to make both.
        staging: Folder for run homes; nobody else's, so that leftovers are known to be ours.
        engine: The engine.
        image: Leg image.
    """

    def __init__(self, folder: Path, staging: Path, engine: DockerEngine, image: str) -> None:
        self.repo, self.home, self.staging = folder / "repo", folder / "home", staging
        self.runs = self.repo / "runs"
        self.engine, self.image = engine, image
        self._processes: list[subprocess.Popen[str]] = []
        for path in (self.repo, self.home, self.staging):
            path.mkdir(parents=True)
        self.git("init", "-q", ".")

    # ------------------------------------------------------------------------- what lies in it

    def write(self, files: Mapping[str, str | bytes], below: str = ".") -> None:
        """Write files; what begins with `#!` becomes executable."""
        for name, content in files.items():
            path = self.repo / below / name
            path.parent.mkdir(parents=True, exist_ok=True)
            data = content.encode() if isinstance(content, str) else content
            path.write_bytes(data)
            if data.startswith(b"#!"):
                path.chmod(0o755)

    def suite(
        self,
        *cases: Json,
        name: str = "demo",
        off: Mapping[str, str] | None = PLAIN,
        on: Mapping[str, str] | None = HELPFUL,
        **fields: Any,
    ) -> Path:
        """Write `evals/<name>.json` with its two roots (None: no such root); returns its path."""
        path = self.repo / "evals" / f"{name}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(suite(name, cases, **fields)), encoding="utf-8")
        for side, files in (("off", off), ("on", on)):
            if files is not None:
                self.root(side, name=name).mkdir(parents=True, exist_ok=True)
                self.write(files, below=f"evals/fixtures/{name}/context-{side}/agents")
        return path

    def root(self, side: str, *, name: str = "demo") -> Path:
        """The default context root of a side, `off` or `on`."""
        return self.repo / "evals" / "fixtures" / name / f"context-{side}" / "agents"

    def git(self, *arguments: str) -> None:
        """Run git in the repository."""
        author = ["-c", "user.name=t", "-c", "user.email=t@example.org"]
        subprocess.run(
            ["git", *author, *arguments],
            cwd=self.repo,
            env={"PATH": os.environ["PATH"], "HOME": str(self.home)},
            check=True,
            capture_output=True,
        )

    # ---------------------------------------------------------------------------------- commands

    def environment(self, **more: str) -> dict[str, str]:
        """Environment of commands: what they need, the user's Docker settings, what is given."""
        docker = {name: value for name, value in os.environ.items() if name.startswith("DOCKER_")}
        if RUNTIME:
            docker["AO_EVAL_RUNTIME"] = RUNTIME
        configuration = Path.home() / ".docker"
        if configuration.is_dir():
            docker.setdefault("DOCKER_CONFIG", str(configuration))
        return {
            "PATH": os.environ["PATH"],
            "HOME": str(self.home),
            "LANG": "C.UTF-8",
            "PYTHONPATH": str(TOP),
            "AO_EVAL_STAGING_DIR": str(self.staging),
            "AO_EVAL_IMAGE": self.image,
            # Two legs, unless a test is about controls: they would run each of them ten times.
            "AO_EVAL_CONTROLS": "none",
            **docker,
            **more,
        }

    def start(self, *arguments: object, **env: str) -> Running:
        """Start `ao-eval` with these arguments and variables."""
        before = self.directories()
        process = subprocess.Popen(
            [sys.executable, "-m", "runner", *map(str, arguments)],
            cwd=self.repo,
            env=self.environment(**env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._processes.append(process)
        return Running(self, process, before)

    def ao_eval(self, *arguments: object, **env: str) -> Result:
        """Run `ao-eval` to its end."""
        return self.start(*arguments, **env).finish()

    def while_waiting(
        self, count: int, act: Callable[[list[str]], object], *arguments: object, **env: str
    ) -> Result:
        """Run a command, do something while `count` containers wait, let them go on."""
        running = self.start(*arguments, **env)
        act(running.waiting(count))
        running.release()
        return running.finish()

    def directories(self) -> set[Path]:
        """Evidence directories, unfinished ones included."""
        return set(self.runs.iterdir()) if self.runs.is_dir() else set()

    def new_directories(self, before: set[Path]) -> tuple[Path, ...]:
        """Evidence directories that came since, by name."""
        return tuple(sorted(self.directories() - before))

    # ------------------------------------------------------------------------ what is on the engine

    def containers(self) -> list[str]:
        """Ids of the running containers of this project."""
        found = [item for item in self.engine.owned_containers() if self._mine(item)]
        return [str(item["Id"]) for item in found if item["State"] == "running"]

    def execute(self, container: str, *command: str) -> int:
        """Exit code of a command that is run in a container as the case user; -1: not running."""
        import docker

        client = self.engine._client
        try:
            made = client.exec_create(container, list(command), user=f"{CASE_USER}:{CASE_USER}")
            # Detached: the stream of one whose container ends meanwhile may never end itself.
            client.exec_start(made["Id"], detach=True)
            deadline = time.monotonic() + PATIENCE
            while (state := client.exec_inspect(made["Id"]))["Running"]:
                if time.monotonic() > deadline:
                    return -1
                time.sleep(0.01)
            return -1 if state["ExitCode"] is None else int(state["ExitCode"])
        except docker.errors.APIError:
            return -1

    def leftovers(self) -> list[str]:
        """What commands left on the engine and in the staging folder."""
        containers = [item for item in self.engine.owned_containers() if self._mine(item)]
        volumes = [item for item in self.engine.owned_volumes() if self._mine(item)]
        return [
            *(f"container {item['Names']}" for item in containers),
            *(f"volume {item['Name']}" for item in volumes),
            *(f"folder {path}" for path in self.staging.iterdir()),
            *(f"evidence {path}" for path in self.directories() if path.name.startswith(".")),
        ]

    def end(self) -> list[str]:
        """End what still runs, remove what was left; returns what that was."""
        for process in self._processes:
            process.kill()  # does nothing to one that has ended
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        left = self.leftovers()
        if left:
            reap(self.engine, self.staging)
        return left

    def _mine(self, item: Mapping[str, Any]) -> bool:
        home = (item.get("Labels") or {}).get(f"{LABEL}.home", "")
        return Path(home).parent == self.staging


def degraded_rows(card: Json) -> set[tuple[str | None, str | None]]:
    """Reason and detail of every row of a scorecard."""
    return {(row["degraded_reason"], row["degraded_detail"]) for row in card["per_case"]}


def assert_no_claim(result: Result, case_ids: Iterable[str]) -> None:
    """There is a row for every case, and none of them, nor their sum, claims anything."""
    card = result.card
    assert [row["case_id"] for row in card["per_case"]] == list(case_ids)
    for row in card["per_case"]:
        assert row["degraded_reason"] is not None
        assert (row["score_delta"], row["status_delta"]) == (None, None)
        assert row["artifact_attribution"] == ["none"]
    assert card["aggregate_delta"] is None
    assert card["pairing"]["valid_pairs"] == 0
    assert card["resolution"]["improved"] == 0
    for leg in ("context_off", "context_on"):
        assert len(result.record(leg)["case_results"]) == len(card["per_case"])
    assert "context helped" not in result.stdout
