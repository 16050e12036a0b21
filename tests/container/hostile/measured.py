"""The command line, with the peak of its memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

from tests.container.projects import Project, Result

_MAIN = """
import atexit, pathlib, sys
atexit.register(lambda: pathlib.Path(sys.argv[1]).write_bytes(
    pathlib.Path("/proc/self/status").read_bytes()))
from runner.cli.main import main
main(sys.argv[2:])
"""


class Measured(NamedTuple):
    """A command that ended.

    Attributes:
        result: As of `Project.ao_eval`.
        peak: Most bytes that were resident (VmHWM).
    """

    result: Result
    peak: int


def measured(
    project: Project, status: Path, *arguments: object, timeout: float, **env: str
) -> Measured:
    """Run `ao-eval` to its end.

    The process itself says at its exit what it used: the kernel's figures for a child that was
    waited for include what its parent used before the exec.

    Args:
        project: Where to run.
        status: Where to put the status file.
        arguments: Of the command.
        timeout: Seconds.
        env: More variables.
    """
    before = project.directories()
    done = subprocess.run(
        [sys.executable, "-c", _MAIN, str(status), *map(str, arguments)],
        cwd=project.repo,
        env=project.environment(**env),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )
    result = Result(done.returncode, done.stdout, done.stderr, project.new_directories(before))
    lines = dict(line.split(":", 1) for line in status.read_text(encoding="ascii").splitlines())
    return Measured(result, int(lines["VmHWM"].split()[0]) << 10)
