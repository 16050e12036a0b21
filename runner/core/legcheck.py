"""Degraded legs: every leg is degraded by what the evidence shows, and by nothing it refutes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from runner.core import inside
from runner.core.crosscheck import Wrong, record_place, under_gvisor
from runner.core.plan import supported_variants, suppression
from runner.model.contextroots import ContextRoots, RootContent
from runner.model.evidence import HooksEvidence, SandboxEvidence
from runner.model.leg import Axis, ContextRoot, Degradation, DegradedReason, Variant
from runner.model.observation import InsideEnd, InsideReport
from runner.model.reads import ContextReads
from runner.model.record import RunRecord
from runner.model.suite import SuiteFile


def check_legs(
    suite: SuiteFile | None,
    roots: ContextRoots | None,
    found: Sequence[RunRecord],
    sandbox: SandboxEvidence,
    reads: ContextReads | None,
    *,
    hooks: HooksEvidence,
) -> Iterator[Wrong]:
    """Every leg is degraded by what the evidence shows, and by nothing that it refutes.

    Args:
        suite: None for a private holdout.
        roots: Both context roots; None on the skill axis.
        found: Every record, before live state is considered.
        sandbox: Containers and what was seen from inside.
        reads: Read traces; some say why a root was not looked at from inside at start.
        hooks: The hooks directory, if there was one.
    """
    traced = reads.legs if reads is not None else ()
    late = {leg.leg for leg in traced if leg.granularity == "leg_of_one_case"}
    both = roots.roots if roots is not None else ()
    contents: dict[str, RootContent] = {content.leg: content for content in both}
    for record in found:
        at = f"{record_place(record.leg)}#/degraded_detail"
        own = record.degradation
        if own is not None and own.reason is DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE:
            continue  # What it was by itself is no longer known.
        at_start = not (record.leg in late and under_gvisor(record))
        off = _suppressed(record, found)
        shown = dict(_shown(suite, contents, record, sandbox, off=off, at_start=at_start))
        directory = hooks.directory.sha256 if hooks.directory is not None else None
        for seen in (record.inside, record.inside_end):
            if seen is not None and seen.hooks_directory_sha256 != directory:
                shown["directory_differs"] = "the hooks directory inside was not the staged one"
        if own is None:
            for detail, why in shown.items():
                yield Wrong(at, f"the leg is not degraded, but {why} ({detail})")
        elif own.detail == _UNEXPLAINED:
            continue  # Of most variables only their leg knew what they had to be.
        elif own.detail in _EXPLAINED and own.detail not in shown:
            yield Wrong(at, f"{own.reason.value}/{own.detail} is borne out by nothing")
        elif own.detail not in _EXPLAINED:
            yield from _observed(record, own, at)


_EXPLAINED: Final = frozenset(
    {"inherited", "option_env", "image_env", "suite_env", "scrub_prefix", "case_env"}
    | {"missing", "unreadable", "unsafe_entry", "digest_mismatch", "directory_differs"}
    | {"sandbox_differs"}
)
"""Details that other documents have to bear out."""

_UNEXPLAINED: Final = "environment_differs"
_SUPPRESSED: Final = ("inherited", "option_env", "image_env")


def _suppressed(record: RunRecord, found: Sequence[RunRecord]) -> bool:
    """Whether hooks were off for another reason than that the leg is the one without them."""
    mine = [record]
    if record.axis is Axis.SKILL:
        mine = [other for other in found if other.variant == Variant.SKILL_ON]
    return any(item.environment is not None and item.environment.hooks_disabled for item in mine)


def _shown(
    suite: SuiteFile | None,
    contents: Mapping[str, RootContent],
    record: RunRecord,
    sandbox: SandboxEvidence,
    *,
    off: bool,
    at_start: bool,
) -> Iterator[tuple[str, str]]:
    """Details that the evidence of a leg gives, and in what words."""
    stated = record.degraded_detail or ""
    by_suite = None
    if suite is not None:
        by_suite = suppression(suite.suite, invoker={}, options={}, image={}, suite_path=suite.path)
    if by_suite is not None and not (off and stated in _SUPPRESSED):
        yield by_suite.detail, "the suite suppresses hooks"
    elif off:
        detail = stated if stated in _SUPPRESSED or by_suite is None else by_suite.detail
        yield detail or "inherited", "hooks were suppressed"
    root = contents.get(record.role.root) if record.role is not None else None
    if root is not None and root.sha256 is None:
        named = stated if stated in {"missing", "unreadable", "unsafe_entry"} else "missing"
        yield ("unsafe_entry" if root.refusal else named), "its context root was not staged"
    for seen in (record.inside, record.inside_end):
        if seen is not None:
            yield from _seen(record, seen, at_start=at_start)
    differing = [item for item in sandbox.containers if item.leg == record.leg and item.differences]
    told = [line for line in sandbox.problems if line.startswith(f"{record.leg}: ")]
    if differing or told:
        yield "sandbox_differs", "its sandbox was not what was asked for"


def _seen(
    record: RunRecord, seen: InsideReport | InsideEnd, *, at_start: bool
) -> Iterator[tuple[str, str]]:
    root = None
    if record.context_root_label is not None:
        root = ContextRoot(label="", sha256=record.context_root_sha256, path="")
    if inside.root_degradation(root, seen, at_start=at_start) is not None:
        yield "digest_mismatch", "the context root inside was not the one that was staged"
    if record.inside is not None and seen.environment_sha256 != record.inside.environment_sha256:
        yield "environment_differs", "the environment at its end was not that at its start"


def _observed(record: RunRecord, own: Degradation, at: str) -> Iterator[Wrong]:
    """A leg that came to its end in order did not stop on the way."""
    if own.reason is DegradedReason.CONTEXT_VARIANT_UNSUPPORTED:
        if record.variant in supported_variants(record.axis):
            yield Wrong(at, f"{record.variant} is a variant of the axis")
        return
    containers = {case.container for case in record.case_results}
    reached = all(case.expectations for case in record.case_results)
    if reached and len(containers) == 1 and record.inside_end is not None:
        yield Wrong(at, f"the leg came to its end, yet is said to have stopped: {own.detail}")
