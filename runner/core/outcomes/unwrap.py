"""Decoding of what a text may hide: escapes to a fixpoint, and runs of base64, base32 and hex.

Two ways. Runs that decode to readable text are given back as texts of their own, and are decoded
again in turn. Besides, the whole payload is decoded as one run at every alignment, whatever stands
between; in that noise only long values can be told from chance.
"""

from __future__ import annotations

import binascii
import html
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import Final
from urllib.parse import unquote

from runner.core.outcomes.fold import visible
from runner.core.outcomes.payload import Piece
from runner.core.outcomes.unicodetables import IGNORABLE

MAX_ROUNDS: Final = 8
MAX_DEPTH: Final = 5
MAX_GROWTH: Final = 4
"""Decoded text may have this many times the length of the payload, and 64 KiB."""

_PERCENT = re.compile(r"%[0-9A-Fa-f]{2}")
_PERCENT_U = re.compile(r"%u([0-9A-Fa-f]{4})")
_QUOTED = re.compile(r"=([0-9A-F]{2})|=\r?\n")
_ESCAPED_BYTES = re.compile(r"(?:\\x[0-9A-Fa-f]{2}|\\[0-7]{3})+")
_ESCAPE = re.compile(
    r"\\(?:u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]{1,6})\}|U([0-9A-Fa-f]{8})|([0-7]{1,2})|([\s\S]))"
)
_BYTE = re.compile(r"\\x([0-9A-Fa-f]{2})|\\([0-7]{3})")
_WHITE: Final = {"n": "\n", "t": "\t", "r": "\r", "f": "\f", "v": "\v", "b": " "}
_TAGS: Final = {0xE0000 + code: chr(code) for code in range(0x20, 0x7F)}
_HAS_TAGS = re.compile("[\U000e0020-\U000e007e]")

_RUN = re.compile(r"[A-Za-z0-9+/_-]{4,}={0,6}")
RUN_CHARS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/_-"
# Where it may start and end is left to `_hex_runs`: asked at every letter, it is what takes time.
# The first two are not `{2}`: a pattern that starts with a plain class skips to where it matches.
_HEX_RUN = re.compile(
    r"[0-9A-Fa-f][0-9A-Fa-f](?:[\s:,;._-]{0,2}(?:0x|\\x|%)?[0-9A-Fa-f]{2}){2,}(?:[\s:,;._-]?[0-9A-Fa-f])?"
)
_FIRST_TOKEN = re.compile(r"\A[0-9A-Fa-f]+(?:[\s:,;._-]+|\Z)")
_LAST_TOKEN = re.compile(r"(?:[\s:,;._-]+|\A)[0-9A-Fa-f]+\Z")
_WORDS_AROUND = re.compile(r"\A(?:[A-Fa-f]+[\s:,;._-]+)+|(?:[\s:,;._-]+[A-Fa-f]+)+\Z")
_HEX_GAP = re.compile(r"[\s:,;._-]+")
_HEX_MARKS: Final = frozenset({"0x", "\\x"})
_HEX_MARK = re.compile(r"0x|\\x|[^0-9A-Fa-f]", re.IGNORECASE)
_URL_SAFE: Final = str.maketrans("-_", "+/")
_JOINERS = re.compile(r"[-_+/]+")
_BASE32 = re.compile(r"[A-Z2-7]{5,}=*|(?=[a-z]*[2-7=])[a-z2-7]{5,}=*|[a-z2-7]{16,}=*")
_BASE32_DIGITS: Final = str.maketrans(
    "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", "0123456789abcdefghijklmnopqrstuv"
)
_READABLE = re.compile(r"[^\W_]{2}|[^\W_].*[^\W_]", re.DOTALL)
_WIDE = re.compile("[\u2000-\ud7ff\ue000-\uffff]{2,}")
_ANY_SCRIPT: Final = frozenset(ord(char) >> 8 for char in f"{IGNORABLE}\0\ufeff") | {
    *range(0xD8, 0xE0)
}
"""High bytes of UTF-16 that tell no script: of ASCII, of what cannot be seen, of surrogates."""
_ASCII_PAIRS = re.compile(rb"[\x20-\x7e]{4,}")

_BASE64_KEPT: Final = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789"
_NOT_BASE64: Final = bytes(code for code in range(256) if code not in _BASE64_KEPT + b"+/-_")
_NOT_BASE62: Final = bytes(code for code in range(256) if code not in _BASE64_KEPT)
# Capital letters only: in small ones prose itself would be the noise, and they are found in runs.
_NOT_BASE32: Final = bytes(
    code for code in range(256) if code not in b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567"
)
_NOT_HEX: Final = bytes(code for code in range(256) if code not in b"0123456789abcdefABCDEF")
_STANDARD: Final = bytes.maketrans(b"-_", b"+/")


class TooDeep(Exception):
    """A text is wrapped in more layers, or decodes to more text, than is looked through."""


def unescaped(text: str) -> str:
    """Undo HTML, percent, quoted-printable, backslash and tag-character escapes to a fixpoint.

    Raises:
        TooDeep: No fixpoint within `MAX_ROUNDS` rounds.
    """
    for _ in range(MAX_ROUNDS):
        before = text
        if "&" in text:
            text = html.unescape(text)
        if "%" in text:
            text = _PERCENT_U.sub(lambda found: chr(int(found[1], 16)), text)
            if _PERCENT.search(text):
                text = unquote(text)
        if "=" in text:
            text = _QUOTED.sub(lambda found: f"%{found[1]}" if found[1] else "", text)
        if "\\" in text:
            text = _ESCAPE.sub(_escape, _ESCAPED_BYTES.sub(_bytes, text))
        if not text.isascii() and _HAS_TAGS.search(text):
            text = text.translate(_TAGS)
        if text == before:
            return _paired(text)
    raise TooDeep


def decoded(pieces: Sequence[Piece]) -> list[Piece]:
    """Everything readable that runs in the pieces decode to, decoded again to a bounded depth.

    Args:
        pieces: Texts, with their escapes and without.

    Returns:
        Pieces whose origin names the encoding.

    Raises:
        TooDeep: Beyond `MAX_DEPTH` layers, or `MAX_GROWTH`.
    """
    allowance = MAX_GROWTH * sum(len(piece.text) for piece in pieces) + 65_536
    seen = {piece.text for piece in pieces}
    found: list[Piece] = []
    current = list(pieces)
    for _ in range(MAX_DEPTH):
        fresh = []
        for piece in _decode_once(current):
            if piece.text in seen:
                continue
            seen.add(piece.text)
            fresh.append(piece)
            allowance -= len(piece.text)
            if allowance < 0:
                raise TooDeep
        if not fresh:
            return found
        found += fresh
        current = fresh
    # What is still short could be anything; a long text at this depth is hiding on purpose.
    if any(len(piece.text) >= 16 for piece in current):
        raise TooDeep
    return found


def noise(text: str) -> Iterator[tuple[str, bytes]]:
    """The whole text decoded as if it were one run, at every alignment.

    Returns:
        The name of the view and the bytes.
    """
    data = text.encode()
    for run in sorted({data.translate(_STANDARD, _NOT_BASE64), data.translate(None, _NOT_BASE62)}):
        bits = binascii.a2b_base64(run + b"A" * (-len(run) % 4))
        yield from (("base64", shifted) for shifted in _shifted(bits, (0, 2, 4, 6)))
    digits = data.translate(None, _NOT_BASE32).decode().translate(_BASE32_DIGITS)
    if digits:
        # A power-of-two base: linear.
        yield from (("base32", shifted) for shifted in _shifted(int(digits, 32), range(8)))
    nibbles = data.replace(b"0x", b"").replace(b"0X", b"").translate(None, _NOT_HEX)
    for offset in range(2):
        body = nibbles[offset:]
        yield "hex", binascii.a2b_hex(body[: len(body) // 2 * 2])


def _shifted(bits: int | bytes, shifts: Iterable[int]) -> Iterator[bytes]:
    """The bytes of a string of bits at several alignments, all of which are in one number."""
    whole = bits if isinstance(bits, int) else int.from_bytes(bits, "big")
    for shift in shifts:
        number = whole >> shift
        yield number.to_bytes((number.bit_length() + 7) // 8, "big")


def _escape(found: re.Match[str]) -> str:
    code = found[1] or found[2] or found[3]
    if code:
        number = int(code, 16)
        return chr(number) if number < 0x110000 else " "
    if found[4]:
        return chr(int(found[4], 8))
    return _WHITE.get(found[5], found[5])


def _bytes(found: re.Match[str]) -> str:
    data = bytes(
        int(item[1], 16) if item[1] else int(item[2], 8) & 0xFF for item in _BYTE.finditer(found[0])
    )
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError:
        return data.decode("latin-1")


def _paired(text: str) -> str:
    """Surrogates that came from escapes become the characters they stand for."""
    if text.isascii() or not re.search("[\ud800-\udfff]", text):
        return text
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def _decode_once(pieces: Sequence[Piece]) -> Iterator[Piece]:
    for piece in pieces:
        if piece.origin:
            plain = unescaped(piece.text)
            if plain != piece.text:
                yield Piece(piece.pointer, plain, piece.kind, piece.origin)
        if not piece.text.isascii():
            yield from _wide(piece)
        for run in _hex_runs(piece.text):
            yield from _readable(piece, "hex", _from_hex(run))
    for run, piece in _runs(pieces).items():
        if not is_word(run):
            for variant in _variants(run):
                yield from _readable(piece, "base64", _from_base64(variant))
        if _BASE32.fullmatch(run):
            yield from _readable(piece, "base32", [_from_base32(run)])


def _runs(pieces: Sequence[Piece]) -> dict[str, Piece]:
    """Each distinct run where it is first: prose repeats its words."""
    first: dict[str, Piece] = {}
    for piece in pieces:
        for run in _RUN.findall(piece.text):
            if run not in first:
                first[run] = piece
    return first


def _hex_runs(text: str) -> Iterator[str]:
    for found in _HEX_RUN.finditer(text):
        run, (start, end) = found[0], found.span()
        before, after = text[max(0, start - 2) : start], text[end : end + 1]
        if before[-1:].isalnum() and before.lower() not in _HEX_MARKS:
            run = _FIRST_TOKEN.sub("", run)
        if after.isalnum():
            run = _LAST_TOKEN.sub("", run)
        # What stands beside a run (`be`, `a1`) would spoil it: also without, and each token alone.
        tokens = [token for token in _HEX_GAP.split(run) if len(token) >= 6]
        yield from {run, _WORDS_AROUND.sub("", run), *tokens}


def is_word(run: str) -> bool:
    """Plain words in one letter case; base64 of a readable text is practically never one."""
    return run.isalpha() and (run.islower() or run.istitle() or (run.isupper() and len(run) < 8))


def _variants(run: str) -> set[str]:
    if run.isalnum():
        return {run}
    body = run.rstrip("=")
    return {body, body.strip("-_+/"), _JOINERS.sub("", body), *_JOINERS.split(body)}


def _from_base64(run: str) -> list[bytes]:
    if len(run) < 4 or len(run) % 4 == 1:
        return []
    return [binascii.a2b_base64(run.translate(_URL_SAFE) + "=" * (-len(run) % 4))]


def _from_base32(run: str) -> bytes:
    digits = run.rstrip("=").upper().translate(_BASE32_DIGITS)
    number = int(digits, 32) >> (5 * len(digits) % 8)
    return number.to_bytes(5 * len(digits) // 8, "big")


def _from_hex(run: str) -> list[bytes]:
    digits = _HEX_MARK.sub("", run)
    if len(digits) % 2 == 0:
        return [binascii.a2b_hex(digits)]
    return [binascii.a2b_hex(digits[1:]), binascii.a2b_hex(digits[:-1])]


def _readable(piece: Piece, origin: str, candidates: list[bytes]) -> Iterator[Piece]:
    for data in candidates:
        for text in _texts(data):
            if _READABLE.search(text):
                yield Piece(piece.pointer, text, "text", origin)


def _texts(data: bytes) -> Iterator[str]:
    """The readings of bytes as printable text: UTF-8, and UTF-16 of one script."""
    for encoding, high in (("utf-8", None), ("utf-16-le", 1), ("utf-16-be", 0)):
        if high is not None and (len(data) % 2 or len({*data[high::2]} - _ANY_SCRIPT) > 1):
            continue  # it would not pass below; few bytes do
        try:
            text = visible(data.decode(encoding).strip("\0\ufeff\r\n\t "))
        except UnicodeDecodeError:
            continue
        if not "".join(text.split()).isprintable():
            continue
        # Any bytes are UTF-16 of something; letters of one script are no accident.
        if encoding == "utf-8" or len({ord(char) >> 8 for char in text} - {0}) <= 1:
            yield text


def _wide(piece: Piece) -> Iterator[Piece]:
    """ASCII text that was read as UTF-16, which looks like ideographs."""
    wide = "".join(_WIDE.findall(piece.text))
    for encoding in ("utf-16-le", "utf-16-be"):
        data = wide.encode(encoding, "replace").replace(b"\0", b"")
        runs = _ASCII_PAIRS.findall(data)
        if runs:
            yield Piece(piece.pointer, b" ".join(runs).decode("ascii"), "text", "utf-16")
