"""Search for the names under which answers are written down: `target=…`, `"answer": …`.

It works without knowing any value, so it also holds for values too small to be scanned. A name in
prose is not a leak (`the answer is concise`); a name that is given a value is.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final, NamedTuple

from runner.core.outcomes import fold
from runner.core.outcomes.payload import RUBRIC, Piece, Shape, pieces_of
from runner.core.outcomes.sealed import sealed
from runner.core.outcomes.unwrap import TooDeep, decoded, unescaped
from runner.core.strictjson import StrictJsonError
from runner.errors import HoldoutRefusal, InputError

FORBIDDEN: Final = frozenset(
    {
        "target", "targets", "answer", "answers", "answerkey", "correctanswer", "correctanswers",
        "expectedanswer", "finalanswer", "goldanswer", "referenceanswer", "groundtruth",
        "groundtruths", "expectedoutput", "expectedoutputs", "goldlabel", "goldstandard",
        "holdout", "holdoutvalue", "holdoutvalues", "samplesholdout", "referencesolution",
    }
)  # fmt: skip
"""Names of answers, without separators and letter case."""

_GAP: Final = r"[ _.-]?"
_NAMES: Final = (
    rf"samples{_GAP}holdout(?:\.jsonl?)?|holdout(?:{_GAP}values?)?"
    rf"|(?:correct|expected|final|gold|reference){_GAP}answers?|answer{_GAP}key|answers?"
    rf"|reference{_GAP}solution|expected{_GAP}outputs?|ground{_GAP}truths?"
    rf"|gold{_GAP}(?:label|standard)|targets?"
)
# `target=Paris`, `target := Paris`, `answer -> Paris`; a comparison is none.
_ASSIGNED = re.compile(rf"(?<![a-z0-9])(?:{_NAMES})[\"'`*]*\s*(?::=|={{1,2}}>?|->|\u2192)\s*[^\s=]")
# `"answer": Paris`, `ground_truth: Paris`, `<target>Paris`: names as a machine writes them.
_MACHINE = re.compile(
    rf"[\"'`](?:{_NAMES})[\"'`]\s*:\s*\S"
    rf"|(?<![a-z0-9])(?=[a-z]+[_-])(?:{_NAMES})\s*:\s*\S"
    rf"|<(?:{_NAMES})(?:\s[^>]*)?>\s*[^\s<]"
)
# `answer: Paris` with one word, a quoted text or a comparison: nobody describes in one word.
_VALUED = re.compile(
    rf"(?<![a-z0-9])(?:{_NAMES})\*{{0,2}}\s*:\s*\*{{0,2}}\s*"
    r"(?:[\"'`\u201c\u2018][^\"'`\u201d\u2019\n]+[\"'`\u201d\u2019]"
    r"|[^\s,;.]+(?:[.,][^\s,;.]+)*\s*(?=[.,;)\]\n]|$)"
    r"|[^\s,;]+\s*[<>=\u2264\u2265]{1,2}\s*\S)"
)
_SEPARATORS = re.compile(r"[\W_]+")


class KeyHit(NamedTuple):
    """A name of an answer, used as a name.

    Attributes:
        what: `key`, `id` or `assignment`.
        pointer: JSON pointer.
    """

    what: str
    pointer: str


@sealed
def key_scan(payload: bytes, shape: Shape = RUBRIC) -> tuple[KeyHit, ...]:
    """Look for names of answers in keys, ids and texts of a payload.

    Args:
        payload: JSON.
        shape: What of it is constant.

    Raises:
        InputError: The payload is not strict JSON.
        HoldoutRefusal: It is encoded more deeply than is looked through.
    """
    try:
        document = pieces_of(payload, shape).document
        bare = [
            Piece(piece.pointer, unescaped(piece.text), piece.kind, "escapes") for piece in document
        ]
        inner = decoded([*document, *bare])
    except StrictJsonError as error:
        raise InputError(error.message, where="payload") from None
    except TooDeep:
        raise HoldoutRefusal("a text is encoded too deeply to be scanned") from None
    return tuple(dict.fromkeys(_hits((*document, *bare, *inner))))


def _hits(pieces: tuple[Piece, ...]) -> Iterator[KeyHit]:
    for piece in pieces:
        folded = fold.lookalike(piece.text)
        if piece.kind in {"key", "id"} and _SEPARATORS.sub("", folded) in FORBIDDEN:
            yield KeyHit(piece.kind, piece.pointer)
        elif any(pattern.search(folded) for pattern in (_ASSIGNED, _MACHINE, _VALUED)):
            yield KeyHit("assignment", piece.pointer)
