"""Words for controls and causes say what is known and how."""

from __future__ import annotations

from typing import Literal

import pytest

from runner.model.controls import CaseAttribution, CaseControl, TraceSummary
from runner.report import causes, claims
from runner.report.html import render_html
from tests.unit.report.builders import helped, improved

Pattern = Literal["single", "joint", "either", "mixed", "unresolved"]


def row(
    pattern: Pattern | None, necessary: tuple[str, ...] = (), *sufficient: str
) -> CaseAttribution:
    return CaseAttribution(
        case_id="timeouts",
        method="trace" if pattern is None else "ablation",
        opened_off=(),
        opened_on=("a.md", "b.md", "c.md", "d.md"),
        necessary=necessary,
        sufficient=sufficient,
        pattern=pattern,
    )


@pytest.mark.parametrize(
    "found, words",
    [
        (row(None), "opened a.md, b.md, c.md and 1 more"),
        (row("single", ("a.md",), "a.md"), "follows a.md, which is necessary and sufficient"),
        (row("joint", ("a.md", "b.md")), "needs a.md, b.md together"),
        (row("either", (), "a.md", "b.md"), "any one of a.md, b.md suffices"),
        (row("mixed", ("a.md",), "b.md"), "necessary a.md; sufficient b.md"),
        (row("unresolved"), "the context as a whole"),
    ],
)
def test_a_cause_is_told_with_how_it_is_known(found: CaseAttribution, words: str) -> None:
    text = causes.cause_text(found)
    assert text.startswith(words) or words in text
    assert ("by varying" in text) == (found.method == "ablation")


def test_controls_are_told_with_what_they_found() -> None:
    card = helped()
    assert causes.controls_line(card) == "none: two legs, each once"
    control = CaseControl(
        case_id="x", runs_off=2, runs_on=2, label_swapped=True, finding="follows_variant_label"
    )
    controls = card.controls.model_copy(
        update={
            "mode": "standard", "legs": 22, "replicates": 2, "extra_replicates": 8,
            "cases": (
                control,
                control.model_copy(update={"finding": None, "runs_off": 10, "runs_on": 11}),
            ),
            "trace": TraceSummary(state="incomplete", detail="queue_overflow", granularity="case"),
        }
    )  # fmt: skip
    more = card.model_copy(update={"controls": controls})
    line = causes.controls_line(more)
    assert "22 legs" in line
    assert "differences held 10 times and under the other label" in line
    assert "follows_variant_label x 1" in line
    assert "queue_overflow" in causes.trace_line(more)
    assert any("queue_overflow" in item for item in claims.not_shown(more))
    assert any("10 legs of each root" in item for item in claims.shown(more))
    assert not any("no control was run" in item for item in claims.not_shown(more))


def test_a_page_names_the_cause_of_a_case() -> None:
    card = helped()
    attribution = card.attribution.model_copy(
        update={"mode": "ablate", "cases": (row("single", ("a.md",), "a.md"),)}
    )
    page = render_html(card.model_copy(update={"attribution": attribution}))
    assert "which is necessary and sufficient" in page


def test_words_that_are_no_artifact_are_not_called_one() -> None:
    pair = improved().model_copy(update={"artifact_attribution": ("decision_output",)})
    assert causes.named_artifacts(pair) is None
    assert causes.named_artifacts(improved()) == "learnings/retries.md"


def test_a_case_that_opened_everything_is_not_put_down_to_the_first_few() -> None:
    many = tuple(f"learnings/{number}.md" for number in range(15))
    pair = improved().model_copy(update={"artifact_attribution": many})
    assert causes.named_artifacts(pair) == "one or more of 15 artifacts"


def test_what_was_not_done_is_not_told() -> None:
    """Two legs in which no case could be compared, and a control that let nothing pass."""
    card = helped()
    failed = CaseControl(
        case_id="x", runs_off=3, runs_on=3, label_swapped=True, finding="nondeterministic"
    )
    alone = card.controls.model_copy(update={"mode": "standard"})
    nothing = card.model_copy(update={"controls": alone})
    assert causes.controls_line(nothing) == "standard: 2 legs, no case could be compared"
    lost = alone.model_copy(
        update={"replicates": 2, "extra_replicates": 1, "legs": 8, "cases": (failed,)}
    )
    none_held = card.model_copy(update={"controls": lost})
    assert "held" not in causes.controls_line(none_held)
    assert not any("is counted held" in item for item in claims.shown(none_held))
    varied = card.attribution.model_copy(update={"ablation_legs": 6})
    assert "6 legs of varied roots" in causes.controls_line(
        card.model_copy(update={"attribution": varied})
    )
