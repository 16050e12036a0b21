"""Targets of `json_path` and `score_at_least`: a source and a path into its JSON.

The grammar is that of the public eval-suite v1 files, with its quirks, because suites rely on it:
`docs/adr/0002-expectation-semantics.md` lists them.
"""

from __future__ import annotations

import re
from typing import NamedTuple

STREAMS = ("stdout", "stderr")

_INDEX = re.compile(r"\[([^\]]*)\]")
_DECIMAL = re.compile(r"[+-]?[0-9]{1,18}")


class Target(NamedTuple):
    """Where to look.

    Attributes:
        source: `stdout`, `stderr`, or a path relative to the suite's folder.
        path: Path into the document; "" is the whole of it.
    """

    source: str
    path: str

    @property
    def is_stream(self) -> bool:
        """False for a file."""
        return self.source in STREAMS


class Found(NamedTuple):
    """What a path leads to; `value` means something only when `found`."""

    found: bool
    value: object = None


NOT_FOUND = Found(found=False)


def split_target(target: str) -> Target:
    """Split a target into source and path.

    `stdout` and `stderr` may be followed by `.path` or `:path`; anything else is split at its first
    colon, unless that is its first character.
    """
    text = target.strip()
    for stream in STREAMS:
        if text == stream:
            return Target(stream, "")
        if text.startswith((f"{stream}.", f"{stream}:")):
            return Target(stream, text[len(stream) + 1 :])
    source, colon, path = text.partition(":")
    return Target(source, path) if colon and source else Target(text, "")


def find(document: object, path: str) -> Found:
    """Follow a path.

    Args:
        document: Parsed JSON.
        path: Parts joined by dots, each `name[0][1]`; `$` and "" are the document itself.

    Returns:
        What was found. A part that cannot be read (`a[x]`, `a[`) leads nowhere.
    """
    if path == "$":
        return Found(found=True, value=document)
    value = document
    for part in path.removeprefix("$.").removeprefix(".").split("."):
        if part == "":
            continue
        step = _step(value, part)
        if not step.found:
            return NOT_FOUND
        value = step.value
    return Found(found=True, value=value)


def _step(value: object, part: str) -> Found:
    # Text after a bracket belongs to the name: `a[0]b` is the key `ab`, then index 0.
    name = _INDEX.sub("", part)
    if "[" in name:
        return NOT_FOUND
    if name:
        if not isinstance(value, dict) or name not in value:
            return NOT_FOUND
        value = value[name]
    for text in _INDEX.findall(part):
        if not _DECIMAL.fullmatch(text):
            return NOT_FOUND
        index = int(text)
        if not isinstance(value, list) or not 0 <= index < len(value):
            return NOT_FOUND
        value = value[index]
    return Found(found=True, value=value)
