"""Strict JSON: bytes in, one value or one clear refusal out.

What two readers could understand differently is refused rather than guessed: duplicate keys, byte
order marks, other encodings, NaN and Infinity, lone surrogates, trailing data. Numbers stay exact.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from decimal import Decimal, InvalidOperation

MAX_BYTES = 16 * 1024 * 1024
MAX_DEPTH = 128
MAX_NUMBER_CHARS = 4300
"""Longest number. Python's own bound; conversion of longer ones takes quadratic time."""

# The closing quote is optional and the rest possessive, so that an unterminated string is one
# token and the scan stays linear.
_TOKEN = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+|[\[{\]}]', re.DOTALL)
_STRING = re.compile(rb'"(?:[^"\\]++|\\.)*+"?+', re.DOTALL)
_NOT_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))
_AS_SQUARE = bytes.maketrans(b"{}", b"[]")
_QUOTE, _OPENING = ord('"'), b"[{"
_SURROGATE = re.compile("[\ud800-\udfff]")


class StrictJsonError(ValueError):
    """The bytes are not acceptable JSON.

    Attributes:
        message: What is wrong; never quotes the document.
        line: Line from 1, where known.
        column: Column in characters from 1, where known.
        pointer: JSON pointer to the value (or the member) that is wrong; "" is the document.
    """

    def __init__(
        self,
        message: str,
        *,
        line: int | None = None,
        column: int | None = None,
        pointer: str = "",
    ) -> None:
        self.message = message
        self.line = line
        self.column = column
        self.pointer = pointer
        super().__init__(message if line is None else f"{message} (line {line}, column {column})")


class _Refused:
    """Stands in the parsed tree where something is wrong, so that its pointer can be found."""

    def __init__(self, reason: str, key: str | None = None) -> None:
        self.reason = reason
        self.key = key


class _Hooks:
    """What the standard parser calls; a refusal takes the place of the value, see `_Refused`."""

    def __init__(self, *, fold_keys: bool) -> None:
        self.fold_keys = fold_keys
        self.refused = False

    def build(self, pairs: list[tuple[str, object]]) -> object:
        built = dict(pairs)
        if len(built) != len(pairs):
            return self._refuse("duplicate key", _repeated(pairs, fold=False))
        if self.fold_keys and (key := _repeated(pairs, fold=True)) is not None:
            return self._refuse("keys that differ by letter case only", key)
        return built

    def integer(self, token: str) -> object:
        if len(token) > MAX_NUMBER_CHARS:
            return self._refuse(f"a number of more than {MAX_NUMBER_CHARS} characters")
        return int(token)

    def exact(self, token: str) -> object:
        if len(token) > MAX_NUMBER_CHARS:
            return self._refuse(f"a number of more than {MAX_NUMBER_CHARS} characters")
        try:
            number = Decimal(token)
        except InvalidOperation:
            return self._refuse("a number that is out of range")
        # Where the caller's decimal context does not trap, it is NaN instead.
        return number if number.is_finite() else self._refuse("a number that is out of range")

    def constant(self, _: str) -> object:
        return self._refuse("NaN and Infinity are not JSON")

    def _refuse(self, reason: str, key: str | None = None) -> _Refused:
        self.refused = True
        return _Refused(reason, key)


def loads(
    data: bytes,
    *,
    max_bytes: int = MAX_BYTES,
    max_depth: int = MAX_DEPTH,
    fold_keys: bool = False,
) -> object:
    """Parse one JSON document.

    Args:
        data: The document, UTF-8 without a byte order mark.
        max_bytes: Longest document, in bytes.
        max_depth: Deepest nesting of arrays and objects; `[[1]]` has 2.
        fold_keys: Also refuse keys of one object that differ by letter case only.

    Returns:
        dict, list, str, int, `decimal.Decimal` (every number with a fraction or an exponent), bool
        or None.

    Raises:
        StrictJsonError: The document is refused.
    """
    if len(data) > max_bytes:
        raise StrictJsonError(f"the document has more than {max_bytes} bytes")
    text = _decode(data)
    _check_depth(data, max_depth)
    hooks = _Hooks(fold_keys=fold_keys)
    try:
        value: object = json.loads(
            text,
            object_pairs_hook=hooks.build,
            parse_int=hooks.integer,
            parse_float=hooks.exact,
            parse_constant=hooks.constant,
        )
    except json.JSONDecodeError as error:
        message = "text after the document" if error.msg == "Extra data" else error.msg
        raise StrictJsonError(
            message[:1].lower() + message[1:].rstrip(": "), line=error.lineno, column=error.colno
        ) from None
    except RecursionError:
        # Only reached when the caller raised max_depth beyond what the interpreter can nest.
        raise StrictJsonError("nested too deeply") from None
    # An escaped surrogate is the only way to a lone one: the UTF-8 decoder refuses the others.
    if hooks.refused or b"\\ud" in data or b"\\uD" in data:
        _raise_first(value)
    return value


def _decode(data: bytes) -> str:
    if data.startswith((b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")):
        raise StrictJsonError("the document starts with a byte order mark; plain UTF-8 is needed")
    if b"\0" in data[:4]:
        raise StrictJsonError("the document is UTF-16 or UTF-32; plain UTF-8 is needed")
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        before = data[: error.start].decode("utf-8")
        raise StrictJsonError(
            "invalid UTF-8",
            line=before.count("\n") + 1,
            column=len(before) - (before.rfind("\n") + 1) + 1,
        ) from None


def _check_depth(data: bytes, max_depth: int) -> None:
    if data.count(b"[") + data.count(b"{") <= max_depth or _is_shallow(data, max_depth):
        return
    depth = 0
    for token in _TOKEN.finditer(data):
        first = data[token.start()]
        if first == _QUOTE:
            continue
        depth += 1 if first in _OPENING else -1
        if depth > max_depth:
            line_start = data.rfind(b"\n", 0, token.start()) + 1
            raise StrictJsonError(
                f"nested deeper than {max_depth} levels",
                line=data.count(b"\n", 0, token.start()) + 1,
                column=len(data[line_start : token.start()].decode("utf-8", "replace")) + 1,
            )


def _is_shallow(data: bytes, max_depth: int) -> bool:
    """True when the brackets pair off within the bound; False says nothing yet.

    Takes the innermost pairs away, all at once, level by level: fast where there are millions.
    """
    # One kind of bracket, so that each round takes away exactly one level.
    left = _STRING.sub(b"", data).translate(_AS_SQUARE, _NOT_BRACKETS)
    for _ in range(max_depth):
        if not left:
            return True
        shorter = left.replace(b"[]", b"")
        if len(shorter) == len(left):
            return False
        left = shorter
    return not left


def _repeated(pairs: list[tuple[str, object]], *, fold: bool) -> str | None:
    seen: set[str] = set()
    for key, _ in pairs:
        name = key.casefold() if fold else key
        if name in seen:
            return key
        seen.add(name)
    return None


def pointer(path: tuple[str | int, ...]) -> str:
    """JSON pointer (RFC 6901) of a path of keys and indexes."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def _raise_first(value: object) -> None:
    for path, item in _walk(value):
        if isinstance(item, _Refused):
            where = path if item.key is None else (*path, item.key)
            raise StrictJsonError(item.reason, pointer=pointer(where))
        texts = item if isinstance(item, dict) else [item] if isinstance(item, str) else []
        if any(_SURROGATE.search(text) for text in texts):
            raise StrictJsonError("a lone surrogate", pointer=pointer(path))


def _walk(value: object) -> Iterator[tuple[tuple[str | int, ...], object]]:
    """Every value with its path, in document order, without recursion."""
    stack: list[tuple[tuple[str | int, ...], object]] = [((), value)]
    while stack:
        path, item = stack.pop()
        yield path, item
        if isinstance(item, dict):
            stack.extend(((*path, key), member) for key, member in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend(((*path, index), item[index]) for index in range(len(item) - 1, -1, -1))
