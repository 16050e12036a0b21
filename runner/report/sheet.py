"""What a terminal shows of a comparison, on either axis."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, NamedTuple, TypeVar

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from runner.model.scorecard import LegSummary
from runner.model.skillscorecard import AnyScorecard, SkillLeg
from runner.report import drawing, resolving, wording
from runner.report.text import number, plural, visible

Card = TypeVar("Card", bound=AnyScorecard)
Row = tuple[str, RenderableType]

_TONE_STYLE: Final[dict[wording.Tone, str]] = {
    "helped": "bold green",
    "harmed": "bold red",
    "same": "bold",
    "nothing": "bold yellow",
    "unclean": "bold red",
}


class Sheet(NamedTuple):
    """What is said in words of its axis.

    Attributes:
        headline: One sentence.
        cases: A row for each pair that is shown.
        left_out: How many pairs are not.
        legs: A row for each leg.
        facts: Name and line of what else there is to say, the controls last.
    """

    headline: str
    cases: Table
    left_out: int
    legs: Sequence[Row]
    facts: Sequence[tuple[str, str]]


def comparison(card: AnyScorecard, sheet: Sheet, *, width: int, color: bool) -> str:
    """The comparison of one suite, the most important thing first."""
    parts: list[RenderableType] = [
        Text.assemble((visible(card.suite_id), "bold"), (f"  {visible(card.suite_path)}", "dim")),
        Text(sheet.headline, style=_TONE_STYLE[wording.tone(card)]),
    ]
    problems = wording.integrity_lines(card)
    if problems:
        parts += [Text(""), drawing.bullets(problems, "red")]
    parts += [Text(""), sheet.cases]
    if sheet.left_out:
        left = f"and {plural(sheet.left_out, 'case')} without any change"
        parts.append(Text(left, style="dim"))
    parts += [Text(""), drawing.facts(_totals(card, sheet))]
    return drawing.to_string(parts, width, color=color)


def _totals(card: AnyScorecard, sheet: Sheet) -> list[Row]:
    rows: list[Row] = [*sheet.legs, ("delta", drawing.delta(card.aggregate_delta))]
    bounds = resolving.bounds_line(card)
    if bounds is not None:
        rows.append(("bounds", Text(bounds, style="yellow")))
    counts = [f"{name} x {count}" for name, count in wording.degraded_counts(card)]
    rows.append(
        ("degraded", Text(", ".join(counts) or "none", style="yellow" if counts else "default"))
    )
    rows += [(name, Text(line)) for name, line in sheet.facts]
    rows.append(("resolution", Text(resolving.resolution_line(card))))
    spread = resolving.interval_line(card)
    if spread is not None:
        rows.append(("interval", Text(spread)))
    rows += [
        ("warning", Text(visible(line, limit=300), style="yellow")) for line in card.warnings[:10]
    ]
    if len(card.warnings) > 10:
        rows.append(("warning", Text(f"and {len(card.warnings) - 10} more", style="yellow")))
    clean = wording.is_clean(card)
    rows.append(("proof", Text(wording.proof_line(card), style="default" if clean else "red")))
    return rows


def leg(found: LegSummary | SkillLeg, over_pairs: float | None, label: str | None = None) -> Text:
    """Status and aggregates of one leg, and what its root is called."""
    text = drawing.status(found.status).append(f"  {number(over_pairs)}", style="bold default")
    if found.aggregate_score != over_pairs:
        text.append(f" over valid pairs, {number(found.aggregate_score)} over all it scored")
    if label is not None:
        text.append(f"  {visible(label, limit=60)}", style="dim default")
    why = wording.leg_degraded(found)
    return text if why is None else text.append(f"  degraded {why}", style="yellow")


def suites(
    cards: Sequence[Card],
    aggregates: Callable[[Card], tuple[float | None, float | None]],
    subject: str,
    *,
    width: int,
    color: bool,
) -> str:
    """One row a suite; what is not clean is named above the table.

    Args:
        cards: In the order to be shown.
        aggregates: Over valid pairs, off first.
        subject: What the axis varies.
        width: Columns of the terminal.
        color: Write ANSI styles.
    """
    parts: list[RenderableType] = []
    for card in cards:
        problems = wording.integrity_lines(card)
        if problems:
            parts.append(Text(f"{visible(card.suite_id)}: not clean", style="bold red"))
            parts.append(drawing.bullets(problems[:5], "red"))
    table = drawing.table("suite", "off", "on", "delta", "valid pairs", "degraded", "integrity")
    for card in cards:
        pairing, (off, on) = card.pairing, aggregates(card)
        table.add_row(
            Text(visible(card.suite_id)),
            Text(number(off)),
            Text(number(on)),
            drawing.delta(card.aggregate_delta),
            Text(f"{pairing.valid_pairs}/{len(card.per_case)}"),
            Text(str(pairing.degraded_pairs), style="yellow" if pairing.degraded_pairs else ""),
            _integrity(card),
        )
    parts += [table, Text(_tally(cards, subject), style="dim")]
    parts += [Text(line, style="dim") for line in resolving.adjusted_lines(cards)]
    return drawing.to_string(parts, width, color=color)


def _integrity(card: AnyScorecard) -> Text:
    if wording.is_clean(card):
        return Text("clean", style="green")
    verdict = card.integrity.verdict
    return Text("violated" if verdict == "clean" else verdict, style="bold red")


def _tally(cards: Sequence[AnyScorecard], subject: str) -> str:
    names: list[tuple[wording.Tone, str]] = [
        ("helped", f"{subject} helped in"),
        ("harmed", "did harm in"),
        ("same", "made no difference in"),
        ("nothing", "nothing can be said of"),
        ("unclean", "not clean:"),
    ]
    tones = [wording.tone(card) for card in cards]
    counts = [f"{words} {tones.count(kind)}" for kind, words in names if kind in tones]
    return f"{plural(len(cards), 'suite')}: {', '.join(counts)}" if cards else "no suite was run"
