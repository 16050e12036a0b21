"""What a comparison claims: one sentence, what it shows, and what it does not."""

from __future__ import annotations

from typing import Final, NamedTuple

from runner.model.scorecard import ContextScorecard
from runner.model.skillscorecard import AnyScorecard
from runner.report import wording
from runner.report.causes import counted
from runner.report.text import number, plural, signed, visible


class Subject(NamedTuple):
    """What an axis varies, in the words of a claim."""

    whole: str
    helped: str
    harmed: str
    same: str


_CONTEXT: Final = Subject(
    whole="the context",
    helped="context helped",
    harmed="context did harm",
    same="the context made no difference",
)


def headline(card: ContextScorecard) -> str:
    """One sentence: what was shown on these cases, and no more."""
    pairing = card.pairing
    aggregates = pairing.context_off_aggregate, pairing.context_on_aggregate
    return claim(card, _CONTEXT, aggregates, null_check=card.controls.null_check)


def claim(
    card: AnyScorecard,
    subject: Subject,
    aggregates: tuple[float | None, float | None],
    *,
    null_check: bool = False,
) -> str:
    """One sentence: what was shown on these cases, and no more.

    Args:
        card: A scorecard of either axis.
        subject: What its axis varies.
        aggregates: Over valid pairs, off first.
        null_check: Both legs had the same root.
    """
    pairing, kind = card.pairing, wording.tone(card)
    if kind == "unclean":
        known = card.integrity.verdict != "unknown"
        state = "was not clean" if known else "is not known to have been clean"
        return f"the measurement {state}: nothing is claimed about {subject.whole}"
    if kind == "nothing":
        return (
            "no valid pair: nothing can be said "
            f"({pairing.degraded_pairs} of {plural(len(card.per_case), 'pair')} degraded)"
        )
    off, on = aggregates
    numbers = (
        f"{signed(card.aggregate_delta)} over {plural(pairing.valid_pairs, 'valid pair')} "
        f"({number(off)} -> {number(on)})"
    )
    deltas = [pair.score_delta for pair in card.per_case if pair.score_delta is not None]
    higher, lower = sum(delta > 0 for delta in deltas), sum(delta < 0 for delta in deltas)
    moved = bool(higher or lower)
    if null_check:
        held = "held" if kind == "same" and not moved else "failed"
        sentence = f"null check {held}, the same root in both legs: {numbers}"
    else:
        words = {"helped": subject.helped, "harmed": subject.harmed}.get(kind, subject.same)
        if kind == "same" and moved:
            words = "no difference in the aggregate"
        sentence = f"on these cases {words}: {numbers}"
    # A sum hides what went the other way.
    if (kind == "helped" and lower) or (kind == "same" and moved):
        sentence += f"; {plural(lower, 'case')} scored lower"
    if (kind == "harmed" and higher) or (kind == "same" and moved):
        sentence += f"; {plural(higher, 'case')} scored higher"
    if pairing.degraded_pairs:
        sentence += f"; {plural(pairing.degraded_pairs, 'pair')} degraded and left out"
    return sentence


def shown(card: ContextScorecard) -> list[str]:
    """What the scorecard shows, a sentence each."""
    lines = [headline(card)]
    if not wording.is_clean(card):
        return lines
    live, sandbox = card.integrity.live_state, card.integrity.sandbox
    if live.roots:
        lines.append(visible(live.claim, limit=500))
    if sandbox.containers:
        lines.append(
            "what the engine reported of every container before its start was what had been "
            "asked for"
        )
    held = counted(card)
    if held:
        lines.append(
            f"every difference that is counted held in {held} legs of each root, some of them "
            "copies under other names, and with the roots under each other's label"
        )
    if card.integrity.hooks.preserved and card.integrity.hooks.equal_in_both_legs:
        lines.append("the hook environment was the same in both legs, from start to end")
    return lines


def not_shown(card: ContextScorecard) -> list[str]:
    """What a reader might take from the scorecard and should not, a sentence each."""
    lines = [
        (
            "that context helps or harms on other cases, or with a model at work: the suite is "
            "deterministic and no model was run"
        ),
    ]
    if card.controls.mode == "none":
        lines.append(
            "that the outcome is stable, does not follow the name of the variant, and rests on "
            "artifacts that were read: no control was run"
        )
    elif card.controls.trace.state != "complete":
        lines.append(
            f"which artifacts each case opened: its read trace is {card.controls.trace.state} "
            f"({card.controls.trace.detail})"
        )
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
