"""The burn ledger as a value: its file format and its hash chain.

The file is what older tools read, `{budget, records[]}`, plus a member `chain`, which their lenient
decoding passes over. The chain starts from the ledger's own random id and its budget; every burn
adds a link over its record, the digests of its score and grade, and the link before.
"""

from __future__ import annotations

import json
from typing import Annotated, Literal, NamedTuple, TypeVar

from pydantic import StringConstraints, ValidationError

from runner.core.canon import digest
from runner.core.strictjson import StrictJsonError, loads
from runner.errors import HoldoutRefusal
from runner.model.base import Items, Sha256, Value
from runner.model.burn import Burn, BurnHead, BurnRecord, Integer
from runner.model.tree import path_text

V = TypeVar("V", bound=Value)


class Link(Value):
    """What the chain keeps for one record."""

    score_sha256: Sha256 | None
    """Null for a burn that was adopted from an older tool."""
    grade_sha256: Sha256 | None
    sha256: Sha256
    """Hash of this link and all before."""


class Chain(Value):
    """The member `chain` of the file."""

    format: Literal["ao-eval-burn-chain.v1"]
    id: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{32}$")]
    """Random; tells two ledgers with the same burns apart."""
    links: Items[Link]


class Ledger(Value):
    """A burn ledger; its chain holds."""

    budget: Integer
    records: Items[BurnRecord]
    chain: Chain

    @property
    def head(self) -> BurnHead:
        """Head over all burns."""
        return self.head_at(len(self.records))

    def head_at(self, count: int) -> BurnHead:
        """Head as it was after the first `count` burns."""
        links = self.chain.links
        last = links[count - 1].sha256 if count else _genesis(self.chain.id, self.budget)
        return BurnHead(count=count, sha256=last)

    def extends(self, head: BurnHead) -> bool:
        """Whether a head lies on this chain: nothing up to it was changed or removed."""
        return head.count <= len(self.records) and self.head_at(head.count) == head

    def spent(self, suite_ref: str, gt_version: str) -> int:
        """Burns of one suite and ground-truth version.

        Letter case does not count, so that `GT-1` is no fresh quota beside `gt-1`.
        """
        wanted = (suite_ref.casefold(), gt_version.casefold())
        return sum(
            (record.suite_ref.casefold(), record.gt_version.casefold()) == wanted
            for record in self.records
        )

    def plus(self, burn: Burn, now_ms: int) -> Ledger:
        """This ledger and one more burn."""
        record = BurnRecord(
            suite_ref=burn.suite_ref,
            gt_version=burn.gt_version,
            run_id=burn.run_id,
            burned_at_ms=now_ms,
        )
        link = _link(self.head.sha256, record, burn.score_sha256, burn.grade_sha256)
        chain = self.chain.model_copy(update={"links": (*self.chain.links, link)})
        return self.model_copy(update={"records": (*self.records, record), "chain": chain})


class Plain(NamedTuple):
    """A ledger of an older tool: no chain.

    Attributes:
        budget: Burns for each suite and ground-truth version.
        records: The burns.
    """

    budget: int
    records: tuple[BurnRecord, ...]


class _PlainFile(Value):
    budget: Integer
    records: Items[BurnRecord] | None = None


def new_ledger(identity: str, budget: int, records: tuple[BurnRecord, ...] = ()) -> Ledger:
    """A ledger, empty or with the burns of an older tool.

    Args:
        identity: 32 random hexadecimal digits.
        budget: Burns for each suite and ground-truth version; zero or less for no ceiling.
        records: Burns to adopt; what they scored is not known.
    """
    links: list[Link] = []
    previous = _genesis(identity, budget)
    for record in records:
        links.append(_link(previous, record, None, None))
        previous = links[-1].sha256
    chain = Chain(format="ao-eval-burn-chain.v1", id=identity, links=tuple(links))
    return Ledger(budget=budget, records=records, chain=chain)


def read_ledger(data: bytes, where: str) -> Ledger:
    """Read a ledger file and check its chain.

    Args:
        data: The file.
        where: Its name in messages.

    Raises:
        HoldoutRefusal: It is no ledger, has no chain, or its chain is broken.
    """
    value = _parse(data, where)
    if isinstance(value, dict) and "budget" in value and "chain" not in value:
        raise HoldoutRefusal(
            "it has no hash chain: it comes from an older tool, or was edited",
            where=where,
            remedy="look at it, then `ao-eval outcomes ledger init FILE --adopt`",
        )
    ledger = _validate(Ledger, value, where)
    if len(ledger.records) != len(ledger.chain.links):
        raise _tampered(f"{len(ledger.records)} records, {len(ledger.chain.links)} links", where)
    previous = _genesis(ledger.chain.id, ledger.budget)
    for index, (record, link) in enumerate(zip(ledger.records, ledger.chain.links, strict=True)):
        if _link(previous, record, link.score_sha256, link.grade_sha256) != link:
            told = "the budget or record 0" if index == 0 else f"record {index}"
            raise _tampered(f"{told} is not as it was written", where)
        previous = link.sha256
    return ledger


def read_plain(data: bytes, where: str) -> Plain:
    """Read a ledger that an older tool wrote.

    Args:
        data: The file.
        where: Its name in messages.

    Raises:
        HoldoutRefusal: It is something else.
    """
    found = _validate(_PlainFile, _parse(data, where), where)
    return Plain(found.budget, found.records or ())


def read_head(data: bytes, where: str) -> BurnHead:
    """Read a head file.

    Raises:
        HoldoutRefusal: It is something else.
    """
    return _validate(BurnHead, _parse(data, where), where)


def write_ledger(ledger: Ledger) -> bytes:
    """The file of a ledger; absent times stay absent."""
    document = ledger.model_dump(mode="json")
    document["records"] = [
        record.model_dump(mode="json", exclude_none=True) for record in ledger.records
    ]
    return _pretty(document)


def write_head(head: BurnHead) -> bytes:
    """The file of a head."""
    return _pretty(head.model_dump(mode="json"))


def _genesis(identity: str, budget: int) -> str:
    return digest({"format": "ao-eval-burn-chain.v1", "id": identity, "budget": budget})


def _link(previous: str, record: BurnRecord, score: str | None, grade: str | None) -> Link:
    told = {
        "previous": previous,
        "record": record.model_dump(mode="json"),
        "score_sha256": score,
        "grade_sha256": grade,
    }
    return Link(score_sha256=score, grade_sha256=grade, sha256=digest(told))


def _pretty(document: object) -> bytes:
    return (json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n").encode()


def _parse(data: bytes, where: str) -> object:
    if not data.strip():
        raise HoldoutRefusal("it is empty", where=where, remedy="bring back a copy of it")
    try:
        return loads(data, fold_keys=True)
    except StrictJsonError as error:
        raise HoldoutRefusal(
            f"it is no acceptable JSON: {error}", where=where, remedy="bring back a copy of it"
        ) from None


def _validate(model: type[V], value: object, where: str) -> V:
    try:
        return model.model_validate(value)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        pointer = path_text("".join(f"/{part}" for part in first["loc"]).encode())
        raise HoldoutRefusal(
            f"it is no burn ledger: {first['msg']}",
            where=f"{where} {pointer}".rstrip(),
            remedy="a ledger has an integer budget and records, and its .head beside it",
        ) from None


def _tampered(told: str, where: str) -> HoldoutRefusal:
    return HoldoutRefusal(
        f"the hash chain is broken: {told}", where=where, remedy="bring back a copy of it"
    )
