"""What is going on, on stderr, while legs run.

rich is imported when drawing begins, not before: commands that draw nothing do not pay for it.
"""

from __future__ import annotations

import contextlib
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol, Self, TextIO

from runner.model.leg import Degradation
from runner.model.record import Status
from runner.report.text import plural, visible

if TYPE_CHECKING:
    from types import TracebackType

    from rich.console import Console
    from rich.live import Live
    from rich.table import Table
    from rich.text import Text

_LINE_EVERY_SECONDS = 2.0
_BAR_CELLS = 16


class Listener(Protocol):
    """What a use case tells while it runs; called from several threads at once."""

    def leg_started(self, suite: str, leg: str, total_cases: int) -> None:
        """A leg begins."""

    def case_done(self, suite: str, leg: str, case_id: str, status: Status | None) -> None:
        """A case has ended; `status` is None where it is not judged yet."""

    def leg_done(self, suite: str, leg: str, degraded: Degradation | None) -> None:
        """A leg has ended."""

    def note(self, text: str) -> None:
        """Something else worth a line (staging, building an image)."""


class Quiet:
    """Tells nothing."""

    def leg_started(self, suite: str, leg: str, total_cases: int) -> None:
        """See `Listener`."""

    def case_done(self, suite: str, leg: str, case_id: str, status: Status | None) -> None:
        """See `Listener`."""

    def leg_done(self, suite: str, leg: str, degraded: Degradation | None) -> None:
        """See `Listener`."""

    def note(self, text: str) -> None:
        """See `Listener`."""


@dataclass
class _Leg:
    """Where one leg stands. Changed only under the lock of its `Progress`."""

    name: str
    total: int
    started: float
    done: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    last_line: float = 0.0
    ended: float | None = None
    degraded: Degradation | None = None

    def seconds(self, now: float) -> float:
        """How long the leg has been running, or did run."""
        return max(0.0, (now if self.ended is None else self.ended) - self.started)


class Progress:
    """Legs side by side on a terminal, plain lines anywhere else.

    Args:
        stream: Where to draw; stderr.
        live: Draw in place. By default when `stream` is a terminal; never on a dumb one.
        color: Write ANSI styles when drawing in place.
        clock: Seconds, monotonic.
    """

    def __init__(
        self,
        stream: TextIO,
        *,
        live: bool | None = None,
        color: bool = True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._stream = stream
        self._wants_live = stream.isatty() if live is None else live
        self._color = color
        self._clock = clock
        self._lock = threading.Lock()
        self._suites: dict[str, dict[str, _Leg]] = {}
        self._console: Console | None = None
        self._live: Live | None = None

    def __enter__(self) -> Self:
        if self._wants_live:
            from rich.console import Console
            from rich.live import Live

            self._console = Console(
                file=self._stream,
                force_terminal=True,
                no_color=not self._color,
                highlight=False,
                markup=False,
                emoji=False,
            )
            if self._console.is_dumb_terminal:
                return self
            # Results go to stdout, perhaps into a pipe: it is not ours to redirect.
            self._live = Live(
                console=self._console,
                get_renderable=self._drawing,
                refresh_per_second=8,
                transient=True,
                redirect_stdout=False,
            )
            self._live.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            with contextlib.suppress(OSError, ValueError):
                self._live.stop()
            self._live = None

    def leg_started(self, suite: str, leg: str, total_cases: int) -> None:
        """See `Listener`."""
        now = self._clock()
        with self._lock:
            self._suites.setdefault(suite, {})[leg] = _Leg(leg, total_cases, now, last_line=now)
        self._line(suite, leg, f"started, {plural(total_cases, 'case')}")

    def case_done(self, suite: str, leg: str, case_id: str, status: Status | None) -> None:
        """See `Listener`. Plain lines: at most one a leg in two seconds."""
        now = self._clock()
        with self._lock:
            state = self._suites.get(suite, {}).get(leg)
            if state is None:
                return
            state.done += 1
            state.statuses["done" if status is None else status.value] += 1
            due = now - state.last_line >= _LINE_EVERY_SECONDS
            if due:
                state.last_line = now
            text = f"{state.done} of {plural(state.total, 'case')}, {state.seconds(now):.0f} s"
        if due:
            self._line(suite, leg, f"{text}, last {case_id}")

    def leg_done(self, suite: str, leg: str, degraded: Degradation | None) -> None:
        """See `Listener`."""
        now = self._clock()
        with self._lock:
            state = self._suites.get(suite, {}).get(leg)
            if state is None:
                # A leg may be degraded before anything of it was started.
                state = self._suites.setdefault(suite, {})[leg] = _Leg(leg, 0, now)
            state.ended, state.degraded = now, degraded
            text = f"ended, {state.done} of {plural(state.total, 'case')}"
            text += f" in {state.seconds(now):.1f} s{_counts(state)}"
        if degraded is not None:
            text += f", degraded {degraded.reason.value}/{degraded.detail}"
        self._line(suite, leg, text)

    def note(self, text: str) -> None:
        """See `Listener`."""
        if self._live is None or self._console is None:
            self._write(visible(text))
            return
        from rich.text import Text

        # A stderr that is gone must not cost a measurement.
        with contextlib.suppress(OSError, ValueError):
            self._console.print(Text(visible(text), style="dim"))

    def _line(self, suite: str, leg: str, text: str) -> None:
        if self._live is None:
            self._write(visible(f"{suite} {leg}: {text}"))

    def _write(self, line: str) -> None:
        with contextlib.suppress(OSError, ValueError), self._lock:
            self._stream.write(f"{line}\n")
            self._stream.flush()

    def _drawing(self) -> Table:
        """One row a suite, its legs beside each other; suites that are over make room."""
        from rich.table import Table
        from rich.text import Text

        now = self._clock()
        grid = Table.grid(padding=(0, 3))
        with self._lock:
            names = list(self._suites)
            for name, legs in self._suites.items():
                if all(leg.ended is not None for leg in legs.values()) and name != names[-1]:
                    continue
                cells = [_cell(legs[leg], now) for leg in sorted(legs, key=_off_first)]
                grid.add_row(Text(visible(name, limit=40), style="bold"), *cells)
        return grid


def _off_first(leg: str) -> tuple[bool, str]:
    return (not leg.endswith("_off"), leg)


def _counts(leg: _Leg) -> str:
    counts = ", ".join(
        f"{leg.statuses[status.value]} {status.value}"
        for status in Status
        if leg.statuses[status.value]
    )
    return f" ({counts})" if counts else ""


def _cell(leg: _Leg, now: float) -> Text:
    from rich.text import Text

    filled = _BAR_CELLS if not leg.total else min(_BAR_CELLS, _BAR_CELLS * leg.done // leg.total)
    style = "yellow" if leg.degraded else "green" if leg.ended is not None else "cyan"
    text = Text.assemble(
        (f"{visible(leg.name, limit=30)} ", "default"),
        ("━" * filled, style),
        ("─" * (_BAR_CELLS - filled), "dim"),
        f" {leg.done}/{leg.total}  {leg.seconds(now):.1f} s",
    )
    if leg.degraded is not None:
        text.append(f"  {leg.degraded.detail}", style="yellow")
    return text
