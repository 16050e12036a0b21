"""Everything that was observed -> the scorecard. Nothing is taken from anywhere else.

The same function makes the scorecard of a run and the one that is compared with it when somebody
verifies the run's evidence.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Literal, NamedTuple

from runner.core import liveproof
from runner.core.attribute import ablation_groups, artifacts, attribution
from runner.core.canon import digest
from runner.core.controls import Rules, control_rows, findings
from runner.core.decision import Excerpt
from runner.core.degrade import degrade_record
from runner.core.ignored import ignored
from runner.core.pair import leg_summary, paired_cases, pairing
from runner.core.readback import profile_digest
from runner.core.sentinels import sentinel_checks, sentinels
from runner.core.stats import differences, resolution
from runner.core.trials import OFF, ON, Trial, Trials
from runner.core.units import records, units
from runner.model.contextroots import ContextRoots, RootContent
from runner.model.controls import (
    Attribution,
    CaseAttribution,
    Controls,
    LegName,
    SentinelCheck,
    TraceSummary,
    Unit,
)
from runner.model.evidence import HooksEvidence, SandboxEvidence
from runner.model.liveproof import LiveStateProof
from runner.model.reads import ContextReads, LegReads
from runner.model.record import RunRecord
from runner.model.scorecard import (
    ContextScorecard,
    HooksProof,
    IgnoredContext,
    Inputs,
    Integrity,
    SandboxProof,
)
from runner.model.suite import SuiteFile

EXCERPT_BYTES = 400
"""So much of an output is shown."""

_MOST_UNITS = 1000
_WORST = ("unavailable", "incomplete", "complete")


class Observed(NamedTuple):
    """What a comparison is made from.

    Attributes:
        suite: The suite.
        records: Of every leg, in the order of their start; the first two are `context_off` and
            `context_on`.
        live: The live state, before and after.
        sandbox: Containers as read back, and as seen from inside.
        hooks: The hook environment in its places.
        reads: Read traces.
        roots: Both context roots, entry by entry.
        inputs: Identity of everything that went in.
        rules: Which controls were asked for.
        null_check: Both legs had the same root.
        run_id: Run id of the comparison.
        generated_at: The declared clock.
        notes: Warnings from before the legs.
    """

    suite: SuiteFile
    records: tuple[RunRecord, ...]
    live: LiveStateProof
    sandbox: SandboxEvidence
    hooks: HooksEvidence
    reads: ContextReads
    roots: ContextRoots
    inputs: Inputs
    rules: Rules
    null_check: bool
    run_id: str
    generated_at: str
    notes: tuple[str, ...] = ()


def as_reported(records: Sequence[RunRecord], live: LiveStateProof) -> tuple[RunRecord, ...]:
    """Records as they are written: degraded when live state changed while the legs ran."""
    changed = liveproof.degradation(live)
    if changed is None:
        return tuple(records)
    return tuple(degrade_record(record, changed) for record in records)


def trials(records: Sequence[RunRecord], reads: ContextReads) -> Trials:
    """Records and read traces as controls look at them."""
    by_leg = {item.leg: item for item in reads.legs}
    return Trials([Trial(record, by_leg.get(record.leg)) for record in records])


def root_units(roots: ContextRoots) -> tuple[Unit, ...]:
    """Difference between the two roots; empty when one of them could not be staged."""
    off, on = _content(roots, OFF), _content(roots, ON)
    if off is None or on is None or off.sha256 is None or on.sha256 is None:
        return ()
    return units(records(off.entries), records(on.entries), (on.context, off.context))


def _content(roots: ContextRoots, leg: str) -> RootContent | None:
    return next((item for item in roots.roots if item.leg == leg), None)


def assemble(observed: Observed, excerpt: Excerpt) -> ContextScorecard:
    """Make the scorecard.

    Args:
        observed: Everything that was observed; records as `as_reported` gives them.
        excerpt: Reads the head of a stored output.
    """
    off, on = observed.records[:2]
    suite = observed.suite
    seen = trials(observed.records, observed.reads)
    changeable = root_units(observed.roots)
    against = findings(observed.rules, seen, changeable)
    rows, differing = control_rows(observed.rules, seen, changeable)
    causes = _causes(observed, seen, changeable, sorted(differing - against.keys()))
    pairs = paired_cases(
        off,
        on,
        excerpt=excerpt,
        findings=against,
        artifacts={case_id: artifacts(row) for case_id, row in causes.items()},
        ignored=_ignored(observed, seen, changeable),
    )
    block, delta = pairing(off, on, suite.suite.scoring, against)
    tags = {case.id: case.tags for case in suite.suite.cases}
    return ContextScorecard(
        schema_version=1,
        suite_id=suite.suite.id,
        suite_path=suite.path,
        generated_at=observed.generated_at,
        context_off=leg_summary(off, "context_off", _entries(observed.roots, OFF)),
        context_on=leg_summary(on, "context_on", _entries(observed.roots, ON)),
        aggregate_delta=delta,
        per_case=pairs,
        run_id=observed.run_id,
        pairing=block,
        resolution=resolution(
            differences(pairs, tags),
            seed=digest(
                [observed.inputs.suite_sha256, *(item.sha256 for item in observed.roots.roots)]
            ),
            degraded=(_degraded(off), _degraded(on)),
        ),
        controls=Controls(
            mode=observed.rules.mode,
            null_check=observed.null_check,
            legs=len(observed.records),
            replicates=seen.full_replicates(),
            extra_replicates=min(seen.replicates(OFF), seen.replicates(ON))
            - seen.full_replicates(),
            cases=rows,
            trace=_trace(observed.reads),
            sentinels=(
                *_sentinels(observed.roots, OFF, off),
                *_sentinels(observed.roots, ON, on),
            ),
        ),
        attribution=Attribution(
            mode=observed.rules.attribute,
            units_total=len(changeable),
            units=changeable[:_MOST_UNITS],
            ablation_legs=sum(
                record.role is not None and record.role.purpose == "ablation"
                for record in observed.records
            ),
            ablation_limit=observed.rules.ablation_legs,
            cases=tuple(row for row in causes.values() if row is not None),
        ),
        inputs=observed.inputs,
        integrity=integrity(
            observed.live,
            observed.sandbox,
            observed.hooks,
            refused=[item.refusal for item in observed.roots.roots if item.refusal is not None],
            apart={"AO_CONTEXT_VARIANT"},
        ),
        warnings=(*liveproof.warnings(observed.live), *observed.notes),
    )


def _causes(
    observed: Observed, seen: Trials, changeable: Sequence[Unit], cases: Sequence[str]
) -> dict[str, CaseAttribution | None]:
    """What decided each case that differs, in the order of the suite."""
    wanted = set(cases)
    found = ablation_groups(changeable, observed.rules.ablation_legs)
    return {
        case_id: attribution(seen, case_id, changeable, found)
        for case_id in seen.order()
        if case_id in wanted
    }


def _ignored(
    observed: Observed, seen: Trials, changeable: Sequence[Unit]
) -> dict[str, tuple[IgnoredContext, ...]]:
    """What had no part in each case."""
    content = _content(observed.roots, ON)
    context = content.context if content is not None else None
    found = ablation_groups(changeable, observed.rules.ablation_legs)
    return {case_id: ignored(seen, case_id, changeable, found, context) for case_id in seen.order()}


def _sentinels(roots: ContextRoots, leg: LegName, record: RunRecord) -> tuple[SentinelCheck, ...]:
    content = _content(roots, leg)
    if content is None or content.sha256 is None:
        return ()
    return sentinel_checks(leg, sentinels(content.context), record)


def _seed(observed: Observed) -> str:
    """The same inputs draw the same signs."""
    roots = [item.sha256 for item in observed.roots.roots]
    return digest([observed.inputs.suite_sha256, *roots])


def _degraded(record: RunRecord) -> int:
    return sum(case.degraded_reason is not None for case in record.case_results)


def _entries(roots: ContextRoots, leg: str) -> int:
    content = _content(roots, leg)
    return 0 if content is None else len(content.entries)


def _trace(reads: ContextReads) -> TraceSummary:
    """The weakest trace of the first two legs, which all cases ran in."""
    first = [item for item in reads.legs if item.leg in (OFF, ON)]
    if len(first) < 2:
        return TraceSummary(state="unavailable", detail="not_traced", granularity=None)
    weakest: LegReads = min(first, key=lambda item: _WORST.index(item.state))
    return TraceSummary(state=weakest.state, detail=weakest.detail, granularity=weakest.granularity)


def integrity(
    live: LiveStateProof,
    sandbox: SandboxEvidence,
    hooks: HooksEvidence,
    *,
    refused: Sequence[str] = (),
    apart: Collection[str],
) -> Integrity:
    """Was the measurement clean? Derived from the evidence documents alone.

    Args:
        live: Live state, before and after.
        sandbox: Containers as read back, and as seen from inside.
        hooks: The hook environment in its places.
        refused: What was refused at staging, and why.
        apart: Hook variables that make the legs what they are; all others must be equal.
    """
    problems = (*liveproof.problems(live), *refused, *sandbox.problems)
    inside = {item.leg: item.start for item in sandbox.inside}
    seen = [report for report in inside.values() if report is not None]
    verdict: Literal["clean", "violated", "unknown"] = "clean"
    if problems:
        verdict = "violated"
    elif any(inside.get(item.leg) is None for item in sandbox.containers):
        # A container that never reported from inside leaves its sandbox unshown.
        verdict = "unknown"
    return Integrity(
        verdict=verdict,
        live_state=live,
        sandbox=SandboxProof(
            containers=len(sandbox.containers),
            differences=sum(len(item.differences) for item in sandbox.containers),
            network="none",
            interfaces=tuple(sorted({name for item in seen for name in item.interfaces})),
            capabilities=tuple(sorted({item.case_capabilities for item in seen})),
            no_new_privs=bool(seen) and all(item.no_new_privs for item in seen),
            profile_sha256=profile_digest(item.profile for item in sandbox.containers),
        ),
        hooks=HooksProof(
            names=tuple(sorted(hooks.host)),
            dropped=hooks.dropped,
            equal_in_both_legs=_equal_hooks(hooks, apart),
            preserved=all(leg.preserved for leg in hooks.legs),
            directory_sha256=hooks.directory.sha256 if hooks.directory else None,
            hooks=hooks.directory.hooks if hooks.directory else (),
            receipts_equal=_equal_receipts(hooks),
        ),
        problems=problems,
    )


def _equal_hooks(hooks: HooksEvidence, apart: Collection[str]) -> bool:
    """Equal but for the variables that make the legs what they are."""
    seen: list[Mapping[str, str]] = [
        {k: v for k, v in (leg.inside_at_start or {}).items() if k not in apart}
        for leg in hooks.legs
    ]
    return all(item == seen[0] for item in seen)


def _equal_receipts(hooks: HooksEvidence) -> bool | None:
    """Whether hooks completed and ended the same way around every case that can be compared."""
    cases = hooks.directory.cases if hooks.directory else ()
    compared = [case for case in cases if case.equal is not None]
    return all(case.equal and case.complete for case in compared) if compared else None


def excerpts(
    records: Sequence[RunRecord], head: Callable[[str], bytes], *, holdout: bool
) -> Excerpt:
    """Reader of the excerpts that a scorecard shows.

    Args:
        records: Of every leg; only outputs of the first two are shown.
        head: The first `EXCERPT_BYTES` of a stored output, or more.
        holdout: Nothing is shown.
    """
    cases = {
        (record.leg, case.case_id): case for record in records[:2] for case in record.case_results
    }

    def excerpt(leg: str, case_id: str, stream: str) -> str | None:
        case = cases[leg, case_id]
        record = case.stdout if stream == "stdout" else case.stderr
        if holdout or record is None:
            return None
        return "" if record.path is None else printable(head(record.path)[:EXCERPT_BYTES])

    return excerpt


def printable(head: bytes) -> str:
    """The head of an output as text that no terminal takes for a command."""
    text = head.decode("utf-8", "replace")
    return "".join(char if char.isprintable() or char == "\n" else "\ufffd" for char in text)
