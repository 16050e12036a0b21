"""Skill scorecards in all documents."""

from __future__ import annotations

import itertools

import pytest
from junitparser import Error, Failure, JUnitXml

from runner.core.degrade import hooks_disabled, insufficient
from runner.model.skillscorecard import SkillScorecard
from runner.report import skillwording
from runner.report.skilldocuments import (
    render_skill_html,
    render_skill_junit,
    render_skill_summary,
)
from runner.report.skillterminal import render_skill, render_skills
from tests.unit.builders import FAILED, PASSED, case, result, suite_file
from tests.unit.report import builders as b
from tests.unit.report.test_html import Page
from tests.unit.skill import skill_card, skill_record

SUITE = suite_file(case("one"), case("two"), case("three"))


def card(off: str, on: str, **more: object) -> SkillScorecard:
    """A comparison in which `p` is a pass, `f` a failure and `t` a timeout."""
    legs = []
    for variant, letters in (("skill_off", off), ("skill_on", on)):
        found = [
            result(
                SUITE,
                case_id,
                [PASSED if letter == "p" else FAILED],
                insufficient("timeout") if letter == "t" else None,
            )
            for case_id, letter in zip(("one", "two", "three"), letters, strict=True)
        ]
        legs.append(skill_record(SUITE, found, variant))  # type: ignore[arg-type]
    return skill_card(SUITE, *legs, **more)  # type: ignore[arg-type]


def violated() -> SkillScorecard:
    return card("fpp", "ppp", live=b.live(b.root(after_sha256=b.sha("b"))))


@pytest.mark.parametrize(
    "off, on, words",
    [
        ("fpp", "ppp", "skills helped: +0.3333 over 3 valid pairs (0.6667 -> 1.0)"),
        ("ppp", "fpp", "skills did harm: -0.3333 over 3 valid pairs (1.0 -> 0.6667)"),
        ("ppp", "ppp", "on these cases skills made no difference: 0.0 over 3 valid pairs"),
        ("fpp", "pfp", "on these cases no difference in the aggregate: 0.0 over 3 valid pairs"),
        ("fpp", "pfp", "(0.6667 -> 0.6667); 1 case scored lower; 1 case scored higher"),
        ("ffp", "ppf", "; 1 case scored lower"),
        ("ppf", "ffp", "; 1 case scored higher"),
        ("fpp", "ptp", "; 1 pair degraded and left out"),
        ("ttt", "ttt", "no valid pair: nothing can be said (3 of 3 pairs degraded)"),
    ],
)  # fmt: skip
def test_the_headline_says_what_was_shown_and_no_more(off: str, on: str, words: str) -> None:
    found = card(off, on)
    assert words in skillwording.headline(found)
    assert words in " ".join(render_skill(found, width=100, color=False).split())


def test_every_outcome_of_three_cases_can_be_shown_in_every_document() -> None:
    for off, on in itertools.product(itertools.product("pft", repeat=3), repeat=2):
        found = card("".join(off), "".join(on))
        assert skillwording.headline(found) in " ".join(
            render_skill(found, width=110, color=False).split()
        )
        assert render_skill_summary(found).count("\n| ") == 2 + 2 + 3
        assert len(list(JUnitXml.fromstring(render_skill_junit(found)))) == 2


def test_a_measurement_that_was_not_clean_claims_nothing_in_any_document() -> None:
    found = violated()
    assert skillwording.headline(found) == (
        "the measurement was not clean: nothing is claimed about skills"
    )
    for text in (
        render_skill(found, width=100, color=False),
        render_skill_summary(found),
        render_skill_html(found),
    ):
        assert "skills helped" not in text
        assert "live state not witnessed" in text
    assert list(JUnitXml.fromstring(render_skill_junit(found)))[2].name == "demo.integrity"


def test_the_page_is_well_formed_and_has_both_legs_and_what_decided_a_case() -> None:
    page = Page(render_skill_html(card("fpp", "ppp")))
    assert {"Skill scorecard", "skill_off", "skill_on", "+0.3333"} <= set(page.text.split("\n")) | {
        line.strip() for line in page.text.split("\n")
    }
    assert "expectations[0] stdout_contains: failed -> passed" in page.text
    assert "skill_on one stdout" in page.text
    assert "context root" in page.text  # that there was none
    assert not {name for name, _ in page.tags} & {"script", "img", "link", "iframe"}


def test_test_results_have_one_suite_a_leg_and_degraded_is_never_failed() -> None:
    suites = {s.name: s for s in JUnitXml.fromstring(render_skill_junit(card("ftp", "ppp")))}
    found = {
        name: {
            item.name: [(type(each), each.type, each.message) for each in item.result]
            for item in suite
        }
        for name, suite in suites.items()
    }
    words = "expectations[0] stdout_contains: failed -> passed"
    assert found == {
        "demo.skill_off": {
            "one": [(Failure, "fail", words)],
            "two": [(Error, "insufficient_decision_evidence", "timeout")],
            "three": [],
        },
        "demo.skill_on": {"one": [], "two": [], "three": []},
    }


def test_a_leg_without_hooks_is_shown_as_degraded() -> None:
    why = hooks_disabled("inherited")
    rows = card("fpp", "ppp")
    legs = [
        skill_record(SUITE, [result(SUITE, i, [PASSED]) for i in ("one", "two", "three")], side,
                     degraded=why)
        for side in ("skill_off", "skill_on")
    ]  # fmt: skip
    found = skill_card(SUITE, *legs)
    assert "degraded hooks_disabled/inherited" in render_skill(found, width=100, color=False)
    assert "degraded hooks_disabled/inherited" not in render_skill(rows, width=100, color=False)
    suites = JUnitXml.fromstring(render_skill_junit(found))
    assert {type(each) for s in suites for item in s for each in item.result} == {Error}


def test_several_suites_are_one_table() -> None:
    text = render_skills([card("fpp", "ppp"), violated()], width=100, color=False)
    assert "demo: not clean" in text
    assert text.count("+0.3333") == 2
    assert "violated" in text


def test_what_came_from_elsewhere_is_made_visible() -> None:
    hostile = card("fpp", "ppp").model_copy(
        update={"suite_id": "\x1b[31m<b>", "warnings": ("a\x1b]0;x\x07\u202e<script>",)}
    )
    for text in (
        render_skill(hostile, width=100, color=False),
        render_skill_summary(hostile),
        render_skill_html(hostile),
        render_skill_junit(hostile).decode(),
    ):
        assert not {"\x1b", "\x07", "\u202e"} & set(text)
    assert "<script>" not in render_skill_html(hostile)
    assert "<b>" not in render_skill_html(hostile)
    assert "<script>" not in render_skill_summary(hostile)


def test_a_summary_is_cut_at_a_line_and_says_so() -> None:
    assert "Cut here" in render_skill_summary(card("fpp", "ppp"), limit_bytes=900)
