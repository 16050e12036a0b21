"""Skill scorecards for a terminal, as strings."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from runner.model.record import Status
from runner.model.skillscorecard import SkillCase, SkillLeg, SkillScorecard
from runner.report import drawing, skillwording, wording
from runner.report.terminal import TONE_STYLE, integrity_word
from runner.report.text import number, plural, visible


def render_skill(card: SkillScorecard, *, width: int, color: bool) -> str:
    """The comparison of one suite, the most important thing first.

    Args:
        card: What to show.
        width: Columns of the terminal.
        color: Write ANSI styles.

    Returns:
        Text ending in a line feed.
    """
    parts: list[RenderableType] = [
        Text.assemble((visible(card.suite_id), "bold"), (f"  {visible(card.suite_path)}", "dim")),
        Text(skillwording.headline(card), style=TONE_STYLE[wording.tone(card)]),
    ]
    problems = wording.integrity_lines(card)
    if problems:
        parts += [Text(""), drawing.bullets(problems, "red")]
    rows, left_out = skillwording.chosen_cases(card)
    parts += [Text(""), _cases(rows)]
    if left_out:
        parts.append(Text(f"and {plural(left_out, 'case')} without any change", style="dim"))
    parts += [Text(""), _totals(card)]
    return drawing.to_string(parts, width, color=color)


def render_skills(cards: Sequence[SkillScorecard], *, width: int, color: bool) -> str:
    """One row a suite; what is not clean is named above the table.

    Args:
        cards: In the order to be shown.
        width: Columns of the terminal.
        color: Write ANSI styles.

    Returns:
        Text ending in a line feed.
    """
    parts: list[RenderableType] = []
    for card in cards:
        problems = wording.integrity_lines(card)
        if problems:
            parts.append(Text(f"{visible(card.suite_id)}: not clean", style="bold red"))
            parts.append(drawing.bullets(problems[:5], "red"))
    table = drawing.table("suite", "off", "on", "delta", "valid pairs", "degraded", "integrity")
    for card in cards:
        pairing = card.pairing
        table.add_row(
            Text(visible(card.suite_id)),
            Text(number(pairing.skill_off_aggregate)),
            Text(number(pairing.skill_on_aggregate)),
            drawing.delta(card.aggregate_delta),
            Text(f"{pairing.valid_pairs}/{len(card.per_case)}"),
            Text(str(pairing.degraded_pairs), style="yellow" if pairing.degraded_pairs else ""),
            integrity_word(card),
        )
    parts.append(table)
    parts += [Text(line, style="dim") for line in wording.adjusted_lines(cards)]
    return drawing.to_string(parts, width, color=color)


def _cases(rows: Sequence[SkillCase]) -> Table:
    table = drawing.table("case", "off", "on", "delta")
    for pair in rows:
        table.add_row(
            drawing.noted(pair.case_id, skillwording.case_note(pair), degraded=not pair.is_valid),
            _side(pair.skill_off_status, pair.skill_off_score),
            _side(pair.skill_on_status, pair.skill_on_score),
            drawing.delta(pair.score_delta),
        )
    return table


def _side(status: Status, score: float | None) -> Text:
    text = drawing.status(status)
    return text if score is None else text.append(f" {number(score)}", style="default")


def _totals(card: SkillScorecard) -> Table:
    pairing = card.pairing
    rows: list[tuple[str, RenderableType]] = [
        ("skill_off", _leg(card.skill_off, pairing.skill_off_aggregate)),
        ("skill_on", _leg(card.skill_on, pairing.skill_on_aggregate)),
        ("delta", drawing.delta(card.aggregate_delta)),
    ]
    bounds = wording.bounds_line(card)
    if bounds is not None:
        rows.append(("bounds", Text(bounds, style="yellow")))
    counts = [f"{name} x {count}" for name, count in wording.degraded_counts(card)]
    rows += [
        ("degraded", Text(", ".join(counts) or "none", style="yellow" if counts else "default")),
        ("hooks", Text(skillwording.hooks_line(card))),
        ("controls", Text(skillwording.controls_line(card))),
        ("resolution", Text(wording.resolution_line(card))),
    ]
    spread = wording.interval_line(card)
    if spread is not None:
        rows.append(("interval", Text(spread)))
    rows += [
        ("warning", Text(visible(line, limit=300), style="yellow")) for line in card.warnings[:10]
    ]
    if len(card.warnings) > 10:
        rows.append(("warning", Text(f"and {len(card.warnings) - 10} more", style="yellow")))
    clean = wording.is_clean(card)
    rows.append(("proof", Text(wording.proof_line(card), style="default" if clean else "red")))
    return drawing.facts(rows)


def _leg(leg: SkillLeg, over_pairs: float | None) -> Text:
    text = drawing.status(leg.status).append(f"  {number(over_pairs)}", style="bold default")
    if leg.aggregate_score != over_pairs:
        text.append(f" over valid pairs, {number(leg.aggregate_score)} over all it scored")
    why = wording.leg_degraded(leg)
    return text if why is None else text.append(f"  degraded {why}", style="yellow")
