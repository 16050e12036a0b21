"""Scorecards and run records for a terminal, as strings."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from runner.model.record import CaseResult, RunRecord, Status, Verdict
from runner.model.scorecard import ContextScorecard, LegCase, LegSummary, PairedCase
from runner.model.skillscorecard import AnyScorecard
from runner.report import causes, drawing, wording
from runner.report.text import number, plural, visible

TONE_STYLE: dict[wording.Tone, str] = {
    "helped": "bold green",
    "harmed": "bold red",
    "same": "bold",
    "nothing": "bold yellow",
    "unclean": "bold red",
}


def render_scorecard(scorecard: ContextScorecard, *, width: int, color: bool) -> str:
    """The comparison of one suite, the most important thing first.

    Args:
        scorecard: What to show.
        width: Columns of the terminal; wider than 110 is not used.
        color: Write ANSI styles. The caller decides (terminal, `NO_COLOR`).

    Returns:
        Text ending in a line feed.
    """
    parts: list[RenderableType] = [
        Text.assemble(
            (visible(scorecard.suite_id), "bold"), (f"  {visible(scorecard.suite_path)}", "dim")
        ),
        Text(wording.headline(scorecard), style=TONE_STYLE[wording.tone(scorecard)]),
    ]
    problems = wording.integrity_lines(scorecard)
    if problems:
        parts += [Text(""), drawing.bullets(problems, "red")]
    rows, left_out = wording.chosen_cases(scorecard)
    parts += [Text(""), _case_table(rows)]
    if left_out:
        parts.append(Text(f"and {plural(left_out, 'case')} without any change", style="dim"))
    parts += [Text(""), _totals(scorecard)]
    return drawing.to_string(parts, width, color=color)


def render_many(scorecards: Sequence[ContextScorecard], *, width: int, color: bool) -> str:
    """One row a suite; what is not clean is named above the table.

    Args:
        scorecards: In the order to be shown.
        width: Columns of the terminal.
        color: Write ANSI styles.

    Returns:
        Text ending in a line feed.
    """
    parts: list[RenderableType] = []
    for card in scorecards:
        problems = wording.integrity_lines(card)
        if problems:
            parts.append(Text(f"{visible(card.suite_id)}: not clean", style="bold red"))
            parts.append(drawing.bullets(problems[:5], "red"))
    table = drawing.table("suite", "off", "on", "delta", "valid pairs", "degraded", "integrity")
    for card in scorecards:
        pairing = card.pairing
        table.add_row(
            Text(visible(card.suite_id)),
            Text(number(pairing.context_off_aggregate)),
            Text(number(pairing.context_on_aggregate)),
            drawing.delta(card.aggregate_delta),
            Text(f"{pairing.valid_pairs}/{len(card.per_case)}"),
            Text(str(pairing.degraded_pairs), style="yellow" if pairing.degraded_pairs else ""),
            integrity_word(card),
        )
    parts += [table, Text(_tally(scorecards), style="dim")]
    parts += [Text(line, style="dim") for line in wording.adjusted_lines(scorecards)]
    return drawing.to_string(parts, width, color=color)


def render_record(record: RunRecord, *, width: int, color: bool) -> str:
    """One leg by itself, for `ao-eval run`.

    Args:
        record: What to show.
        width: Columns of the terminal.
        color: Write ANSI styles.

    Returns:
        Text ending in a line feed.
    """
    degradation = record.degradation
    sentence = f"{visible(record.variant)}: {record.status.value}"
    if degradation is not None:
        sentence += f", degraded {degradation.reason.value}/{degradation.detail}"
    table = drawing.table("case", "status", "score")
    for case in record.case_results:
        table.add_row(
            drawing.noted(case.case_id, _result_note(case)),
            drawing.status(case.status),
            Text(number(case.score)),
        )
    scored = sum(case.score is not None for case in record.case_results)
    totals: list[tuple[str, RenderableType]] = [
        (
            "aggregate",
            Text(f"{number(record.aggregate_score)} over {plural(scored, 'scored case')}"),
        )
    ]
    if record.dimension_scores:
        values = [f"{visible(k)} {number(v)}" for k, v in sorted(record.dimension_scores.items())]
        totals.append(("dimensions", Text(", ".join(values))))
    if record.runtime is not None:
        run = record.runtime
        words = f"{run.image} {run.image_id[:19]}… by {run.oci_runtime} on {run.engine}"
        totals.append(("ran in", Text(visible(words))))
    if record.environment is not None:
        totals.append(("network", Text(record.environment.network_access)))
    head = Text.assemble(
        (visible(record.suite.id), "bold"), (f"  {visible(record.suite.path)}", "dim")
    )
    style = (
        "bold yellow" if degradation is not None else f"bold {drawing.STATUS_STYLE[record.status]}"
    )
    return drawing.to_string(
        [
            head,
            Text(sentence, style=f"bold {style}"),
            Text(""),
            table,
            Text(""),
            drawing.facts(totals),
        ],
        width,
        color=color,
    )


def _case_table(rows: Sequence[PairedCase]) -> Table:
    table = drawing.table("case", "off", "on", "delta")
    for pair in rows:
        table.add_row(
            drawing.noted(pair.case_id, wording.case_note(pair), degraded=not pair.is_valid),
            _side(pair.context_off),
            _side(pair.context_on),
            drawing.delta(pair.score_delta),
        )
    return table


def _side(side: LegCase) -> Text:
    text = drawing.status(side.status)
    return text if side.score is None else text.append(f" {number(side.score)}", style="default")


def _totals(card: ContextScorecard) -> Table:
    pairing = card.pairing
    rows: list[tuple[str, RenderableType]] = [
        ("context_off", _leg(card.context_off, pairing.context_off_aggregate)),
        ("context_on", _leg(card.context_on, pairing.context_on_aggregate)),
        ("delta", drawing.delta(card.aggregate_delta)),
    ]
    bounds = wording.bounds_line(card)
    if bounds is not None:
        rows.append(("bounds", Text(bounds, style="yellow")))
    counts = [f"{name} x {count}" for name, count in wording.degraded_counts(card)]
    rows.append(
        ("degraded", Text(", ".join(counts) or "none", style="yellow" if counts else "default"))
    )
    rows.append(("controls", Text(causes.controls_line(card))))
    rows.append(("resolution", Text(wording.resolution_line(card))))
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


def _leg(leg: LegSummary, over_pairs: float | None) -> Text:
    text = drawing.status(leg.status).append(f"  {number(over_pairs)}", style="bold default")
    if leg.aggregate_score != over_pairs:
        text.append(f" over valid pairs, {number(leg.aggregate_score)} over all it scored")
    text.append(f"  {visible(leg.context_root_label, limit=60)}", style="dim default")
    why = wording.leg_degraded(leg)
    return text if why is None else text.append(f"  degraded {why}", style="yellow")


def integrity_word(card: AnyScorecard) -> Text:
    """`clean`, or what it is instead."""
    if wording.is_clean(card):
        return Text("clean", style="green")
    verdict = card.integrity.verdict
    return Text("violated" if verdict == "clean" else verdict, style="bold red")


def _tally(cards: Sequence[ContextScorecard]) -> str:
    names: list[tuple[wording.Tone, str]] = [
        ("helped", "context helped in"),
        ("harmed", "did harm in"),
        ("same", "made no difference in"),
        ("nothing", "nothing can be said of"),
        ("unclean", "not clean:"),
    ]
    tones = [wording.tone(card) for card in cards]
    counts = [f"{words} {tones.count(kind)}" for kind, words in names if kind in tones]
    return f"{plural(len(cards), 'suite')}: {', '.join(counts)}" if cards else "no suite was run"


def _result_note(case: CaseResult) -> str | None:
    if case.degraded_reason is not None:
        return f"degraded: {wording.degraded_text(case.degraded_reason, case.degraded_detail)}"
    if case.status is Status.PASS:
        return None
    for wanted in (Verdict.FAILED, Verdict.UNDECIDED):
        for item in case.expectations:
            if item.required and item.verdict is wanted:
                message = visible(item.message, limit=200)
                return f"expectations[{item.index}] {item.type.value} {wanted.value}: {message}"
    return None if case.failure_message is None else visible(case.failure_message, limit=200)
