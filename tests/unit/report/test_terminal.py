from __future__ import annotations

import re

import pytest
from rich.cells import cell_len

from runner.model.leg import DegradedReason
from runner.model.record import Status
from runner.report.terminal import render_many, render_record, render_scorecard
from tests.unit.report import builders as b

SGR = re.compile(r"\x1b\[[0-9;]*m")


def flat(text: str) -> str:
    return " ".join(text.split())


def test_the_first_lines_are_the_suite_and_what_was_shown() -> None:
    lines = render_scorecard(b.helped(), width=100, color=False).splitlines()
    assert lines[0] == "shop-learnings  fixtures/suites/shop-learnings.json"
    assert lines[1] == "on these cases context helped: +0.4667 over 2 valid pairs (0.5333 -> 1.0)"


def test_a_row_shows_both_sides_the_delta_and_what_decided_it() -> None:
    text = render_scorecard(b.helped(), width=100, color=False)
    assert re.search(
        r"timeouts +fail 0\.5 +pass 1\.0 +\+0\.5\n"
        r"  expectations\[1\] stdout_contains: failed -> passed; from\n +learnings/retries.md\n",
        text,
    )


def test_totals_show_both_legs_the_delta_the_degraded_and_the_proof() -> None:
    text = flat(render_scorecard(b.partly_degraded(), width=100, color=False))
    assert "context_off fail 0.5333 context-off" in text
    assert "context_on pass 1.0 context-on" in text
    assert "delta +0.4667" in text
    assert "bounds between -0.0222 and +0.3111" in text
    assert "degraded insufficient_decision_evidence/timeout x 1" in text
    assert "cannot resolve: 5 or fewer discordant pairs" in text
    assert (
        "before = after; no mount reached it; 2 containers, network none, read-back equal" in text
    )


def test_what_is_not_clean_stands_before_any_number() -> None:
    text = render_scorecard(b.violated(), width=100, color=False)
    problem = text.index("learnings/retries.md: modified (ctime)")
    assert text.index("the measurement was not clean") < problem < text.index("delta")


def test_no_valid_pair_shows_no_delta_at_all() -> None:
    text = render_scorecard(b.all_degraded(), width=100, color=False)
    assert "no valid pair: nothing can be said" in text
    assert re.search(r"^delta +-$", text, re.MULTILINE)
    assert "degraded hooks_disabled/inherited" in flat(text)


def test_an_aggregate_over_fewer_cases_says_so() -> None:
    card = b.card(b.improved(), b.degraded(), context_off=b.leg("context_off", 0.75, Status.FAIL))
    text = flat(render_scorecard(card, width=110, color=False))
    assert "0.5333 over valid pairs, 0.75 over all it scored" in text


def test_beyond_forty_cases_the_unchanged_are_counted() -> None:
    card = b.card(*[b.tied(f"t{n}") for n in range(50)], b.improved())
    text = render_scorecard(card, width=100, color=False)
    assert "and 50 cases without any change" in text
    assert "t17" not in text


@pytest.mark.parametrize("width", [1, 50, 80, 200])
def test_no_line_is_wider_than_the_terminal(width: int) -> None:
    for card in (b.partly_degraded(), b.hostile()):
        text = render_scorecard(card, width=width, color=False)
        assert max(cell_len(line) for line in text.splitlines()) <= min(max(width, 50), 110)


@pytest.mark.parametrize("color", [False, True])
def test_hostile_text_reaches_no_terminal(color: bool) -> None:
    card, results = b.hostile(), b.result("x", Status.FAIL, 0.0, message=b.HOSTILE)
    for text in (
        render_scorecard(card, width=100, color=color),
        render_many([card], width=100, color=color),
        render_record(b.record(results, variant=b.HOSTILE), width=100, color=color),
    ):
        assert (SGR.search(text) is not None) is color
        plain = SGR.sub("", text)
        assert not [raw for raw in b.RAW if raw in plain]
        # Markup is shown, not obeyed; escapes are told, not sent.
        assert "[red]Y[/red]" in flat(plain)
        assert "\\x1b[31mX" in plain


def test_without_color_nothing_is_styled_and_with_it_the_words_are_the_same() -> None:
    for card in (b.helped(), b.violated(), b.partly_degraded()):
        plain = render_scorecard(card, width=90, color=False)
        assert "\x1b" not in plain
        styled = SGR.sub("", render_scorecard(card, width=90, color=True))
        assert flat(styled) == flat(plain)


def test_color_does_not_depend_on_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    before = render_scorecard(b.helped(), width=90, color=True)
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.setenv("COLUMNS", "20")
    assert render_scorecard(b.helped(), width=90, color=True) == before


def test_several_suites_are_one_table_with_what_is_unclean_above() -> None:
    cards = [b.helped(), b.harmed(), b.violated()]
    text = render_many(cards, width=90, color=False)
    assert text.startswith("shop-learnings: not clean\n! ")
    assert re.search(r"shop-learnings +0\.5333 +1\.0 +\+0\.4667 +2/2 +0 +clean", text)
    assert re.search(r"shop-learnings +1\.0 +0\.5 +-0\.5 +2/2 +0 +clean", text)
    assert re.search(r"shop-learnings +- +- +- +0/1 +1 +violated", text)
    assert "3 suites: context helped in 1, did harm in 1, not clean: 1" in text


def test_a_suite_with_no_valid_pair_is_neither_help_nor_harm() -> None:
    text = render_many([b.all_degraded(), b.no_difference()], width=90, color=False)
    assert "2 suites: made no difference in 1, nothing can be said of 1" in text


def test_a_run_record_shows_each_case_and_the_first_expectation_that_failed() -> None:
    record = b.record(b.result("a", Status.PASS, 1.0), b.result("b", Status.FAIL, 0.0))
    text = render_record(record, width=100, color=False)
    assert text.splitlines()[1] == "context_on: fail"
    assert re.search(r"^a +pass +1\.0$", text, re.MULTILINE)
    assert "expectations[0] stdout_contains failed: standard output does not contain" in flat(text)
    assert "aggregate 0.5 over 2 scored cases" in flat(text)


def test_a_degraded_run_record_has_no_number_and_says_why() -> None:
    why = (DegradedReason.CONTEXT_VARIANT_UNSUPPORTED, "context_maybe")
    record = b.record(
        b.result("a", Status.SKIPPED, None, why=why),
        status=Status.SKIPPED,
        why=why,
        variant="context_maybe",
        runtime=None,
        environment=None,
    )
    text = flat(render_record(record, width=100, color=False))
    assert "context_maybe: skipped, degraded context_variant_unsupported/context_maybe" in text
    assert "aggregate - over 0 scored cases" in text


def test_ten_warnings_are_shown_and_the_rest_is_counted() -> None:
    card = b.card(b.tied(), warnings=tuple(f"warning {n}" for n in range(12)))
    text = flat(render_scorecard(card, width=100, color=False))
    assert "warning warning 9 warning and 2 more" in text


def test_a_case_that_failed_without_a_failed_expectation_shows_its_message() -> None:
    failed = b.result("a", Status.ERROR, None).model_copy(
        update={"expectations": (), "failure_message": "not found: \x1b[1mx"}
    )
    text = render_record(b.record(failed), width=100, color=False)
    assert "  not found: \\x1b[1mx" in text


def test_no_suite_at_all_is_not_a_success() -> None:
    assert "no suite was run" in render_many([], width=80, color=False)
