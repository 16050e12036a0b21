from __future__ import annotations

import io
import re
import subprocess
import sys
import threading
import time

import pytest
from typing_extensions import override

from runner.model.leg import Degradation, DegradedReason
from runner.model.record import Status
from runner.report.progress import Listener, Progress, Quiet
from tests.unit.report.builders import HOSTILE, RAW

TIMEOUT = Degradation(reason=DegradedReason.INSUFFICIENT_DECISION_EVIDENCE, detail="timeout")


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Closed(io.StringIO):
    """A terminal that has gone away."""

    @override
    def write(self, text: str, /) -> int:
        raise BrokenPipeError


def test_plain_lines_tell_the_start_the_end_and_little_between() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress(stream, clock=clock) as progress:
        progress.note("staging")
        progress.leg_started("shop", "context_off", 10)
        for n in range(10):
            clock.now += 0.5
            progress.case_done("shop", "context_off", f"c{n}", Status.PASS if n else Status.FAIL)
        progress.leg_done("shop", "context_off", None)
    assert stream.getvalue().splitlines() == [
        "staging",
        "shop context_off: started, 10 cases",
        "shop context_off: 4 of 10 cases, 2 s, last c3",
        "shop context_off: 8 of 10 cases, 4 s, last c7",
        "shop context_off: ended, 10 of 10 cases in 5.0 s (9 pass, 1 fail)",
    ]


def test_a_degraded_leg_says_why_even_if_it_never_started() -> None:
    stream = io.StringIO()
    with Progress(stream, clock=Clock()) as progress:
        progress.leg_done("shop", "context_on", TIMEOUT)
    assert stream.getvalue() == (
        "shop context_on: ended, 0 of 0 cases in 0.0 s, "
        "degraded insufficient_decision_evidence/timeout\n"
    )


def test_legs_that_run_at_once_lose_no_case() -> None:
    stream = io.StringIO()
    progress = Progress(stream, clock=Clock())
    legs = ("context_off", "context_on")

    def run(leg: str) -> None:
        for n in range(500):
            progress.case_done("shop", leg, f"c{n}", None)

    for leg in legs:
        progress.leg_started("shop", leg, 1_000)
    threads = [threading.Thread(target=run, args=(leg,)) for leg in legs * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for leg in legs:
        progress.leg_done("shop", leg, None)
    assert stream.getvalue().count("ended, 1000 of 1000 cases") == 2


@pytest.fixture(autouse=True)
def _a_capable_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.setenv("COLUMNS", "120")


def test_the_legs_are_drawn_side_by_side_on_a_terminal() -> None:
    stream, clock = io.StringIO(), Clock()
    with Progress(stream, live=True, clock=clock) as progress:
        progress.leg_started("shop", "context_on", 4)
        progress.leg_started("shop", "context_off", 4)
        progress.case_done("shop", "context_off", "a", Status.PASS)
        progress.note("a note")
        assert progress._live is not None
        progress._live.refresh()
    plain = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert re.search(r"shop +context_off ━{4}─{12} 1/4.*context_on ─{16} 0/4", plain)
    assert "a note" in plain


def test_a_dumb_terminal_gets_plain_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "dumb")
    stream = io.StringIO()
    with Progress(stream, live=True, clock=Clock()) as progress:
        progress.leg_started("shop", "context_off", 4)
    assert stream.getvalue() == "shop context_off: started, 4 cases\n"


def test_a_suite_that_is_over_makes_room_for_the_next() -> None:
    stream = io.StringIO()
    with Progress(stream, live=True, clock=Clock()) as progress:
        progress.leg_started("first", "context_off", 1)
        progress.leg_done("first", "context_off", TIMEOUT)
        progress.leg_started("second", "context_off", 1)
        drawn = progress._drawing()
    assert drawn.row_count == 1


def test_drawing_happens_by_itself_while_a_leg_runs() -> None:
    stream = io.StringIO()
    with Progress(stream, live=True) as progress:
        progress.leg_started("shop", "context_off", 1)
        deadline = time.monotonic() + 10
        while "shop" not in stream.getvalue() and time.monotonic() < deadline:
            time.sleep(0.02)
    assert "shop" in stream.getvalue()


@pytest.mark.parametrize("live", [False, True])
def test_hostile_names_are_not_obeyed(live: bool) -> None:
    stream = io.StringIO()
    with Progress(stream, live=live, color=False, clock=Clock()) as progress:
        progress.note(HOSTILE)
        progress.leg_started(HOSTILE, HOSTILE, 2)
        progress.case_done(HOSTILE, HOSTILE, HOSTILE, Status.PASS)
        progress.leg_done(HOSTILE, HOSTILE, None)
    drawn = stream.getvalue()
    # Escapes and carriage returns are rich's own means; those of the subject are not among them.
    assert not [raw for raw in RAW if raw in drawn and raw not in "\x1b\r"]
    assert "\x1b[31m" not in drawn
    assert "\x1b[2J" not in drawn
    assert "\\x1b[31mX" in drawn
    assert "[red]Y[/red]" in drawn


def test_a_terminal_that_is_gone_costs_no_measurement() -> None:
    with Progress(Closed(), live=False) as progress:
        progress.leg_started("shop", "context_off", 1)
        progress.leg_done("shop", "context_off", None)


def test_an_unknown_leg_is_not_counted() -> None:
    stream = io.StringIO()
    Progress(stream).case_done("shop", "nowhere", "a", Status.PASS)
    assert stream.getvalue() == ""


def test_quiet_and_progress_are_both_listeners() -> None:
    listeners: list[Listener] = [Quiet(), Progress(io.StringIO())]
    for listener in listeners:
        listener.note("x")
        listener.leg_started("s", "l", 1)
        listener.case_done("s", "l", "c", None)
        listener.leg_done("s", "l", None)


def test_importing_progress_does_not_import_rich() -> None:
    code = "import sys, runner.report.progress; sys.exit('rich' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
