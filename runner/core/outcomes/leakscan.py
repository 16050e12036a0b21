"""The scan of a payload for holdout values, in every view.

The payload's texts are folded and decoded; the values are looked for in what comes out. A hit says
which value, in which view and where, and never what.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Final, NamedTuple

from runner.core import strictjson
from runner.core.outcomes import fold
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
from runner.core.outcomes.numerals import numbers_across, numbers_in
from runner.core.outcomes.payload import RUBRIC, Piece, Shape, pieces_of
from runner.core.outcomes.sealed import sealed
from runner.core.outcomes.unwrap import (
    TooDeep,
    decoded,
    escape_across,
    noise,
    run_across,
    unescaped,
)
from runner.core.outcomes.views import (
    MIN_ANYWHERE,
    MIN_TOKEN,
    Needles,
    literal,
    needles,
)
from runner.errors import HoldoutRefusal, InputError

MIN_DIGITS_IN_NUMBERS: Final = 4
"""Significant digits from which a JSON number, or one in an id, counts: a weight of 0.25 is none
of 0.25's business."""

_ALNUM = re.compile(r"[A-Za-z0-9]+")
_NOT_ALNUM = re.compile(r"[\W_]+")
_DIGIT = re.compile(r"[0-9]")
_CAMEL = re.compile(r"[a-z][A-Z]")
_MIXED = re.compile(r"[a-z][A-Z]|[0-9][A-Za-z]|[A-Za-z][0-9]")
NEIGHBOURS: Final = 2
MAX_MIXED: Final = 64
"""Longer words are encodings rather than words in words."""
_PARTS = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
_SPACED = re.compile(r"(?<!\w)\w(?:\W{1,3}\w(?!\w)){2,}")
_ANSWER = re.compile(
    r"\b(?:answer|solution|result|target|truth|output|label)s?"
    r"(?:\s+(?:is|are|was|be|equals|(?:should|must)\s+be)\b\s*:?|\s*[:=])"
    r"[\s\"'(\[`*]*([^\s\"'`*)\],;:!?]+?)(?=[\s\"'`*)\]]*(?:[.,;:!?]|$|\n))"
)
_HEX_DIGEST = re.compile(r"[0-9A-Fa-f]{32,}")
_NOT_ASCII_ALNUM: Final = bytes(
    code for code in range(256) if not (code < 128 and chr(code).isalnum())
)
_HASHES: Final = {
    32: ("md5", hashlib.md5),
    40: ("sha1", hashlib.sha1),
    64: ("sha256", hashlib.sha256),
}


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

    def payload(self, payload: bytes, shape: Shape) -> None:
        pieces = pieces_of(payload, shape)
        document = pieces.document
        orders = (tuple(range(len(document))), *pieces.orders)
        items = folded_all(document)
        self._inside(items)
        self._across(items, orders)
        # The same again without escapes: what they hide may be spread over fields as well.
        bare = [_bare(piece) for piece in document]
        changed = [piece for piece in bare if piece.origin]
        if changed:
            self._inside(folded_all(changed))
            self._across(folded_all(bare), [_near(order, bare) for order in orders])
        digests = tuple(piece for piece in pieces.others if piece.kind == "digest")
        meeting = [
            piece
            for order in orders
            for one, other in pairwise(order)
            if (piece := run_across(bare[one], bare[other])) is not None
        ]
        whole = list(_unescaped_as_one(document, orders))
        self._inside(folded_all(whole))
        inner = folded_all(decoded([*document, *changed, *digests, *meeting, *whole]))
        self._inside(inner)
        self._across(inner, [tuple(range(len(inner)))])
        self._noise("\n".join(piece.text for piece in bare))
        for order in pieces.orders:
            self._noise(self._ends([bare[position].text for position in order]))
        self._noise("\n".join(piece.text for piece in digests))
        self._digests((*document, *pieces.others, *(item.piece for item in inner)))
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
            self._run(chosen, apart(list(map(folding.text, chosen))), folding)
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
        foreign = any(item.similar is not item.words for item in items)
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
                    self._hit(place, _joined(BLURRED.name, "split across fields"), "")

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
                    self._hit(place, _joined(folding.name, "split across fields"), "")
                else:
                    shown = folding.name or _simplest(item, self.sought.values[place].text)
                    self._hit(place, _joined(item.piece.origin, shown), item.piece.pointer)

    def _ends(self, texts: Sequence[str]) -> str:
        """Texts without their middles, for what only looks at where they meet."""
        reach = 2 * self.sought.squeezed.reach + 16
        return "\n".join(
            text if len(text) <= 2 * reach else f"{text[:reach]}\n{text[-reach:]}" for text in texts
        )

    # -- tokens, small values, numbers

    def _tokens(self, item: Folded) -> None:
        if not self.sought.tokens:
            return
        found = self.sought.tokens.keys() & {*item.words, *item.similar}
        for token in found:
            for place in self.sought.tokens[token]:
                shown = _simplest(item, self.sought.values[place].text)
                self._hit(place, _joined(item.piece.origin, shown), item.piece.pointer)

    def _small(self, item: Folded) -> None:
        if not self.sought.whole or item.piece.kind != "text":
            return
        for place in self.sought.whole.get(item.plain.strip(), ()):
            self._hit(place, _joined(item.piece.origin, "whole field"), item.piece.pointer)
        for found in _ANSWER.finditer(item.plain):
            for place in self.sought.answers.get(found[1].rstrip("."), ()):
                self._hit(place, _joined(item.piece.origin, "answer position"), item.piece.pointer)

    def _numbers(self, piece: Piece, text: str) -> None:
        if not self.sought.numbers:
            return
        coarse = piece.kind in {"number", "id"}
        for _, readings in numbers_in(text):
            for reading in readings & self.sought.numbers.keys():
                if coarse and len(reading[0]) < MIN_DIGITS_IN_NUMBERS:
                    continue
                for place in self.sought.numbers[reading]:
                    self._hit(place, _joined(piece.origin, "number"), piece.pointer)

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
                    self._hit(place, _joined(item.piece.origin, shown), item.piece.pointer)

    def _inner_words(self, items: Sequence[Folded]) -> None:
        """Words inside words (`theParisAnswer`, `km42`), and words in spaced letters."""
        inner = []
        for item in items:
            text, pointer, origin = item.piece.text, item.piece.pointer, item.piece.origin
            parts = [
                part
                for word in (_ALNUM.findall(text) if _may_be_mixed(text) else ())
                if len(word) <= MAX_MIXED and _MIXED.search(word)
                for part in _PARTS.findall(word)
            ]
            if max(map(len, parts), default=0) < MIN_TOKEN:
                parts = []
            letters = [word for word in item.words if len(word) == 1]
            spaced = _SPACED.findall(text) if len(letters) >= MIN_TOKEN else []
            spaced = [_NOT_ALNUM.sub("", found) for found in spaced]
            for view, found in ((INNER.name, parts), ("spaces and punctuation", spaced)):
                if found:
                    inner.append(Piece(pointer, " ".join(found), "id", _joined(origin, view)))
        folded = folded_all(inner)
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

    def _digests(self, pieces: Sequence[Piece]) -> None:
        present: dict[bytes, Piece] = {}
        for piece in pieces:
            for run in _HEX_DIGEST.findall(piece.text):
                if len(run) in _HASHES:
                    present.setdefault(bytes.fromhex(run), piece)
        for length in sorted({2 * len(digest) for digest in present}):
            name, function = _HASHES[length]
            for place, value in enumerate(self.sought.values):
                text = value.text.strip()
                for form in (value.text, text + "\n", text.lower()):
                    digest = function(form.encode(), usedforsecurity=False).digest()
                    if digest in present:
                        self._hit(place, name, present[digest].pointer)


def _unescaped_as_one(
    document: Sequence[Piece], orders: Sequence[tuple[int, ...]]
) -> Iterator[Piece]:
    """Orders in which an escape is cut by the end of a text, read as one text."""
    for order in orders:
        texts = [document[position].text for position in order]
        if any(escape_across(one, other) for one, other in pairwise(texts)):
            view = "escapes, split across fields"
            yield Piece("", unescaped("".join(texts)), "text", view)


def _near(order: Sequence[int], bare: Sequence[Piece]) -> tuple[int, ...]:
    """The part of an order where escapes were undone, with neighbours."""
    chosen = {
        number + step
        for number, position in enumerate(order)
        if bare[position].origin
        for step in range(-NEIGHBOURS, NEIGHBOURS + 1)
    }
    return tuple(position for number, position in enumerate(order) if number in chosen)


def _may_be_mixed(text: str) -> bool:
    # Two simple patterns: together they are several times slower.
    return _DIGIT.search(text) is not None or _CAMEL.search(text) is not None


def _bare(piece: Piece) -> Piece:
    text = unescaped(piece.text)
    return piece if text == piece.text else Piece(piece.pointer, text, piece.kind, "escapes")


def _joined(origin: str, view: str) -> str:
    return ", ".join(
        part for part in (origin, view if view != "text" or not origin else "") if part
    )


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
