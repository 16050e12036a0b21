"""JUnit XML, a projection for CI dashboards; the scorecard is the evidence.

A failed case is a `failure`. A degraded one is an `error`, or `skipped` where its runtime is not
one that is run here: never a failure, and never a pass.
"""

from __future__ import annotations

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite
from junitparser.junitparser import FinalResult

from runner.model.leg import DegradedReason
from runner.model.record import CaseResult, RunRecord, Status, Verdict
from runner.model.scorecard import ContextScorecard, EvaluatorFact, LegCase, LegSummary, PairedCase
from runner.report import wording
from runner.report.text import number, signed, visible


def render_junit(scorecard: ContextScorecard) -> bytes:
    """One testsuite a leg, one testcase a case.

    A third testsuite, `integrity`, appears only when the measurement was not clean, so that a
    reader of test results alone does not see green.

    Args:
        scorecard: What to show.

    Returns:
        UTF-8 XML that is never without a testcase.
    """
    document = JUnitXml()
    name = visible(scorecard.suite_id)
    for leg in (scorecard.context_off, scorecard.context_on):
        suite = TestSuite(f"{name}.{leg.variant}")
        _properties(suite, scorecard, leg)
        for pair in scorecard.per_case:
            side = pair.context_off if leg.variant == "context_off" else pair.context_on
            add(suite, pair.case_id, _side_result(pair, side, leg))
        close(document, suite)
    problems = wording.integrity_lines(scorecard)
    if problems:
        suite = TestSuite(f"{name}.integrity")
        add(
            suite,
            "measurement",
            said(Error, scorecard.integrity.verdict, problems[0], "\n".join(problems)),
        )
        close(document, suite)
    return to_bytes(document)


def render_record_junit(record: RunRecord) -> bytes:
    """One leg by itself, for `ao-eval run`.

    Args:
        record: What to show.

    Returns:
        UTF-8 XML that is never without a testcase.
    """
    document = JUnitXml()
    suite = TestSuite(f"{visible(record.suite.id)}.{visible(record.leg)}")
    put(
        suite,
        {
            "run_id": record.run_id,
            "status": record.status.value,
            "aggregate_score": number(record.aggregate_score),
            "suite_sha256": record.suite.sha256,
            "context_root_sha256": record.context_root_sha256,
            "image_id": None if record.runtime is None else record.runtime.image_id,
            "agent_sha256": None if record.runtime is None else record.runtime.agent_sha256,
        },
    )
    for case in record.case_results:
        reason = case.degraded_reason or record.degraded_reason
        detail = case.degraded_detail if case.degraded_reason else record.degraded_detail
        result = verdict_of(case.status, reason, detail, _expectations_text(case))
        add(suite, case.case_id, result, seconds=case.duration_ms / 1000)
    close(document, suite)
    return to_bytes(document)


def _properties(suite: TestSuite, card: ContextScorecard, leg: LegSummary) -> None:
    put(
        suite,
        {
            "run_id": leg.run_id,
            "variant": leg.variant,
            "context_root_label": leg.context_root_label,
            "status": leg.status.value,
            "aggregate_score": number(leg.aggregate_score),
            "aggregate_delta": signed(card.aggregate_delta),
            "integrity": card.integrity.verdict,
            "context_root_sha256": leg.context_root_sha256,
            "suite_sha256": card.inputs.suite_sha256,
            "workspace_sha256": card.inputs.workspace_sha256,
            "image_id": card.inputs.image_id,
            "agent_sha256": card.inputs.agent_sha256,
            "hook_environment_sha256": card.inputs.hook_environment_sha256,
            "profile_sha256": card.integrity.sandbox.profile_sha256,
            "degraded": wording.leg_degraded(leg),
        },
    )


def put(suite: TestSuite, properties: dict[str, str | None]) -> None:
    """Add the properties that are known."""
    for name, value in properties.items():
        if value is not None:
            suite.add_property(name, visible(value))


def _side_result(pair: PairedCase, side: LegCase, leg: LegSummary) -> FinalResult | None:
    # The side's own reason, else the leg's, else the pair's where neither side names one.
    both = (pair.context_off, pair.context_on)
    sources: list[LegCase | LegSummary | PairedCase] = [side, leg]
    if not any(each.degraded_reason for each in both):
        sources.append(pair)
    source = next((each for each in sources if each.degraded_reason), side)
    reason, detail = source.degraded_reason, source.degraded_detail
    facts = [
        wording.fact_text(item)
        for item in pair.decision_evidence
        if isinstance(item, EvaluatorFact) and getattr(item, side.variant) is not Verdict.PASSED
    ]
    return verdict_of(side.status, reason, detail, facts)


def _expectations_text(case: CaseResult) -> list[str]:
    return [
        f"expectations[{item.index}] {item.type.value} {item.verdict.value}: "
        f"{visible(item.message, limit=500)}"
        for item in case.expectations
        if item.verdict is not Verdict.PASSED
    ]


def verdict_of(
    status: Status, reason: DegradedReason | None, detail: str | None, facts: list[str]
) -> FinalResult | None:
    """What a status comes to; None is a pass, which only an undegraded `pass` is."""
    body = "\n".join(facts)
    if reason is not None:
        live = (reason, detail) == (DegradedReason.RUNTIME_UNAVAILABLE, "live_runtime")
        return said(Skipped if live else Error, reason.value, detail or "unknown", body)
    match status:
        case Status.PASS:
            return None
        case Status.FAIL:
            return said(Failure, "fail", facts[0] if facts else "the case failed", body)
        case Status.SKIPPED:
            return said(Skipped, status.value, "skipped", body)
        case Status.ERROR | Status.INCONCLUSIVE:
            return said(Error, status.value, facts[0] if facts else status.value, body)


def said(kind: type[FinalResult], type_: str, message: str, body: str) -> FinalResult:
    """A result with its type and message, made visible."""
    result = kind(visible(message), visible(type_))
    if body:
        result.text = visible(body, newlines=True)
    return result


def add(
    suite: TestSuite, case_id: str, result: FinalResult | None, seconds: float | None = None
) -> None:
    """Add a testcase; no result is a pass."""
    case = TestCase(visible(case_id), classname=suite.name)
    if seconds is not None:
        case.time = seconds
    if result is not None:
        case.result = result
    # add_testcase would count the whole suite again each time.
    suite.append(case)  # type: ignore[no-untyped-call]


def close(document: JUnitXml, suite: TestSuite) -> None:
    """Finish a suite, which is never left without a testcase."""
    if not list(suite):
        # Some readers choke on an empty suite, others count it as green.
        add(suite, "cases", Error("the leg has no case", "no_case"))
    suite.update_statistics()  # type: ignore[no-untyped-call]
    document.add_testsuite(suite)


def to_bytes(document: JUnitXml) -> bytes:
    """The document as UTF-8 XML."""
    document.update_statistics()  # type: ignore[no-untyped-call]
    return bytes(document.tostring()) + b"\n"  # type: ignore[no-untyped-call]
