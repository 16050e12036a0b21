"""Runs `ao-eval` and kills itself with SIGKILL at a named point: POINT ARGUMENT….

The points are between any two things that a command does to the engine or the disk. The command is
the real one; what is wrapped does what it did before.
"""

from __future__ import annotations

import functools
import os
import signal
import sys
from collections.abc import Callable
from typing import Any

from runner.app.outcomesbox import Box
from runner.app.outcomesmanifest import RunFolder
from runner.cli import outcomes as command
from runner.cli.main import main
from runner.engine.docker_engine import DockerEngine
from runner.ledger import jsonfile

POINT = sys.argv[1]


def at(name: str) -> None:
    """Die if this is the point."""
    if name == POINT:
        os.kill(os.getpid(), signal.SIGKILL)


def around(owner: Any, name: str, before: str | None, after: str | None) -> None:
    """Die before or after a call."""
    real: Callable[..., Any] = getattr(owner, name)

    def wrapped(*arguments: Any, **options: Any) -> Any:
        if before is not None:
            at(before)
        result = real(*arguments, **options)
        if after is not None:
            at(after)
        return result

    setattr(owner, name, wrapped)


def renamed(source: str, target: str, *arguments: Any, **options: Any) -> None:
    """Rename, and die after one of the two documents of a run got its name."""
    rename(source, target, *arguments, **options)
    at({"record.json": "record_named", "manifest.json": "manifest_named"}.get(str(target), ""))


if __name__ == "__main__":
    exclusive, rename = jsonfile.exclusive, os.rename
    setattr(jsonfile, "exclusive", functools.partial(exclusive, step=at))  # noqa: B010
    setattr(os, "rename", renamed)  # noqa: B010
    around(Box, "lend_ledger", None, "ledger_lent")
    around(Box, "run", "before_container", "after_container")
    around(DockerEngine, "create", None, "container_created")
    around(DockerEngine, "start", None, "container_started")
    around(DockerEngine, "wait", None, "container_ended")
    around(DockerEngine, "remove", None, "container_removed")
    around(RunFolder, "prepare", "before_manifest", "manifest_prepared")
    around(RunFolder, "commit", "burned", "manifest_committed")
    around(command, "_show", "before_shown", "shown")
    main(sys.argv[2:])
