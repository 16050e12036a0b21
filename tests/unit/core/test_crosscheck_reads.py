"""What read traces may say, held against the records and the roots of the run."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from runner.core.crosscheck import check_reads
from runner.core.legcheck import check_legs
from runner.model.contextroots import ContextRoots, RootContent, RootEntry
from runner.model.leg import LegRole
from runner.model.reads import CaseReads, ContextReads, LegReads
from runner.model.record import RunRecord
from tests.unit.builders import PASSED, case, inside_end, inside_report, record, result, suite_file

SUITE = suite_file(case("one"), case("two"))


def leg(*, runtime: str = "runc", shared: bool = True, **fields: Any) -> RunRecord:
    """A record of two cases, in one container or in two."""
    cases = [
        result(SUITE, name, [PASSED]).model_copy(update={"container": 0 if shared else number})
        for number, name in enumerate(("one", "two"))
    ]
    made = record(SUITE, cases)
    assert made.runtime is not None
    role = LegRole(purpose="first", root="context_on", ordinal=1)
    named = made.runtime.model_copy(update={"oci_runtime": runtime})
    return made.model_copy(update={"runtime": named, "role": role, **fields})


def roots() -> ContextRoots:
    entry = RootEntry(path="a", kind="f", executable=False, sha256="0" * 64)
    both = [
        RootContent(
            leg=side, label=side, sha256="d" * 64, refusal=None, entries=(entry,), context=None
        )
        for side in ("context_off", "context_on")
    ]
    return ContextRoots(schema_version=1, roots=tuple(both))


def trace(*told: tuple[str, tuple[str, ...]], **fields: Any) -> ContextReads:
    cases = tuple(CaseReads(case_id=name, opened=opened, by_hooks=()) for name, opened in told)
    values: dict[str, Any] = {
        "leg": "context_on", "state": "complete", "detail": None, "granularity": "case",
    }  # fmt: skip
    return ContextReads(schema_version=1, legs=(LegReads(**values, cases=cases)
                        .model_copy(update=fields),))  # fmt: skip


BOTH = (("one", ("a",)), ("two", ()))
ONE_CASE = {"granularity": "leg_of_one_case"}


def wrong(reads: ContextReads, of: RunRecord) -> list[str]:
    return [item.problem for item in check_reads(reads, roots(), [of])]


def test_a_trace_of_what_was_run_is_borne_out() -> None:
    assert wrong(trace(*BOTH), leg()) == []
    assert wrong(trace(*BOTH, **ONE_CASE), leg(runtime="runsc", shared=False)) == []
    less = trace(BOTH[0], state="incomplete", detail="queue_overflow")
    assert wrong(less, leg()) == []


@pytest.mark.parametrize(
    "reads, of, why",
    [
        (trace(BOTH[0]), leg(), "are said to be complete, without two"),
        (trace(*BOTH[::-1]), leg(), "are not in the order in which they ran"),
        (trace(*BOTH, BOTH[1]), leg(), "are not in the order in which they ran"),
        (trace(("one", ("b",)), BOTH[1]), leg(), "no root has b"),
        (trace(*BOTH), leg(runtime="runsc"), "cannot be under the runtime of leg context_on"),
        (trace(*BOTH, **ONE_CASE), leg(shared=False), "cannot be under the runtime"),
        (trace(*BOTH, **ONE_CASE), leg(runtime="runsc"), "cases shared a container"),
    ],
)
def test_a_trace_that_claims_more_is_named(reads: ContextReads, of: RunRecord, why: str) -> None:
    assert any(line.startswith(why) for line in wrong(reads, of)), wrong(reads, of)


@pytest.mark.parametrize(
    "runtime, reads, end, clean",
    [
        ("runsc", trace(*BOTH, **ONE_CASE), "d", True),
        ("runsc", trace(*BOTH, **ONE_CASE), "e", False),
        ("runsc", trace(*BOTH), "d", False),
        ("runc", trace(*BOTH, **ONE_CASE), "d", False),
        ("runsc", ContextReads(schema_version=1, legs=()), "d", False),
    ],
)
def test_a_root_not_looked_at_at_start_needs_a_trace_that_says_why(
    runtime: str, reads: ContextReads, end: str, clean: bool
) -> None:
    of = leg(
        runtime=runtime,
        shared=False,
        context_root_sha256="d" * 64,
        inside=inside_report(context_root_sha256=None),
        inside_end=inside_end(context_root_sha256=end * 64),
    )
    sandbox: Any = SimpleNamespace(containers=(), problems=())
    hooks: Any = SimpleNamespace(directory=None)
    found = [item.problem for item in check_legs(SUITE, roots(), [of], sandbox, reads, hooks=hooks)]
    assert any("digest_mismatch" in line for line in found) is not clean
