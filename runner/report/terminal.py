"""Scorecards and run records for a terminal, as strings."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import RenderableType
from rich.table import Table
from rich.text import Text

from runner.model.record import CaseResult, RunRecord, Status, Verdict
from runner.model.scorecard import ContextScorecard, LegCase, PairedCase
from runner.report import causes, claims, drawing, sheet, wording
from runner.report.text import number, plural, visible


def render_scorecard(scorecard: ContextScorecard, *, width: int, color: bool) -> str:
    """The comparison of one suite, the most important thing first.

    Args:
        scorecard: What to show.
        width: Columns of the terminal; wider than 110 is not used.
        color: Write ANSI styles. The caller decides (terminal, `NO_COLOR`).

    Returns:
        Text ending in a line feed.
    """
    rows, left_out = wording.chosen_cases(scorecard)
    pairing, off, on = scorecard.pairing, scorecard.context_off, scorecard.context_on
    found = sheet.Sheet(
        headline=claims.headline(scorecard),
        cases=_case_table(rows),
        left_out=left_out,
        legs=(
            ("context_off", sheet.leg(off, pairing.context_off_aggregate, off.context_root_label)),
            ("context_on", sheet.leg(on, pairing.context_on_aggregate, on.context_root_label)),
        ),
        facts=(("controls", causes.controls_line(scorecard)),),
    )
    return sheet.comparison(scorecard, found, width=width, color=color)


def render_many(scorecards: Sequence[ContextScorecard], *, width: int, color: bool) -> str:
    """One row a suite; what is not clean is named above the table.

    Args:
        scorecards: In the order to be shown.
        width: Columns of the terminal.
        color: Write ANSI styles.

    Returns:
        Text ending in a line feed.
    """
    return sheet.suites(scorecards, _aggregates, "context", width=width, color=color)


def _aggregates(card: ContextScorecard) -> tuple[float | None, float | None]:
    return card.pairing.context_off_aggregate, card.pairing.context_on_aggregate


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
