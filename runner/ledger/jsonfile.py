"""The burn ledger as a local JSON file, its head beside it, under the lock of its folder.

`FILE` is replaced first, then `FILE.head`. So the head is never ahead of the file but after
somebody removed burns, and one behind it only after a burn was interrupted; the next burn, whatever
it is for, brings it up first. A burn counts from the rename of `FILE` on, and its verdict may be
shown once `burn` has returned: quota is never under-counted.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final, NamedTuple

from runner.errors import HoldoutRefusal, InputError
from runner.ledger.account import Account, account_of, quota_warnings
from runner.ledger.chain import (
    Ledger,
    new_ledger,
    read_head,
    read_ledger,
    read_plain,
    write_head,
    write_ledger,
)
from runner.ledger.durable import Held, Place, Step, at, locked, read, replace
from runner.ledger.volume import require_local
from runner.model.burn import Burn, BurnHead

STEPS: Final = (
    "locked",
    "verified",
    "admitted",
    "ledger_temporary",
    "ledger_written",
    "ledger_synced",
    "ledger_renamed",
    "ledger_durable",
    "head_temporary",
    "head_written",
    "head_synced",
    "head_renamed",
    "head_durable",
    "unlocked",
)
"""Names of the steps of a burn in their order. `ledger_renamed` is where it starts to count."""

PATIENCE_SECONDS: Final = 600.0
"""An ingest holds the lock while its container runs, and fifty may be waiting."""

_INIT: Final = "`ao-eval outcomes ledger init FILE --budget N`"
_LOOKS: Final = 50


class Burned(NamedTuple):
    """A burn that is in the ledger.

    Attributes:
        head: Head as of this burn, the same one whenever it is repeated.
        repeated: It was there already, nothing was added.
        spent: Burns of its suite and ground-truth version.
        budget: How many there may be.
        warnings: One line each.
    """

    head: BurnHead
    repeated: bool
    spent: int
    budget: int
    warnings: tuple[str, ...]


def init(
    path: Path,
    *,
    budget: int | None,
    adopt: bool = False,
    step: Step = lambda _: None,
) -> Account:
    """Start a burn ledger.

    Args:
        path: The file; its folder must exist.
        budget: Burns for each suite and ground-truth version; zero or less for no ceiling. With
            `adopt` None keeps the budget of the file.
        adopt: Take over the burns of an older tool's ledger; otherwise nothing may be there.
        step: Called between every two steps.

    Raises:
        InputError: The budget is missing or no integer that every reader keeps exactly.
        HoldoutRefusal: Something is there already (or, adopting, nothing that can be adopted), or
            the folder cannot be used.
    """
    if budget is None and not adopt:
        raise InputError("a new ledger needs a budget", where="--budget", remedy=_INIT)
    if budget is not None and (isinstance(budget, bool) or abs(budget) >= 2**53):
        raise InputError("not an integer below 2^53", where="--budget")
    with at(path) as place:
        require_local(place.folder, place.where)
        with locked(place, patience=PATIENCE_SECONDS):
            step("locked")
            before = read(place)
            ledger = _adopted(place, before, budget) if adopt else _fresh(place, before, budget)
            # The head first: a ledger without its head would be refused, and could not be told
            # from one whose head was removed.
            head_place = place.beside(".head")
            head_like = read(head_place) or before
            replace(head_place, write_head(ledger.head), head_like, step=step, label="head")
            replace(place, write_ledger(ledger), before, step=step, label="ledger")
    return account_of(ledger, interrupted=False)


def burn(
    path: Path,
    asked: Burn,
    *,
    now_ms: int,
    ceiling_required: bool = False,
    step: Step = lambda _: None,
) -> Burned:
    """Record one use of a holdout; only then may its verdict be shown.

    Args:
        path: The ledger file.
        asked: What is used, by which run, for which score.
        now_ms: Milliseconds since 1970.
        ceiling_required: Refuse a ledger whose budget is no ceiling (`--strict`).
        step: Called between every two steps, with the names in `STEPS`.

    Raises:
        HoldoutRefusal: The quota is spent; the run id was burned for another score; the score was
            burned under another run id; or the ledger is missing, damaged, not on a local file
            system, or cannot be written. The ledger then is as it was, except where it could not
            be written: a burn may then count although it was refused, never the reverse.
    """
    with exclusive(path, step=step) as held:
        return held.burn(asked, now_ms=now_ms, ceiling_required=ceiling_required)


class Exclusive:
    """A ledger whose lock is held. From `exclusive`."""

    def __init__(self, place: Place, step: Step) -> None:
        self._place = place
        self._step = step

    def files(self) -> dict[str, bytes]:
        """Bytes of the ledger (suffix "") and of its head (".head"), checked against each other.

        Raises:
            HoldoutRefusal: It is missing or damaged.
        """
        before = _present(self._place)
        # First the ledger: one of an older tool has no head, and is to be told so.
        ledger = read_ledger(before.data, self._place.where)
        head = _head(self._place.beside(".head"))
        _behind(ledger, head.head, self._place)
        return {"": before.data, ".head": head.held.data}

    def burn(self, asked: Burn, *, now_ms: int, ceiling_required: bool = False) -> Burned:
        """See `burn`."""
        place, step = self._place, self._step
        before = _present(place)
        ledger = read_ledger(before.data, place.where)
        head_place = place.beside(".head")
        head = _head(head_place)
        behind = _behind(ledger, head.head, place)
        step("verified")
        if behind:
            replace(
                head_place,
                write_head(ledger.head),
                head.held,
                step=lambda name: step(f"repair_{name}"),
                label="head",
            )
        found = _repeated(ledger, asked, place)
        if found is None:
            _require_quota(ledger, asked, place, ceiling_required=ceiling_required)
            step("admitted")
            ledger = ledger.plus(asked, now_ms)
            replace(place, write_ledger(ledger), before, step=step, label="ledger")
            replace(head_place, write_head(ledger.head), head.held, step=step, label="head")
        return Burned(
            head=ledger.head if found is None else found,
            repeated=found is not None,
            spent=ledger.spent(asked.suite_ref, asked.gt_version),
            budget=ledger.budget,
            warnings=quota_warnings(ledger),
        )


@contextmanager
def exclusive(path: Path, *, step: Step = lambda _: None) -> Iterator[Exclusive]:
    """Hold a ledger's lock for the time of the block.

    Args:
        path: The ledger file.
        step: Called between every two steps, with the names in `STEPS`.

    Raises:
        HoldoutRefusal: Its folder cannot be used, or another process holds the lock for long.
    """
    with at(path) as place:
        require_local(place.folder, place.where)
        with locked(place, patience=PATIENCE_SECONDS):
            step("locked")
            yield Exclusive(place, step)
        step("unlocked")


def show(path: Path) -> Account:
    """What a ledger holds, checked as `verify` does."""
    return verify(path)


def verify(path: Path, *, seen: Sequence[BurnHead] = ()) -> Account:
    """Recompute a ledger's chain and compare it with its head. Writes nothing, needs no lock.

    Args:
        path: The ledger file.
        seen: Heads from verdicts; each must lie on the chain. They show what file and head
            together cannot: that both were put back to an older state.

    Raises:
        HoldoutRefusal: It is missing or damaged, or burns were removed.
    """
    with at(path) as place:
        ledger, head = _look(place)
        behind = _behind(ledger, head, place)
        for other in seen:
            if not ledger.extends(other):
                raise HoldoutRefusal(
                    f"a verdict was given at burn {other.count}, which is not in the ledger",
                    where=place.where,
                    remedy="bring back a copy of the ledger and its head that has it",
                )
        return account_of(ledger, interrupted=behind)


class _Head(NamedTuple):
    head: BurnHead
    held: Held


def _present(place: Place) -> Held:
    held = read(place)
    if held is None:
        raise HoldoutRefusal(
            "there is no burn ledger, which is a refusal and never an unlimited quota",
            where=place.where,
            remedy=f"check the path, or start one with {_INIT}",
        )
    return held


def _head(place: Place) -> _Head:
    held = read(place)
    if held is None:
        raise HoldoutRefusal(
            "the ledger's head is missing, so that removed burns would not be seen",
            where=place.where,
            remedy="bring it back; it is the `burn_ledger_head` of the last verdict",
        )
    return _Head(read_head(held.data, place.where), held)


def _look(place: Place) -> tuple[Ledger, BurnHead]:
    """Ledger and head of one moment: heads only grow, so an unchanged head spans the look."""
    for _ in range(_LOOKS):
        read_ledger(_present(place).data, place.where)
        head = _head(place.beside(".head")).head
        held = _present(place)
        if _head(place.beside(".head")).head == head:
            return read_ledger(held.data, place.where), head
    raise HoldoutRefusal("it is being written all the time", where=place.where, remedy="repeat")


def _behind(ledger: Ledger, head: BurnHead, place: Place) -> bool:
    """Whether the head lacks exactly the last burn.

    Raises:
        HoldoutRefusal: It differs in any other way.
    """
    if ledger.head == head:
        return False
    if head.count == len(ledger.records) - 1 and ledger.extends(head):
        return True
    told = (
        f"{head.count - len(ledger.records)} burn(s) were removed from it"
        if head.count > len(ledger.records)
        else "it does not fit its head"
    )
    raise HoldoutRefusal(told, where=place.where, remedy="bring back a copy of it and its head")


def _repeated(ledger: Ledger, asked: Burn, place: Place) -> BurnHead | None:
    """Head of the burn if it is in the ledger already.

    Raises:
        HoldoutRefusal: Its run id or its score is there for something else.
    """
    for index, (record, link) in enumerate(zip(ledger.records, ledger.chain.links, strict=True)):
        same_run = record.run_id == asked.run_id
        same_score = link.score_sha256 == asked.score_sha256
        if not same_run and not same_score:
            continue
        same_use = (record.suite_ref, record.gt_version) == (asked.suite_ref, asked.gt_version)
        if same_run and same_score and same_use and link.grade_sha256 == asked.grade_sha256:
            return ledger.head_at(index + 1)
        told = (
            "this run id was burned for another score, or for another reading of it"
            if same_run
            else "this very score was burned under another run id"
        )
        raise HoldoutRefusal(
            f"gate #3: {told} (record {index})",
            where=place.where,
            remedy="a new grade needs a run id of its own, in the score as well",
        )
    return None


def _require_quota(ledger: Ledger, asked: Burn, place: Place, *, ceiling_required: bool) -> None:
    spent = ledger.spent(asked.suite_ref, asked.gt_version)
    if ledger.budget <= 0:
        if ceiling_required:
            raise HoldoutRefusal(
                f"gate #3: budget {ledger.budget} is no ceiling", where=place.where
            )
    elif spent >= ledger.budget:
        raise HoldoutRefusal(
            f"gate #3: the holdout is spent, {spent} of {ledger.budget} burns of this suite and "
            "ground-truth version were made",
            where=place.where,
            remedy="make a new holdout with a new ground-truth version",
        )


def _fresh(place: Place, before: Held | None, budget: int | None) -> Ledger:
    if before is not None:
        raise HoldoutRefusal(
            "there is a file already, and a ledger is never started over",
            where=place.where,
            remedy="choose another name, or --adopt an older tool's ledger",
        )
    held = read(place.beside(".head"))
    if held is not None and (count := read_head(held.data, f"{place.where}.head").count):
        raise HoldoutRefusal(
            f"a head of {count} burns lies there: the ledger was removed",
            where=place.where,
            remedy="bring back a copy of the ledger",
        )
    return new_ledger(secrets.token_hex(16), budget or 0)


def _adopted(place: Place, before: Held | None, budget: int | None) -> Ledger:
    if before is None:
        raise HoldoutRefusal("there is nothing to adopt", where=place.where, remedy=_INIT)
    plain = read_plain(before.data, place.where)
    held = read(place.beside(".head"))
    if held is not None:
        head = read_head(held.data, f"{place.where}.head")
        if head.count > len(plain.records):
            raise HoldoutRefusal(
                f"{head.count - len(plain.records)} burn(s) were removed from it",
                where=place.where,
                remedy="bring back a copy of it",
            )
    return new_ledger(
        secrets.token_hex(16), plain.budget if budget is None else budget, plain.records
    )
