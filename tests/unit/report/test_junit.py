from __future__ import annotations

from xml.etree import ElementTree as ET

from junitparser import Error, Failure, JUnitXml, Skipped, TestCase, TestSuite

from runner.model.leg import DegradedReason
from runner.model.record import Status
from runner.report.junit import render_junit, render_record_junit
from tests.unit.report import builders as b


def read(data: bytes) -> dict[str, TestSuite]:
    return {suite.name: suite for suite in JUnitXml.fromstring(data)}


def results(suite: TestSuite) -> dict[str, list[tuple[type, str, str]]]:
    found: dict[str, list[tuple[type, str, str]]] = {}
    for case in suite:
        assert isinstance(case, TestCase)
        found[case.name] = [(type(item), item.type, item.message) for item in case.result]
    return found


def test_there_is_one_suite_a_leg_and_one_testcase_a_case() -> None:
    suites = read(render_junit(b.helped()))
    assert list(suites) == ["shop-learnings.context_off", "shop-learnings.context_on"]
    off = results(suites["shop-learnings.context_off"])
    assert off == {
        "timeouts": [(Failure, "fail", "expectations[1] stdout_contains: failed -> passed")],
        "greeting": [],
    }
    assert results(suites["shop-learnings.context_on"]) == {"timeouts": [], "greeting": []}


def test_a_degraded_case_is_an_error_in_the_leg_that_lost_it_and_never_a_failure() -> None:
    suites = read(render_junit(b.partly_degraded()))
    on = results(suites["shop-learnings.context_on"])
    assert on["slow"] == [(Error, "insufficient_decision_evidence", "timeout")]
    assert results(suites["shop-learnings.context_off"])["slow"] == []


def test_only_a_live_runtime_is_skipped() -> None:
    live = b.degraded("l", DegradedReason.RUNTIME_UNAVAILABLE, "live_runtime", Status.SKIPPED)
    lost = b.degraded("e", DegradedReason.RUNTIME_UNAVAILABLE, "engine_lost", Status.ERROR)
    on = results(read(render_junit(b.card(live, lost)))["shop-learnings.context_on"])
    assert on["l"] == [(Skipped, "runtime_unavailable", "live_runtime")]
    assert on["e"] == [(Error, "runtime_unavailable", "engine_lost")]


def test_a_pass_in_a_degraded_leg_is_an_error() -> None:
    why = DegradedReason.HOOKS_DISABLED
    leg = b.leg("context_on", 1.0, Status.PASS, degraded_reason=why, degraded_detail="inherited")
    on = results(read(render_junit(b.card(b.tied(), context_on=leg)))["shop-learnings.context_on"])
    assert on["greeting"] == [(Error, "hooks_disabled", "inherited")]


def test_a_pair_degraded_without_a_side_to_blame_is_an_error_in_both_legs() -> None:
    why = DegradedReason.INSUFFICIENT_DECISION_EVIDENCE
    base = b.degraded("n", why, "nondeterministic")
    pair = base.model_copy(update={"context_on": b.side("context_on", Status.PASS, 1.0)})
    for suite in read(render_junit(b.card(pair))).values():
        assert results(suite)["n"] == [(Error, why.value, "nondeterministic")]


def test_an_inconclusive_case_without_a_reason_is_still_not_green() -> None:
    base = b.tied("i")
    pair = base.model_copy(update={"context_on": b.side("context_on", Status.INCONCLUSIVE, None)})
    on = results(read(render_junit(b.card(pair)))["shop-learnings.context_on"])
    assert on["i"] == [(Error, "inconclusive", "inconclusive")]


def test_a_measurement_that_was_not_clean_is_an_error_of_its_own() -> None:
    suites = read(render_junit(b.violated()))
    found = results(suites["shop-learnings.integrity"])
    assert [item[:2] for item in found["measurement"]] == [(Error, "violated")]
    assert "learnings/retries.md" in found["measurement"][0][2]


def test_digests_travel_as_properties() -> None:
    document = ET.fromstring(render_junit(b.helped()))
    found = document.findall("testsuite[@name='shop-learnings.context_on']/properties/property")
    properties = {item.get("name"): item.get("value") for item in found}
    assert properties["context_root_sha256"] == b.sha("d")
    assert properties["image_id"] == f"sha256:{b.sha('3')}"
    assert properties["aggregate_delta"] == "+0.4667"
    assert "degraded" not in properties


def test_counts_are_those_of_the_testcases() -> None:
    document = JUnitXml.fromstring(render_junit(b.partly_degraded()))
    assert (document.tests, document.failures, document.errors, document.skipped) == (6, 1, 1, 0)


def test_no_case_at_all_is_an_error_and_not_an_empty_document() -> None:
    for data in (render_junit(b.card()), render_record_junit(b.record())):
        for suite in read(data).values():
            assert results(suite) == {"cases": [(Error, "no_case", "the leg has no case")]}


def test_hostile_text_leaves_well_formed_xml() -> None:
    record = b.record(b.result("x", Status.FAIL, 0.0, message=b.HOSTILE))
    for data in (render_junit(b.hostile()), render_record_junit(record)):
        text = data.decode("utf-8")
        assert not [raw for raw in b.RAW if raw in text]
        assert "<script" not in text
        JUnitXml.fromstring(data)
        assert "\\x1b[31mX" in text


def test_a_run_record_is_one_suite_with_seconds() -> None:
    why = (DegradedReason.INSUFFICIENT_DECISION_EVIDENCE, "timeout")
    record = b.record(
        b.result("a", Status.PASS, 1.0),
        b.result("b", Status.FAIL, 0.0),
        b.result("c", Status.INCONCLUSIVE, None, why=why),
    )
    suite = read(render_record_junit(record))["shop-learnings.context_on"]
    found = results(suite)
    assert found["a"] == []
    assert [item[:2] for item in found["b"]] == [(Failure, "fail")]
    assert found["c"] == [(Error, "insufficient_decision_evidence", "timeout")]
    assert suite.time == 4.5
