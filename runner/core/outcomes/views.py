"""The values' side of the scan: what each holdout value looks like in every view.

Which views apply depends on how much a value says. Its weight is the number of letters and digits
left after folding, an ideograph counting two:

    numbers             compared by value, at least `MIN_NUMBER` characters wide
    weight 3 and 4      one whole token
    weight 5 to 7       whole tokens, also run together, reversed, ROT13
    weight 8 and more   anywhere, with nothing between words counted; also blurred lookalikes, and
                        the whole payload read as one encoded run
    less, or a label    not scannable: only the whole text of a field, an answer position, the exact
                        wording where it has punctuation, and digests
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from ahocorasick_rs import AhoCorasick, Implementation

from runner.core.outcomes import fold
from runner.core.outcomes.holdout import HoldoutValue
from runner.core.outcomes.numerals import Magnitude, whole_number, width

MIN_TOKEN: Final = 3
MIN_ALIGNED: Final = 5
MIN_ANYWHERE: Final = 8
MIN_NUMBER: Final = 3
MIN_LITERAL: Final = 3
MIN_DIGITS_AS_TEXT: Final = 6
HEAD: Final = 8
"""So many characters of a pattern are matched by the automaton, which then is small; the rest is
compared where they were found."""

LABELS: Final = frozenset(
    {
        "yes", "no", "true", "false", "none", "null", "unknown", "pass", "fail", "passed",
        "failed", "correct", "incorrect", "positive", "negative", "neutral", "valid", "invalid",
        "high", "medium", "low",
    }
)  # fmt: skip
"""Answers that any rubric may name because they are the names of the classes."""

_AROUND_PUNCTUATION = re.compile(r" ?([^\w ]) ?")


def literal(folded: str) -> str:
    """A folded text with its punctuation, white space counted only between words."""
    return _AROUND_PUNCTUATION.sub(r"\1", " ".join(folded.split()))


@dataclass(frozen=True)
class Needles:
    """The values of one scan in the form they are looked for. Its representation is empty.

    Attributes:
        values: The values.
        unscannable: Indexes of those that cannot be certified absent, in order.
        tokens: Folded whole token -> positions in `values`.
        numbers: Magnitude -> positions.
        whole: Folded text of an unscannable value -> positions.
        answers: The same without labels.
        squeezed: Folded words run together -> positions; `aligned` are those that count at the
            edges of tokens only.
        literals: Folded wording with punctuation -> positions.
    """

    values: tuple[HoldoutValue, ...] = field(repr=False)
    unscannable: tuple[int, ...] = field(repr=False)
    tokens: dict[str, list[int]] = field(repr=False)
    numbers: dict[Magnitude, list[int]] = field(repr=False)
    whole: dict[str, list[int]] = field(repr=False)
    answers: dict[str, list[int]] = field(repr=False)
    squeezed: Matcher = field(repr=False)
    literals: Matcher = field(repr=False)


class Matcher:
    """A multi-pattern matcher whose patterns know their values.

    Attributes:
        patterns: What is looked for.
        holders: Of each pattern, the positions of its values.
        is_aligned: Of each pattern, whether it counts at the edges of tokens only.
        reach: Length of the longest pattern.
    """

    def __init__(self, patterns: dict[str, list[int]], aligned: Iterable[str] = ()) -> None:
        short = frozenset(aligned)
        self.patterns = tuple(patterns)
        self.holders = tuple(patterns.values())
        self.is_aligned = tuple(pattern in short for pattern in self.patterns)
        self.reach = max(map(len, self.patterns), default=0)
        self._automaton: AhoCorasick | None = None
        heads: dict[str, list[int]] = {}
        for number, pattern in enumerate(self.patterns):
            heads.setdefault(pattern[:HEAD], []).append(number)
        self._groups = tuple(heads.values())
        if heads:
            self._automaton = AhoCorasick(heads, implementation=Implementation.ContiguousNFA)

    def find(self, text: str) -> Iterator[tuple[int, int, int]]:
        """All matches, overlapping ones too: number of the pattern, start, end."""
        if self._automaton is None:
            return
        for group, start, _ in self._automaton.find_matches_as_indexes(text, overlapping=True):
            for number in self._groups[group]:
                pattern = self.patterns[number]
                if text.startswith(pattern, start):
                    yield number, start, start + len(pattern)


def needles(values: Sequence[HoldoutValue]) -> Needles:
    """Prepare values for scanning; see the table above.

    Args:
        values: The values, any number.
    """
    sorter = _Sorter()
    for place, joined, merged in _long_words(values):
        if joined:
            for form in {joined, merged}:
                sorter.squeezed.setdefault(form, []).append(place)
        else:
            sorter.add(place, values[place])
    return Needles(
        tuple(values),
        tuple(sorter.unscannable),
        sorter.tokens,
        sorter.numbers,
        sorter.whole,
        sorter.answers,
        Matcher(sorter.squeezed, sorter.aligned),
        Matcher(sorter.literals),
    )


def _long_words(values: Sequence[HoldoutValue]) -> Iterator[tuple[int, str, str]]:
    """Of each value its words run together, and that blurred; empty where it needs a closer look.

    Most values are long and ASCII, and all of them are folded in one go.
    """
    if not values:
        return
    texts = [
        value.text if value.text.isascii() and value.text.isprintable() else "" for value in values
    ]
    joined = fold.squeezed_lines("\n".join(texts))
    merged = fold.blurred(joined)
    for place, (one, other) in enumerate(zip(joined.split("\n"), merged.split("\n"), strict=True)):
        plain = len(one) >= MIN_ANYWHERE and one.isalpha() and one not in LABELS
        yield (place, one, other) if plain else (place, "", "")


class _Sorter:
    """Sorts values by the views that apply to them."""

    def __init__(self) -> None:
        self.tokens: dict[str, list[int]] = {}
        self.numbers: dict[Magnitude, list[int]] = {}
        self.whole: dict[str, list[int]] = {}
        self.answers: dict[str, list[int]] = {}
        self.squeezed: dict[str, list[int]] = {}
        self.aligned: set[str] = set()
        self.literals: dict[str, list[int]] = {}
        self.unscannable: list[int] = []

    def add(self, place: int, value: HoldoutValue) -> None:
        """File one value."""
        folded = fold.plain(value.text)
        words = fold.words(folded)
        joined = "".join(words)
        weight = fold.weight(words)
        wide = self._add_numbers(place, folded) if _may_be_number(joined) else []
        if wide and max(len(digits) for digits, _ in wide) < MIN_DIGITS_AS_TEXT:
            return
        if joined in LABELS or (weight < MIN_TOKEN and not wide):
            self._add_small(place, value.index, folded, is_label=joined in LABELS)
        elif weight < MIN_ALIGNED:
            self._add_short(place, value.text, folded, words)
        else:
            forms = _squeezed_forms(value.text, joined, weight)
            for form in forms:
                self.squeezed.setdefault(form, []).append(place)
            if weight < MIN_ANYWHERE:
                self.aligned |= forms

    def _add_numbers(self, place: int, folded: str) -> list[Magnitude]:
        wide = [reading for reading in whole_number(folded) if width(reading) >= MIN_NUMBER]
        for reading in wide:
            self.numbers.setdefault(reading, []).append(place)
        return wide

    def _add_small(self, place: int, index: int, folded: str, *, is_label: bool) -> None:
        text = folded.strip()
        said = literal(folded)
        if text:
            self.whole.setdefault(text, []).append(place)
        if text and not is_label:
            self.answers.setdefault(text, []).append(place)
            if len(said) >= MIN_LITERAL:
                self.literals.setdefault(said, []).append(place)
        if is_label or len(said.replace(" ", "")) < MIN_LITERAL:
            self.unscannable.append(index)

    def _add_short(self, place: int, text: str, folded: str, words: list[str]) -> None:
        joined = "".join(words)
        said = literal(folded)
        if len(words) == 1:
            for form in {joined, "".join(fold.words(fold.lookalike(text)))}:
                self.tokens.setdefault(form, []).append(place)
        if len(words) != 1 or said != joined:
            self.literals.setdefault(said, []).append(place)


def _may_be_number(joined: str) -> bool:
    return len(joined) < 64 and not joined.isalpha()


def _squeezed_forms(text: str, joined: str, weight: int) -> set[str]:
    """A value's words run together, in the foldings that its weight allows."""
    similar = joined if text.isascii() else "".join(fold.words(fold.lookalike(text)))
    forms = {joined, similar}
    if weight >= MIN_ANYWHERE:
        forms.add(fold.blurred(similar))
    return forms - {""}
