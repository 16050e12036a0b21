"""A `.git` of one commit for a staged workspace, so that cases may ask git about their files.

Nothing of the real history is in it. Everything is fixed (identity, dates, modes, an index without
stat data), so the same files give the same commit and the same bytes.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Final

from runner.host.git import git
from runner.host.staging import EPOCH_NS, normalise
from runner.host.survey import DIRECTORY_FLAGS

_SECONDS: Final = EPOCH_NS // 1_000_000_000
_IDENTITY: Final = {
    f"GIT_{role}_{field}": value
    for role in ("AUTHOR", "COMMITTER")
    for field, value in (
        ("NAME", "ao-eval"),
        ("EMAIL", "ao-eval@invalid"),
        ("DATE", f"{_SECONDS} +0000"),
    )
}


def add_git(workspace: Path, owner: tuple[int, int]) -> str:
    """Make the commit.

    Args:
        workspace: A staged workspace without `.git`.
        owner: uid and gid of the files made.

    Returns:
        The commit id.

    Raises:
        StagingRefused: `unreadable`: git is not installed or failed.
    """
    git(workspace, "init", "--quiet", "--template=", "--initial-branch=main")
    info = workspace / ".git" / "info"
    info.mkdir(exist_ok=True)
    # Contents go in as they are: no line ending, keyword or filter of the staged .gitattributes.
    rule = "* -text -eol -crlf -ident -filter -working-tree-encoding\n"
    (info / "attributes").write_text(rule, encoding="ascii")
    git(workspace, "add", "--all", "--force", "--", ".")
    tree = git(workspace, "write-tree").decode("ascii").strip()
    made = git(workspace, "commit-tree", "-m", "Workspace", tree, env=_IDENTITY)
    commit = made.decode("ascii").strip()
    git(workspace, "update-ref", "refs/heads/main", commit)
    # The index of `add` holds inode numbers and times; one read from the tree holds none.
    (workspace / ".git" / "index").unlink()
    git(workspace, "read-tree", commit)
    _normalise(workspace / ".git", owner)
    return commit


def _normalise(folder: Path, owner: tuple[int, int]) -> None:
    for _, _, names, descriptor in os.fwalk(folder, topdown=False):
        for name in names:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=descriptor)
            try:
                normalise(file, 0o644, owner)
            finally:
                os.close(file)
        normalise(descriptor, 0o755, owner)
    top = os.open(folder.parent, DIRECTORY_FLAGS)
    try:
        normalise(top, 0o755, owner)
    finally:
        os.close(top)
