"""Compilation of a rubric: projection, and everything that must hold before it may leave."""

from __future__ import annotations

import hmac
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final

from runner.core.outcomes.holdout import HoldoutValue
from runner.core.outcomes.inputs import CompileInput
from runner.core.outcomes.judgehash import judge_hash
from runner.core.outcomes.keyscan import key_scan
from runner.core.outcomes.leakscan import find
from runner.core.outcomes.noninterference import Randomness, check_noninterference
from runner.core.outcomes.project import project, rubric_bytes
from runner.core.outcomes.sealed import sealed
from runner.core.outcomes.views import needles
from runner.errors import HoldoutRefusal

NAMED: Final = 5
"""So many hits, or indexes, are named in a message; the rest is counted."""


@dataclass(frozen=True)
class Compiled:
    """A rubric that may leave.

    Attributes:
        payload: Canonical JSON.
        warnings: What could not be enforced; one line each.
    """

    payload: bytes = field(repr=False)
    warnings: tuple[str, ...]


@sealed
def compile_rubric(
    compile_input: CompileInput,
    holdouts: Sequence[HoldoutValue],
    *,
    strict: bool,
    judge_spec: tuple[str, bytes] | None,
    randomness: Randomness,
    warnings: list[str] | None = None,
) -> Compiled:
    """Compile an input to the rubric payload.

    Args:
        compile_input: The input.
        holdouts: The holdout values; see `collect_holdout`.
        strict: Whether what cannot be enforced refuses instead of warning.
        judge_spec: Name and bytes of the judge specification that the input's hash must be of.
        randomness: Source of the replacement values of the non-interference check.
        warnings: The caller's list, to which each warning is added as it comes up, so that they
            outlive a refusal.

    Returns:
        The payload and the warnings.

    Raises:
        HoldoutRefusal: A holdout value, or the name of one, is in the rubric; the rubric depends on
            what must not reach it; the judge hash is another one; or, with `strict`, something
            could not be checked. Nothing of a value is in the message.
        InputError: The judge specification cannot be read.
    """
    payload = rubric_bytes(project(compile_input))
    warnings = [] if warnings is None else warnings
    before = len(warnings)
    warnings += _check_judge(compile_input, judge_spec, strict=strict)
    warnings += _check_given(compile_input, holdouts, strict=strict)
    check_noninterference(compile_input, randomness)
    # Values first: their refusal says more.
    warnings += _check_values(payload, holdouts, strict=strict)
    _check_names(payload)
    return Compiled(payload, tuple(warnings[before:]))


def _check_judge(
    compile_input: CompileInput, judge_spec: tuple[str, bytes] | None, *, strict: bool
) -> tuple[str, ...]:
    if judge_spec is None:
        # A rubric of a dev split is drafted while its judge is still being written.
        if strict and compile_input.split != "dev":
            raise HoldoutRefusal(
                "the judge content hash was not recomputed, so nothing says that it is the judge's",
                where="/judge_content_hash",
                remedy='give --judge-spec, or state "split": "dev"',
            )
        return ("the judge content hash was NOT recomputed; give --judge-spec",)
    name, data = judge_spec
    if not hmac.compare_digest(judge_hash(data, name), compile_input.judge_content_hash):
        raise HoldoutRefusal(
            "the judge content hash is not that of the judge specification",
            where="/judge_content_hash",
            remedy="compute it with `ao-eval outcomes hash`",
        )
    return ()


def _check_given(
    compile_input: CompileInput, holdouts: Sequence[HoldoutValue], *, strict: bool
) -> tuple[str, ...]:
    if holdouts or compile_input.split == "dev":
        return ()
    if strict:
        raise HoldoutRefusal(
            "no holdout values were given, so nothing was searched for",
            remedy='give --holdout-file, or state "split": "dev"',
        )
    return ("NO holdout values were given: the rubric was NOT searched for any",)


def _check_names(payload: bytes) -> None:
    hits = key_scan(payload)
    if hits:
        more = f" (and {len(hits) - 1} more)" if len(hits) > 1 else ""
        wording = {
            "key": "a key that names an answer",
            "id": "an id that names an answer",
            "assignment": "an answer's name that is given a value",
        }
        raise HoldoutRefusal(
            wording[hits[0].what] + more,
            where=hits[0].pointer,
            remedy="describe what earns the score without writing an answer down",
        )


def _check_values(
    payload: bytes, holdouts: Sequence[HoldoutValue], *, strict: bool
) -> tuple[str, ...]:
    sought = needles(holdouts)
    hits = find(payload, sought)
    if hits:
        named = "; ".join(
            f"value {hit.value_index} ({hit.view}) at "
            f"{hit.pointer or 'several places read together'}"
            for hit in hits[:NAMED]
        )
        more = f"; and {len(hits) - NAMED} more" if len(hits) > NAMED else ""
        raise HoldoutRefusal(f"the rubric carries holdout values: {named}{more}", where="rubric")
    if not sought.unscannable:
        return ()
    count = len(sought.unscannable)
    named = ", ".join(map(str, sought.unscannable[:NAMED]))
    more = f" and {count - NAMED} more" if count > NAMED else ""
    message = f"holdout values not scannable, too short or common to be certified: {named}{more}"
    if strict:
        raise HoldoutRefusal(message, where="holdout values")
    return (message,)
