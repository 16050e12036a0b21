"""Text that came from elsewhere, made fit to be shown; and numbers in their one written form.

Labels, paths, excerpts and messages may hold what a subject of an evaluation wrote. Whatever a
character could do other than be read (move a cursor, colour a terminal, reverse a line, end an XML
document) it does no longer once it has passed `visible`.
"""

from __future__ import annotations

import unicodedata

# Control, format (bidirectional overrides, zero width), surrogate, private, unassigned, and the
# two separators that some readers take for a line end. The characters XML 1.0 forbids are a subset.
_UNSEEN = frozenset({"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"})

NOTHING = "-"
"""Stands for a number that does not exist; never to be read as zero."""


def visible(text: str, *, limit: int | None = None, newlines: bool = False) -> str:
    """Replace every character that is not plainly visible by a backslash escape.

    Args:
        text: Any text, lone surrogates included.
        limit: Most characters of `text` to show; the rest is counted, not shown.
        newlines: Keep line feeds, for text that is shown as a block.

    Returns:
        Text that can be encoded as UTF-8 and holds no control or format character.
    """
    shown = text if limit is None else text[:limit]
    # Printable ASCII, nearly all there is, needs no look at each character.
    plain = shown.isascii() and shown.isprintable()
    out = shown if plain else "".join(_escaped(char, newlines=newlines) for char in shown)
    cut = len(text) - len(shown)
    return f"{out}… ({cut} more characters)" if cut else out


def _escaped(char: str, *, newlines: bool) -> str:
    if unicodedata.category(char) not in _UNSEEN or (newlines and char == "\n"):
        return char
    return char.encode("unicode_escape").decode("ascii")


def number(value: float | None) -> str:
    """A score or probability: at most four decimals, at least one (`0.5333`, `1.0`)."""
    return NOTHING if value is None else str(round(value, 4) + 0.0)


def signed(value: float | None) -> str:
    """A delta with its sign (`+0.4667`, `-0.2`, `0.0`)."""
    text = number(value)
    return f"+{text}" if value is not None and round(value, 4) > 0 else text


def plural(count: int, noun: str, many: str | None = None) -> str:
    """`1 case`, `2 cases`; `1 entry`, `2 entries` with `many` given."""
    return f"{count} {noun if count == 1 else many or noun + 's'}"


def short(digest: str) -> str:
    """The beginning of a digest, enough to be compared by eye; a key prefix is kept."""
    prefix, _, digits = digest.rpartition(":")
    head = f"{digits[:12]}…" if len(digits) > 12 else digits
    return visible(f"{prefix}:{head}" if prefix else head)
