"""What may be said of a skill scorecard, in sentences; the same ones in every document.

Beside `wording`, whose sentences about cleanness, bounds and statistics hold on both axes.
"""

from __future__ import annotations

from typing import Final

from runner.model.record import Verdict
from runner.model.skillscorecard import (
    SkillCase,
    SkillEvidence,
    SkillFact,
    SkillFile,
    SkillOutput,
    SkillScorecard,
)
from runner.report import claims, wording
from runner.report.text import number, plural, visible

_SKILLS: Final = claims.Subject(
    whole="skills",
    helped="skills helped",
    harmed="skills did harm",
    same="skills made no difference",
)


def headline(card: SkillScorecard) -> str:
    """One sentence: what was shown on these cases, and no more."""
    pairing = card.pairing
    aggregates = pairing.skill_off_aggregate, pairing.skill_on_aggregate
    return claims.claim(card, _SKILLS, aggregates)


def case_note(pair: SkillCase) -> str:
    """One line: why the pair is degraded, what changed, or that nothing did."""
    if not pair.is_valid:
        where = f" in {pair.degraded_legs[0]}" if len(pair.degraded_legs) == 1 else ""
        text = wording.degraded_text(pair.degraded_reason, pair.degraded_detail)
        return f"degraded{where}: {text}"
    facts = changed_facts(pair)
    if not facts:
        return "every required expectation held steady"
    more = f"; and {len(facts) - 1} more" if len(facts) > 1 else ""
    return f"{fact_text(facts[0])}{more}"


def changed_facts(pair: SkillCase) -> list[SkillFact]:
    """The expectations that changed, those in the direction of the delta first."""
    facts = [
        item for item in pair.decision_evidence if isinstance(item, SkillFact) and item.changed
    ]
    end = Verdict.FAILED if (pair.score_delta or 0) < 0 else Verdict.PASSED
    return sorted(facts, key=lambda fact: fact.skill_on is not end)


def fact_text(fact: SkillFact) -> str:
    """`expectations[1] stdout_contains: failed -> passed`; the index counts from 0, as in JSON."""
    target = f" {visible(fact.target, limit=80)}" if fact.target else ""
    return (
        f"expectations[{fact.expectation}] {visible(fact.type, limit=60)}{target}: "
        f"{fact.skill_off.value} -> {fact.skill_on.value}"
    )


def evidence_text(item: SkillEvidence) -> str:
    """One piece of decision evidence on one line, without its excerpt."""
    match item:
        case SkillFact():
            return fact_text(item)
        case SkillOutput():
            size = plural(item.size, "byte")
            return f"{item.leg} {item.stream}: {size}, {wording.digest_text(item.sha256)}"
        case SkillFile():
            digest = "" if item.sha256 is None else f", {wording.digest_text(item.sha256)}"
            return f"{item.leg} {visible(item.path, limit=300)}: {visible(item.state)}{digest}"


def side_text(pair: SkillCase, leg: str) -> str:
    """Status and score of one side."""
    off = leg == "skill_off"
    status = pair.skill_off_status if off else pair.skill_on_status
    score = pair.skill_off_score if off else pair.skill_on_score
    return status.value if score is None else f"{status.value} {number(score)}"


def chosen_cases(card: SkillScorecard) -> tuple[list[SkillCase], int]:
    """The pairs for a short document, and how many unchanged ones were left out."""
    if len(card.per_case) <= wording.MANY_CASES:
        return list(card.per_case), 0
    rows = [
        pair
        for pair in card.per_case
        if not pair.is_valid or bool(pair.score_delta) or bool(pair.delta)
    ]
    return rows, len(card.per_case) - len(rows)


def hooks_line(card: SkillScorecard) -> str:
    """What it means here that skills were on."""
    proof = card.integrity.hooks
    if proof.directory_sha256 is None:
        return "no hooks directory: only what cases make of AGENTOPS_HOOKS_DISABLED differs"
    count = plural(len(proof.hooks), "hook")
    return f"{count} around every command case of skill_on, none in skill_off"


def controls_line(card: SkillScorecard) -> str:
    """What was done to tell an effect from noise, on one line."""
    controls = card.controls
    if controls.mode == "none":
        return "none: two legs, each once"
    parts = [f"standard: {plural(controls.legs, 'leg')}"]
    if controls.replicates > 1:
        parts[0] += ", every case twice in each variant"
    if controls.extra_replicates:
        times = controls.replicates + controls.extra_replicates
        parts.append(f"those that differed {times} times")
    found: dict[str, int] = {}
    for row in controls.cases:
        if row.finding is not None:
            found[row.finding] = found.get(row.finding, 0) + 1
    parts += [f"{name} x {count}" for name, count in sorted(found.items())]
    return "; ".join(parts)


def shown(card: SkillScorecard) -> list[str]:
    """What the scorecard shows, a sentence each."""
    lines = [headline(card)]
    if not wording.is_clean(card):
        return lines
    live, hooks = card.integrity.live_state, card.integrity.hooks
    if live.roots:
        lines.append(visible(live.claim, limit=500))
    if card.integrity.sandbox.containers:
        lines.append(
            "what the engine reported of every container before its start was what had been "
            "asked for"
        )
    if card.controls.extra_replicates:
        times = card.controls.replicates + card.controls.extra_replicates
        lines.append(f"every difference that is counted held in {times} legs of each variant")
    if hooks.preserved and hooks.equal_in_both_legs:
        lines.append(
            "the hook environment was the same in both legs, from start to end, but for "
            "AGENTOPS_HOOKS_DISABLED"
        )
    return lines


def not_shown(card: SkillScorecard) -> list[str]:
    """What a reader might take from the scorecard and should not, a sentence each."""
    lines = [
        (
            "that skills help or harm on other cases, or with a model at work: the suite is "
            "deterministic and no model was run"
        ),
        "anything about context: no leg had a context root",
        (
            "that a difference goes beyond the switch: a case that looks at "
            "AGENTOPS_HOOKS_DISABLED itself differs, too"
        ),
    ]
    if card.controls.mode == "none":
        lines.append("that the outcome is stable: no control was run")
    if card.resolution.least_net_improvement is None:
        lines.append(
            "that a difference is more than chance: no change among so few pairs could reach "
            "p < 0.05"
        )
    lines.append(
        "that the live state was never written: only that the recorded attributes do not differ "
        "between the manifests before and after"
    )
    lines.append("that the machine which observed is honest")
    return lines
