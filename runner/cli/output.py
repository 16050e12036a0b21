"""What reaches the user: results on stdout, progress and notes on stderr."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Self, TextIO

import click

from runner import settings
from runner.logs import log
from runner.report.progress import Listener, Progress, Quiet
from runner.report.text import visible

if TYPE_CHECKING:
    from runner.app.comparison import Comparison
    from runner.app.run_suite import SingleRun
    from runner.model.skillscorecard import AnyScorecard

_NARROWEST = 60
_WIDEST = 160
_LONGEST = 4096


def wants_color(stream: TextIO) -> bool:
    """Colour on a terminal, unless `NO_COLOR` says no; `FORCE_COLOR` says yes."""
    environment = settings.environment()
    if environment.get("NO_COLOR"):
        return False
    return bool(environment.get("FORCE_COLOR")) or stream.isatty()


class Screen:
    """The terminal during one command.

    Args:
        quiet: No progress.
        verbose: How much the log says.
    """

    def __init__(self, *, quiet: bool, verbose: int) -> None:
        log.configure(verbose=verbose, color=wants_color(sys.stderr))
        self._progress: Progress | Quiet = (
            Quiet() if quiet else Progress(sys.stderr, color=wants_color(sys.stderr))
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
        """Print scorecards: one document with `--json`, else text; tell the CI service too."""
        _append_step_summary([result.directory for result in outcome.results])
        _tell([line for result in outcome.results for line in result.notices])
        if as_json:
            click.echo(outcome.document)
            return
        width, color = _width(), wants_color(sys.stdout)
        for result in outcome.results:
            click.echo(_drawn(result.scorecard, width=width, color=color))
            click.echo(f"evidence: {visible(str(result.directory), limit=_LONGEST)}\n")
        if len(outcome.results) > 1:
            cards = [result.scorecard for result in outcome.results]
            click.echo(_drawn_together(cards, width=width, color=color))

    def show_record(self, outcome: SingleRun, *, as_json: bool) -> None:
        """Print a run record, and how to enter a kept container."""
        _tell(outcome.notices)
        if as_json:
            click.echo(outcome.document)
        else:
            from runner.report import terminal

            click.echo(
                terminal.render_record(
                    outcome.record, width=_width(), color=wants_color(sys.stdout)
                )
            )
            click.echo(f"evidence: {visible(str(outcome.directory), limit=_LONGEST)}")
        for line in outcome.problems:
            click.echo(f"ao-eval: {line}", err=True)
        for line in outcome.kept:
            click.echo(line, err=as_json)


def _drawn(card: AnyScorecard, *, width: int, color: bool) -> str:
    from runner.model.scorecard import ContextScorecard

    if isinstance(card, ContextScorecard):
        from runner.report.terminal import render_scorecard

        return render_scorecard(card, width=width, color=color)
    from runner.report.skillterminal import render_skill

    return render_skill(card, width=width, color=color)


def _drawn_together(cards: Sequence[AnyScorecard], *, width: int, color: bool) -> str:
    """Several suites on one table; all of one run are of one axis."""
    from runner.model.scorecard import ContextScorecard

    contexts = [card for card in cards if isinstance(card, ContextScorecard)]
    if contexts:
        from runner.report.terminal import render_many

        return render_many(contexts, width=width, color=color)
    from runner.report.skillterminal import render_skills

    skills = [card for card in cards if not isinstance(card, ContextScorecard)]
    return render_skills(skills, width=width, color=color)


def _tell(notices: Sequence[str]) -> None:
    """What somebody must know before any result; on stderr, so that stdout stays a document."""
    for line in notices:
        click.echo(f"ao-eval: {line}", err=True)


def _append_step_summary(directories: Sequence[Path]) -> None:
    """Append the summaries to the job summary of GitHub Actions, where that is where we run.

    It is a convenience: a file that cannot be written does not change what was found.
    """
    target = settings.environment().get("GITHUB_STEP_SUMMARY")
    if not target:
        return
    try:
        with Path(target).open("a", encoding="utf-8") as file:
            file.writelines(
                (directory / "summary.md").read_text(encoding="utf-8") + "\n"
                for directory in directories
            )
    except OSError as error:
        click.echo(f"ao-eval: job summary not written: {error.strerror}", err=True)


def _width() -> int:
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((100, 24)).columns))
