"""Words inside words (`theParisAnswer`, `km42`), and words in spaced letters (`P a r i s`)."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Final

from runner.core.outcomes.foldings import INNER, Folded
from runner.core.outcomes.payload import Piece, joined
from runner.core.outcomes.views import MIN_TOKEN

MAX_MIXED: Final = 64
"""Longer words are encodings rather than words in words."""

_ALNUM = re.compile(r"[A-Za-z0-9]+")
_NOT_ALNUM = re.compile(r"[\W_]+")
_MIXED = re.compile(r"[a-z][A-Z]|[0-9][A-Za-z]|[A-Za-z][0-9]")
# The same in two, each of which skips to a rare letter and then looks around: several times faster.
_CAMEL = re.compile(r"[A-Z](?<=[a-z][A-Z])")
_DIGIT_AND_LETTER = re.compile(r"[0-9](?:(?=[A-Za-z])|(?<=[A-Za-z][0-9]))")
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_SPACED = re.compile(r"(?<!\w)\w(?:\W{1,3}\w(?!\w)){2,}")
# What is in the middle of the shortest of these; and how that starts, in a mask of the text.
_SPACED_PART = re.compile(r"\W\w\W{1,3}\w(?!\w)")
_ALONE: Final = b" w "
_WORD_MASK: Final = bytes(b" w"[chr(code).isalnum() or code == ord("_")] for code in range(128)) + (
    b"?" * 128
)


def inner_pieces(items: Sequence[Folded]) -> Iterator[Piece]:
    """What stands inside words of texts, as texts of its own.

    Args:
        items: The texts.
    """
    for item in items:
        text, pointer, origin = item.piece.text, item.piece.pointer, item.piece.origin
        if parts := _parts(text):
            yield Piece(pointer, " ".join(parts), "id", joined(origin, INNER.name))
        if spaced := _spaced(item):
            view = joined(origin, "spaces and punctuation")
            yield Piece(pointer, " ".join(spaced), "id", view)


def _parts(text: str) -> list[str]:
    if _CAMEL.search(text) is None and _DIGIT_AND_LETTER.search(text) is None:
        return []
    parts = [
        part
        for word in _ALNUM.findall(text)
        if len(word) <= MAX_MIXED and _MIXED.search(word)
        for part in _PARTS.findall(word)
    ]
    return parts if max(map(len, parts), default=0) >= MIN_TOKEN else []


def _spaced(item: Folded) -> list[str]:
    text = item.piece.text
    # Most texts have no letter that stands alone, which a mask shows much faster than a pattern.
    if text.isascii() and _ALONE not in text.encode().translate(_WORD_MASK):
        return []
    if _SPACED_PART.search(text) is None or list(map(len, item.words)).count(1) < MIN_TOKEN:
        return []
    return [_NOT_ALNUM.sub("", found) for found in _SPACED.findall(text)]
