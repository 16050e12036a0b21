"""The scorecard as one page that can be opened anywhere: no script, nothing fetched, printable."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined, Template

from runner.model.scorecard import CommandOutput, ContextScorecard, LegCase, PairedCase
from runner.report import causes, text, wording

_TEMPLATES = Path(__file__).parent / "templates"
_PLOT_LEFT, _PLOT_SPAN = 6.0, 108.0


def render_html(scorecard: ContextScorecard) -> str:
    """The scorecard as a self-contained HTML document.

    The style is allowed by its digest in the page's own content security policy; everything else,
    scripts first of all, is refused by it.

    Args:
        scorecard: What to show.

    Returns:
        HTML; the same scorecard gives the same text.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return compile_page().render(
        card=scorecard,
        style=style,
        style_digest=digest,
        tone=wording.tone(scorecard),
        headline=wording.headline(scorecard),
        problems=wording.integrity_lines(scorecard),
        proof=wording.proof_line(scorecard),
        counts=wording.degraded_counts(scorecard),
        bounds=wording.bounds_line(scorecard),
        shown=wording.shown(scorecard),
        not_shown=wording.not_shown(scorecard),
        clean=wording.is_clean(scorecard),
        causes={row.case_id: causes.cause_text(row) for row in scorecard.attribution.cases},
        controls_line=causes.controls_line(scorecard),
        interval_line=wording.interval_line(scorecard),
        trace_line=causes.trace_line(scorecard),
    )


@cache
def compile_page() -> Template:
    """The page's template, compiled once: a tenth of a second that can be spent beforehand."""
    return _environment().get_template("scorecard.html.j2")


@cache
def _style() -> str:
    return (_TEMPLATES / "scorecard.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
        # Whatever is put out unnamed passes `visible` as well; a template cannot forget it.
        finalize=_finalize,
    )
    env.globals.update(
        leg_degraded=wording.leg_degraded,
        degraded_text=wording.degraded_text,
        case_note=wording.case_note,
        evidence_text=wording.evidence_text,
        resolution_line=wording.resolution_line,
        is_output=lambda item: isinstance(item, CommandOutput) and item.excerpt is not None,
        side=_side,
        direction=_direction,
        plot_x=_plot_x,
        plot_label=_plot_label,
    )
    env.filters["block"] = lambda value: text.visible(value, newlines=True)
    env.filters.update(number=text.number, signed=text.signed, plural=text.plural)
    return env


def _finalize(value: object) -> object:
    return text.visible(value) if type(value) is str else value


def _side(case: LegCase) -> str:
    score = "" if case.score is None else f" {text.number(case.score)}"
    return f"{case.status.value}{score}"


def _direction(pair: PairedCase) -> str:
    if not pair.is_valid:
        return "degraded"
    delta = pair.score_delta or 0
    return "up" if delta > 0 else "down" if delta < 0 else "same"


def _plot_x(score: float) -> str:
    return f"{_PLOT_LEFT + _PLOT_SPAN * score:.1f}"


def _plot_label(off: float, on: float) -> str:
    return f"from {text.number(off)} to {text.number(on)}"
