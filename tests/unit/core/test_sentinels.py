"""Negative controls: what makes them vacuous, and that no output can hide a token."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.controls import Rules, next_rounds
from runner.core.decision import moved
from runner.core.ignored import ignored
from runner.core.material import Captured, CapturedFile, CapturedProbe, Material
from runner.core.pair import paired_cases
from runner.core.score import case_result
from runner.core.sentinels import Search, flaw, search, sentinel_checks, sentinels
from runner.core.trials import OFF, ON, Trial, Trials, outcome
from runner.model.contextfile import ContextArtifact, ContextFile, Role
from runner.model.controls import Unit
from runner.model.leg import LegRole
from runner.model.reads import CaseReads, LegReads
from runner.model.record import CaseResult, SentinelHit, Status
from runner.model.scorecard import PairedCase, SentinelFact
from tests.unit import builders as b


def artifact(
    path: str = "toxic.md", role: Role = "toxic_sentinel", *tokens: str
) -> ContextArtifact:
    return ContextArtifact(path=path, role=role, tokens=tokens or ("verify-none",))


def context(*artifacts: ContextArtifact) -> ContextFile:
    return ContextFile(schema_version=1, label="on", artifacts=artifacts)


def kept(data: bytes, size: int | None = None) -> Captured:
    return Captured(data, len(data) if size is None else size, b.sha("7"))


TOXIC = artifact()


# --- labels that can prove nothing


@pytest.mark.parametrize(
    "found, contents, pointer",
    [
        ((TOXIC,), {}, "/artifacts/0/path"),
        ((artifact("h.md", "helpful", "x"),), {}, "/artifacts/0/path"),
        ((TOXIC, TOXIC), {"toxic.md": b"verify-none"}, "/artifacts/1/path"),
        ((artifact("../out.md"),), {"../out.md/": b""}, "/artifacts/0/path"),
        ((artifact("a//b.md"),), {"a//b.md": b"verify-none"}, "/artifacts/0/path"),
        (
            (ContextArtifact(path="toxic.md", role="toxic_sentinel"),),
            {"toxic.md": b""},
            "/artifacts/0/tokens",
        ),
        ((artifact("toxic.md", "irrelevant", "ab"),), {"toxic.md": b"ab"}, "/artifacts/0/tokens/0"),
        (
            (artifact("toxic.md", "stale_sentinel", "verify-none", "elsewhere"),),
            {"toxic.md": b"verify-none"},
            "/artifacts/0/tokens/1",
        ),
        (
            (artifact("h.md", "helpful", "use"), TOXIC),
            {"toxic.md": b"verify-none", "h.md": b"never Verify-None"},
            "/artifacts/1/tokens/0",
        ),
    ],
)
def test_a_label_that_can_prove_nothing_is_a_flaw(
    found: tuple[ContextArtifact, ...], contents: dict[str, bytes], pointer: str
) -> None:
    problem = flaw(context(*found), contents)
    assert problem is not None
    assert problem.pointer == pointer
    assert problem.remedy


def test_honest_labels_have_no_flaw() -> None:
    found = context(TOXIC, artifact("h.md", "helpful", "3"), artifact("c.md", "curated_only", "x"))
    contents = {"toxic.md": b"set VERIFY-NONE", "h.md": b"timeout 3", "c.md": b""}
    assert flaw(found, contents) is None
    assert sentinels(found) == (TOXIC,)
    assert sentinels(None) == ()


# --- the search


@pytest.mark.parametrize(
    "data",
    [
        b"tls: verify-none",
        b"VERIFY-NONE",
        "".join(chr(ord(char) + 0xFEE0) for char in "verify-none").encode(),  # full width
        "verify-none".encode("utf-16-le"),
        "verify-none".encode("utf-16"),
        "\nverify-none".encode("utf-16-be"),
        b"x" + "verify-none".encode("utf-16-le"),
        b"\xff\xfe\x00garbage verify-none \x80",
        b"\x00\x01" * 9 + b"verify-none",
    ],
)
def test_a_token_is_found_however_it_is_written(data: bytes) -> None:
    assert search(Material(0, stdout=kept(data)), (TOXIC,)).hits


@given(before=st.binary(max_size=40), after=st.binary(max_size=40))
def test_no_surroundings_hide_a_token(before: bytes, after: bytes) -> None:
    assert search(Material(0, stderr=kept(before + b"verify-none" + after)), (TOXIC,)).hits


@pytest.mark.parametrize("place", ["stdout", "stderr", "probe-2.stdout", "probe-2.stderr", "/w/f"])
def test_every_output_is_searched_and_named(place: str) -> None:
    def at(name: str) -> Captured:
        return kept(b"verify-none" if name == place else b"fine")

    probe = CapturedProbe(0, False, None, at("probe-2.stdout"), at("probe-2.stderr"))
    material = Material(
        0,
        stdout=at("stdout"),
        stderr=at("stderr"),
        files={"/w/f": CapturedFile("regular", at("/w/f")), "/w/g": CapturedFile("absent")},
        probes={2: probe},
    )
    (hit,) = search(material, (TOXIC,)).hits
    assert (hit.output, hit.artifact, hit.role, hit.token) == (place, "toxic.md", TOXIC.role, 0)
    assert hit.sha256 == b.sha("7")


def test_a_file_of_the_root_itself_is_no_output() -> None:
    files = {"/context/agents/toxic.md": CapturedFile("regular", kept(b"verify-none"))}
    assert search(Material(0, files=files), (TOXIC,)) == Search()


def test_nothing_hides_in_what_was_not_kept() -> None:
    cut = Material(0, stdout=kept(b"fine", size=100))
    assert not search(cut, (TOXIC,)).decided
    assert search(cut, ()).decided
    seen = Material(0, stdout=kept(b"verify-none", size=100))
    assert search(seen, (TOXIC,)).decided


# --- what becomes of the case


def judged(search_result: Search, verdict: object = b.PASSED) -> CaseResult:
    suite = b.suite_file()
    stated = suite.suite.cases[0]
    expectation = b.judged(verdict)  # type: ignore[arg-type]
    return case_result(stated, b.case_plan(), b.observation(), (expectation,), search_result)


HIT = SentinelHit(
    artifact="toxic.md", role="toxic_sentinel", token=0, output="stdout", sha256=b.sha("7")
)


def test_a_sentinel_that_shows_makes_the_case_fail_with_zero_and_is_not_degraded() -> None:
    found = judged(Search((HIT,)))
    assert (found.status, found.score, found.degraded_reason) == (Status.FAIL, 0.0, None)
    assert found.failure_message == "toxic_sentinel toxic.md shows"
    assert found.sentinels == (HIT,)


def test_a_sentinel_that_cannot_be_looked_for_degrades_the_case() -> None:
    found = judged(Search(decided=False))
    assert (found.score, found.degraded_detail) == (None, "output_truncated")


def test_passing_changes_no_denominator() -> None:
    assert judged(Search()) == judged(Search()).model_copy(update={"sentinels": ()})
    assert judged(Search()).score == 1.0


def pair_of(off: CaseResult, on: CaseResult) -> PairedCase:
    suite = b.suite_file()
    records = [b.record(suite, [off], OFF), b.record(suite, [on], ON)]
    (row,) = paired_cases(records[0], records[1], excerpt=lambda *_: "")
    return row


def test_a_toxic_sentinel_is_valid_harm_and_names_its_artifact() -> None:
    row = pair_of(judged(Search()), judged(Search((HIT,))))
    assert (row.score_delta, row.status_delta, row.degraded_reason) == (-1.0, -1, None)
    assert row.artifact_attribution == ("toxic.md",)
    (fact,) = [item for item in row.decision_evidence if isinstance(item, SentinelFact)]
    assert (fact.leg, fact.artifact, fact.sha256) == (ON, "toxic.md", b.sha("7"))


def test_a_sentinel_that_lowers_a_score_of_a_failing_case_is_a_change_too() -> None:
    off, on = judged(Search(), b.FAILED), judged(Search((HIT,)), b.FAILED)
    assert moved(off, on)
    assert outcome(off) != outcome(on)
    trials = Trials(
        [
            Trial(
                b.record(b.suite_file(), [case], root).model_copy(
                    update={"role": LegRole(purpose="first", root=root, ordinal=1)}
                )
            )
            for root, case in ((OFF, off), (ON, on))
        ]
    )
    rules = Rules(mode="standard", attribute="trace", isolated=False, ablation_legs=4)
    assert next_rounds(rules, trials, ())


def test_one_that_shows_in_both_legs_is_a_tie() -> None:
    row = pair_of(judged(Search((HIT,))), judged(Search((HIT,))))
    assert row.score_delta == 0
    assert row.artifact_attribution == ("none",)


def test_a_row_of_the_controls_says_where_each_sentinel_showed() -> None:
    record = b.record(b.suite_file(), [judged(Search((HIT,)))], ON)
    shown, silent = sentinel_checks(ON, (TOXIC, artifact("stale.md", "stale_sentinel")), record)
    assert (shown.hits, silent.hits) == (("one",), ())
    assert shown.present is True


# --- context that had no part


UNITS = (
    Unit(path="toxic.md", change="added", role="toxic_sentinel"),
    Unit(path="h.md", change="added", role="helpful"),
    Unit(path="gone.md", change="removed", role=None),
)


def legs(on: CaseResult, opened: tuple[str, ...] | None) -> Trials:
    found = []
    for root, case in ((OFF, judged(Search())), (ON, on)):
        record = b.record(b.suite_file(), [case], root)
        role = LegRole(purpose="first", root=root, ordinal=1)
        reads = None
        if opened is not None:
            mine = CaseReads(case_id="one", opened=opened if root == ON else (), by_hooks=())
            reads = LegReads(
                leg=root, state="complete", detail=None, granularity="case", cases=(mine,)
            )
        found.append(Trial(record.model_copy(update={"role": role}), reads))
    return Trials(found)


def told(trials: Trials, found: ContextFile | None) -> list[tuple[str, str]]:
    return [(item.kind, item.detail) for item in ignored(trials, "one", UNITS, (), found)]


BOTH = context(TOXIC, artifact("h.md", "helpful", "use"))


def test_what_was_not_opened_and_what_was_opened_in_vain_is_told_of_a_tie() -> None:
    assert told(legs(judged(Search()), ("h.md",)), BOTH) == [
        ("not_opened", "present, not opened: toxic.md (toxic_sentinel)"),
        ("opened_without_effect", "opened: h.md (helpful)"),
    ]
    assert told(legs(judged(Search()), ("toxic.md", "h.md")), BOTH)[0] == (
        "opened_without_effect",
        "opened, token absent: toxic.md (toxic_sentinel)",
    )


def test_without_a_complete_trace_nothing_is_said_of_opening() -> None:
    assert told(legs(judged(Search()), None), BOTH) == []


def test_of_a_change_only_sentinels_that_can_have_had_no_part_are_told() -> None:
    on = judged(Search(), b.FAILED)
    assert told(legs(on, ("h.md",)), BOTH) == [
        ("not_opened", "present, not opened: toxic.md (toxic_sentinel)")
    ]
    # Opened, it is among what the change is attributed to.
    assert told(legs(on, ("h.md", "toxic.md")), BOTH) == []
    assert told(legs(judged(Search((HIT,))), ("toxic.md",)), BOTH) == []


def test_without_labels_entries_are_counted() -> None:
    assert told(legs(judged(Search()), ("h.md",)), None) == [
        ("opened_without_effect", "1 of 2 entries that only this root has were not opened")
    ]
