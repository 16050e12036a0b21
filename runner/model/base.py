"""Shared value type and scalar types."""

from __future__ import annotations

from typing import Annotated, TypeVar

from pydantic import BaseModel, ConfigDict, Field, Strict, StringConstraints

T = TypeVar("T")


class Value(BaseModel):
    """A frozen value: strict scalars, unknown fields refused, written and read again unchanged.

    A string below a field describes it; `contracts.registry` puts it into the schema. Pydantic
    could do that itself, but would read the sources at every start.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)


# Lists of JSON become tuples: frozen, yet accepted from a parsed document.
Items = Annotated[tuple[T, ...], Strict(strict=False)]

Sha256 = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]
"""SHA-256 as 64 lower-case hexadecimal digits."""

ImageId = Annotated[str, StringConstraints(pattern=r"^sha256:[0-9a-f]{64}$")]
"""Image id as the engine prints it."""

Token = Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_]*$", max_length=64)]
"""Bare token: a stable machine-readable word."""

RunId = Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:-]*$", max_length=200)]

Score = Annotated[float, Field(ge=0.0, le=1.0)]
"""Score in [0, 1], rounded to four decimals."""

Delta = Annotated[float, Field(ge=-1.0, le=1.0)]

# Digits are listed because to some dialects `\d` is every digit of Unicode.
_DATE, _TIME = r"[0-9]{4}-[0-9]{2}-[0-9]{2}", r"[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,9})?"
Timestamp = Annotated[str, StringConstraints(pattern=f"^{_DATE}T{_TIME}Z$")]
"""UTC, RFC 3339, with `Z`."""
