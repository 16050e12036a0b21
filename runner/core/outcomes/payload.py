"""The texts of a JSON payload, in every order in which neighbours could be read together."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from itertools import permutations
from typing import Final, Literal, NamedTuple

from runner.core import strictjson

MAX_COLUMNS: Final = 8
Kind = Literal["text", "id", "key", "number", "digest"]
_DIGEST = re.compile(r"(?:[a-z0-9]+:)?(?:[0-9a-f]{32}|[0-9a-f]{40}|[0-9a-f]{64})", re.IGNORECASE)


@dataclass(frozen=True)
class Shape:
    """What of a payload is constant, and so says nothing.

    Attributes:
        keys: Names of the format. They are not scanned, and only they are shown in pointers.
        fixed: Pointers of values that the format fixes.
    """

    keys: frozenset[str]
    fixed: frozenset[str]


RUBRIC: Final = Shape(
    keys=frozenset(
        {
            "schema_version", "source_task_id", "judge_content_hash", "instructions", "criteria",
            "id", "description", "weight",
        }
    ),
    fixed=frozenset({"/schema_version"}),
)  # fmt: skip


class Piece(NamedTuple):
    """One text of a payload, or what it decodes to.

    Attributes:
        pointer: Where it is; steps that the payload named itself are `*`.
        text: The text.
        kind: What it is used for.
        origin: Empty, or the name of the view that decoded it.
    """

    pointer: str
    text: str
    kind: Kind = "text"
    origin: str = ""

    def __repr__(self) -> str:
        """Without the text: it may hold an answer."""
        return f"Piece({self.pointer!r}, kind={self.kind!r}, origin={self.origin!r})"


def joined(origin: str, view: str) -> str:
    """Name of a view of what another view has decoded."""
    return ", ".join(
        part for part in (origin, view if view != "text" or not origin else "") if part
    )


class Pieces(NamedTuple):
    """The pieces of a payload.

    Attributes:
        document: In document order, object keys that are no constants included.
        orders: Other orders of the same, as positions in `document`: what is under the same key,
            each object backwards, and the end of each column before the start of each other.
        others: Numbers and digests, which are not read as text.
    """

    document: tuple[Piece, ...]
    orders: tuple[tuple[int, ...], ...]
    others: tuple[Piece, ...]


def pieces_of(payload: bytes, shape: Shape) -> Pieces:
    """Take a payload apart.

    Args:
        payload: JSON.
        shape: What of it is constant.

    Raises:
        StrictJsonError: The payload is not strict JSON.
    """
    every = list(_walk(strictjson.loads(payload), "", "", shape))
    texts = [(name, item) for name, item in every if item.kind not in {"number", "digest"}]
    others = tuple(item for _, item in every if item.kind in {"number", "digest"})
    columns: dict[str, list[int]] = {}
    objects: list[list[int]] = []
    holder: str | None = None
    for position, (name, item) in enumerate(texts):
        columns.setdefault(name, []).append(position)
        parent = item.pointer.rpartition("/")[0]
        if parent != holder:
            objects.append([])
            holder = parent
        objects[-1].append(position)
    straight = tuple(range(len(texts)))
    lists = list(columns.values())[:MAX_COLUMNS]
    orders = {
        tuple(position for column in columns.values() for position in column),
        tuple(position for members in objects for position in reversed(members)),
        *((one[-1], other[0]) for one, other in permutations(lists, 2)),
    }
    return Pieces(tuple(item for _, item in texts), tuple(sorted(orders - {straight})), others)


def _walk(value: object, pointer: str, name: str, shape: Shape) -> Iterator[tuple[str, Piece]]:
    """Every key and scalar with the name of the member it belongs to; the depth is bounded."""
    if isinstance(value, dict):
        for key, member in value.items():
            step = key if key in shape.keys else "*"
            place = f"{pointer}/{step}"  # names of a format have nothing to escape
            if step == "*":
                yield "*", Piece(place, key, "key")
            yield from _walk(member, place, step, shape)
        return
    if isinstance(value, list):
        for index, member in enumerate(value):
            yield from _walk(member, f"{pointer}/{index}", name, shape)
        return
    if pointer in shape.fixed or value is None or isinstance(value, bool):
        return
    if isinstance(value, int | Decimal):
        yield name, Piece(pointer, str(value), "number")
    elif isinstance(value, str):
        yield name, Piece(pointer, value, _kind(name, value))


def _kind(name: str, text: str) -> Kind:
    if _DIGEST.fullmatch(text):
        return "digest"
    return "id" if name == "id" or name.endswith("_id") else "text"
