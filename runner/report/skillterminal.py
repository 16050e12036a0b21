"""Skill scorecards for a terminal, as strings."""

from __future__ import annotations

from collections.abc import Sequence

from rich.table import Table
from rich.text import Text

from runner.model.record import Status
from runner.model.skillscorecard import SkillCase, SkillScorecard
from runner.report import drawing, sheet, skillwording
from runner.report.text import number


def render_skill(card: SkillScorecard, *, width: int, color: bool) -> str:
    """The comparison of one suite, the most important thing first.

    Args:
        card: What to show.
        width: Columns of the terminal.
        color: Write ANSI styles.

    Returns:
        Text ending in a line feed.
    """
    rows, left_out = skillwording.chosen_cases(card)
    pairing = card.pairing
    found = sheet.Sheet(
        headline=skillwording.headline(card),
        cases=_cases(rows),
        left_out=left_out,
        legs=(
            ("skill_off", sheet.leg(card.skill_off, pairing.skill_off_aggregate)),
            ("skill_on", sheet.leg(card.skill_on, pairing.skill_on_aggregate)),
        ),
        facts=(
            ("hooks", skillwording.hooks_line(card)),
            ("controls", skillwording.controls_line(card)),
        ),
    )
    return sheet.comparison(card, found, width=width, color=color)


def render_skills(cards: Sequence[SkillScorecard], *, width: int, color: bool) -> str:
    """One row a suite; what is not clean is named above the table.

    Args:
        cards: In the order to be shown.
        width: Columns of the terminal.
        color: Write ANSI styles.

    Returns:
        Text ending in a line feed.
    """
    return sheet.suites(cards, _aggregates, "skills", width=width, color=color)


def _aggregates(card: SkillScorecard) -> tuple[float | None, float | None]:
    return card.pairing.skill_off_aggregate, card.pairing.skill_on_aggregate


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
