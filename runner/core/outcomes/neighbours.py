"""What texts say where they meet: escapes and encoded runs that start in one and end in another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final

from runner.core.outcomes.payload import Piece
from runner.core.outcomes.unwrap import RUN_CHARS, is_word, unescaped

NEIGHBOURS: Final = 2
"""So many texts on either side of an escape are read together with it."""
_ESCAPE_MARKS: Final = frozenset("&%=\\")
_ESCAPE_REACH: Final = 12

Order = tuple[int, ...]


def without_escapes(piece: Piece) -> Piece:
    """A piece with its escapes undone; the same one where it has none."""
    text = unescaped(piece.text)
    return piece if text == piece.text else Piece(piece.pointer, text, piece.kind, "escapes")


def near_escapes(order: Order, bare: Sequence[Piece]) -> Order:
    """The part of an order where escapes were undone, with neighbours."""
    chosen = {
        number + step
        for number, position in enumerate(order)
        if bare[position].origin
        for step in range(-NEIGHBOURS, NEIGHBOURS + 1)
    }
    return tuple(position for number, position in enumerate(order) if number in chosen)


def unescaped_as_one(document: Sequence[Piece], orders: Sequence[Order]) -> Iterator[Piece]:
    """Orders in which an escape is cut by the end of a text, read as one text."""
    for order in orders:
        texts = [document[position].text for position in order]
        if any(_escape_across(one, other) for one, other in pairwise(texts)):
            view = "escapes, split across fields"
            yield Piece("", unescaped("".join(texts)), "text", view)


def runs_across(bare: Sequence[Piece], orders: Sequence[Order]) -> Iterator[Piece]:
    """The runs that texts make where they meet."""
    texts = [piece.text for piece in bare]
    tails = [text[len(text.rstrip(RUN_CHARS)) :] for text in texts]
    heads = [text[: len(text) - len(text.lstrip(RUN_CHARS + "="))] for text in texts]
    for order in orders:
        for one, other in pairwise(order):
            tail, head = tails[one], heads[other]
            if tail and head and not (is_word(tail) and is_word(head)):
                yield Piece("", tail + head)


def ends(texts: Sequence[str], reach: int) -> str:
    """Texts without their middles, for what only looks at where they meet.

    Args:
        texts: The texts.
        reach: Letters of the longest value.
    """
    kept = 2 * reach + 16
    return "\n".join(
        text if len(text) <= 2 * kept else f"{text[:kept]}\n{text[-kept:]}" for text in texts
    )


def _escape_across(before: str, after: str) -> bool:
    """Whether an escape starts in one text and ends in the other."""
    tail, head = before[-_ESCAPE_REACH:], after[:_ESCAPE_REACH]
    if _ESCAPE_MARKS.isdisjoint(tail):
        return False
    return unescaped(tail + head) != unescaped(tail) + unescaped(head)
