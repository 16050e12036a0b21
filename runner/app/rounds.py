"""Run the legs of a comparison, round after round, until the controls ask for no more."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from runner.app import legs
from runner.app.collect import BlobStore
from runner.app.legs import Job, LegResult
from runner.app.prepare import Prepared
from runner.app.request import RunRequest
from runner.core.attribute import ablation_groups
from runner.core.controls import LegOrder, Round, Rules, next_rounds
from runner.core.plan import LegRequest
from runner.core.sentinels import present
from runner.core.trials import OFF, ON, Trial, Trials
from runner.core.units import Placed, Side, mixed, units
from runner.host.caseuser import keeper
from runner.host.mixing import mix_roots
from runner.host.removal import remove
from runner.model.controls import Unit
from runner.model.leg import ContextRoot
from runner.model.tree import path_text
from runner.report.progress import Listener
from runner.report.text import plural

_WORDS = {
    "replicate": "replicates",
    "label_swap": "roots under each other's label",
    "ablation": "roots in which units of the difference are varied",
}


def difference(prepared: Prepared) -> tuple[Unit, ...]:
    """Units of the difference between the staged roots; empty when one could not be staged."""
    off, on = prepared.roots[OFF], prepared.roots[ON]
    if off.staged is None or on.staged is None:
        return ()
    return units(off.records, on.records, (on.context, off.context))


@dataclass(frozen=True, slots=True, kw_only=True)
class Rounds:
    """The legs of one comparison.

    Attributes:
        request: The command.
        prepared: The suite and both roots, staged.
        rules: Which controls were asked for.
        run_id: Run id of the comparison; legs append their name to it.
        blobs: Where outputs go.
        listener: Who is told, beforehand, how many legs a control costs.
    """

    request: RunRequest
    prepared: Prepared
    rules: Rules
    run_id: str
    blobs: BlobStore
    listener: Listener

    def run(self) -> tuple[LegResult, ...]:
        """Run the first two legs, then whatever their outcomes ask for.

        Returns:
            Results in the order of the rounds; the first two are `context_off` and `context_on`.
        """
        changeable = difference(self.prepared)
        if self.rules.attribute == "ablate" and changeable:
            groups = len(ablation_groups(changeable, self.rules.ablation_legs))
            self.listener.note(
                f"ablation: {plural(len(changeable), 'unit')}, at most {2 + 2 * groups} more legs"
            )
        done: list[LegResult] = []
        while True:
            seen = Trials([Trial(result.record, result.outcome.reads) for result in done])
            rounds = next_rounds(self.rules, seen, changeable)
            if not rounds:
                return tuple(done)
            self._announce(rounds)
            for orders in rounds:
                done += self._round(orders)

    def _announce(self, rounds: Sequence[Round]) -> None:
        order = rounds[0][0]
        if order.role.purpose != "first":
            legs_more = plural(2 * len(rounds), "leg")
            cases = plural(len(order.cases or ()), "case")
            self.listener.note(f"{_WORDS[order.role.purpose]}: {legs_more} of {cases}")

    def _round(self, orders: Round) -> tuple[LegResult, ...]:
        jobs: list[Job] = []
        try:
            jobs.extend(map(self._job, orders))
            return legs.run(self.prepared, jobs, self.blobs, self.listener, traced=True)
        finally:
            staged = {item.staged for item in self.prepared.roots.values()}
            for job in jobs:
                if job.root is not None and job.root not in staged:
                    remove(job.root)

    def _job(self, order: LegOrder) -> Job:
        given = self.prepared.roots[ON if order.role.root == ON else OFF]
        root, staged = given.root, given.staged
        if order.fresh and staged is not None:
            root, staged = self._fresh(order, root)
        leg = LegRequest(
            order.label,
            root,
            given.degraded,
            leg=order.name,
            role=order.role,
            isolated=order.isolated,
        )
        run_id = f"{self.run_id}-{order.name.replace('_', '-')}"
        plan = legs.plan(self.request, self.prepared, leg, run_id, order.cases or ())
        return Job(plan, staged)

    def _fresh(self, order: LegOrder, given: ContextRoot) -> tuple[ContextRoot, Path]:
        """A copy of a root under a name of its own, or a mix of both."""
        off, on = self.prepared.roots[OFF], self.prepared.roots[ON]
        places: dict[Side, Path] = {
            side: item.staged for side, item in ((OFF, off), (ON, on)) if item.staged is not None
        }
        side = order.role.root
        own: Side = ON if side == ON else OFF
        if side == "mixed":
            placed: Sequence[Placed] = mixed(off.records, on.records, order.role.on_units)
        else:
            placed = [Placed(record, own) for record in self.prepared.roots[own].records]
        paths = {path_text(item.record.path) for item in placed}
        whose = (off, on) if side == "mixed" else (self.prepared.roots[own],)
        watched = {item.path: item for root in whose for item in root.root.sentinels}
        destination = self.prepared.session.stage.home / secrets.token_hex(8)
        staged = mix_roots(placed, places, destination, owner=keeper())
        root = ContextRoot(
            label="mixed" if side == "mixed" else given.label,
            sha256=staged.sha256,
            path=given.path,
            entries=staged.entries,
            size=staged.size,
            sentinels=present(tuple(watched.values()), paths)
            if side == "mixed"
            else given.sentinels,
        )
        return root, destination
