"""Controls, against worlds in which it is known what decides an outcome.

A world is a function from what a leg is (units at their on-version, label, a name of its own, the
number of the leg) to whether the case passes. The controls are asked for legs until they are
content, exactly as the use case does it.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.assemble import root_units
from runner.core.attribute import ablation_groups, artifacts, attribution, mixes
from runner.core.controls import LegOrder, Rules, control_rows, findings, next_rounds
from runner.core.degrade import insufficient
from runner.core.trials import OFF, ON, Trial, Trials
from runner.model.contextroots import ContextRoots
from runner.model.controls import CaseAttribution, Unit
from runner.model.leg import DegradedReason
from runner.model.reads import CaseReads, LegReads
from runner.model.record import CaseResult, RunRecord
from tests.unit.builders import FAILED, PASSED, record, result, suite_file


class Seen(NamedTuple):
    """What a case can depend on in one leg."""

    units: frozenset[str]
    label: str
    place: str
    """Name of the staged root: new for a fresh copy."""
    ordinal: int
    root: str


World = Callable[[Seen], bool | None]
"""Whether the case passes; None: the leg cannot say."""

SUITE = suite_file()
UNITS = tuple(Unit(path=path, change="added", role=None) for path in ("a.md", "b.md", "c.md"))
PATHS = frozenset(unit.path for unit in UNITS)
STANDARD = Rules(mode="standard", attribute="trace", isolated=False, ablation_legs=40)
BARE = Rules(mode="none", attribute="trace", isolated=False, ablation_legs=40)
ABLATE = Rules(mode="standard", attribute="ablate", isolated=False, ablation_legs=40)


class Told(NamedTuple):
    """What the controls made of a world with one case."""

    detail: str | None
    row: CaseAttribution | None
    trials: Trials
    orders: tuple[LegOrder, ...]

    @property
    def artifacts(self) -> tuple[str, ...]:
        return artifacts(self.row)


def ask(
    world: World,
    rules: Rules = STANDARD,
    *,
    units: Sequence[Unit] = UNITS,
    opens: Sequence[str] | None = None,
) -> Told:
    """Ask for legs until there are no more; `opens`: what the case opens, None for no trace."""
    done: list[Trial] = []
    orders: list[LegOrder] = []
    while rounds := next_rounds(rules, Trials(done), units):
        for pair in rounds:
            assert pair[0].name != pair[1].name
            for order in pair:
                orders.append(order)
                done.append(_run(world, order, units, opens))
        assert len(done) < 200
    trials = Trials(done)
    found = findings(rules, trials, units)
    groups = ablation_groups(units, rules.ablation_legs)
    assert len({order.name for order in orders}) == len(orders)
    assert all(
        item.reason is DegradedReason.INSUFFICIENT_DECISION_EVIDENCE for item in found.values()
    )
    return Told(
        detail=found["one"].detail if "one" in found else None,
        row=attribution(trials, "one", units, groups),
        trials=trials,
        orders=tuple(orders),
    )


def _run(
    world: World, order: LegOrder, units: Sequence[Unit], opens: Sequence[str] | None
) -> Trial:
    role = order.role
    every = frozenset(unit.path for unit in units)
    present = {"context_off": frozenset[str](), "context_on": every}.get(
        role.root, frozenset(role.on_units)
    )
    place = order.name if order.fresh else role.root
    passes = world(Seen(present, order.label, place, role.ordinal, role.root))
    reads = None
    if opens is not None:
        seen = tuple(path for path in opens if path in present)
        case = CaseReads(case_id="one", opened=seen, by_hooks=())
        reads = LegReads(
            leg=order.name, state="complete", detail=None, granularity="case", cases=(case,)
        )
    return Trial(_record(order, _case(passes)), reads)


def _case(passes: bool | None) -> CaseResult:
    if passes is None:
        return result(SUITE, "one", (PASSED,), insufficient("timeout"))
    return result(SUITE, "one", (PASSED if passes else FAILED,))


def _record(order: LegOrder, case: CaseResult) -> RunRecord:
    made = record(SUITE, [case], order.label)
    return made.model_copy(update={"role": order.role, "leg": order.name})


def reads_a(seen: Seen) -> bool:
    return "a.md" in seen.units


# --- what is believed


def test_a_change_that_follows_what_was_opened_is_believed() -> None:
    told = ask(reads_a, opens=["a.md"])
    assert (told.detail, told.artifacts) == (None, ("a.md",))
    assert told.row is not None
    assert told.row.method == "trace"
    assert [told.trials.replicates(root) for root in (OFF, ON)] == [10, 10]
    assert not told.trials.ran("ablation")


def test_a_case_that_opens_nothing_is_believed_by_ablation() -> None:
    told = ask(reads_a, opens=[])
    assert (told.detail, told.artifacts) == (None, ("a.md",))
    assert told.row is not None
    assert (told.row.method, told.row.pattern) == ("ablation", "single")


def test_without_a_trace_ablation_decides() -> None:
    told = ask(reads_a)
    assert (told.detail, told.artifacts) == (None, ("a.md",))


def test_a_regression_is_believed_like_an_improvement() -> None:
    assert ask(lambda seen: not reads_a(seen), opens=["a.md"]).detail is None


def test_a_suite_in_which_nothing_differs_costs_two_legs_of_each_root() -> None:
    told = ask(lambda _: True, opens=[])
    assert [order.name for order in told.orders] == [
        "context_off", "context_on", "context_off_r2", "context_on_r2",
    ]  # fmt: skip
    assert told.detail is None


# --- what is not


def test_an_outcome_that_follows_the_label_is_not_believed() -> None:
    told = ask(lambda seen: seen.label == ON, opens=["a.md"])
    assert told.detail == "follows_variant_label"
    assert told.trials.replicates(OFF) == 2


def test_an_outcome_that_follows_root_and_label_together_is_not_believed() -> None:
    told = ask(lambda seen: seen.label == ON and reads_a(seen), opens=["a.md"])
    assert told.detail == "follows_variant_label"


def test_an_outcome_that_changes_between_replicates_is_not_believed() -> None:
    told = ask(lambda seen: reads_a(seen) or seen.ordinal == 2, opens=["a.md"])
    assert told.detail == "nondeterministic"


def test_one_replicate_of_ten_that_disagrees_is_enough() -> None:
    told = ask(lambda seen: reads_a(seen) and seen.place != "context_on_r10", opens=["a.md"])
    assert told.detail == "nondeterministic"


def test_a_tie_that_changes_between_replicates_is_not_believed_either() -> None:
    told = ask(lambda seen: seen.ordinal == 1, opens=[])
    assert told.detail == "nondeterministic"


def test_an_outcome_that_follows_the_name_of_the_staged_root_is_context_not_read() -> None:
    told = ask(lambda seen: seen.place == "context_on", opens=[])
    assert told.detail == "context_not_read"


def test_even_if_the_context_was_opened_it_is_not_believed() -> None:
    told = ask(lambda seen: seen.place == "context_on", opens=["a.md"])
    assert told.detail == "nondeterministic"


def test_opening_what_both_roots_share_explains_nothing() -> None:
    told = ask(lambda seen: seen.place == "context_on", opens=["shared.md"])
    assert told.detail == "context_not_read"


def test_a_difference_in_the_null_check_can_have_no_part_of_the_context() -> None:
    told = ask(lambda seen: seen.root == "context_on", units=(), opens=[])
    assert told.detail == "context_not_read"


def test_a_tie_is_never_context_not_read() -> None:
    assert ask(lambda _: False, opens=[]).detail is None


@pytest.mark.parametrize("lost", ["context_on_r2", "context_off_swapped", "context_on_r7"])
def test_a_control_that_gave_no_outcome_leaves_the_change_unshown(lost: str) -> None:
    def world(seen: Seen) -> bool | None:
        names = {"context_on_r2": (2, "context_on", ON), "context_on_r7": (7, "context_on", ON)}
        mine = (seen.ordinal, seen.root, seen.label)
        swapped = lost.endswith("swapped") and (seen.root, seen.label) == ("context_off", ON)
        return None if names.get(lost) == mine or swapped else reads_a(seen)

    assert ask(world, opens=["a.md"]).detail == "control_incomplete"


def test_an_ablation_that_lost_a_leg_leaves_the_change_unshown() -> None:
    def world(seen: Seen) -> bool | None:
        return None if seen.root == "mixed" and seen.ordinal == 3 else reads_a(seen)

    assert ask(world, opens=[]).detail == "control_incomplete"


def test_a_case_that_was_lost_in_a_first_leg_asks_for_nothing() -> None:
    told = ask(lambda seen: None if seen.root == "context_on" else True, opens=[])
    assert len(told.orders) == 2
    assert told.detail is None


def test_none_is_two_legs_whatever_they_show() -> None:
    told = ask(lambda seen: seen.label == ON, BARE, opens=[])
    assert (len(told.orders), told.detail, told.artifacts) == (2, None, ("decision_output",))


@pytest.mark.parametrize("seed", range(20))
def test_coins_tossed_while_reading_the_context_win_nothing(seed: int) -> None:
    coin = random.Random(seed)
    for _ in range(200):
        told = ask(lambda _: coin.random() < 0.5, opens=["a.md"])
        changed = told.trials.outcomes(OFF, "one")[0] != told.trials.outcomes(ON, "one")[0]
        assert told.detail is not None or not changed


# --- attribution


@pytest.mark.parametrize(
    "world, pattern, necessary, sufficient",
    [
        (lambda seen: "a.md" in seen.units, "single", {"a.md"}, {"a.md"}),
        (lambda seen: {"a.md", "b.md"} <= seen.units, "joint", {"a.md", "b.md"}, set()),
        (lambda seen: bool({"a.md", "b.md"} & seen.units), "either", set(), {"a.md", "b.md"}),
        (
            lambda seen: "a.md" in seen.units and bool({"b.md", "c.md"} & seen.units),
            "mixed", {"a.md"}, set(),
        ),
        (lambda seen: len(seen.units) >= 2, "unresolved", set(), set()),
    ],
)  # fmt: skip
def test_how_units_work_together_is_recognised(
    world: World, pattern: str, necessary: set[str], sufficient: set[str]
) -> None:
    told = ask(world, ABLATE, opens=["a.md"])
    assert told.detail is None
    assert told.row is not None
    assert told.row.pattern == pattern
    assert set(told.row.necessary) == necessary
    assert set(told.row.sufficient) == sufficient
    assert told.artifacts == (tuple(sorted(necessary | sufficient)) or ("context_fixture",))


def test_ties_that_opened_a_unit_are_ablated_when_it_is_asked_for() -> None:
    told = ask(lambda _: True, ABLATE, opens=["a.md"])
    assert told.trials.ran("ablation")
    assert told.row is not None
    assert not told.row.necessary
    assert not ask(lambda _: True, ABLATE, opens=[]).trials.ran("ablation")
    assert not ask(lambda _: True, STANDARD, opens=["a.md"]).trials.ran("ablation")


@pytest.mark.parametrize("most", [4, 6, 10, 40])
def test_an_ablation_costs_no_more_legs_than_allowed(most: int) -> None:
    units = tuple(
        Unit(path=f"{folder}/{number}", change="added", role=None)
        for folder in "abcd" for number in range(8)
    )  # fmt: skip
    found = ablation_groups(units, most)
    assert 2 * sum(1 for _ in mixes(found)) <= most
    told = ask(
        lambda seen: "b/3" in seen.units, ABLATE._replace(ablation_legs=most), units=units, opens=[]
    )
    assert told.detail is None
    assert told.row is not None
    assert sum(order.role.purpose == "ablation" for order in told.orders) <= most


def test_a_group_is_named_by_its_folder() -> None:
    units = tuple(Unit(path=f"l/{name}", change="added", role=None) for name in "abc")
    told = ask(lambda seen: "l/a" in seen.units, ABLATE._replace(ablation_legs=4), units=units)
    assert told.artifacts == ("l/",)


# --- legs that are asked for


def test_replicates_are_isolated_where_the_runtime_hides_reads_and_never_share_a_root() -> None:
    told = ask(reads_a, STANDARD._replace(isolated=True), opens=["a.md"])
    extra = [order for order in told.orders if order.role.ordinal >= 3]
    assert len(extra) == 16
    assert all(order.isolated for order in extra)
    assert all(order.fresh for order in extra[2:])
    assert not any(order.isolated for order in told.orders if order.role.ordinal < 3)


def test_replicates_alternate_between_the_roots() -> None:
    told = ask(reads_a, opens=["a.md"])
    roots = [order.role.root for order in told.orders]
    assert roots == ["context_off", "context_on"] * (len(roots) // 2)


def test_a_label_swap_gives_each_root_the_other_label() -> None:
    told = ask(reads_a, opens=["a.md"])
    swapped = [order for order in told.orders if order.role.purpose == "label_swap"]
    assert [(order.role.root, order.label) for order in swapped] == [(OFF, ON), (ON, OFF)]


def test_rows_say_how_often_a_case_was_run() -> None:
    told = ask(reads_a, opens=["a.md"])
    (row,), differing = control_rows(STANDARD, told.trials, UNITS)
    assert (row.runs_off, row.runs_on, row.label_swapped, row.finding) == (10, 10, True, None)
    assert differing == {"one"}
    rows, differing = control_rows(STANDARD, ask(lambda _: True, opens=[]).trials, UNITS)
    assert (rows, differing) == ((), frozenset())


@given(
    table=st.dictionaries(
        st.tuples(st.frozensets(st.sampled_from(sorted(PATHS))), st.sampled_from([OFF, ON])),
        st.booleans(),
    ),
    opens=st.lists(st.sampled_from(sorted(PATHS)), unique=True),
    attribute=st.sampled_from([STANDARD, ABLATE]),
)
def test_whatever_the_world_a_believed_change_is_deterministic_and_blind_to_the_label(
    table: dict[tuple[frozenset[str], str], bool], opens: list[str], attribute: Rules
) -> None:
    def world(seen: Seen) -> bool:
        return table.get((seen.units, seen.label), False)

    told = ask(world, attribute, opens=opens)
    off, on = (
        table.get((units, label), False) for units, label in ((frozenset(), OFF), (PATHS, ON))
    )
    if off == on:
        assert told.detail is None
    elif told.detail is None:
        assert table.get((frozenset(), ON), False) == off
        assert table.get((PATHS, OFF), False) == on
        assert told.artifacts
    else:
        assert told.detail == "follows_variant_label"


def test_roots_that_could_not_be_staged_have_no_units() -> None:
    assert root_units(ContextRoots(schema_version=1, roots=())) == ()
