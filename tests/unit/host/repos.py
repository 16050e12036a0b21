"""Git repositories for tests: friendly ones and ones that try to run programs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

from tests.unit.host.worlds import fill

_ENV = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "a",
    "GIT_AUTHOR_EMAIL": "a@invalid",
    "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@invalid",
}


def run_git(top: Path, *arguments: str, env: dict[str, str] | None = None) -> str:
    """Plain git, configured by the repository: what a user would run."""
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", *arguments],
        cwd=top,
        env={**_ENV, **(env or {})},
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout


def repository(top: Path, files: dict[str, str]) -> Path:
    """A repository with one commit of the files."""
    fill(top, files)
    run_git(top, "init", "-q", "-b", "main")
    run_git(top, "add", "-A", "-f")
    run_git(top, "commit", "-q", "-m", "first")
    return top


def booby_trapped(top: Path, marker: Path) -> Path:
    """A repository in which every setting that names a program touches the marker."""
    repository(top, {"tracked.txt": "tracked\n", "data.bin": "data\n", ".gitattributes": ""})
    trap = top / "trap.sh"
    trap.write_text(f"#!/bin/sh\necho \"$0 $*\" >> '{marker}'\ncat\n")
    trap.chmod(0o755)
    (top / ".gitattributes").write_text("*.bin filter=x diff=x\n*.txt filter=y\n")
    hooks = top / "hooks"
    hooks.mkdir()
    for hook in ("post-index-change", "fsmonitor-watchman", "pre-commit", "post-checkout"):
        (hooks / hook).write_text(trap.read_text())
        (hooks / hook).chmod(0o755)
    included = top / ".git" / "more"
    included.write_text(
        f'[core]\n\tfsmonitor = "{trap}"\n'
        f'[filter "y"]\n\tclean = "{trap}"\n\tsmudge = "{trap}"\n\trequired = true\n'
        f'[diff "x"]\n\tcommand = "{trap}"\n\ttextconv = "{trap}"\n'
    )
    with (top / ".git" / "config").open("a") as config:
        config.write(
            f'[core]\n\tfsmonitor = "{trap}"\n\thooksPath = "{hooks}"\n\tsshCommand = "{trap}"\n'
            f'\tpager = "{trap}"\n\teditor = "{trap}"\n\taskPass = "{trap}"\n'
            f'\tgitProxy = "{trap}"\n\talternateRefsCommand = "{trap}"\n\tworktree = /\n'
            f'[filter "x"]\n\tclean = "{trap}"\n\tsmudge = "{trap}"\n\tprocess = "{trap}"\n'
            f'[alias]\n\tls-files = "!{trap}"\n\tstatus = "!{trap}"\n'
            f'[pager]\n\tls-files = "{trap}"\n[credential]\n\thelper = "!{trap}"\n'
            f'[gpg]\n\tprogram = "{trap}"\n[submodule]\n\trecurse = true\n'
            f'[submodule "s"]\n\tupdate = "!{trap}"\n\tactive = true\n\turl = ext::{trap}\n'
            f'[remote "origin"]\n\turl = ext::{trap}\n\tpromisor = true\n'
            f'\tuploadpack = "{trap}"\n[protocol "ext"]\n\tallow = always\n'
            f"[include]\n\tpath = {included}\n"
        )
    # Same size, other time: git has to look at the contents, by the clean filter.
    (top / "data.bin").write_text("DATA\n")
    (top / "tracked.txt").write_text("TRACKED\n")
    return top
