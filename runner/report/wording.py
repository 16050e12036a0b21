"""What may be said of a scorecard, in sentences; the same ones in every document.

Each sentence is derived from the fields it speaks of, never from the verdict alone, so that a
scorecard which contradicts itself is not read out as clean. All returned text is `visible`.
"""

from __future__ import annotations

from collections import Counter
from typing import Literal

from runner.core.liveproof import void
from runner.model.leg import DegradedReason
from runner.model.liveproof import LiveRootProof, LiveStateProof
from runner.model.record import Verdict
from runner.model.scorecard import (
    CheckedFile,
    CommandOutput,
    ContextScorecard,
    DecisionEvidence,
    EvaluatorFact,
    LegSummary,
    PairedCase,
    SentinelFact,
)
from runner.model.skillscorecard import AnyScorecard, SkillLeg
from runner.report.causes import named_artifacts
from runner.report.text import NOTHING, plural, short, visible

Tone = Literal["helped", "harmed", "same", "nothing", "unclean"]
"""What the headline says, for colours."""

MANY_CASES = 40
"""With more cases than that, a document for one screen leaves out those that did not change."""

_SHOWN_CHANGES = 10


def is_clean(card: AnyScorecard) -> bool:
    """Nothing recorded speaks against the measurement. Unknown is not clean."""
    live, sandbox = card.integrity.live_state, card.integrity.sandbox
    return (
        card.integrity.verdict == "clean"
        and not card.integrity.problems
        and not live.mounts_reaching
        and not any(root.violates for root in live.roots)
        and not void(live)
        and sandbox.differences == 0
    )


def tone(card: AnyScorecard) -> Tone:
    """The kind of headline that the scorecard supports."""
    if not is_clean(card):
        return "unclean"
    if card.aggregate_delta is None:
        return "nothing"
    delta = round(card.aggregate_delta, 4)
    return "same" if delta == 0 else "helped" if delta > 0 else "harmed"


def integrity_lines(card: AnyScorecard) -> list[str]:
    """Everything that speaks against the measurement, worst first; empty when it is clean.

    The recorded problems, then what the evidence shows beyond them.
    """
    if is_clean(card):
        return []
    live, problems = card.integrity.live_state, card.integrity.problems
    lines = [visible(problem, limit=500) for problem in problems]
    # A root that may change comes after those that may not.
    for root in sorted(live.roots, key=lambda each: not each.fatal):
        if not root.unchanged and not any(root.path in problem for problem in problems):
            lines += _change_lines(root)
    lines += [
        f"a mount reaches live state: {visible(item, limit=500)}"
        for item in live.mounts_reaching
        if not any(item in problem for problem in problems)
    ]
    lines += [visible(line, limit=500) for line in void(live) if line not in problems]
    if card.integrity.sandbox.differences:
        lines.append(
            f"{plural(card.integrity.sandbox.differences, 'field')} of a created container "
            "differed from what was asked for"
        )
    return lines or [f"integrity is {card.integrity.verdict}, and no problem was recorded"]


def _change_lines(root: LiveRootProof) -> list[str]:
    where = visible(root.path, limit=300)
    fatal = ", allowed" if root.allowed else "" if root.fatal else ", not fatal"
    lines = []
    for change in root.changes[:_SHOWN_CHANGES]:
        names = ", ".join(visible(name, limit=40) for name in change.attributes)
        what = f"{change.kind} ({names})" if names else change.kind
        lines.append(
            f"live state changed: {where}/{visible(change.path, limit=300)}: {what}{fatal}"
        )
    rest = root.changes_total - len(lines)
    if rest > 0:
        lines.append(f"live state changed: {where}: {plural(rest, 'entry', 'entries')} more{fatal}")
    if not lines:
        lines.append(f"live state changed: {where}: the witness digests differ{fatal}")
    return lines


def proof_line(card: AnyScorecard) -> str:
    """What shows that the live state was left alone and the legs were boxed in, on one line."""
    live, sandbox = card.integrity.live_state, card.integrity.sandbox
    parts = [_roots_phrase(live.roots)]
    if live.mounts_reaching:
        parts.append(f"{plural(len(live.mounts_reaching), 'MOUNT', 'MOUNTS')} REACHED IT")
    elif live.mounts_checked:
        parts.append("no mount reached it")
    else:
        parts.append("no mount was checked")
    if sandbox.containers:
        network = f"network {sandbox.network}"
        if set(sandbox.interfaces) - {"lo"}:
            names = ", ".join(visible(name, limit=40) for name in sandbox.interfaces)
            network += f" (interfaces seen from inside: {names})"
        equal = (
            f"READ-BACK DIFFERS IN {plural(sandbox.differences, 'FIELD', 'FIELDS')}"
            if sandbox.differences
            else "read-back equal"
        )
        parts.append(f"{plural(sandbox.containers, 'container')}, {network}, {equal}")
    else:
        parts.append("no container was created")
    if live.roots:
        parts.append(_watch_phrase(live))
    return "; ".join(parts)


def _roots_phrase(roots: tuple[LiveRootProof, ...]) -> str:
    if not roots:
        return "live state: no root was watched"
    entries = plural(sum(root.entries for root in roots), "entry", "entries")
    head = f"live state: {plural(len(roots), 'root')}, {entries} hashed"
    changed = [root for root in roots if not root.unchanged]
    if changed:
        names = ", ".join(visible(root.path, limit=200) + _consequence(root) for root in changed)
        return f"{head}, CHANGED: {names}"
    digests = [short(root.before_sha256 or NOTHING) for root in roots[:3]]
    more = f" and {len(roots) - 3} more" if len(roots) > 3 else ""
    absent = sum(not root.present_before for root in roots)
    note = f" ({absent} absent and still absent)" if absent else ""
    return f"{head}, sha256 {', '.join(digests)}{more} before = after{note}"


def _consequence(root: LiveRootProof) -> str:
    return " (allowed)" if root.allowed else "" if root.fatal else " (not fatal)"


def _watch_phrase(live: LiveStateProof) -> str:
    """How it was watched, and whether the detectors fired on what was planted for them."""
    watch = live.watch
    if watch.method == "none":
        phrase = "not watched"
    else:
        phrase = f"watched by {watch.method}" + ("" if watch.complete else ", NOT COMPLETE")
    if watch.note and not watch.complete:
        phrase += f" ({visible(watch.note, limit=200)})"
    planted = sum(decoy.planted for decoy in live.decoys)
    flagged = sum(
        min(decoy.witnessed, decoy.planted if decoy.watched is None else decoy.watched)
        for decoy in live.decoys
    )
    told = f"{flagged} of {planted} planted mutations flagged"
    return f"{phrase}, PROOF IS VOID, {told}" if void(live) else f"{phrase}, {told}"


def degraded_text(reason: DegradedReason | None, detail: str | None) -> str:
    """`reason/detail`, or the mark for nothing."""
    return NOTHING if reason is None else f"{reason.value}/{detail or 'unknown'}"


def degraded_counts(card: AnyScorecard) -> list[tuple[str, int]]:
    """How many pairs each `reason/detail` took out, most frequent first."""
    counts = Counter(
        degraded_text(pair.degraded_reason, pair.degraded_detail)
        for pair in card.per_case
        if not pair.is_valid
    )
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))


def leg_degraded(leg: LegSummary | SkillLeg) -> str | None:
    """Why the whole leg is degraded, or None."""
    if leg.degraded_reason is None:
        return None
    return degraded_text(leg.degraded_reason, leg.degraded_detail)


def is_notable(pair: PairedCase) -> bool:
    """The pair changed or is degraded."""
    return not pair.is_valid or bool(pair.score_delta) or bool(pair.status_delta)


def chosen_cases(card: ContextScorecard) -> tuple[list[PairedCase], int]:
    """The pairs for a short document, and how many unchanged ones were left out."""
    if len(card.per_case) <= MANY_CASES:
        return list(card.per_case), 0
    rows = [pair for pair in card.per_case if is_notable(pair)]
    return rows, len(card.per_case) - len(rows)


def case_note(pair: PairedCase) -> str:
    """One line: why the pair is degraded, what changed, or why nothing did."""
    if not pair.is_valid:
        sides = [
            side.variant
            for side in (pair.context_off, pair.context_on)
            if side.degraded_reason is not None
        ]
        where = f" in {' and '.join(sides)}" if len(sides) == 1 else ""
        return f"degraded{where}: {degraded_text(pair.degraded_reason, pair.degraded_detail)}"
    failed = [item for item in pair.decision_evidence if isinstance(item, SentinelFact)]
    if failed:
        more = f"; and {len(failed) - 1} more" if len(failed) > 1 else ""
        return f"{sentinel_text(failed[0])}{more}"
    facts = changed_facts(pair)
    if facts:
        more = f"; and {len(facts) - 1} more" if len(facts) > 1 else ""
        named = named_artifacts(pair)
        cause = f"; from {named}" if named else ""
        return f"{fact_text(facts[0])}{more}{cause}"
    if pair.ignored_context_evidence:
        # That the outputs are equal says more than that the outcome is.
        ignored = max(pair.ignored_context_evidence, key=lambda item: item.kind == "same_output")
        return f"{ignored.kind.replace('_', ' ')}: {visible(ignored.detail, limit=160)}"
    return "no expectation changed"


def changed_facts(pair: PairedCase) -> list[EvaluatorFact]:
    """The expectations that changed, those in the direction of the delta first."""
    facts = [
        item for item in pair.decision_evidence if isinstance(item, EvaluatorFact) and item.changed
    ]
    end = Verdict.FAILED if (pair.score_delta or 0) < 0 else Verdict.PASSED
    return sorted(facts, key=lambda fact: fact.context_on is not end)


def fact_text(fact: EvaluatorFact) -> str:
    """`expectations[1] stdout_contains: failed -> passed`; the index counts from 0, as in JSON."""
    target = f" {visible(fact.target, limit=80)}" if fact.target else ""
    return (
        f"expectations[{fact.expectation}] {visible(fact.type, limit=60)}{target}: "
        f"{fact.context_off.value} -> {fact.context_on.value}"
    )


def sentinel_text(item: SentinelFact) -> str:
    """A negative control that failed: which artifact, of what role, where."""
    return (
        f"{item.role} {visible(item.artifact, limit=160)} shows in "
        f"{visible(item.output, limit=80)} of {item.leg}"
    )


def evidence_text(item: DecisionEvidence) -> str:
    """One piece of decision evidence on one line, without its excerpt."""
    match item:
        case SentinelFact():
            return sentinel_text(item)
        case EvaluatorFact():
            return fact_text(item)
        case CommandOutput():
            size = plural(item.size, "byte")
            return f"{item.leg} {item.stream}: {size}, {digest_text(item.sha256)}"
        case CheckedFile():
            digest = "" if item.sha256 is None else f", {digest_text(item.sha256)}"
            return f"{item.leg} {visible(item.path, limit=300)}: {visible(item.state)}{digest}"


def digest_text(digest: str) -> str:
    """A digest with its algorithm; keyed ones (private holdouts) name theirs already."""
    return visible(digest) if ":" in digest else f"sha256 {visible(digest)}"
