"""What reaches the user: results on stdout, progress and notes on stderr."""

from __future__ import annotations

import os
import shutil
import sys
from types import TracebackType
from typing import TYPE_CHECKING, Self

import click

from runner.report.progress import Listener, Progress, Quiet

if TYPE_CHECKING:
    from runner.app.run_ab import Comparison
    from runner.app.run_suite import SingleRun

_NARROWEST = 60
_WIDEST = 160


def wants_color() -> bool:
    """Colour on a terminal, unless `NO_COLOR` says no; `FORCE_COLOR` says yes."""
    if os.environ.get("NO_COLOR"):
        return False
    return bool(os.environ.get("FORCE_COLOR")) or sys.stdout.isatty()


class Screen:
    """The terminal during one command.

    Args:
        quiet: No progress.
        verbose: How much the log says.
    """

    def __init__(self, *, quiet: bool, verbose: int) -> None:
        from runner import logs

        logs.configure(verbose=verbose, color=wants_color())
        self._progress: Progress | Quiet = (
            Quiet() if quiet else Progress(sys.stderr, color=wants_color())
        )
        self.progress: Listener = self._progress

    def __enter__(self) -> Self:
        if isinstance(self._progress, Progress):
            self._progress.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(self._progress, Progress):
            self._progress.__exit__(kind, error, trace)

    def show_comparisons(self, outcome: Comparison, *, as_json: bool) -> None:
        """Print scorecards: one document with `--json`, else text."""
        if as_json:
            click.echo(outcome.document)
            return
        from runner.report import terminal

        width, color = _width(), wants_color()
        for result in outcome.results:
            click.echo(terminal.render_scorecard(result.scorecard, width=width, color=color))
            click.echo(f"evidence: {result.directory}\n")
        if len(outcome.results) > 1:
            cards = [result.scorecard for result in outcome.results]
            click.echo(terminal.render_many(cards, width=width, color=color))

    def show_record(self, outcome: SingleRun, *, as_json: bool) -> None:
        """Print a run record, and how to enter a kept container."""
        if as_json:
            click.echo(outcome.document)
        else:
            from runner.report import terminal

            click.echo(terminal.render_record(outcome.record, width=_width(), color=wants_color()))
            click.echo(f"evidence: {outcome.directory}")
        for line in outcome.problems:
            click.echo(f"ao-eval: {line}", err=True)
        for line in outcome.kept:
            click.echo(line, err=as_json)


def _width() -> int:
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((100, 24)).columns))
