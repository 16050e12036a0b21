"""What a burn ledger holds, for people: budget, head, and what was used up of which holdout."""

from __future__ import annotations

from typing import NamedTuple

from runner.ledger.chain import Ledger
from runner.model.burn import BurnHead


class Spent(NamedTuple):
    """Burns of one suite and ground-truth version, as first written."""

    suite_ref: str
    gt_version: str
    burns: int


class Account(NamedTuple):
    """What a ledger holds.

    Attributes:
        budget: Burns for each suite and ground-truth version.
        head: Over all burns in the file.
        spent: One entry for each suite and ground-truth version, in order of first use.
        interrupted: The last burn did not complete; it counts, and the next burn repairs the head.
        warnings: One line each.
    """

    budget: int
    head: BurnHead
    spent: tuple[Spent, ...]
    interrupted: bool
    warnings: tuple[str, ...]


def account_of(ledger: Ledger, *, interrupted: bool) -> Account:
    """The account of a ledger.

    Args:
        ledger: The ledger.
        interrupted: Whether its head lacks the last burn.
    """
    pairs: dict[tuple[str, str], tuple[str, str]] = {}
    for record in ledger.records:
        key = (record.suite_ref.casefold(), record.gt_version.casefold())
        pairs.setdefault(key, (record.suite_ref, record.gt_version))
    return Account(
        budget=ledger.budget,
        head=ledger.head,
        spent=tuple(Spent(*pair, ledger.spent(*pair)) for pair in pairs.values()),
        interrupted=interrupted,
        warnings=quota_warnings(ledger),
    )


def quota_warnings(ledger: Ledger) -> tuple[str, ...]:
    """What its quota does not enforce; one line each."""
    if ledger.budget > 0:
        return ()
    return (f"budget {ledger.budget} is no ceiling: the holdout quota is NOT enforced",)
