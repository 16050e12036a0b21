"""Foldings of text: two texts that a reader would take for the same become the same.

`plain`      compatibility forms, letter case, invisible characters, marks, digits of any script
`lookalike`  also characters of other scripts that look like Latin ones
`blurred`    also I/l/1, O/0 and rn/m; too coarse for short texts

All are applied to both sides, so that a folding only has to be the same function, not a right one.
"""

from __future__ import annotations

import re
import unicodedata
from typing import Final

from runner.core.outcomes.unicodetables import DIGIT_ZEROS, IGNORABLE, PROTOTYPES

_CONTROL: Final = "\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
_INVISIBLE = re.compile(f"[{IGNORABLE}{_CONTROL}]+")
_MARKS = re.compile(
    "[\u0300-\u036f\u064b-\u065f\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]+"
)
# A class of hundreds of characters is slow to match; a table on what is not ASCII is not.
_FOREIGN = re.compile(r"[^\x00-\x7f]+")
_DIGITS: Final = {ord(zero) + value: str(value) for zero in DIGIT_ZEROS for value in range(10)}
_PROTOTYPE: Final = str.maketrans(
    {char: prototype for prototype, chars in PROTOTYPES.items() for char in chars}
)
_ASCII_LETTERS: Final = str.maketrans(
    {chr(code): None for code in range(128) if not chr(code).isalnum() and code != 10}
)
_BLUR: Final = str.maketrans("i10|", "llol")
_SPACELESS: Final = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u2e80-\u312f\u31a0-\u9fff\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Scripts written without spaces between words: every character stands for itself."""
_SPACELESS_CHAR = re.compile(f"([{_SPACELESS}])")
_IDEOGRAPHS = re.compile("[\u3400-\u9fff\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003ffff]")
_NOT_WORD = re.compile(r"[\W_]+")
_ASCII_WORDS: Final = str.maketrans(
    {chr(code): " " for code in range(128) if not chr(code).isalnum()}
)


def visible(text: str) -> str:
    """Without default-ignorable and control characters; line ends stay."""
    return _INVISIBLE.sub("", text)


def plain(text: str) -> str:
    """Fold what Unicode itself calls equivalent, and drop what cannot be seen."""
    if text.isascii():
        return text.lower() if text.isprintable() else _INVISIBLE.sub("", text).lower()
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text)).casefold()
    return _unmarked(text)


def lookalike(text: str) -> str:
    """`plain`, after replacing what looks like Latin letters."""
    if text.isascii():
        return plain(text)
    text = unicodedata.normalize("NFKC", _INVISIBLE.sub("", text))
    # Upper and lower case have different prototypes: before folding case, and after.
    text = _FOREIGN.sub(_to_prototypes, text).casefold()
    return _FOREIGN.sub(_to_prototypes, _unmarked(text)).lower()


def blurred(lookalike_text: str) -> str:
    """Merge the ASCII lookalikes of a text that `lookalike` has folded."""
    return lookalike_text.replace("m", "rn").translate(_BLUR)


def words(folded: str) -> list[str]:
    """Letters and digits of a folded text, cut where anything else stands between them."""
    if folded.isascii():
        return folded.translate(_ASCII_WORDS).split()
    return _NOT_WORD.sub(" ", _SPACELESS_CHAR.sub(r" \1 ", folded)).split()


def squeezed_lines(text: str) -> str:
    """Printable ASCII lines folded as `plain` does, each with its words run together."""
    return text.lower().translate(_ASCII_LETTERS)


def weight(folded_words: list[str]) -> int:
    """How much a text says, in letters: an ideograph or a Hangul syllable counts two."""
    squeezed = "".join(folded_words)
    return len(squeezed) + (0 if squeezed.isascii() else len(_IDEOGRAPHS.findall(squeezed)))


def joins(left: str, right: str) -> bool:
    """Whether two neighbouring characters belong to one word."""
    if not (left.isalnum() and right.isalnum()):
        return False
    return not (_SPACELESS_CHAR.match(left) or _SPACELESS_CHAR.match(right))


def _unmarked(text: str) -> str:
    text = _MARKS.sub("", unicodedata.normalize("NFD", unicodedata.normalize("NFKC", text)))
    return _FOREIGN.sub(_to_digits, unicodedata.normalize("NFC", text))


def _to_digits(found: re.Match[str]) -> str:
    return found[0].translate(_DIGITS)


def _to_prototypes(found: re.Match[str]) -> str:
    return found[0].translate(_PROTOTYPE)
