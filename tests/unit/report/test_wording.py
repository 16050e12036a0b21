from __future__ import annotations

import pytest

from runner.model.liveproof import LiveChange
from runner.model.record import Status, Verdict
from runner.model.scorecard import ContextScorecard
from runner.report import claims, resolving, wording
from tests.unit.report import builders as b


@pytest.mark.parametrize(
    "card,sentence",
    [
        (
            b.helped(),
            "on these cases context helped: +0.4667 over 2 valid pairs (0.5333 -> 1.0)",
        ),
        (b.harmed(), "on these cases context did harm: -0.5 over 2 valid pairs (1.0 -> 0.5)"),
        (
            b.no_difference(),
            "on these cases the context made no difference: 0.0 over 2 valid pairs (1.0 -> 1.0)",
        ),
        (b.all_degraded(), "no valid pair: nothing can be said (3 of 3 pairs degraded)"),
        (
            b.partly_degraded(),
            (
                "on these cases context helped: +0.4667 over 2 valid pairs (0.5333 -> 1.0); "
                "1 pair degraded and left out"
            ),
        ),
        (b.violated(), "the measurement was not clean: nothing is claimed about the context"),
    ],
)
def test_the_headline_says_what_was_shown_and_no_more(
    card: ContextScorecard, sentence: str
) -> None:
    assert claims.headline(card) == sentence


def test_unknown_integrity_claims_nothing_however_large_the_delta() -> None:
    card = b.card(b.improved(), proof=b.integrity("unknown"))
    assert claims.headline(card) == (
        "the measurement is not known to have been clean: nothing is claimed about the context"
    )
    assert wording.integrity_lines(card) == ["integrity is unknown, and no problem was recorded"]


CHANGE = LiveChange(path="learnings/x.md", kind="modified", attributes=("ctime",))


@pytest.mark.parametrize(
    "proof",
    [
        b.integrity(live_state=b.live(b.root(changes=(CHANGE,)))),
        b.integrity(live_state=b.live(b.root(after_sha256=b.sha("b")))),
        b.integrity(live_state=b.live(b.root(), reaching=("/x -> /y: inside",))),
        b.integrity(box=b.sandbox(differences=1)),
        b.integrity(problems=("something",)),
    ],
    ids=["change", "digest only", "mount", "read-back", "problem"],
)
def test_a_scorecard_that_calls_itself_clean_against_its_own_fields_is_not_believed(
    proof: object,
) -> None:
    card = b.helped().model_copy(update={"integrity": proof})
    assert wording.tone(card) == "unclean"
    assert wording.integrity_lines(card)
    assert claims.shown(card) == [claims.headline(card)]


def test_a_change_in_a_root_that_may_change_is_told_but_is_no_violation() -> None:
    home = b.root("/home/dev/.agents", (CHANGE,), fatal=False)
    card = b.card(b.improved(), proof=b.integrity(live_state=b.live(b.root(), home)))
    assert wording.tone(card) == "helped"
    assert "CHANGED: /home/dev/.agents (not fatal)" in wording.proof_line(card)
    assert "before = after" not in wording.proof_line(card)


def test_a_gain_does_not_hide_the_case_that_lost() -> None:
    card = b.card(b.improved(), b.regressed(), b.tied())
    assert claims.headline(card).endswith("; 1 case scored lower")


def test_a_zero_sum_is_not_called_no_difference_case_by_case() -> None:
    card = b.card(b.improved(), b.regressed(), off=0.5, on=0.5)
    assert claims.headline(card) == (
        "on these cases no difference in the aggregate: 0.0 over 2 valid pairs (0.5 -> 0.5); "
        "1 case scored lower; 1 case scored higher"
    )


def test_a_null_check_holds_only_when_nothing_moved() -> None:
    held = b.card(b.tied(), off=1.0, on=1.0, null_check=True)
    assert claims.headline(held).startswith("null check held, the same root in both legs: 0.0")
    failed = b.card(b.improved(), b.regressed(), off=0.5, on=0.5, null_check=True)
    assert claims.headline(failed).startswith("null check failed")


def test_the_proof_is_one_line_with_roots_entries_digests_mounts_and_containers() -> None:
    assert wording.proof_line(b.helped()) == (
        "live state: 2 roots, 143 entries hashed, sha256 aaaaaaaaaaaa…, aaaaaaaaaaaa… "
        "before = after; no mount reached it; 2 containers, network none, read-back equal; "
        "watched by fanotify, 5 of 5 planted mutations flagged"
    )


def test_the_proof_claims_nothing_that_was_not_looked_at() -> None:
    proof = b.integrity(live_state=b.live(mounts=0), box=b.sandbox(containers=0))
    line = wording.proof_line(b.card(b.tied(), proof=proof))
    assert line == (
        "live state: no root was watched; no mount was checked; no container was created"
    )


def test_the_proof_names_what_contradicts_it() -> None:
    proof = b.integrity(
        live_state=b.live(b.root(), reaching=("/a -> /b: inside",)),
        box=b.sandbox(differences=2, interfaces=("lo", "eth0")),
    )
    line = wording.proof_line(b.card(b.tied(), proof=proof))
    assert "1 MOUNT REACHED IT" in line
    assert "READ-BACK DIFFERS IN 2 FIELDS" in line
    assert "(interfaces seen from inside: lo, eth0)" in line
    assert "no mount reached it" not in line


def test_an_absent_root_that_stayed_absent_is_a_state() -> None:
    gone = b.root(present_before=False, present_after=False, entries=0)
    card = b.card(b.tied(), proof=b.integrity(live_state=b.live(gone)))
    assert "(1 absent and still absent)" in wording.proof_line(card)


def test_path_and_attribute_of_a_violation_are_named_and_the_rest_is_counted() -> None:
    many = tuple(LiveChange(path=f"f{n}", kind="added", attributes=()) for n in range(12))
    card = b.card(b.degraded(), proof=b.integrity("violated", (), b.live(b.root(changes=many))))
    lines = wording.integrity_lines(card)
    assert lines[0] == "live state changed: /home/dev/shop/.agents/f0: added"
    assert lines[-1] == "live state changed: /home/dev/shop/.agents: 2 entries more"


def test_what_the_recorded_problems_tell_is_not_told_twice() -> None:
    assert wording.integrity_lines(b.violated()) == [
        "live state changed: /home/dev/shop/.agents/learnings/retries.md: modified (ctime)"
    ]


def test_a_root_that_may_change_is_named_last_among_what_is_not_clean() -> None:
    roots = (b.root("/home/dev/.agents", (CHANGE,), fatal=False), b.root(changes=(CHANGE,)))
    card = b.card(b.degraded(), proof=b.integrity("violated", (), b.live(*roots)))
    assert wording.integrity_lines(card) == [
        "live state changed: /home/dev/shop/.agents/learnings/x.md: modified (ctime)",
        "live state changed: /home/dev/.agents/learnings/x.md: modified (ctime), not fatal",
    ]


def test_a_note_names_the_change_in_the_direction_of_the_delta() -> None:
    lost = b.fact(0, Verdict.PASSED, Verdict.FAILED)
    won = b.fact(1)
    down = b.pair("x", (Status.PASS, 1.0), (Status.FAIL, 0.5), (won, lost, b.output()))
    assert wording.case_note(down) == (
        "expectations[0] stdout_contains: passed -> failed; and 1 more"
    )
    up = b.pair("x", (Status.FAIL, 0.5), (Status.PASS, 1.0), (lost, won, b.output()))
    assert wording.case_note(up).startswith("expectations[1] stdout_contains: failed -> passed")


def test_a_note_of_a_degraded_pair_names_the_leg_reason_and_detail() -> None:
    assert wording.case_note(b.degraded()) == (
        "degraded in context_on: insufficient_decision_evidence/timeout"
    )


def test_a_note_of_a_tie_says_why_nothing_changed() -> None:
    assert wording.case_note(b.tied()) == "same output: stdout equal in both legs"


def test_degraded_pairs_are_counted_by_reason_and_detail() -> None:
    assert wording.degraded_counts(b.all_degraded()) == [
        ("hooks_disabled/inherited", 2),
        ("insufficient_decision_evidence/timeout", 1),
    ]


def test_bounds_are_told_only_where_something_was_lost_on_one_side() -> None:
    assert resolving.bounds_line(b.helped()) is None
    line = resolving.bounds_line(b.partly_degraded())
    assert line is not None
    assert line.startswith("between -0.0222 and +0.3111")


def test_without_controls_the_scorecard_says_what_was_not_excluded() -> None:
    assert any("no control was run" in line for line in claims.not_shown(b.helped()))


def test_many_cases_leave_only_what_changed_or_degraded() -> None:
    rows = [b.tied(f"t{n}") for n in range(50)]
    card = b.card(*rows, b.improved(), b.degraded())
    chosen, left_out = wording.chosen_cases(card)
    assert [pair.case_id for pair in chosen] == ["timeouts", "slow"]
    assert left_out == 50
    assert wording.chosen_cases(b.card(*rows[:40]))[1] == 0


def test_the_whole_page_of_sentences_is_visible_text() -> None:
    card = b.hostile()
    lines = [
        claims.headline(card),
        wording.proof_line(card),
        resolving.resolution_line(card),
        *wording.integrity_lines(card),
        *claims.shown(card),
        *claims.not_shown(card),
        *[wording.case_note(pair) for pair in card.per_case],
        *[wording.evidence_text(item) for pair in card.per_case for item in pair.decision_evidence],
    ]
    assert not [raw for raw in (*b.RAW, "\n") for line in lines if raw in line]


def test_a_proof_whose_detector_did_not_fire_is_void_whatever_the_verdict_says() -> None:
    proof = b.live(b.root())
    void = proof.model_copy(update={"decoys": (b.decoy(b.root(), witnessed=4),)})
    card = b.card(b.improved(), proof=b.integrity(live_state=void))
    assert wording.tone(card) == "unclean"
    assert wording.integrity_lines(card) == [
        (
            "live proof is void: the witness flagged 4 of 5 planted mutations, fanotify 5: "
            "/home/dev/shop/.agents"
        )
    ]
    assert "PROOF IS VOID, 4 of 5 planted mutations flagged" in wording.proof_line(card)
    none = b.card(
        b.improved(), proof=b.integrity(live_state=proof.model_copy(update={"decoys": ()}))
    )
    assert wording.integrity_lines(none) == [
        "live proof is void: no mutation was planted: /home/dev/shop/.agents"
    ]


def test_a_watch_that_is_not_complete_says_so_and_why() -> None:
    proof = b.live(b.root())
    for method, complete, note, phrase in (
        ("inotify", True, "fanotify: not permitted", "; watched by inotify, 5 of 5"),
        (
            "fanotify",
            False,
            "the queue overflowed",
            "fanotify, NOT COMPLETE (the queue overflowed)",
        ),
        ("none", False, "no instance", "; not watched (no instance), 5 of 5"),
    ):
        watch = proof.watch.model_copy(
            update={"method": method, "complete": complete, "note": note}
        )
        card = b.card(
            b.tied(),
            proof=b.integrity(live_state=proof.model_copy(update={"watch": watch})),
        )
        assert phrase in wording.proof_line(card)
        assert wording.is_clean(card)


def test_a_change_that_was_allowed_is_told_and_is_no_violation() -> None:
    root = b.root(changes=(CHANGE,), changed_by="by_outsider", allowed=True)
    card = b.card(b.improved(), proof=b.integrity(live_state=b.live(root)))
    assert wording.tone(card) == "helped"
    assert "CHANGED: /home/dev/shop/.agents (allowed)" in wording.proof_line(card)
    assert "before = after" not in wording.proof_line(card)
