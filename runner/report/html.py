"""The scorecard as one page that can be opened anywhere: no script, nothing fetched, printable."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import importlib.util
import marshal
import os
import sys
from functools import cache
from pathlib import Path

from jinja2 import BytecodeCache, Environment, FileSystemLoader, StrictUndefined, Template
from jinja2.bccache import Bucket

from runner.model.scorecard import CommandOutput, ContextScorecard, LegCase, PairedCase
from runner.report import causes, claims, resolving, text, wording

_TEMPLATES = Path(__file__).parent / "templates"
_SHA256 = 32
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
    return page(
        compile_page(),
        card=scorecard,
        tone=wording.tone(scorecard),
        headline=claims.headline(scorecard),
        problems=wording.integrity_lines(scorecard),
        proof=wording.proof_line(scorecard),
        counts=wording.degraded_counts(scorecard),
        bounds=resolving.bounds_line(scorecard),
        shown=claims.shown(scorecard),
        not_shown=claims.not_shown(scorecard),
        clean=wording.is_clean(scorecard),
        causes={row.case_id: causes.cause_text(row) for row in scorecard.attribution.cases},
        controls_line=causes.controls_line(scorecard),
        interval_line=resolving.interval_line(scorecard),
        trace_line=causes.trace_line(scorecard),
    )


def page(template: Template, **values: object) -> str:
    """Render a page of ours, whose one style is named by digest in its policy.

    Args:
        template: The page.
        values: What it shows.
    """
    style = _style()
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return template.render(style=style, style_digest=digest, **values)


@cache
def compile_page(name: str = "scorecard.html.j2") -> Template:
    """A page's template, compiled: the first time a tenth of a second, best spent beforehand."""
    _environment().get_template("parts.html.j2")  # which every page imports
    return _environment().get_template(name)


class _BesideModules(BytecodeCache):
    """Keeps compiled templates where, and if, Python keeps compiled modules.

    As with modules, who can write there can run code here; damage is found and compiled anew.
    """

    def get_source_checksum(self, source: str) -> str:
        """Of the template and of this module: how it is compiled is said here."""
        return hashlib.sha256(Path(__file__).read_bytes() + source.encode()).hexdigest()

    def load_bytecode(self, bucket: Bucket) -> None:
        """Load what an earlier process compiled."""
        with contextlib.suppress(OSError, EOFError, ValueError, TypeError):
            kept = _compiled(bucket).read_bytes()
            code = kept[_SHA256:]
            if kept[:_SHA256] == _digest(bucket, code):
                bucket.code = marshal.loads(code)  # noqa: S302 (as a .pyc)

    def dump_bytecode(self, bucket: Bucket) -> None:
        """Keep it for the next process; a folder that cannot be written is no error."""
        if sys.dont_write_bytecode:
            return
        path = _compiled(bucket)
        beside = path.with_suffix(f".{os.getpid()}")
        with contextlib.suppress(OSError):
            path.parent.mkdir(parents=True, exist_ok=True)
            code = marshal.dumps(bucket.code)
            try:
                with beside.open("xb") as made:
                    made.write(_digest(bucket, code) + code)
                beside.replace(path)
            finally:
                beside.unlink(missing_ok=True)


def _digest(bucket: Bucket, code: bytes) -> bytes:
    """Says that the code is whole and what it was compiled from; Jinja's own format is a pickle."""
    return hashlib.sha256(bucket.checksum.encode() + code).digest()


def _compiled(bucket: Bucket) -> Path:
    return Path(importlib.util.cache_from_source(str(_TEMPLATES / f"{bucket.key}.j2")))


@cache
def _style() -> str:
    return (_TEMPLATES / "scorecard.css").read_text(encoding="utf-8")


@cache
def _environment() -> Environment:
    env = Environment(
        loader=FileSystemLoader(_TEMPLATES),
        autoescape=True,
        bytecode_cache=_BesideModules(),
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
        resolution_line=resolving.resolution_line,
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
