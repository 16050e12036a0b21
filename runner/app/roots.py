"""Context roots: which folders they are, what they are labelled, and their staging."""

from __future__ import annotations

import os
from pathlib import Path
from typing import NamedTuple

from pydantic import ValidationError

from runner.app.suites import read_bytes
from runner.core.sentinels import flaw, sentinels
from runner.core.strictjson import StrictJsonError, loads
from runner.core.treehash import TreeRecord
from runner.errors import InputError, StagingRefused
from runner.host.absence import reaches
from runner.host.staging import stage_records
from runner.model.contextfile import ContextFile
from runner.model.leg import ContextRoot, Degradation, DegradedReason, Variant
from runner.model.tree import Node, path_bytes, path_text

CONTEXT_FILE = "context.json"


class RootOfLeg(NamedTuple):
    """A context root as one leg gets it.

    Attributes:
        root: Identity; its digest is None when it could not be staged.
        staged: Where the copy lies.
        degraded: Why it could not be staged.
        refusal: The whole refusal, for the problems of the run; None when merely missing.
        context: What `context.json` beside it says.
        records: Every entry of the copy, ordered by path bytes.
    """

    root: ContextRoot
    staged: Path | None
    degraded: Degradation | None
    refusal: str | None
    context: ContextFile | None
    records: tuple[TreeRecord, ...] = ()


def default_root(suite: Path, variant: str) -> Path:
    """`<suite folder>/fixtures/<suite stem>/<context-off|context-on>/agents`."""
    side = variant.replace("_", "-")
    return suite.parent / "fixtures" / suite.stem / side / "agents"


def read_context_file(root: Path) -> ContextFile | None:
    """Read `context.json` beside a root; None when there is none.

    Raises:
        InputError: It is there and not valid.
    """
    path = root.parent / CONTEXT_FILE
    if not path.is_file():
        return None
    try:
        found = ContextFile.model_validate(loads(read_bytes(path)))
    except StrictJsonError as error:
        raise InputError(str(error), where=str(path)) from error
    except ValidationError as error:
        first = error.errors()[0]
        pointer = "".join(f"/{part}" for part in first["loc"])
        raise InputError(str(first["msg"]), where=f"{path}#{pointer}") from error
    # From here on an artifact has the name that units, reads and evidence have for it.
    named = [
        item.model_copy(update={"path": path_text(item.path.encode())}) for item in found.artifacts
    ]
    return found.model_copy(update={"artifacts": tuple(named)})


def _place(staged: Path, artifact: str) -> Path:
    return staged / os.fsdecode(path_bytes(artifact))


def stage_root(
    root: Path,
    destination: Path,
    *,
    variant: str,
    owner: tuple[int, int],
    forbidden: frozenset[Node],
    live: tuple[Path, ...],
) -> RootOfLeg:
    """Stage a context root; what cannot be staged degrades its leg.

    Args:
        root: The folder.
        destination: Where its copy goes.
        variant: Gives the label when `context.json` does not.
        owner: Whose the copy is: nobody that a case runs as.
        forbidden: Entries of live state.
        live: Live roots; a context root must be none of them.
    """
    context = read_context_file(root)
    label = context.label if context is not None else variant.replace("_", "-")
    try:
        for live_root in live:
            if reaches(root, live_root) is not None:
                raise StagingRefused(
                    "a context root may not be, hold or lie in live state",
                    detail="unsafe_entry",
                    where=str(root),
                    remedy=f"copy it out of {live_root}",
                )
        staged, records = stage_records(root, destination, owner=owner, forbidden=forbidden)
    except StagingRefused as refusal:
        return RootOfLeg(
            ContextRoot(label=label, sha256=None, path=str(root)),
            None,
            Degradation(reason=DegradedReason.CONTEXT_ROOT_UNAVAILABLE, detail=refusal.detail),
            refusal.line() if refusal.detail == "unsafe_entry" else None,
            context,
        )
    if context is not None:
        _check_labels(root, destination, context, records)
    found = ContextRoot(
        label=label,
        sha256=staged.sha256,
        path=str(root),
        entries=staged.entries,
        size=staged.size,
        sentinels=sentinels(context),
    )
    return RootOfLeg(found, destination, None, None, context, records)


def _check_labels(
    root: Path, staged: Path, context: ContextFile, records: tuple[TreeRecord, ...]
) -> None:
    """A control that cannot fail proves nothing: it is refused before anything runs."""
    files = {path_text(record.path) for record in records if record.kind == "f"}
    contents = {
        item.path: _place(staged, item.path).read_bytes()
        for item in context.artifacts
        if item.path in files
    }
    found = flaw(context, contents)
    if found is not None:
        where = f"{root.parent / CONTEXT_FILE}#{found.pointer}"
        raise InputError(found.message, where=where, remedy=found.remedy)


def helpful_in_off(off: RootOfLeg, on: RootOfLeg) -> tuple[str, ...]:
    """Warnings: artifacts that the on-root calls helpful and the off-root has as well."""
    if on.context is None or off.staged is None or on.staged is None:
        return ()
    warnings = []
    for artifact in on.context.artifacts:
        theirs, ours = _place(off.staged, artifact.path), _place(on.staged, artifact.path)
        if artifact.role == "helpful" and theirs.is_file() and ours.is_file():
            same = theirs.read_bytes() == ours.read_bytes()
            warnings.append(
                f"helpful artifact {artifact.path} is in the {Variant.CONTEXT_OFF} root too"
                + (" (same bytes)" if same else "")
            )
    return tuple(warnings)
