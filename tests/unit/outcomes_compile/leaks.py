"""Generator of leaks: values, ways to write them, places to put them."""

from __future__ import annotations

import base64
import codecs
import hashlib
import html
import json
import unicodedata
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple
from urllib.parse import quote

from tests.unit.outcomes_compile import builders as b

Way = Callable[[str], str]

LOOKALIKES = str.maketrans(
    {"a": "\u0430", "e": "\u0435", "o": "\u043e", "p": "\u0440", "c": "\u0441", "i": "\u0456"}
)
FULL_WIDTH = str.maketrans({chr(code): chr(code + 0xFEE0) for code in range(0x21, 0x7F)})


def utf8(text: str) -> bytes:
    return text.encode()


WAYS: dict[str, Way] = {
    "text": lambda text: text,
    "upper": str.upper,
    "swapped case": str.swapcase,
    "nfd": lambda text: unicodedata.normalize("NFD", text),
    "nfc": lambda text: unicodedata.normalize("NFC", text),
    "full width": lambda text: text.translate(FULL_WIDTH),
    "bold": lambda text: "".join(
        chr(0x1D400 + ord(char) - 65) if char.isascii() and char.isupper()
        else chr(0x1D41A + ord(char) - 97) if char.isascii() and char.islower()
        else char
        for char in text
    ),
    "zero width": "\u200b".join,
    "soft hyphens": "\u00ad".join,
    "tag characters": lambda text: "".join(
        chr(0xE0000 + ord(char)) if char.isascii() else char for char in text
    ),
    "lookalikes": lambda text: text.translate(LOOKALIKES),
    "spaced": " ".join,
    "dashed": "-".join,
    "dotted lines": ".\n".join,
    "no spaces": lambda text: text.replace(" ", ""),
    "underscores": lambda text: text.replace(" ", "_"),
    "reversed": lambda text: text[::-1],
    "reversed, spaced": lambda text: " ".join(text[::-1]),
    "rot13": lambda text: codecs.encode(text, "rot13"),
    "json": lambda text: json.dumps(text)[1:-1],
    "json escapes": lambda text: "".join(f"\\u{ord(char):04x}" for char in text),
    "html": html.escape,
    "html entities": lambda text: "".join(f"&#{ord(char)};" for char in text),
    "html entities, twice": lambda text: html.escape("".join(f"&#x{ord(c):x};" for c in text)),
    "percent": lambda text: "".join(f"%{byte:02X}" for byte in utf8(text)),
    "percent, thrice": lambda text: quote(quote("".join(f"%{byte:02x}" for byte in utf8(text)))),
    "backslash x": lambda text: "".join(f"\\x{byte:02x}" for byte in utf8(text)),
    "octal": lambda text: "".join(f"\\{byte:03o}" for byte in utf8(text)),
    "base64": lambda text: base64.b64encode(utf8(text)).decode(),
    "base64, unpadded": lambda text: base64.b64encode(utf8(text)).decode().rstrip("="),
    "base64, url-safe": lambda text: base64.urlsafe_b64encode(utf8(text)).decode().rstrip("="),
    "base64, alignment 1": lambda text: base64.b64encode(b": " + utf8(text) + b" ok").decode(),
    "base64, alignment 2": lambda text: base64.b64encode(b"> " + utf8(text) + b".").decode(),
    "base64, twice": lambda text: base64.b64encode(base64.b64encode(utf8(text))).decode(),
    "base64 of utf-16": lambda text: base64.b64encode(text.encode("utf-16")).decode(),
    "base32": lambda text: base64.b32encode(utf8(text)).decode(),
    "base32, small": lambda text: base64.b32encode(utf8(text)).decode().rstrip("=").lower(),
    "hex": lambda text: utf8(text).hex(),
    "hex, capital, colons": lambda text: utf8(text).hex(":").upper(),
    "hex, spaces": lambda text: utf8(text).hex(" "),
    "hex, 0x": lambda text: ", ".join(f"0x{byte:02x}" for byte in utf8(text)),
    "hex of utf-16": lambda text: text.encode("utf-16-le").hex(),
    "utf-16 with nuls": "\0".join,
    "md5": lambda text: hashlib.md5(utf8(text)).hexdigest(),
    "sha1": lambda text: hashlib.sha1(utf8(text)).hexdigest(),
    "sha256": lambda text: hashlib.sha256(utf8(text)).hexdigest().upper(),
    "percent of base64": lambda text: quote(base64.b64encode(utf8(text)).decode(), safe=""),
    "base64 of html": lambda text: base64.b64encode(html.escape(f"<{text}>").encode()).decode(),
}  # fmt: skip

TEXTS = (
    "Paris",
    "Oslo",
    "Ouagadougou",
    "S\u00e3o Tom\u00e9",
    "photosynthesis",
    "the treaty of Westphalia",
    "Gabriel Garc\u00eda M\u00e1rquez",
    "SELECT name FROM users WHERE id = 7",
    "\u041c\u043e\u0441\u043a\u0432\u0430",
    "Amber-Lantern-4711",
)

NUMBERS: dict[str, tuple[str, ...]] = {
    "0.5": ("0.50", ".5", "5e-1", "50%", "50 %", "0,5", "1/2", "\uff10.\uff15", "\u0660.\u0665"),
    "1000": ("1000", "1,000", "1.000", "1 000", "1_000", "1e3", "1000.0", "0x3e8", "1'000"),
    "1889": ("1889", "1,889", "1.889e3", "\u0661\u0668\u0668\u0669", "1889.00", "MTg4OQ=="),
    "3.14159": ("3.14159", "3,14159", "314159e-5", "314.159%", "0.314159e1"),
    "-273.15": ("-273.15", "\u2212273.15", "273,15"),
    "299792458": ("299 792 458", "2.99792458e8", "2.99792458 x 10^8", "8 5 4 2 9 7 9 9 2"),
}  # fmt: skip


class Leak(NamedTuple):
    """One rubric that carries a holdout value."""

    name: str
    value: str
    made: dict[str, Any]


def _places(text: str, value: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """The written value in each place that takes it."""
    yield "description", b.document(f"The reply is good: {text} .", holdout=[value])
    yield "whole description", b.document(text, holdout=[value])
    yield "instructions", b.document(instructions=f"Hint: {text}", holdout=[value])
    yield (
        "last of many",
        b.document("Is brief.", "Cites a source.", f"See ({text})", holdout=["other one", value]),
    )


def _id_places(value: str) -> Iterator[tuple[str, dict[str, Any]]]:
    name = "".join(char if char.isascii() and char.isalnum() else "-" for char in value)
    if value.isascii() and name[0].isalnum():
        yield "criterion id", b.document("Is brief.", ids=[f"is-{name}"], holdout=[value])
        yield "task id", b.document(task_id=f"t.{name.lower()}", holdout=[value])


def _splits(value: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Cut in two or more parts that are in different fields."""
    middle = len(value) // 2
    one, two = value[:middle], value[middle:]
    yield "two descriptions", b.document(f"Is good {one}", f"{two} is fine", holdout=[value])
    yield "instructions, description", b.document(two, instructions=one, holdout=[value])
    thirds = [value[0:3], value[3:6], value[6:]]
    if len(value) >= 8:
        yield "three descriptions", b.document(*thirds, holdout=[value])
        coded = [base64.b64encode(one.encode()).decode(), base64.b64encode(two.encode()).decode()]
        yield "two descriptions, base64 each", b.document(*coded, holdout=[value])
        whole = base64.b64encode(value.encode()).decode()
        yield "base64 over two", b.document(whole[:7], whole[7:], holdout=[value])
        yield "percent each", b.document(f"x %{ord(one[0]):02x}{one[1:]}", two, holdout=[value])
    if one.isascii() and one.isalnum() and two.isascii() and two.isalnum():
        yield "two ids", b.document("a", "b", ids=[one, two], holdout=[value])
        yield "id, description", b.document(f"{two} it is", ids=[one], holdout=[value])
        yield "description, id", b.document(f"it is {one}", ids=[two], holdout=[value])


# Too short for the view, which the table in views.py says: see test_views.
NOT_FOR = {
    "Oslo": {"reversed", "reversed, spaced", "rot13", "hex of utf-16"},
}


def leaks() -> Iterator[Leak]:
    """Every value in every way in every place."""
    for value in TEXTS:
        for way, write in WAYS.items():
            if way in NOT_FOR.get(value, ()):
                continue
            for place, made in _places(write(value), value):
                yield Leak(f"{value} / {way} / {place}", value, made)
        for place, made in _id_places(value):
            yield Leak(f"{value} / text / {place}", value, made)
        if len(value) >= 5:
            for place, made in _splits(value):
                yield Leak(f"{value} / split / {place}", value, made)
    for value, forms in NUMBERS.items():
        for form in forms:
            for place, made in _places(form, value):
                yield Leak(f"{value} / {form} / {place}", value, made)
    yield Leak("weight", "0.4217", b.document(weight=0.4217, holdout=["0.4217"]))
