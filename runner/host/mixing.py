"""Context roots put together from staged ones: a copy under another name, or some of each."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from runner.core.treehash import content_digest
from runner.core.units import Placed, Side
from runner.errors import InternalError
from runner.host.staging import EPOCH_NS, normalise
from runner.host.survey import DIRECTORY_FLAGS
from runner.model.tree import Staged, path_text


def mix_roots(
    placed: Iterable[Placed],
    sources: Mapping[Side, Path],
    destination: Path,
    *,
    owner: tuple[int, int],
) -> Staged:
    """Copy entries of staged roots into a new one that is staged in the same way.

    Args:
        placed: Entries by path, each with the root that it is taken from; `core.units.mixed`.
        sources: Where the staged roots lie. Nobody else can write there.
        destination: Must not exist.
        owner: uid and gid of the copy.

    Raises:
        InternalError: An entry is not what it was when it was staged.
    """
    destination.mkdir(mode=0o700)
    entries = tuple(placed)
    folders, size = [destination], 0
    for record, side in entries:
        source = os.fsencode(sources[side]) + b"/" + record.path
        target = os.fsencode(destination) + b"/" + record.path
        if record.kind == "d":
            os.mkdir(target, 0o700)
            folders.append(Path(os.fsdecode(target)))
        elif record.kind == "l":
            os.symlink(os.readlink(source), target)
            if os.geteuid() == 0:
                os.chown(target, *owner, follow_symlinks=False)
            os.utime(target, ns=(EPOCH_NS, EPOCH_NS), follow_symlinks=False)
        else:
            size += _copy(source, target, record.sha256, executable=record.executable, owner=owner)
    # Making an entry changes the times of the folder above it.
    for folder in reversed(folders):
        descriptor = os.open(folder, DIRECTORY_FLAGS)
        try:
            normalise(descriptor, 0o755, owner)
        finally:
            os.close(descriptor)
    return Staged(
        sha256=content_digest(item.record for item in entries), entries=len(entries), size=size
    )


def _copy(
    source: bytes, target: bytes, sha256: str, *, executable: bool, owner: tuple[int, int]
) -> int:
    digest, size = hashlib.sha256(), 0
    with open(source, "rb") as reader, open(target, "xb") as writer:
        while data := reader.read(1 << 20):
            digest.update(data)
            size += len(data)
            writer.write(data)
        writer.flush()
        normalise(writer.fileno(), 0o755 if executable else 0o644, owner)
    if digest.hexdigest() != sha256:
        raise InternalError(f"a staged root changed: {path_text(source)}")
    return size
