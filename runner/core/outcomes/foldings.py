"""The payload's side of the scan: its texts in each folding, as strips that can be searched.

A strip is many texts in one, so that one pass of the matcher covers them all: either `apart`, each
for itself, or `together`, which only keeps what a value that spans several texts can reach.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import accumulate, compress
from typing import Final, NamedTuple

from runner.core.outcomes import fold
from runner.core.outcomes.payload import Piece

_ROT13: Final = str.maketrans(
    "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ",
    "nopqrstuvwxyzabcdefghijklmNOPQRSTUVWXYZABCDEFGHIJKLM",
)
_GAP: Final = "\n"
"""Stands between texts that are not to be read together; in no folded word."""


class Folded:
    """A piece in its foldings.

    Attributes:
        piece: The piece.
        plain: Folded text.
        squeezed: Its words run together.
        blended: The words of the lookalike folding run together.
        foreign: Whether that folding may differ.
    """

    __slots__ = ("_similar", "_words", "blended", "foreign", "piece", "plain", "squeezed")

    def __init__(self, piece: Piece, plain: str, squeezed: str | None = None) -> None:
        self.piece = piece
        self.plain = plain
        self._words: list[str] | None = None
        self.squeezed = "".join(self.words) if squeezed is None else squeezed
        self.foreign = not piece.text.isascii()
        self._similar = fold.words(fold.lookalike(piece.text)) if self.foreign else None
        self.blended = self.squeezed if self._similar is None else "".join(self._similar)

    @property
    def words(self) -> list[str]:
        """Words of the folded text; most are never asked for."""
        if self._words is None:
            self._words = fold.words(self.plain)
        return self._words

    @property
    def similar(self) -> list[str]:
        """Words of the lookalike folding; the same object where it cannot differ."""
        return self.words if self._similar is None else self._similar


def folded_all(pieces: Sequence[Piece]) -> list[Folded]:
    """Fold pieces; those of printable ASCII, most of them, in one go."""
    simple = [piece.text.isascii() and piece.text.isprintable() for piece in pieces]
    plain = _GAP.join(compress((piece.text for piece in pieces), simple)).lower()
    ready = zip(plain.split(_GAP), fold.squeezed_lines(plain).split(_GAP), strict=True)
    return [
        Folded(piece, *next(ready)) if is_simple else Folded(piece, fold.plain(piece.text))
        for piece, is_simple in zip(pieces, simple, strict=True)
    ]


@dataclass(frozen=True)
class Folding:
    """One way to run the words of a text together.

    Attributes:
        name: Name of the view; empty where the plainest of several is named.
        texts: Of each text, the words run together.
        words: Words of the same lengths and order; none where the text has lost their edges, so
            that short values do not count.
        applies: Whether it differs from what another folding covers.
    """

    name: str
    texts: Callable[[Sequence[Folded]], list[str]]
    words: Callable[[Folded], list[str]]
    applies: Callable[[Folded], bool] = lambda _: True

    def edges(self, item: Folded) -> frozenset[int]:
        """Positions at which a word of the text starts or ends."""
        words = self.words(item)
        return frozenset(accumulate(map(len, words), initial=0)) if words else frozenset()


def _blurred(items: Sequence[Folded]) -> list[str]:
    return fold.blurred(_GAP.join(item.blended for item in items)).split(_GAP) if items else []


def _turned(items: Sequence[Folded]) -> list[str]:
    """Words in ROT13. Folding takes marks off letters, which ROT13 has left alone: turn first."""
    ascii_only = _GAP.join("" if item.foreign else item.squeezed for item in items)
    turned = ascii_only.translate(_ROT13).split(_GAP)
    return [
        "".join(_turned_words(item)) if item.foreign else text
        for item, text in zip(items, turned, strict=bool(items))
    ]


def _turned_words(item: Folded) -> list[str]:
    if not item.foreign:
        return item.words  # of the same lengths
    return fold.words(fold.lookalike(item.piece.text.translate(_ROT13)))


SQUEEZED: Final = Folding(
    "", lambda items: [item.squeezed for item in items], lambda item: item.words
)
SIMILAR: Final = Folding(
    "lookalike characters",
    lambda items: [item.blended for item in items],
    lambda item: item.similar,
    lambda item: item.foreign,
)
BLURRED: Final = Folding("lookalike characters", _blurred, lambda _: [])
REVERSED: Final = Folding(
    "reversed",
    lambda items: [item.blended[::-1] for item in items],
    lambda item: item.similar[::-1],
)
ROT13: Final = Folding("rot13", _turned, _turned_words)
FOLDINGS: Final = (SQUEEZED, SIMILAR, BLURRED, REVERSED, ROT13)
INNER: Final = Folding("inside a word", SQUEEZED.texts, SQUEEZED.words)


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
