from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st
from markdown_it import MarkdownIt

from runner.report.markdown import render_summary
from tests.unit.report import builders as b

GITHUB = MarkdownIt("gfm-like", {"html": True, "linkify": False})


def test_the_summary_begins_with_what_was_shown() -> None:
    lines = render_summary(b.helped()).splitlines()
    assert lines[0] == "### shop-learnings"
    assert "context helped" in lines[2]
    shown = GITHUB.render(render_summary(b.helped()))
    assert (
        "<strong>on these cases context helped: +0.4667 over 2 valid pairs (0.5333 -&gt; 1.0)"
        in shown
    )
    assert (
        "<td>expectations[1] stdout_contains: failed -&gt; passed; from learnings/retries.md</td>"
        in shown
    )


def test_what_is_not_clean_stands_before_the_tables() -> None:
    text = render_summary(b.violated())
    assert text.index("learnings/retries.md") < text.index("| leg |")


def test_hostile_text_is_shown_by_a_renderer_and_does_nothing() -> None:
    text = render_summary(b.hostile())
    assert not [raw for raw in b.RAW if raw in text]
    shown = GITHUB.render(text)
    for tag in ("<script", "<img", "<a ", "<code", "<del", "<em"):
        assert tag not in shown
    assert "[red]Y[/red] &lt;/script&gt;" in shown
    # No pipe of the subject opens a cell: every body row has as many as its head.
    for table in re.findall(r"<table>.*?</table>", shown, re.DOTALL):
        widths = {
            row.count("<td") + row.count("<th") - row.count("<thead")
            for row in re.findall(r"<tr>.*?</tr>", table, re.DOTALL)
        }
        assert len(widths) == 1


def test_no_pipe_or_backtick_of_a_subject_stays_unescaped() -> None:
    text = render_summary(b.hostile())
    assert not re.search(r"(?<!\\)`", text)
    rows = [line for line in text.splitlines() if line.startswith("| one ")]
    assert len(rows) == 1
    assert len(re.findall(r"(?<!\\)\|", rows[0])) == 6


def test_beyond_forty_cases_the_unchanged_are_counted() -> None:
    text = render_summary(b.card(*[b.tied(f"t{n}") for n in range(50)], b.improved()))
    assert "and 50 cases without any change" in text
    assert "| t17 |" not in text


def test_a_summary_that_is_too_long_is_cut_at_a_line_and_says_so() -> None:
    card = b.card(*[b.improved(f"case-{n}") for n in range(200)])
    whole, cut = render_summary(card), render_summary(card, limit_bytes=4_000)
    assert len(cut.encode()) <= 4_000 < len(whole.encode())
    head, _, note = cut.rpartition("\n*Cut here")
    assert whole.startswith(head)
    assert head.endswith(" |\n")
    assert "scorecard.json holds the rest" in note


@given(st.integers(min_value=0, max_value=6_000))
def test_the_limit_holds_for_every_size(limit: int) -> None:
    assert len(render_summary(b.hostile(), limit_bytes=limit).encode()) <= limit
