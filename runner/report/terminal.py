"""Scorecards and run records for a terminal, as strings.

Text goes to rich as `Text`, never as markup: a label `[red]` is five characters, not a colour.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from runner.model.record import CaseResult, RunRecord, Status, Verdict
from runner.model.scorecard import ContextScorecard, LegCase, LegSummary, PairedCase
from runner.report import causes, wording
from runner.report.text import NOTHING, number, plural, signed, visible

_WIDEST = 110
_NARROWEST = 50

_TONE_STYLE: dict[wording.Tone, str] = {
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
        Text(wording.headline(scorecard), style=_TONE_STYLE[wording.tone(scorecard)]),
    ]
    problems = wording.integrity_lines(scorecard)
    if problems:
        parts += [Text(""), _bullets(problems, "red")]
    rows, left_out = wording.chosen_cases(scorecard)
    parts += [Text(""), _case_table(rows)]
    if left_out:
        parts.append(Text(f"and {plural(left_out, 'case')} without any change", style="dim"))
    parts += [Text(""), _totals(scorecard)]
    return _to_string(parts, width, color=color)


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
            parts.append(_bullets(problems[:5], "red"))
    table = _table("suite", "off", "on", "delta", "valid pairs", "degraded", "integrity")
    for card in scorecards:
        pairing = card.pairing
        table.add_row(
            Text(visible(card.suite_id)),
            Text(number(pairing.context_off_aggregate)),
            Text(number(pairing.context_on_aggregate)),
            _delta(card.aggregate_delta),
            Text(f"{pairing.valid_pairs}/{len(card.per_case)}"),
            Text(str(pairing.degraded_pairs), style="yellow" if pairing.degraded_pairs else ""),
            _integrity_word(card),
        )
    parts += [table, Text(_tally(scorecards), style="dim")]
    parts += [Text(line, style="dim") for line in wording.adjusted_lines(scorecards)]
    return _to_string(parts, width, color=color)


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
    table = _table("case", "status", "score")
    for case in record.case_results:
        table.add_row(
            _noted(case.case_id, _result_note(case)), _status(case.status), Text(number(case.score))
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
    style = "bold yellow" if degradation is not None else f"bold {_STATUS_STYLE[record.status]}"
    return _to_string(
        [head, Text(sentence, style=style), Text(""), table, Text(""), _facts(totals)],
        width,
        color=color,
    )


_STATUS_STYLE: dict[Status, str] = {
    Status.PASS: "green",
    Status.FAIL: "red",
    Status.ERROR: "yellow",
    Status.SKIPPED: "yellow",
    Status.INCONCLUSIVE: "yellow",
}


def _to_string(parts: Iterable[RenderableType], width: int, *, color: bool) -> str:
    buffer = io.StringIO()
    # An empty environment: what is drawn depends on the arguments alone.
    console = Console(
        file=buffer,
        width=min(max(width, _NARROWEST), _WIDEST),
        force_terminal=color,
        color_system="standard" if color else None,
        no_color=not color,
        highlight=False,
        markup=False,
        emoji=False,
        legacy_windows=False,
        _environ={},
    )
    for part in parts:
        console.print(part)
    return "\n".join(line.rstrip(" ") for line in buffer.getvalue().split("\n"))


def _table(first: str, *rest: str) -> Table:
    table = Table(box=box.SIMPLE_HEAD, expand=True, pad_edge=False, padding=(0, 1), show_edge=False)
    table.add_column(first, ratio=1, overflow="fold", header_style="dim")
    for name in rest:
        table.add_column(name, justify="right", no_wrap=len(rest) < 5, header_style="dim")
    return table


def _case_table(rows: Sequence[PairedCase]) -> Table:
    table = _table("case", "off", "on", "delta")
    for pair in rows:
        table.add_row(
            _noted(pair.case_id, wording.case_note(pair), degraded=not pair.is_valid),
            _side(pair.context_off),
            _side(pair.context_on),
            _delta(pair.score_delta),
        )
    return table


def _noted(case_id: str, note: str | None, *, degraded: bool = False) -> RenderableType:
    name = Text(visible(case_id))
    if note is None:
        return name
    style = "yellow" if degraded else "dim"
    return Group(name, Padding(Text(note, style=style, overflow="fold"), (0, 0, 0, 2)))


def _side(side: LegCase) -> Text:
    text = _status(side.status)
    return text if side.score is None else text.append(f" {number(side.score)}", style="default")


def _status(status: Status) -> Text:
    return Text(status.value, style=_STATUS_STYLE[status])


def _delta(value: float | None) -> Text:
    if value is None:
        return Text(NOTHING, style="yellow")
    rounded = round(value, 4)
    return Text(signed(value), style="green" if rounded > 0 else "red" if rounded < 0 else "dim")


def _totals(card: ContextScorecard) -> Table:
    pairing = card.pairing
    rows: list[tuple[str, RenderableType]] = [
        ("context_off", _leg(card.context_off, pairing.context_off_aggregate)),
        ("context_on", _leg(card.context_on, pairing.context_on_aggregate)),
        ("delta", _delta(card.aggregate_delta)),
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
    return _facts(rows)


def _leg(leg: LegSummary, over_pairs: float | None) -> Text:
    text = _status(leg.status).append(f"  {number(over_pairs)}", style="bold default")
    if leg.aggregate_score != over_pairs:
        text.append(f" over valid pairs, {number(leg.aggregate_score)} over all it scored")
    text.append(f"  {visible(leg.context_root_label, limit=60)}", style="dim default")
    why = wording.leg_degraded(leg)
    return text if why is None else text.append(f"  degraded {why}", style="yellow")


def _facts(rows: Iterable[tuple[str, RenderableType]]) -> Table:
    table = Table.grid(padding=(0, 2), expand=True)
    table.add_column(style="dim", no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for name, value in rows:
        table.add_row(Text(name), value)
    return table


def _bullets(lines: Sequence[str], style: str) -> Table:
    table = Table.grid(padding=(0, 1), expand=True)
    table.add_column(no_wrap=True)
    table.add_column(ratio=1, overflow="fold")
    for line in lines:
        table.add_row(Text("!", style=style), Text(line, style=style))
    return table


def _integrity_word(card: ContextScorecard) -> Text:
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
