"""The scan of a payload for holdout values, in every view.

The payload's texts are folded and decoded; the values are looked for in what comes out. A hit says
which value, in which view and where, and never what.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from runner.core import strictjson
from runner.core.outcomes import fold
from runner.core.outcomes.digests import HASHES, digests_in, digests_of
from runner.core.outcomes.foldings import (
    BLURRED,
    FOLDINGS,
    INNER,
    REVERSED,
    ROT13,
    SIMILAR,
    SQUEEZED,
    Folded,
    Folding,
    Strip,
    apart,
    folded_all,
    together,
)
from runner.core.outcomes.holdout import HoldoutValue
from runner.core.outcomes.innerwords import inner_pieces
from runner.core.outcomes.neighbours import (
    ends,
    near_escapes,
    runs_across,
    unescaped_as_one,
    without_escapes,
)
from runner.core.outcomes.numerals import Magnitude, numbers_across, readings, tokens_in
from runner.core.outcomes.payload import RUBRIC, Piece, Shape, joined, pieces_of
from runner.core.outcomes.sealed import sealed
from runner.core.outcomes.unwrap import TooDeep, decoded, noise
from runner.core.outcomes.views import MIN_ANYWHERE, Needles, literal, needles
from runner.errors import HoldoutRefusal, InputError

MIN_DIGITS_IN_NUMBERS: Final = 4
"""Significant digits from which a JSON number, or one in an id, counts: a weight of 0.25 is none
of 0.25's business."""

_ANSWER = re.compile(
    r"\b(?:answer|solution|result|target|truth|output|label)s?"
    r"(?:\s+(?:is|are|was|be|equals|(?:should|must)\s+be)\b\s*:?|\s*[:=])"
    r"[\s\"'(\[`*]*([^\s\"'`*)\],;:!?]+?)(?=[\s\"'`*)\]]*(?:[.,;:!?]|$|\n))"
)
_NOT_ASCII_ALNUM: Final = bytes(
    code for code in range(256) if not (code < 128 and chr(code).isalnum())
)


class Hit(NamedTuple):
    """A holdout value that was found.

    Attributes:
        value_index: Index of the value.
        view: Name of the view that showed it.
        pointer: JSON pointer; empty where it is spread over several places.
    """

    value_index: int
    view: str
    pointer: str


def unscannable(values: Sequence[HoldoutValue]) -> tuple[int, ...]:
    """Indexes of the values that say too little to be certified absent."""
    return needles(values).unscannable


@sealed
def scan(payload: bytes, values: Sequence[HoldoutValue], shape: Shape = RUBRIC) -> tuple[Hit, ...]:
    """Look for holdout values in a payload.

    Args:
        payload: JSON.
        values: What must not be in it.
        shape: What of the payload is constant.

    Returns:
        The first hit of each value that was found, by index.

    Raises:
        InputError: The payload is not strict JSON.
        HoldoutRefusal: It is encoded more deeply than is looked through.
    """
    return find(payload, needles(values), shape)


def find(payload: bytes, sought: Needles, shape: Shape = RUBRIC) -> tuple[Hit, ...]:
    """`scan` with prepared values."""
    try:
        search = _Search(sought)
        search.payload(payload, shape)
    except strictjson.StrictJsonError as error:
        raise InputError(error.message, where="payload") from None
    except TooDeep:
        raise HoldoutRefusal(
            "a text is encoded too deeply to be scanned",
            remedy="write the rubric in plain text",
        ) from None
    return tuple(search.hits[place] for place in sorted(search.hits))


class _Search:
    """One pass over one payload; keeps the first hit of each value."""

    def __init__(self, sought: Needles) -> None:
        self.sought = sought
        self.hits: dict[int, Hit] = {}
        self._read: dict[str, set[Magnitude]] = {}

    def payload(self, payload: bytes, shape: Shape) -> None:
        pieces = pieces_of(payload, shape)
        document = pieces.document
        orders = (tuple(range(len(document))), *pieces.orders)
        items = folded_all(document)
        self._inside(items)
        self._across(items, orders)
        # The same again without escapes: what they hide may be spread over fields as well.
        bare = [without_escapes(piece) for piece in document]
        changed = [piece for piece in bare if piece.origin]
        if changed:
            self._inside(folded_all(changed))
            self._across(folded_all(bare), [near_escapes(order, bare) for order in orders])
        digests = tuple(piece for piece in pieces.others if piece.kind == "digest")
        meeting = list(runs_across(bare, orders))
        whole = list(unescaped_as_one(document, orders))
        self._inside(folded_all(whole))
        inner = folded_all(decoded([*document, *changed, *digests, *meeting, *whole]))
        self._inside(inner)
        self._across(inner, [tuple(range(len(inner)))])
        self._noise("\n".join(piece.text for piece in bare))
        for order in pieces.orders:
            self._noise(
                ends([bare[position].text for position in order], self.sought.squeezed.reach)
            )
        self._noise("\n".join(piece.text for piece in digests))
        self._digests((document, pieces.others, [item.piece for item in inner]))
        for piece in pieces.others:
            if piece.kind == "number":
                self._numbers(piece, piece.text)

    def _hit(self, place: int, view: str, pointer: str) -> None:
        if place not in self.hits:
            index = self.sought.values[place].index
            self.hits[place] = Hit(index, view, pointer)

    def _inside(self, items: Sequence[Folded]) -> None:
        """Look into each text."""
        for folding in FOLDINGS:
            chosen = [item for item in items if folding.applies(item)]
            self._run(chosen, apart(folding.texts(chosen)), folding)
        for item in items:
            self._tokens(item)
            self._small(item)
            self._numbers(item.piece, item.plain)
        if self.sought.literals.patterns:
            self._literals(items)
        self._inner_words(items)

    def _across(self, items: Sequence[Folded], orders: Sequence[tuple[int, ...]]) -> None:
        """Look where texts meet, in every order.

        Besides, in document order: backwards, in ROT13 and with lookalikes merged.
        """
        foreign = any(item.foreign for item in items)
        for number, order in enumerate(orders):
            row = [items[position] for position in order]
            strip = together([item.blended for item in row], self.sought.squeezed.reach)
            self._run(row, strip, SIMILAR if foreign else SQUEEZED)
            if foreign:
                strip_plain = together([item.squeezed for item in row], self.sought.squeezed.reach)
                self._run(row, strip_plain, SQUEEZED)
            if number == 0:
                self._run(row, strip.translated(), ROT13)
                self._run(row, strip.reversed(), REVERSED)
                self._merged(fold.blurred(strip.text))
            for before, after in pairwise(row):
                for reading in numbers_across(before.plain, after.plain):
                    for place in self.sought.numbers.get(reading, ()):
                        self._hit(place, "number, split across fields", "")

    def _merged(self, text: str) -> None:
        """Look where texts meet in a folding that has moved their edges."""
        matcher = self.sought.squeezed
        for number, _, _ in matcher.find(text):
            if not matcher.is_aligned[number]:
                for place in matcher.holders[number]:
                    self._hit(place, joined(BLURRED.name, "split across fields"), "")

    def _run(self, items: Sequence[Folded], strip: Strip, folding: Folding) -> None:
        """Look for words run together."""
        matcher = self.sought.squeezed
        for number, start, end in matcher.find(strip.text):
            if all(place in self.hits for place in matcher.holders[number]):
                continue
            first, first_at = strip.locate(start)
            last, last_at = strip.locate(end - 1)
            if matcher.is_aligned[number] and not (
                first_at in folding.edges(items[first])
                and last_at + 1 in folding.edges(items[last])
            ):
                continue
            item = items[first]
            for place in matcher.holders[number]:
                if first != last:
                    self._hit(place, joined(folding.name, "split across fields"), "")
                else:
                    shown = folding.name or _simplest(item, self.sought.values[place].text)
                    self._hit(place, joined(item.piece.origin, shown), item.piece.pointer)

    # -- tokens, small values, numbers

    def _tokens(self, item: Folded) -> None:
        if not self.sought.tokens:
            return
        found = self.sought.tokens.keys() & {*item.words, *item.similar}
        for token in found:
            for place in self.sought.tokens[token]:
                shown = _simplest(item, self.sought.values[place].text)
                self._hit(place, joined(item.piece.origin, shown), item.piece.pointer)

    def _small(self, item: Folded) -> None:
        if not self.sought.whole or item.piece.kind != "text":
            return
        for place in self.sought.whole.get(item.plain.strip(), ()):
            self._hit(place, joined(item.piece.origin, "whole field"), item.piece.pointer)
        for found in _ANSWER.finditer(item.plain):
            for place in self.sought.answers.get(found[1].rstrip("."), ()):
                self._hit(place, joined(item.piece.origin, "answer position"), item.piece.pointer)

    def _numbers(self, piece: Piece, text: str) -> None:
        if not self.sought.numbers:
            return
        coarse = piece.kind in {"number", "id"}
        for _, token in tokens_in(text):
            found = self._read.get(token)
            if found is None:
                found = self._read[token] = readings(token) & self.sought.numbers.keys()
            for reading in found:
                if coarse and len(reading[0]) < MIN_DIGITS_IN_NUMBERS:
                    continue
                for place in self.sought.numbers[reading]:
                    self._hit(place, joined(piece.origin, "number"), piece.pointer)

    def _literals(self, items: Sequence[Folded]) -> None:
        matcher = self.sought.literals
        for item in items:
            text = literal(item.plain)
            for number, start, end in matcher.find(text):
                if start and fold.joins(text[start - 1], text[start]):
                    continue
                if end < len(text) and fold.joins(text[end - 1], text[end]):
                    continue
                for place in matcher.holders[number]:
                    shown = _simplest(item, self.sought.values[place].text)
                    self._hit(place, joined(item.piece.origin, shown), item.piece.pointer)

    def _inner_words(self, items: Sequence[Folded]) -> None:
        """Words inside words, and words in spaced letters."""
        folded = folded_all(list(inner_pieces(items)))
        for item in folded:
            self._tokens(item)
            self._numbers(item.piece, item.plain)
        self._run(folded, apart([item.squeezed for item in folded]), INNER)

    # -- encodings and digests

    def _noise(self, text: str) -> None:
        matcher = self.sought.squeezed
        for view, data in noise(text):
            squeezed = data.translate(None, _NOT_ASCII_ALNUM).decode("ascii").lower()
            for number, _, _ in matcher.find(squeezed):
                pattern = matcher.patterns[number]
                if len(pattern) >= MIN_ANYWHERE and _stands_in(pattern, data):
                    for place in matcher.holders[number]:
                        self._hit(place, view, "")

    def _digests(self, groups: Sequence[Sequence[Piece]]) -> None:
        present: dict[bytes, Piece] = {}
        for group in groups:
            present = digests_in(group) | present
        for length in sorted({len(digest) for digest in present}):
            for place, value in enumerate(self.sought.values):
                for digest in digests_of(value.text, length):
                    if digest in present:
                        self._hit(place, HASHES[length].name, present[digest].pointer)


def _simplest(item: Folded, value: str) -> str:
    """The plainest view in which a value that a folding has found can be seen."""
    if value in item.piece.text:
        return "text"
    if value.casefold() in item.piece.text.casefold():
        return "letter case"
    if literal(fold.plain(value)) in literal(item.plain):
        return "unicode form"
    return "spaces and punctuation"


def _stands_in(pattern: str, data: bytes) -> bool:
    """Whether letters found in noise stand together there, with readable text between them."""
    between = rb"[\x00\s\x21-\x2f\x3a-\x40\x5b-\x60\x7b-\x7e]{0,4}"
    letters = between.join(re.escape(char).encode() for char in pattern)
    return re.search(letters, data, re.IGNORECASE) is not None
