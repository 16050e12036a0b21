"""What decided a case: facts that changed, and the outputs and files that they were read from.

A changed score is no evidence of itself. A change that rests on nothing that was kept with a digest
is not counted.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator

from runner.model.controls import LegName
from runner.model.record import CaseResult
from runner.model.scorecard import (
    CheckedFile,
    CommandOutput,
    EvaluatorFact,
    SentinelFact,
)

Excerpt = Callable[[str, str, str], str | None]
"""(leg, case id, stream) -> leading text of a stored output, escaped; None when withheld."""

_OFF: LegName = "context_off"
_ON: LegName = "context_on"


def facts(off: CaseResult, on: CaseResult) -> tuple[EvaluatorFact, ...]:
    """Every expectation that both legs judged, and whether its verdict changed."""
    on_by_index = {item.index: item for item in on.expectations}
    return tuple(
        EvaluatorFact(
            kind="evaluator_fact",
            expectation=item.index,
            type=item.type,
            target=item.target,
            context_off=item.verdict,
            context_on=on_by_index[item.index].verdict,
            changed=item.required and item.verdict is not on_by_index[item.index].verdict,
            fingerprint_off=item.fingerprint,
            fingerprint_on=on_by_index[item.index].fingerprint,
        )
        for item in off.expectations
        if item.index in on_by_index
    )


def sentinel_facts(off: CaseResult, on: CaseResult) -> Iterator[SentinelFact]:
    """Negative controls that failed."""
    for leg, case in ((_OFF, off), (_ON, on)):
        for hit in case.sentinels:
            yield SentinelFact(kind="sentinel_fact", leg=leg, **hit.model_dump())


def moved(off: CaseResult, on: CaseResult) -> bool:
    """Whether the outcomes differ: status, a required verdict, or which sentinels showed."""
    hits = [{hit.artifact for hit in side.sentinels} for side in (off, on)]
    return (
        off.status is not on.status
        or hits[0] != hits[1]
        or any(fact.changed for fact in facts(off, on))
    )


def evidenced(off: CaseResult, on: CaseResult) -> bool:
    """Whether a change rests on an output or file that was kept with a digest."""
    return bool(off.sentinels or on.sentinels) or any(outputs(off, on, lambda *_: None))


def outputs(
    off: CaseResult, on: CaseResult, excerpt: Excerpt
) -> Iterator[CommandOutput | CheckedFile]:
    """The outputs and files that the changed facts were read from, in both legs, once each.

    Where a private holdout withholds what a fact was read from, all outputs and files of the case
    stand for it; their digests are keyed.
    """
    wanted = {fact.expectation for fact in facts(off, on) if fact.changed}
    if not wanted:
        return
    for leg, case in ((_OFF, off), (_ON, on)):
        named = dict.fromkeys(item.rests_on for item in case.expectations if item.index in wanted)
        found = [_source(leg, case, name, excerpt) for name in named if name is not None]
        if not any(found):
            others = ("stdout", "stderr", *(file.path for file in case.files))
            found = [_source(leg, case, name, excerpt) for name in others]
        yield from (item for item in found if item is not None)


def _source(
    leg: LegName, case: CaseResult, rests_on: str, excerpt: Excerpt
) -> CommandOutput | CheckedFile | None:
    match rests_on:
        case "exit_code":
            if case.exit_code is None:
                return None
            text = f"exit {case.exit_code}"
            return CommandOutput(
                kind="command_output",
                leg=leg,
                stream="exit_code",
                excerpt=text,
                sha256=hashlib.sha256(text.encode()).hexdigest(),
                size=len(text),
            )
        case "stdout" | "stderr" as stream:
            record = case.stdout if stream == "stdout" else case.stderr
            if record is None:
                return None
            return CommandOutput(
                kind="command_output",
                leg=leg,
                stream=stream,
                excerpt=excerpt(leg, case.case_id, stream),
                sha256=record.sha256,
                size=record.size,
            )
        case path:
            file = next((file for file in case.files if file.path == path), None)
            if file is None:
                return None
            return CheckedFile(
                kind="checked_file", leg=leg, path=file.path, state=file.state, sha256=file.sha256
            )
