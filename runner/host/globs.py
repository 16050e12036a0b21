"""Globs over paths inside a workspace."""

from __future__ import annotations

import os
import re


def compile_glob(pattern: str) -> re.Pattern[bytes]:
    """A matcher of relative paths.

    `*`, `?` and `[…]` stay within one component, `**` spans any number of them. A pattern that
    names a directory takes in everything below it. Leading `./` and trailing `/` mean nothing.

    Args:
        pattern: Relative to the top of the workspace.

    Raises:
        ValueError: It is empty, absolute, climbs with `..`, or has a malformed set.
    """
    parts = [part for part in pattern.split("/") if part not in ("", ".")]
    if not parts or pattern.startswith("/") or ".." in parts:
        raise ValueError("not a relative pattern inside the workspace")
    expression = ""
    for index, part in enumerate(parts):
        last = index == len(parts) - 1
        if part == "**":
            expression += ".*" if last else "(?:[^/]+/)*"
        else:
            expression += _component(part) + ("" if last else "/")
    # Bytes that are not UTF-8 keep their value: latin-1 maps each byte to one character.
    try:
        return re.compile(expression.encode("latin-1") + b"(?:/.*)?", re.DOTALL)
    except re.error as error:
        raise ValueError(f"not a pattern: {error}") from error


def _component(part: str) -> str:
    text = os.fsencode(part).decode("latin-1")
    out: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        end = _set_end(text, index) if char == "[" else -1
        if char == "*":
            out.append("[^/]*")
        elif char == "?":
            out.append("[^/]")
        elif end > 0:
            out.append(_set(text[index + 1 : end]))
            index = end
        else:
            out.append(re.escape(char))
        index += 1
    return "".join(out)


def _set_end(text: str, start: int) -> int:
    """Index of the bracket that closes a set; a bracket in first place is a member."""
    first = start + 2 if text[start + 1 : start + 2] == "!" else start + 1
    return text.find("]", first + 1)


def _set(body: str) -> str:
    negated = body.startswith("!")
    members = re.sub(r"([\\\]\[^&~|])", r"\\\1", body[1:] if negated else body)
    return f"(?!/)[{'^' if negated else ''}{members}]"
