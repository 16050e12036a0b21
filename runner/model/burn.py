"""Burns: the uses of a holdout, as the burn ledger keeps them."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, StringConstraints

from runner.model.base import Sha256, Value

RefText = Annotated[
    str, StringConstraints(pattern=r"^[A-Za-z0-9][A-Za-z0-9._:@/+-]*$", max_length=128)
]
"""Suite reference or ground-truth version: ASCII, so that no two of them look the same."""

RunIdText = Annotated[
    str,
    StringConstraints(
        pattern=r"^[\u0021-\u007e]([\u0020-\u007e]*[\u0021-\u007e])?$", max_length=128
    ),
]
"""Run id as a grader gives it: printable ASCII without blanks at the ends."""

# I-JSON: what every reader of JSON numbers keeps exactly.
Integer = Annotated[int, Field(ge=-(2**53) + 1, le=2**53 - 1)]
Moment = Annotated[int, Field(gt=0, le=253_402_300_799_999)]
"""Milliseconds since 1970, UTC, up to the year 9999."""


class BurnHead(Value):
    """Head of a burn ledger's hash chain: enough to see later that nothing was removed."""

    count: Annotated[int, Field(ge=0)]
    """Burns up to and including this one."""
    sha256: Sha256
    """Hash over the budget and all of them."""


class Burn(Value):
    """One use of a holdout that is asked for."""

    suite_ref: RefText
    gt_version: RefText
    run_id: RunIdText
    """As it was given; repeating a burn under the same one is no second burn."""
    score_sha256: Sha256
    """Of the bytes of the score file."""
    grade_sha256: Sha256
    """Of everything that determines the verdict; the same run id with another one is refused."""


class BurnRecord(Value):
    """One burn as the documented shape of the file has it. Older tools wrote any text."""

    suite_ref: Annotated[str, Field(max_length=1000)]
    gt_version: Annotated[str, Field(max_length=1000)]
    run_id: Annotated[str, Field(max_length=1000)]
    burned_at_ms: Moment | None = None
    """Null: recorded by an older tool, which kept no time."""
