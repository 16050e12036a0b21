"""The payload's side of the scan: its texts in each folding, as strips that can be searched.

A strip is many texts in one, so that one pass of the matcher covers them all: either `apart`, each
for itself, or `together`, which only keeps what a value that spans several texts can reach.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import Final, NamedTuple

from runner.core.outcomes import fold
from runner.core.outcomes.payload import Piece

_ROT13: Final = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "nopqrstuvwxyzabcdefghijklmNOPQRSTUVWXYZABCDEFGHIJKLM",
)
_GAP: Final = "\n"
"""Stands between texts that are not to be read together; in no folded word."""


class Folded(NamedTuple):
    """A piece in its foldings.

    Attributes:
        piece: The piece.
        plain: Folded text.
        words: Its words.
        squeezed: Its words run together.
        similar: Words of the lookalike folding; the same object where it changes nothing.
        blended: Those run together.
    """

    piece: Piece
    plain: str
    words: list[str]
    squeezed: str
    similar: list[str]
    blended: str


def folded_all(pieces: Sequence[Piece]) -> list[Folded]:
    """Fold pieces."""
    folded = []
    for piece in pieces:
        plain = fold.plain(piece.text)
        words = fold.words(plain)
        squeezed = "".join(words)
        similar, blended = words, squeezed
        if not piece.text.isascii():
            similar = fold.words(fold.lookalike(piece.text))
            blended = "".join(similar)
        folded.append(Folded(piece, plain, words, squeezed, similar, blended))
    return folded


@dataclass(frozen=True)
class Folding:
    """One way to run the words of a text together.

    Attributes:
        name: Name of the view; empty where the plainest of several is named.
        text: The words run together.
        words: Words of the same lengths and order; none where the text has lost their edges, so
            that short values do not count.
        applies: Whether it differs from what another folding covers.
    """

    name: str
    text: Callable[[Folded], str]
    words: Callable[[Folded], list[str]]
    applies: Callable[[Folded], bool] = lambda _: True

    def edges(self, item: Folded) -> frozenset[int]:
        """Positions at which a word of the text starts or ends."""
        words = self.words(item)
        return frozenset(accumulate(map(len, words), initial=0)) if words else frozenset()


def _turned(item: Folded) -> str:
    """Words in ROT13. Folding takes marks off letters, which ROT13 has left alone: turn first."""
    if item.piece.text.isascii():
        return item.squeezed.translate(_ROT13)
    return "".join(_turned_words(item))


def _turned_words(item: Folded) -> list[str]:
    if item.piece.text.isascii():
        return item.words  # of the same lengths
    return fold.words(fold.lookalike(item.piece.text.translate(_ROT13)))


SQUEEZED: Final = Folding("", lambda item: item.squeezed, lambda item: item.words)
SIMILAR: Final = Folding(
    "lookalike characters",
    lambda item: item.blended,
    lambda item: item.similar,
    lambda item: item.similar is not item.words,
)
BLURRED: Final = Folding(
    "lookalike characters", lambda item: fold.blurred(item.blended), lambda _: []
)
REVERSED: Final = Folding(
    "reversed",
    lambda item: item.blended[::-1],
    lambda item: item.similar[::-1],
)
ROT13: Final = Folding("rot13", _turned, _turned_words)
FOLDINGS: Final = (SQUEEZED, SIMILAR, BLURRED, REVERSED, ROT13)
INNER: Final = Folding("inside a word", lambda item: item.squeezed, lambda item: item.words)


class Strip(NamedTuple):
    """Texts to be searched as one.

    Attributes:
        text: What is searched.
        starts: Where each part starts in it.
        parts: Of each part, the number of the text it is from and its position there.
        lengths: Length of each text.
    """

    text: str
    starts: list[int]
    parts: list[tuple[int, int]]
    lengths: list[int]

    def locate(self, position: int) -> tuple[int, int]:
        """Number of the text that a position is in, and the position there."""
        part = bisect_right(self.starts, position) - 1
        number, at = self.parts[part]
        return number, at + position - self.starts[part]

    def translated(self) -> Strip:
        """The strip in ROT13."""
        return self._replace(text=self.text.translate(_ROT13))

    def reversed(self) -> Strip:
        """The strip backwards; positions count from the end of each text."""
        ends = [*self.starts, len(self.text)][1:]
        lengths = [end - start for start, end in zip(self.starts, ends, strict=True)]
        starts = [len(self.text) - end for end in reversed(ends)]
        parts = [
            (number, self.lengths[number] - at - length)
            for (number, at), length in zip(self.parts, lengths, strict=True)
        ]
        return Strip(self.text[::-1], starts, parts[::-1], self.lengths)


def apart(texts: Sequence[str]) -> Strip:
    """Texts of which no two are read together."""
    lengths = list(map(len, texts))
    starts = list(accumulate((length + len(_GAP) for length in lengths), initial=0))[:-1]
    return Strip(_GAP.join(texts), starts, [(number, 0) for number in range(len(texts))], lengths)


def together(texts: Sequence[str], reach: int) -> Strip:
    """Texts read together, without what is further than `reach` from both of their ends."""
    starts: list[int] = []
    parts: list[tuple[int, int]] = []
    pieces: list[str] = []
    position = 0
    for number, text in enumerate(texts):
        length = len(text)
        if not length:
            continue  # no part: a position must belong to one part only
        starts.append(position)
        parts.append((number, 0))
        if length <= 2 * reach + 1:
            pieces.append(text)
            position += length
            continue
        pieces += (text[:reach], _GAP, text[length - reach :])
        # The gap counts as the last position of what it cuts out.
        starts.append(position + reach)
        parts.append((number, length - reach - 1))
        position += 2 * reach + 1
    return Strip("".join(pieces), starts, parts, list(map(len, texts)))
