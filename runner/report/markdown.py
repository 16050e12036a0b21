"""The scorecard as GitHub-flavoured Markdown, for a job summary."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from runner.model.scorecard import ContextScorecard, LegCase, LegSummary, PairedCase
from runner.model.skillscorecard import AnyScorecard
from runner.report import causes, claims, resolving, wording
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
    rows, left_out = wording.chosen_cases(card)
    return lines(
        card,
        Summary(
            headline=claims.headline(card),
            legs=(
                "| leg | status | over valid pairs | over all scored | context root | degraded |",
                "|---|---|--:|--:|---|---|",
                _leg_row(card.context_off, card.pairing.context_off_aggregate),
                _leg_row(card.context_on, card.pairing.context_on_aggregate),
            ),
            facts=(("controls", causes.controls_line(card)),),
            cases=tuple(map(_case_row, rows)),
            left_out=left_out,
        ),
    )


class Summary(NamedTuple):
    """What is said in words of its axis.

    Attributes:
        headline: One sentence.
        legs: Lines of the table of legs.
        facts: Name and line of what else there is to say, the controls last.
        cases: Rows of the table of cases.
        left_out: How many pairs are not among them.
    """

    headline: str
    legs: Sequence[str]
    facts: Sequence[tuple[str, str]]
    cases: Sequence[str]
    left_out: int


def lines(card: AnyScorecard, summary: Summary) -> list[str]:
    """The summary of a comparison on either axis, line by line."""
    problems = wording.integrity_lines(card)
    counts = ", ".join(f"{name} x {count}" for name, count in wording.degraded_counts(card))
    bounds, spread = resolving.bounds_line(card), resolving.interval_line(card)
    pairs = plural(card.pairing.valid_pairs, "valid pair")
    facts = [
        ("delta", f"{signed(card.aggregate_delta)} over {pairs}"),
        *([("bounds", bounds)] if bounds is not None else []),
        ("degraded", counts or "none"),
        *summary.facts,
        ("resolution", resolving.resolution_line(card)),
        *([("interval", spread)] if spread is not None else []),
        ("proof", wording.proof_line(card)),
        *[("warning", visible(line, limit=500)) for line in card.warnings],
    ]
    left = f"and {plural(summary.left_out, 'case')} without any change"
    return [
        f"### {safe(card.suite_id)}",
        "",
        f"**{safe(summary.headline)}**",
        "",
        *[f"- **{safe(line)}**" for line in problems],
        *([""] if problems else []),
        *summary.legs,
        "",
        *[f"- {name}: {safe(line)}" for name, line in facts],
        "",
        "| case | off | on | delta | what decided it |",
        "|---|---|---|--:|---|",
        *summary.cases,
        *(["", left] if summary.left_out else []),
    ]


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


def fit(found: list[str], limit: int) -> str:
    """The lines as far as they fit; cut at the end of a line, and says so."""
    whole = "\n".join(found) + "\n"
    if len(whole.encode()) <= limit:
        return whole
    room = limit - len(_CUT.encode())
    kept: list[str] = []
    for line in found:
        room -= len(line.encode()) + 1
        if room < 0:
            break
        kept.append(f"{line}\n")
    return ("".join(kept) + _CUT).encode()[: max(limit, 0)].decode("utf-8", "ignore")
