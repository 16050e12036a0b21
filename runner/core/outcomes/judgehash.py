"""Digest of a judge specification that does not depend on how it was typed.

Byte order mark and zero-width characters go, the rest is NFC; then JSON gets sorted keys, and text
gets LF, no white space at line ends and one final newline. Numbers in JSON keep their spelling.
"""

from __future__ import annotations

import hashlib
import json
import re
import unicodedata
from typing import Final

from runner.core import strictjson
from runner.core.outcomes.sealed import sealed
from runner.errors import InputError

MAX_BYTES: Final = 16 * 1024 * 1024
_INVISIBLE = re.compile("[\u200b\u200c\u200d\ufeff]")
_LINE_END = re.compile(r"[ \t\f\v]+$", re.MULTILINE)


class _Spelled:
    """A number as it was written."""

    def __init__(self, token: str) -> None:
        self.token = token


@sealed
def judge_hash(data: bytes, name: str) -> str:
    """Content hash of a judge specification.

    Args:
        data: Its bytes, UTF-8, with or without a byte order mark.
        name: Its file name; the suffix decides how it is canonicalised: `.json`, or text (`.md`,
            `.txt` and any other).

    Returns:
        `sha256:` and 64 hexadecimal digits.

    Raises:
        InputError: Not UTF-8, not strict JSON under `.json`, empty, YAML, or too long.
    """
    suffix = name.rpartition(".")[2].lower() if "." in name else ""
    if suffix in {"yaml", "yml"}:
        raise InputError(
            "a judge specification in YAML has no single canonical form",
            where=name,
            remedy="write it as JSON or Markdown",
        )
    if len(data) > MAX_BYTES:
        raise InputError(f"more than {MAX_BYTES} bytes", where=name)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        raise InputError("not UTF-8", where=name) from None
    text = unicodedata.normalize("NFC", _INVISIBLE.sub("", text))
    canonical = _json(text, name) if suffix == "json" else _text(text)
    if not canonical.strip():
        raise InputError("an empty judge specification", where=name)
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


def _text(text: str) -> str:
    lines = text.replace("\r\n", "\n").replace("\r", "\n")
    return _LINE_END.sub("", lines).rstrip("\n") + "\n"


def _json(text: str, name: str) -> str:
    try:
        strictjson.loads(text.encode())
    except strictjson.StrictJsonError as error:
        raise InputError(str(error), where=f"{name}#{error.pointer}") from None
    value = json.loads(text, parse_int=_Spelled, parse_float=_Spelled)
    return _dumped(value) + "\n"


def _dumped(value: object) -> str:
    """Compact JSON with sorted keys. The nesting is bounded by the strict parser."""
    if isinstance(value, _Spelled):
        return value.token
    if isinstance(value, dict):
        members = (f"{_dumped(key)}:{_dumped(value[key])}" for key in sorted(value))
        return "{" + ",".join(members) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_dumped, value)) + "]"
    return json.dumps(value, ensure_ascii=False)
