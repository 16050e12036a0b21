"""The hooks directory: where its `hooks.json` lies, its staging, and the receipts compared."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterable, Sequence
from pathlib import Path
from typing import NamedTuple

from runner.app.legrunner import LegOutcome
from runner.app.suites import read_bytes
from runner.core.hookreceipts import settle_round
from runner.core.hooksfile import FILE_NAME, read_hooks
from runner.errors import InputError, StagingRefused
from runner.host.absence import reaches
from runner.host.staging import stage_tree
from runner.model.hooks import HooksDirectory
from runner.model.tree import Node

OPTION = "--hooks-dir"
_PLACES = (Path(FILE_NAME), Path("hooks") / FILE_NAME)
"""A folder of hooks, or a plugin's root."""
_NEVER = frozenset({".agents", ".git"})


class StagedHooks(NamedTuple):
    """A hooks directory as legs get it.

    Attributes:
        directory: Its identity and what of it is run.
        staged: Where the copy lies.
        warnings: What is worth knowing.
    """

    directory: HooksDirectory
    staged: Path
    warnings: tuple[str, ...]


def stage_hooks(
    folder: Path,
    destination: Path,
    *,
    owner: tuple[int, int],
    forbidden: Collection[Node],
    live: Iterable[Path],
    hidden: Iterable[Path],
) -> StagedHooks:
    """Stage a hooks directory and read its `hooks.json` from the copy.

    Args:
        folder: `--hooks-dir`.
        destination: Where the copy goes.
        owner: Whose the copy is: nobody that a case runs as.
        forbidden: Entries of live state.
        live: Live roots.
        hidden: What no case may see: context roots, the suite, evidence of earlier runs.

    Raises:
        InputError: It is missing or unreadable, or its `hooks.json` is absent or refused.
        StagingRefused: It holds what must not enter a container, or reaches live state.
    """
    _check_apart(folder, "live state", live)
    _check_apart(folder, "what no case may see", hidden)
    try:
        staged = stage_tree(folder, destination, owner=owner, forbidden=forbidden)
    except StagingRefused as refusal:
        if refusal.detail == "unsafe_entry":
            raise
        raise InputError(refusal.summary, where=f"{OPTION} {refusal.where}") from refusal
    _check_names(folder, destination)
    place = _hooks_file(folder, destination)
    found = read_hooks(read_bytes(destination / place), str(folder / place))
    warnings: tuple[str, ...] = ()
    if not found.hooks:
        warnings = (f"{OPTION}: {FILE_NAME} has no hook that runs around a case",)
    directory = HooksDirectory(
        sha256=staged.sha256,
        entries=staged.entries,
        size=staged.size,
        hooks=found.hooks,
        not_run=found.not_run,
    )
    return StagedHooks(directory, destination, warnings)


def _check_apart(folder: Path, what: str, places: Iterable[Path]) -> None:
    for place in places:
        if reaches(folder, place) is not None:
            raise StagingRefused(
                f"a hooks directory may not be, hold or lie in {what}",
                detail="unsafe_entry",
                where=f"{OPTION} {folder}",
                remedy=f"copy it away from {place}",
            )


def _check_names(folder: Path, staged: Path) -> None:
    """Refuse what a workspace never shows either: histories and agents directories."""
    for top, folders, files in os.walk(staged):
        for name in sorted(_NEVER.intersection([*folders, *files])):
            raise StagingRefused(
                f"holds {name}, which no case may see",
                detail="unsafe_entry",
                where=f"{OPTION} {folder / Path(top).relative_to(staged) / name}",
                remedy="copy the hooks without it",
            )


def _hooks_file(folder: Path, staged: Path) -> Path:
    found = [place for place in _PLACES if (staged / place).is_file()]
    if len(found) == 1:
        return found[0]
    places = " and ".join(map(str, _PLACES))
    raise InputError(
        f"has both {places}" if found else f"has no {FILE_NAME}",
        where=f"{OPTION} {folder}",
        remedy=f"one of {places} is read" if found else f"it is looked for at {places}",
    )


def compare_receipts(outcomes: Sequence[LegOutcome]) -> None:
    """Degrade the cases whose hooks differ between legs or did not complete; see `settle_round`."""
    settled = settle_round(
        [outcome.results for outcome in outcomes],
        [(outcome.plan.axis, outcome.plan.variant) for outcome in outcomes],
    )
    for outcome, results in zip(outcomes, settled, strict=True):
        outcome.results = results
