"""The staged view of the repository that a suite belongs to.

What a leg must not see is physically absent from it: history, every `.agents`, the context roots
and what describes them, the suite with its expectations, earlier results, live state.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import Final

from runner.errors import InputError
from runner.host.mounts import within
from runner.host.repository import list_files
from runner.host.staging import copy_survey
from runner.host.survey import open_root, survey_paths
from runner.host.syntheticgit import add_git
from runner.model.tree import Limits, Node, StagedWorkspace, path_text

_NEVER: Final = frozenset({b".git", b".agents"})
_MOST_LINKS: Final = 100


def stage_workspace(
    top: Path,
    destination: Path,
    *,
    suite_file: Path,
    context_roots: Collection[Path],
    exclude_roots: Collection[Path],
    owner: tuple[int, int],
    include: Sequence[str] = (),
    with_git: bool = False,
    limits: Limits | None = None,
    forbidden: Collection[Node] = (),
) -> StagedWorkspace:
    """Stage the workspace.

    Args:
        top: Result of `host.repository.repository_of`, or the folder the user named.
        destination: Must not exist; a missing parent is made with mode 0700.
        suite_file: Left out, under its own name and under the one it is a link to.
        context_roots: Left out, each with the `context.json` beside it.
        exclude_roots: Left out as well: live roots, the runs directory, the folder of run homes.
            The destination's own folder is left out in any case.
        owner: uid and gid of the copy.
        include: Globs of ignored files to add; they cannot bring back what is left out.
        with_git: Add a `.git` of one synthetic commit (not part of the digest or the counts).
        limits: Bounds; the defaults when not given.
        forbidden: Device and inode of every entry of live state.

    Returns:
        Digest and counts. Links that leave the tree are listed, not copied.

    Raises:
        InputError: The workspace lies inside a root that is left out, or a glob is wrong.
        StagingRefused: As `host.staging.stage_tree`; special files are passed over instead.
        PrerequisiteError: The destination cannot be written.
    """
    listing = list_files(top, include)
    staging = _inside(top, destination.parent)
    absent = _absent(top, suite_file, context_roots, [*exclude_roots, *staging])
    wanted = [path for path in listing.paths if not _left_out(path, absent)]
    with open_root(top) as root:
        survey, passed_over = survey_paths(root, wanted, limits or Limits(), forbidden)
        # Another process may write elsewhere in the work tree meanwhile (results, say): only what
        # is copied has to hold still.
        staged = copy_survey(root, survey, destination, owner=owner, strict_directories=False)
    if with_git:
        add_git(destination, owner)
    return StagedWorkspace(
        **staged.model_dump(),
        excluded=len(listing.paths) - len(wanted),
        not_copied=passed_over,
        skipped_links=tuple(path_text(path) for path in survey.leaving[:_MOST_LINKS]),
        skipped_link_count=len(survey.leaving),
        listed_by=listing.listed_by,
    )


def _inside(top: Path, folder: Path) -> list[Path]:
    """The folder, if it lies below the workspace: what is staged must not be staged again."""
    real, base = (os.fsencode(os.path.realpath(path)) for path in (folder, top))
    return [folder] if real != base and within(real, base) else []


def _absent(
    top: Path,
    suite_file: Path,
    context_roots: Iterable[Path],
    exclude_roots: Iterable[Path],
) -> frozenset[bytes]:
    """Relative paths that are left out, under the name given and with links resolved."""
    named = [suite_file, *exclude_roots]
    for context_root in context_roots:
        real = Path(os.path.realpath(context_root))
        named += [context_root, context_root.parent / "context.json", real.parent / "context.json"]
    base = os.fsencode(os.path.realpath(top))
    prefix = base.rstrip(b"/") + b"/"
    absent = set()
    for path in named:
        for form in _names(path):
            if within(base, form):
                raise InputError(
                    f"the workspace lies inside {path_text(form)}, which no leg may see",
                    where=path_text(base),
                    remedy="name another folder with --workspace",
                )
            if form.startswith(prefix):
                absent.add(form[len(prefix) :])
    return frozenset(absent)


def _names(path: Path) -> set[bytes]:
    """The real path, and the named one below the real path of its folder (it may be a link)."""
    absolute = os.path.abspath(path)
    folder = os.path.realpath(os.path.dirname(absolute))
    return {
        os.fsencode(os.path.realpath(absolute)),
        os.fsencode(os.path.join(folder, os.path.basename(absolute))),
    }


def _left_out(path: bytes, absent: frozenset[bytes]) -> bool:
    parts = path.split(b"/")
    if not _NEVER.isdisjoint(parts):
        return True
    at = b""
    for part in parts:
        at = at + b"/" + part if at else part
        if at in absent:
            return True
    return False
