"""The scorecard as GitHub-flavoured Markdown, for a job summary."""

from __future__ import annotations

import re

from runner.model.scorecard import ContextScorecard, LegCase, LegSummary, PairedCase
from runner.report import causes, wording
from runner.report.text import number, plural, signed, visible

_SPECIAL = re.compile(r"[\\`*{}\[\]()#+!|~@:$=^\"']|(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_WWW = re.compile(r"(?i)www\.")
_CUT = "\n*Cut here: the summary has a size limit. scorecard.json holds the rest.*\n"


def render_summary(scorecard: ContextScorecard, limit_bytes: int = 1_000_000) -> str:
    """A summary for `$GITHUB_STEP_SUMMARY`.

    Args:
        scorecard: What to show.
        limit_bytes: Most bytes of UTF-8. A job summary above 1 MiB is dropped whole by GitHub, so
            the text is cut at the end of a line, and says so.

    Returns:
        Markdown ending in a line feed.
    """
    return fit(_lines(scorecard), limit_bytes)


def _lines(card: ContextScorecard) -> list[str]:
    problems = wording.integrity_lines(card)
    pairs = plural(card.pairing.valid_pairs, "valid pair")
    lines = [
        f"### {safe(card.suite_id)}",
        "",
        f"**{safe(wording.headline(card))}**",
        "",
        *[f"- **{safe(line)}**" for line in problems],
        *([""] if problems else []),
        "| leg | status | over valid pairs | over all scored | context root | degraded |",
        "|---|---|--:|--:|---|---|",
        _leg_row(card.context_off, card.pairing.context_off_aggregate),
        _leg_row(card.context_on, card.pairing.context_on_aggregate),
        "",
        f"- delta: {safe(signed(card.aggregate_delta))} over {safe(pairs)}",
    ]
    bounds = wording.bounds_line(card)
    if bounds is not None:
        lines.append(f"- bounds: {safe(bounds)}")
    counts = ", ".join(f"{name} x {count}" for name, count in wording.degraded_counts(card))
    lines += [
        f"- degraded: {safe(counts or 'none')}",
        f"- controls: {safe(causes.controls_line(card))}",
        f"- resolution: {safe(wording.resolution_line(card))}",
        *[f"- interval: {safe(line)}" for line in [wording.interval_line(card)] if line],
        f"- proof: {safe(wording.proof_line(card))}",
        *[f"- warning: {safe(visible(line, limit=500))}" for line in card.warnings],
        "",
        "| case | off | on | delta | what decided it |",
        "|---|---|---|--:|---|",
    ]
    rows, left_out = wording.chosen_cases(card)
    lines += [_case_row(pair) for pair in rows]
    if left_out:
        lines += ["", f"and {plural(left_out, 'case')} without any change"]
    return lines


def _leg_row(leg: LegSummary, over_pairs: float | None) -> str:
    return row(
        leg.variant,
        leg.status.value,
        number(over_pairs),
        number(leg.aggregate_score),
        visible(leg.context_root_label, limit=200),
        wording.leg_degraded(leg) or "no",
    )


def _case_row(pair: PairedCase) -> str:
    return row(
        pair.case_id,
        _side(pair.context_off),
        _side(pair.context_on),
        signed(pair.score_delta),
        wording.case_note(pair),
    )


def _side(case: LegCase) -> str:
    return case.status.value if case.score is None else f"{case.status.value} {number(case.score)}"


def row(*cells: str) -> str:
    """A row of a table."""
    return f"| {' | '.join(safe(cell) for cell in cells)} |"


def safe(text: str) -> str:
    """Text that Markdown shows as it is: no markup, no HTML, no link, no mention, no table cell."""
    text = _SPECIAL.sub(lambda match: f"\\{match[0]}", visible(text))
    text = "".join(_ENTITIES.get(char, char) for char in text)
    return _WWW.sub(lambda match: f"{match[0][:3]}\\.", text)


def fit(lines: list[str], limit: int) -> str:
    """The lines as far as they fit; cut at the end of a line, and says so."""
    whole = "\n".join(lines) + "\n"
    if len(whole.encode()) <= limit:
        return whole
    room = limit - len(_CUT.encode())
    kept: list[str] = []
    for line in lines:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(f"{line}\n")
    return ("".join(kept) + _CUT).encode()[: max(limit, 0)].decode("utf-8", "ignore")
