"""Which stored output belongs to which statement of a run record."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from runner.core.frames import Limits
from runner.model.record import CaseResult, RunRecord, StreamRecord

_LIMITS = Limits()
EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


class Stored(NamedTuple):
    """A file as it was found: size in bytes and SHA-256."""

    size: int
    sha256: str


class Reference(NamedTuple):
    """One output as a record states it.

    Attributes:
        pointer: JSON pointer into the record.
        place: Where its bytes have to be, below the evidence directory.
        path: Where the record says they are; None when there are none.
        size: Bytes that were written.
        kept: Leading bytes that were kept.
        sha256: Digest of all of them, as stated.
        limit: So many are kept where there are more; None: it may be fewer.
    """

    pointer: str
    place: str
    path: str | None
    size: int
    kept: int
    sha256: str | None
    limit: int | None


def references(record: RunRecord) -> Iterator[Reference]:
    """Every output of every case of a record."""
    for index, case in enumerate(record.case_results):
        folder = f"legs/{record.leg}/cases/{case.case_id}"
        yield from _of_case(case, f"/case_results/{index}", folder)


def _of_case(case: CaseResult, at: str, folder: str) -> Iterator[Reference]:
    streams: list[tuple[str, StreamRecord | None, str]] = [
        ("stdout", case.stdout, "stdout"),
        ("stderr", case.stderr, "stderr"),
    ]
    for number, probe in enumerate(case.probes, start=1):
        for name, probed in (("stdout", probe.stdout), ("stderr", probe.stderr)):
            streams.append((f"probes/{number - 1}/{name}", probed, f"probe-{number}.{name}"))
    for pointer, stream, name in streams:
        if stream is not None:
            yield Reference(
                f"{at}/{pointer}", f"{folder}/{name}", stream.path,
                stream.size, stream.kept, stream.sha256, _LIMITS.stream_bytes,
            )  # fmt: skip
    for number, receipt in enumerate(case.hooks):
        for name, output in (("stdout", receipt.stdout), ("stderr", receipt.stderr)):
            yield Reference(
                f"{at}/hooks/{number}/{name}", f"{folder}/hook-{number}.{name}", output.path,
                output.size, output.kept, output.sha256, _LIMITS.hook_bytes,
            )  # fmt: skip
    for number, file in enumerate(case.files):
        yield Reference(
            f"{at}/files/{number}", f"{folder}/file-{number}", file.blob,
            file.size, file.kept, file.sha256,
            _LIMITS.file_bytes if file.state == "regular" else None,
        )  # fmt: skip


def mismatch(item: Reference, found: Mapping[str, Stored], *, withheld: bool) -> str | None:
    """What is wrong with an output; None when statement and bytes agree.

    Args:
        item: What the record states.
        found: Every file of the evidence directory.
        withheld: The suite is a private holdout: nothing may be stored.
    """
    least = 0 if item.limit is None else min(item.size, item.limit)
    if not least <= item.kept <= item.size:
        return f"keeps {item.kept} of {item.size} bytes"
    if withheld:
        return None if item.path is None else "an output of a private holdout is stored"
    if item.path is None:
        if item.kept:
            return f"keeps {item.kept} bytes and names no file"
        if item.size == 0 and item.sha256 not in {None, EMPTY_SHA256}:
            return "is empty and has the digest of something else"
        return None
    if item.path != item.place:
        return f"names {item.path}; its place is {item.place}"
    stored = found.get(item.path)
    if stored is None:
        return f"{item.path} is missing"
    if stored.size != item.kept:
        return f"{item.path} has {stored.size} bytes, {item.kept} were kept"
    if item.kept < item.size:
        return None  # The digest is of all bytes, of which only the first ones are there.
    if item.sha256 is None:
        # What could not be read to its end has none.
        return None if item.limit is None else "is stored whole and has no digest"
    return None if stored.sha256 == item.sha256 else f"{item.path} has another SHA-256 than stated"
