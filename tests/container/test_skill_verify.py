"""Verification of skill comparisons: the honest ones are accepted, forgeries are not."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from runner.app.verify import verify
from runner.model.verification import Verification
from tests.container.forging import Forger, row
from tests.container.projects import Json, Project, case

pytestmark = [pytest.mark.container, pytest.mark.slow]

LEGS = ("skill_off", "skill_on")
SWITCH = "AGENTOPS_HOOKS_DISABLED"
HOOKS_ON = f'test "${{{SWITCH}:-0}}" != 1'
SANDBOX, HOOKS = "evidence/sandbox.json", "evidence/hooks.json"


class Forgery(NamedTuple):
    """What is changed, and the reason for which the copy must be rejected."""

    name: str
    change: Callable[[Forger], None]
    told: str


def put(**fields: Any) -> Callable[[Json], object]:
    """A change that sets fields."""
    return lambda value: value.update(fields)


def on_card(name: str, change: Callable[[Json], object], told: str) -> Forgery:
    return Forgery(name, lambda forger: forger.edit_card(change), told)


def on_record(name: str, leg: str, change: Callable[[Json], object], told: str) -> Forgery:
    return Forgery(name, lambda forger: forger.edit_record(leg, change), told)


def on_case(name: str, leg: str, case_id: str, change: Callable[[Json], Any], told: str) -> Forgery:
    return Forgery(name, lambda forger: forger.edit_case(leg, case_id, change), told)


def passes(result: Json) -> None:
    """A case that failed, said to have passed."""
    result.update(status="pass", score=1.0, failure_message=None)
    for item in result["expectations"]:
        item["verdict"] = "passed"


def clean(record: Json) -> None:
    """A leg that is not degraded any more."""
    record.update(degraded_reason=None, degraded_detail=None, verdict=record["status"])
    for result in record["case_results"]:
        result.update(degraded_reason=None, degraded_detail=None)


def degraded(record: Json) -> None:
    """A leg that is degraded without anything that shows it."""
    why = {"degraded_reason": "hooks_disabled", "degraded_detail": "inherited"}
    record.update(verdict="inconclusive", **why)
    for result in record["case_results"]:
        result.update(why)


def swapped(forger: Forger) -> None:
    for leg, other in (LEGS, LEGS[::-1]):
        forger.edit_record(leg, put(variant=other))


def without_replicates(forger: Forger) -> None:
    def kept(items: Sequence[Json]) -> list[Json]:
        return [item for item in items if "_r" not in item["leg"]]

    for leg in list(forger.legs()):
        if "_r" in leg:
            shutil.rmtree(forger.path / "legs" / leg)
    forger.edit(SANDBOX, lambda value: value.update(inside=kept(value["inside"])))
    forger.edit(SANDBOX, lambda value: value.update(containers=kept(value["containers"])))
    forger.edit(HOOKS, lambda value: value.update(legs=kept(value["legs"])))


FORGERIES = (
    on_card("the delta", put(aggregate_delta=1.0), r"scorecard.json#/aggregate_delta"),
    on_card("an aggregate", put(skill_off_aggregate=0.1), r"scorecard.json#/skill_off_aggregate"),
    on_card("a row", lambda card: row(card["per_case"], "hooks-on").update(delta=0),
            r"scorecard.json#/per_case/0/delta"),
    on_card("the controls", lambda card: card["controls"].update(mode="none"),
            r"no control asks for this leg"),
    on_case("a pass that was none", "skill_off", "hooks-on", passes, r"judgements"),
    on_case("an exit code", "skill_on", "constant", put(exit_code=1), r"judgements"),
    on_record("degraded by nothing", "skill_on", degraded, r"is borne out by nothing"),
    on_record("an on-leg without hooks", "skill_on",
              lambda record: record["environment"].update(hooks_disabled=True),
              r"is not degraded, but hooks were suppressed"),
    on_record("a context root", "skill_on", put(context_root_label="context-on"),
              r"no leg of the skill axis has one"),
    on_record("the other axis", "skill_on", put(axis="context"), r"axis|judgements"),
    on_record("another run id", "skill_off", put(run_id="other"), r"a leg of this run has"),
    Forgery("legs under each other's name", swapped, r"which the controls ask for here"),
    Forgery("replicates left out", without_replicates, r"is missing; the controls ask for it"),
    Forgery("another host", lambda forger: forger.edit(HOOKS, put(host={"AO_PROFILE": "0" * 64})),
            r"is not what the host had"),
    Forgery("not preserved", lambda forger: forger.edit(
        HOOKS, lambda value: value["legs"][0].update(preserved=False)), r"the evidence gives true"),
    Forgery("hooks of another leg", lambda forger: forger.edit(
        HOOKS, lambda value: value["legs"][1].update(
            inside_at_start=value["legs"][0]["inside_at_start"])), r"saw from inside"),
    Forgery("context roots beside it", lambda forger: forger.write(
        "evidence/context-roots.json", {"schema_version": 1, "roots": []}), r"has no place"),
    on_card("a claim to no axis", lambda card: card.pop("skill_on_run_id"), r"documents"),
)  # fmt: skip


@pytest.fixture(scope="module")
def honest(make_project: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Evidence of one run under all controls."""
    project: Project = make_project(tmp_path_factory.mktemp("skill"))
    path = project.suite(case("hooks-on", HOOKS_ON), case("constant", "echo same"))
    made = project.ao_eval("ab", "--axis", "skill", path, "--controls", "standard", AO_PROFILE="ci")
    assert made.code == 0, made.stderr
    return made.evidence


def reasons(found: Verification) -> str:
    """All problems as text."""
    return "\n".join(f"{item.check}: {item.where}: {item.problem}" for item in found.problems)


def test_the_honest_directory_is_accepted(honest: Path) -> None:
    found = verify(honest)
    assert (found.verdict, found.problems) == ("accepted", ())
    assert {item.state for item in found.checks if item.check != "signature"} == {"passed"}


@pytest.mark.parametrize("forgery", FORGERIES, ids=lambda forgery: forgery.name)
def test_a_forgery_is_rejected_for_its_own_reason_however_well_it_is_sealed(
    honest: Path, tmp_path: Path, forgery: Forgery
) -> None:
    forger = Forger(honest, tmp_path / "forged")
    forgery.change(forger)
    # Some lies no document can hold: then there is nothing that could be sealed.
    with contextlib.suppress(AssertionError):
        forger.reseal()
    found = verify(forger.path)
    assert found.verdict == "rejected"
    assert re.search(forgery.told, reasons(found)), reasons(found)


def test_a_flipped_bit_in_any_file_is_rejected(honest: Path, tmp_path: Path) -> None:
    forger = Forger(honest, tmp_path / "copy")
    names = forger.files()
    assert len(names) > 30
    for name in names:
        original = (forger.path / name).read_bytes()
        forger.flip(name, len(original) * 5 // 9)
        assert verify(forger.path).verdict == "rejected", name
        (forger.path / name).write_bytes(original)


def test_a_suppressed_comparison_is_accepted_and_no_claim_can_be_made_of_it(
    project: Project, tmp_path: Path
) -> None:
    suite = project.suite(case("hooks-on", HOOKS_ON))
    made = project.ao_eval("ab", "--axis", "skill", suite, **{SWITCH: "1"})
    assert reasons(verify(made.evidence)) == ""
    forger = Forger(made.evidence, tmp_path / "forged")
    for leg in LEGS:
        forger.edit_record(leg, clean)
    forger.rejudge()
    forger.reassemble()
    forger.rerender()
    forger.reseal()
    found = verify(forger.path)
    assert re.search(r"is not degraded, but hooks were suppressed", reasons(found)), reasons(found)
