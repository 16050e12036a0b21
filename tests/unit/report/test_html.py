from __future__ import annotations

import base64
import hashlib
import re
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from typing_extensions import override

from runner.model.scorecard import ContextScorecard
from runner.report import html
from runner.report.html import render_html
from tests.unit.report import builders as b

VOID = {"meta", "line", "circle", "wbr"}


class Page(HTMLParser):
    """Elements, attributes and text; balanced, or it raises."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(source)
        self.close()
        assert not self._open

    @override
    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)

    @override
    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    @override
    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    @override
    def handle_data(self, data: str) -> None:
        self.text += data


EVERY = [
    b.helped(),
    b.harmed(),
    b.no_difference(),
    b.partly_degraded(),
    b.all_degraded(),
    b.violated(),
    b.hostile(),
]


@pytest.mark.parametrize("card", EVERY)
def test_the_page_is_balanced_and_fetches_and_runs_nothing(card: ContextScorecard) -> None:
    page = Page(render_html(card))
    names = {tag for tag, _ in page.tags}
    assert names.isdisjoint({"script", "link", "img", "iframe", "object", "a", "form", "base"})
    attributes = {name for _, attrs in page.tags for name in attrs}
    # `style` attributes would be refused by the page's own policy.
    assert attributes.isdisjoint({"src", "href", "style", "xlink:href"})
    assert not [name for name in attributes if name.startswith("on")]


def test_the_policy_allows_exactly_the_style_that_is_in_the_page() -> None:
    source = render_html(b.helped())
    style = re.search(r"<style>(.*?)</style>", source, re.DOTALL)
    assert style is not None
    digest = base64.b64encode(hashlib.sha256(style[1].encode()).digest()).decode()
    policy = next(
        attrs["content"]
        for tag, attrs in Page(source).tags
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    )
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )
    assert "url(" not in style[1]
    assert "@import" not in style[1]


def test_hostile_text_is_shown_and_does_nothing() -> None:
    source = render_html(b.hostile())
    assert not [raw for raw in b.RAW if raw in source]
    for piece in ("<script", "</script", "<img"):
        assert piece not in source
    assert "</script><script>alert(1)</script>" in Page(source).text
    assert "\\u202egnp.exe" in source


def test_an_excerpt_keeps_its_lines() -> None:
    pair = b.improved()
    evidence = (b.fact(), b.output(excerpt="one\ntwo\x1b[1m <b>"))
    card = b.card(pair.model_copy(update={"decision_evidence": evidence}))
    assert '<pre tabindex="0">one\ntwo\\x1b[1m &lt;b&gt;</pre>' in render_html(card)


def test_an_excerpt_that_is_withheld_leaves_its_digest() -> None:
    pair = b.improved()
    evidence = (b.fact(), b.output(excerpt=None))
    source = render_html(b.card(pair.model_copy(update={"decision_evidence": evidence})))
    assert "<pre" not in source
    assert b.sha("5") in source


def test_the_page_has_headline_legs_cases_inputs_resolution_and_its_limits() -> None:
    text = " ".join(Page(render_html(b.helped())).text.split())
    for piece in (
        "on these cases context helped: +0.4667 over 2 valid pairs (0.5333 → 1.0)",
        "context_off",
        "expectations[1] stdout_contains: failed -> passed",
        "same output: stdout equal in both legs",
        "attributed to: learnings/retries.md",
        "cannot resolve: 5 or fewer discordant pairs",
        "It does not show",
        "no control was run",
        b.sha("1"),
        b.sha("c"),
        f"sha256:{b.sha('3')}",
        "before = after; no mount reached it; 2 containers, network none, read-back equal",
    ):
        assert piece in text


def test_what_is_not_clean_stands_before_both_legs_and_what_is_clean_after() -> None:
    unclean, clean = render_html(b.violated()), render_html(b.helped())
    assert unclean.index('id="integrity"') < unclean.index('id="legs"')
    assert clean.index('id="integrity"') > clean.index('id="legs"')
    assert unclean.count('id="integrity"') == clean.count('id="integrity"') == 1


def test_the_same_scorecard_gives_the_same_page() -> None:
    assert render_html(b.partly_degraded()) == render_html(b.partly_degraded())


@pytest.fixture
def compiled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder for compiled templates, and no memory of earlier ones."""
    monkeypatch.setattr(sys, "pycache_prefix", str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    _forget()
    return tmp_path


def _forget() -> None:
    html.compile_page.cache_clear()
    html._environment.cache_clear()


def _kept(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file()]


def test_a_template_compiled_by_an_earlier_process_gives_the_same_page(compiled: Path) -> None:
    first = render_html(b.helped())
    before = {path: path.stat().st_ino for path in _kept(compiled)}
    assert before
    _forget()
    assert render_html(b.helped()) == first
    assert {path: path.stat().st_ino for path in _kept(compiled)} == before


def test_a_damaged_or_outdated_compiled_template_is_compiled_again(compiled: Path) -> None:
    first = render_html(b.helped())
    assert len(_kept(compiled)) == 2  # the page, and the parts that pages share
    for kept in _kept(compiled):
        whole = kept.read_bytes()
        for wrong in (b"", whole[:40], whole.replace(b"d", b"e")[:100] + whole[100:]):
            kept.write_bytes(wrong)
            _forget()
            assert render_html(b.helped()) == first
            assert kept.read_bytes() == whole


def test_a_folder_that_cannot_hold_compiled_templates_is_no_error(
    compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (compiled / "file").write_text("")
    monkeypatch.setattr(sys, "pycache_prefix", str(compiled / "file"))
    assert render_html(b.helped())
    monkeypatch.setattr(sys, "pycache_prefix", str(compiled))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    _forget()
    assert render_html(b.helped())
    assert [path.name for path in _kept(compiled)] == ["file"]
