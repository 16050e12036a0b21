"""Digests of holdout values: short values are found again by whoever hashes all candidates."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.core.outcomes.payload import Piece

_HEX_DIGEST = re.compile(r"[0-9A-Fa-f]{32,}")
_HEX_MASK: Final = bytes(b"01"[code in b"0123456789abcdefABCDEF"] for code in range(256))


class Hash(NamedTuple):
    """A hash function: name of the view, and how a computation of it is started."""

    name: str
    start: Callable[..., Any]


HASHES: Final[Mapping[int, Hash]] = {
    16: Hash("md5", hashlib.md5),
    20: Hash("sha1", hashlib.sha1),
    32: Hash("sha256", hashlib.sha256),
}
"""By length of the digest in bytes."""


def digests_in(pieces: Sequence[Piece]) -> dict[bytes, Piece]:
    """Everything in texts that has the length of a digest in hex, with the text it is first in."""
    # Most payloads have none in their prose, which a mask shows much faster than a pattern.
    mask = "\n".join(piece.text for piece in pieces).encode(errors="replace").translate(_HEX_MASK)
    present: dict[bytes, Piece] = {}
    if b"1" * (2 * min(HASHES)) not in mask:
        return present
    for piece in pieces:
        for run in _HEX_DIGEST.findall(piece.text):
            if len(run) // 2 in HASHES and len(run) % 2 == 0:
                present.setdefault(bytes.fromhex(run), piece)
    return present


def digests_of(value: str, length: int) -> Iterator[bytes]:
    """Digests of a value: as it is, with a final newline, in lower case.

    Args:
        value: The value.
        length: Of the digest in bytes, one of `HASHES`.
    """
    start = HASHES[length].start
    text = value.strip()
    exact = start(value.encode(), usedforsecurity=False)
    yield exact.digest()
    if text == value:
        exact.update(b"\n")
        yield exact.digest()
    else:
        yield start(f"{text}\n".encode(), usedforsecurity=False).digest()
    if (lower := text.lower()) != value:
        yield start(lower.encode(), usedforsecurity=False).digest()
