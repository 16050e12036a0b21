"""Git, run so that nothing a repository configures takes effect.

Only plumbing commands are used that neither write the index nor convert contents, with every
program-naming setting overridden, no system or user configuration, no transport, and the
repository named explicitly (so that ownership by another user does not matter).
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from runner.errors import StagingRefused
from runner.model.tree import path_text

_TIMEOUT_S: Final = 120
_OVERRIDES: Final = (
    "core.fsmonitor=false",
    "core.hooksPath=/dev/null",
    "core.untrackedCache=false",
    "core.attributesFile=/dev/null",
    "core.sshCommand=false",
    "core.askPass=false",
    "core.pager=cat",
    "core.editor=false",
    "core.autocrlf=false",
    "core.logAllRefUpdates=false",
    "core.fsync=none",
    "credential.helper=",
    "commit.gpgSign=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "protocol.allow=never",
    "submodule.recurse=false",
)


def is_repository(folder: Path) -> bool:
    """True when the folder has a `.git` that is one: a directory with HEAD, or a `gitdir:` file."""
    marker = folder / ".git"
    try:
        if marker.is_dir():
            return (marker / "HEAD").is_symlink() or (marker / "HEAD").is_file()
        if not marker.is_file():
            return False
        with marker.open("rb") as file:
            return file.read(8) == b"gitdir: "
    except OSError:
        return False


def git_program() -> str | None:
    """Absolute path of git, from the absolute entries of PATH; None when it is not installed."""
    return shutil.which("git", path=_search_path())


def git(
    top: Path,
    *arguments: str,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    configured: bool = False,
) -> bytes:
    """Run one git plumbing command on a repository, with nothing configured taking effect.

    Args:
        top: Folder that holds `.git` and the work tree, whatever `core.worktree` says.
        arguments: Subcommand and its arguments.
        stdin: Standard input.
        env: Added to the fixed environment.
        configured: Let the repository's own settings show (only to read one with `config`).

    Raises:
        StagingRefused: `unreadable`: git failed, or did not end in two minutes.
    """
    program = git_program() or "git"
    settings = () if configured else _OVERRIDES
    overrides = [word for setting in settings for word in ("-c", setting)]
    command = [program, "--no-pager", *overrides, f"--git-dir={top}/.git", f"--work-tree={top}"]
    where = path_text(os.fsencode(top))
    try:
        done = subprocess.run(
            [*command, *arguments],
            cwd=top,
            env={**_environment(), **(env or {})},
            input=stdin,
            capture_output=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise StagingRefused(
            f"git {arguments[0]} failed: {error}", detail="unreadable", where=where
        ) from error
    if done.returncode != 0:
        lines = done.stderr.strip().splitlines() or [b"no message"]
        raise StagingRefused(
            f"git {arguments[0]} failed: {path_text(lines[-1])}", detail="unreadable", where=where
        )
    return done.stdout


def _search_path() -> str:
    entries = os.environ.get("PATH", os.defpath).split(os.pathsep)
    return os.pathsep.join(entry for entry in entries if os.path.isabs(entry))


def _environment() -> dict[str, str]:
    return {
        "PATH": _search_path(),
        "HOME": "/nonexistent",
        "XDG_CONFIG_HOME": "/nonexistent",
        "LC_ALL": "C",
        "TZ": "UTC",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_SYSTEM": os.devnull,
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_ATTR_NOSYSTEM": "1",
        "GIT_OPTIONAL_LOCKS": "0",
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "false",
        "GIT_SSH_COMMAND": "false",
        "GIT_EDITOR": "false",
        # A partial clone fetches what it lacks; no protocol is allowed, so it fails instead.
        "GIT_NO_LAZY_FETCH": "1",
        "GIT_ALLOW_PROTOCOL": "none",
        "GIT_NO_REPLACE_OBJECTS": "1",
        "GIT_LITERAL_PATHSPECS": "1",
    }


def split_paths(output: bytes) -> set[bytes]:
    """Paths of a `-z` listing."""
    return {path for path in output.split(b"\0") if path}
