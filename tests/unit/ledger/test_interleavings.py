"""Random burns, repeats, conflicts and kills against a model of a few lines."""

from __future__ import annotations

import multiprocessing
import signal
import tempfile
from pathlib import Path

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from runner.ledger.jsonfile import STEPS, burn, verify
from tests.unit.ledger.burns import NOW, REFUSED, asked, in_child, killer, ledger

BUDGET = 2

ACTIONS = st.tuples(
    st.sampled_from(["run-1", "run-2", "run-3", "run-4"]),
    st.sampled_from(["score-a", "score-b", ""]),
    st.sampled_from(["gt-1", "gt-2"]),
    st.none() | st.sampled_from(STEPS),
)
Action = tuple[str, str, str, str | None]
QUIET = settings(
    max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)


def attempt(path: Path, action: Action) -> int:
    run_id, score, gt, dies_at = action

    def work() -> None:
        burn(
            path,
            asked(run_id, score, gt=gt),
            now_ms=NOW,
            step=killer(dies_at),
        )

    return in_child(work)


class Model:
    """What must be so: burns by run id, with their score and version."""

    def __init__(self) -> None:
        self.burned: dict[str, tuple[str, str]] = {}

    def expects(self, action: Action) -> str:
        run_id, score, gt, _ = action
        told = score or run_id
        if run_id in self.burned:
            return "repeat" if self.burned[run_id] == (told, gt) else "refusal"
        if told in {other for other, _ in self.burned.values()}:
            return "refusal"
        spent = sum(version == gt for _, version in self.burned.values())
        return "refusal" if spent >= BUDGET else "burn"

    def add(self, action: Action) -> None:
        run_id, score, gt, _ = action
        self.burned[run_id] = (score or run_id, gt)


@QUIET
@given(st.lists(ACTIONS, max_size=12))
def test_one_after_the_other_with_kills(actions: list[Action]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = ledger(Path(folder), BUDGET)
        model = Model()
        for action in actions:
            expected = model.expects(action)
            code = attempt(path, action)
            assert code in {0, REFUSED, -signal.SIGKILL}
            if expected == "refusal":
                assert code != 0
            elif code != -signal.SIGKILL:
                assert code == 0
            died = STEPS.index(action[3]) if action[3] else len(STEPS)
            counts = code == 0 or died >= STEPS.index("ledger_renamed")
            if expected == "burn" and counts:
                model.add(action)
            assert verify(path).head.count == len(model.burned)
        spent = {item.gt_version: item.burns for item in verify(path).spent}
        assert all(burns <= BUDGET for burns in spent.values())


def several(path: Path, actions: list[Action]) -> None:
    for action in actions:
        if attempt(path, action) == 0:
            with (path.parent / "shown").open("a") as shown:
                shown.write(f"{action[0]}\n")


@settings(QUIET, max_examples=15)
@given(st.lists(st.lists(ACTIONS, max_size=4), min_size=2, max_size=3))
def test_at_the_same_time_with_kills(actions: list[list[Action]]) -> None:
    fork = multiprocessing.get_context("fork")
    with tempfile.TemporaryDirectory() as folder:
        path = ledger(Path(folder), BUDGET)
        processes = [fork.Process(target=several, args=(path, part)) for part in actions]
        for process in processes:
            process.start()
        for process in processes:
            process.join()
            assert process.exitcode == 0
        account = verify(path)
        assert all(item.burns <= BUDGET for item in account.spent)
        shown_file = path.parent / "shown"
        shown = set(shown_file.read_text().split()) if shown_file.exists() else set()
        # Every verdict that was shown is a burn: never under-counted.
        assert account.head.count >= len(shown)
        burn_again = {run_id for run_id in shown if run_id in path.read_text()}
        assert burn_again == shown
