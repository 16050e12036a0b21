"""Skill scorecards as files: HTML page, JUnit XML, Markdown summary."""

from __future__ import annotations

from junitparser import Error, JUnitXml, TestSuite
from junitparser.junitparser import FinalResult

from runner.model.record import Verdict
from runner.model.skillscorecard import (
    SkillCase,
    SkillFact,
    SkillLeg,
    SkillLegName,
    SkillOutput,
    SkillScorecard,
)
from runner.report import html, junit, markdown, resolving, skillwording, wording
from runner.report.text import number, signed, visible

_TEMPLATE = "skill.html.j2"


def render_skill_html(card: SkillScorecard) -> str:
    """The scorecard as a self-contained HTML document.

    Args:
        card: What to show.

    Returns:
        HTML; the same scorecard gives the same text.
    """
    return html.page(
        html.compile_page(_TEMPLATE),
        card=card,
        tone=wording.tone(card),
        headline=skillwording.headline(card),
        problems=wording.integrity_lines(card),
        proof=wording.proof_line(card),
        counts=wording.degraded_counts(card),
        bounds=resolving.bounds_line(card),
        shown=skillwording.shown(card),
        not_shown=skillwording.not_shown(card),
        clean=wording.is_clean(card),
        interval_line=resolving.interval_line(card),
        controls_line=skillwording.controls_line(card),
        hooks_line=skillwording.hooks_line(card),
        case_note=skillwording.case_note,
        evidence_text=skillwording.evidence_text,
        side=skillwording.side_text,
        is_output=lambda item: isinstance(item, SkillOutput) and item.excerpt is not None,
    )


def render_skill_summary(card: SkillScorecard, limit_bytes: int = 1_000_000) -> str:
    """A summary for `$GITHUB_STEP_SUMMARY`.

    Args:
        card: What to show.
        limit_bytes: Most bytes of UTF-8; see `markdown.render_summary`.

    Returns:
        Markdown ending in a line feed.
    """
    rows, left_out = skillwording.chosen_cases(card)
    summary = markdown.Summary(
        headline=skillwording.headline(card),
        legs=(
            "| leg | status | over valid pairs | over all scored | degraded |",
            "|---|---|--:|--:|---|",
            _leg_row(card.skill_off, card.pairing.skill_off_aggregate),
            _leg_row(card.skill_on, card.pairing.skill_on_aggregate),
        ),
        facts=(
            ("hooks", skillwording.hooks_line(card)),
            ("controls", skillwording.controls_line(card)),
        ),
        cases=tuple(map(_case_row, rows)),
        left_out=left_out,
    )
    return markdown.fit(markdown.lines(card, summary), limit_bytes)


def _case_row(pair: SkillCase) -> str:
    return markdown.row(
        pair.case_id,
        skillwording.side_text(pair, "skill_off"),
        skillwording.side_text(pair, "skill_on"),
        signed(pair.score_delta),
        skillwording.case_note(pair),
    )


def _leg_row(leg: SkillLeg, over_pairs: float | None) -> str:
    return markdown.row(
        leg.variant,
        leg.status.value,
        number(over_pairs),
        number(leg.aggregate_score),
        wording.leg_degraded(leg) or "no",
    )


def render_skill_junit(card: SkillScorecard) -> bytes:
    """One testsuite a leg, one testcase a case; a third one when the measurement was not clean.

    Args:
        card: What to show.

    Returns:
        UTF-8 XML that is never without a testcase.
    """
    document = JUnitXml()
    name = visible(card.suite_id)
    for leg in (card.skill_off, card.skill_on):
        suite = TestSuite(f"{name}.{leg.variant}")
        _properties(suite, card, leg)
        for pair in card.per_case:
            junit.add(suite, pair.case_id, _side_result(pair, leg))
        junit.close(document, suite)
    problems = wording.integrity_lines(card)
    if problems:
        suite = TestSuite(f"{name}.integrity")
        verdict = card.integrity.verdict
        text = "\n".join(problems)
        junit.add(suite, "measurement", junit.said(Error, verdict, problems[0], text))
        junit.close(document, suite)
    return junit.to_bytes(document)


def _properties(suite: TestSuite, card: SkillScorecard, leg: SkillLeg) -> None:
    junit.put(
        suite,
        {
            "run_id": leg.run_id,
            "variant": leg.variant,
            "status": leg.status.value,
            "aggregate_score": number(leg.aggregate_score),
            "aggregate_delta": signed(card.aggregate_delta),
            "integrity": card.integrity.verdict,
            "suite_sha256": card.inputs.suite_sha256,
            "workspace_sha256": card.inputs.workspace_sha256,
            "image_id": card.inputs.image_id,
            "agent_sha256": card.inputs.agent_sha256,
            "hook_environment_sha256": card.inputs.hook_environment_sha256,
            "profile_sha256": card.integrity.sandbox.profile_sha256,
            "degraded": wording.leg_degraded(leg),
        },
    )


def _side_result(pair: SkillCase, leg: SkillLeg) -> FinalResult | None:
    side: SkillLegName = leg.variant
    status = pair.skill_off_status if side == "skill_off" else pair.skill_on_status
    # The other side's reason is none of this one; what a control found is of both.
    mine = side in pair.degraded_legs or not pair.degraded_legs
    reason = pair.degraded_reason if mine else None
    detail = pair.degraded_detail if mine else None
    facts = [
        skillwording.fact_text(item)
        for item in pair.decision_evidence
        if isinstance(item, SkillFact) and getattr(item, side) is not Verdict.PASSED
    ]
    return junit.verdict_of(
        status,
        reason or leg.degraded_reason,
        detail if reason is not None else leg.degraded_detail,
        facts,
    )
