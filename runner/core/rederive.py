"""Stored evidence of a comparison -> the legs it must have had, and what makes its scorecard.

Beside `core.rejudge`, which makes each record again from its outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from runner.core import gvisor, liveproof
from runner.core.assemble import Observed, root_units
from runner.core.canon import digest
from runner.core.confine import is_gvisor
from runner.core.controls import Rules, next_rounds
from runner.core.crosscheck import HOOKS, ROOTS, Wrong, record_place
from runner.core.score import suite_warnings
from runner.core.trials import OFF, ON, Trial, Trials
from runner.model.contextroots import ContextRoots
from runner.model.evidence import HooksEvidence, SandboxEvidence
from runner.model.leg import LegRole
from runner.model.liveproof import LiveStateEvidence
from runner.model.reads import ContextReads
from runner.model.record import RunRecord
from runner.model.scorecard import ContextScorecard
from runner.model.skillscorecard import AnyScorecard, SkillScorecard
from runner.model.suite import (
    BaselinePolicy,
    Case,
    Dimension,
    DimensionName,
    Expectation,
    ExpectationType,
    Scoring,
    Suite,
    SuiteFile,
    Tier,
    Visibility,
)

SCORECARD: Final = "scorecard.json"

WITHOUT_SUITE: Final = ("aggregate_delta", "pairing", "resolution")
"""Fields of a scorecard that rest on weights and tags of the suite."""


class Documents(NamedTuple):
    """Every document of a comparison, as stored.

    Attributes:
        card: The scorecard.
        records: In the order in which the legs were run.
        live: Live state.
        sandbox: Containers.
        hooks: Hook environment.
        reads: Read traces.
        roots: Context roots.
    """

    card: ContextScorecard
    records: tuple[RunRecord, ...]
    live: LiveStateEvidence
    sandbox: SandboxEvidence
    hooks: HooksEvidence
    reads: ContextReads
    roots: ContextRoots


class SkillDocuments(NamedTuple):
    """Every document of a skill comparison, as stored; there are no roots, hence no reads.

    Attributes:
        card: The scorecard.
        records: In the order in which the legs were run.
        live: Live state.
        sandbox: Containers.
        hooks: Hook environment.
    """

    card: SkillScorecard
    records: tuple[RunRecord, ...]
    live: LiveStateEvidence
    sandbox: SandboxEvidence
    hooks: HooksEvidence


AnyDocuments = Documents | SkillDocuments


def rules(card: ContextScorecard) -> Rules:
    """The controls that a scorecard says were asked for."""
    return Rules(
        mode=card.controls.mode,
        attribute="ablate" if card.attribution.mode == "ablate" else "trace",
        isolated=is_gvisor(card.inputs.oci_runtime),
        ablation_legs=card.attribution.ablation_limit,
    )


def observed(suite: SuiteFile, found: Documents) -> Observed:
    """What the scorecard has to follow from.

    What nobody could derive (inputs by name, the declared clock, warnings from before the legs) is
    taken from the scorecard itself; `check_identity` and `check_notes` look at it.
    """
    card = found.card
    return Observed(
        suite=suite,
        records=found.records,
        live=found.live.proof,
        sandbox=found.sandbox,
        hooks=found.hooks,
        reads=found.reads,
        roots=found.roots,
        inputs=card.inputs,
        rules=rules(card),
        null_check=card.controls.null_check,
        run_id=card.run_id,
        generated_at=card.generated_at,
        notes=notes(found),
    )


def unknown_suite(card: AnyScorecard) -> SuiteFile:
    """A stand-in for a private holdout that was not given: no weight, tag or case is known.

    What `WITHOUT_SUITE` names cannot be derived with it; everything else can.
    """
    nothing = Case(
        id="unknown",
        title="unknown",
        kind="unknown",
        objective="unknown",
        expectations=(Expectation(type=ExpectationType.MANUAL_REVIEW),),
    )
    leg = card.context_off if isinstance(card, ContextScorecard) else card.skill_off
    suite = Suite(
        schema_version=1,
        id=card.suite_id,
        name="unknown",
        visibility=Visibility.PRIVATE_HOLDOUT,
        tier=Tier.DETERMINISTIC,
        scoring=Scoring(
            dimensions=tuple(
                Dimension(name=DimensionName(name), weight=1.0) for name in leg.dimension_scores
            )
        ),
        baseline_policy=BaselinePolicy(mode="unknown"),
        cases=(nothing,),
    )
    return SuiteFile(path=card.suite_path, sha256=card.inputs.suite_sha256, suite=suite)


def notes(found: AnyDocuments) -> tuple[str, ...]:
    """Warnings of the scorecard that do not follow from the live state."""
    told = liveproof.warnings(found.live.proof)
    mine = found.card.warnings
    return mine[len(told) :] if mine[: len(told)] == told else mine


# ------------------------------------------------------------------------------------- the legs


def check_sequence(suite: SuiteFile | None, found: Documents) -> Iterator[Wrong]:
    """The legs are those that the controls ask for, one after the other, and none is left out.

    Args:
        suite: None when it is not known: its cases are then those of the first leg.
        found: The documents.
    """
    yield from check_all_cases(suite, found)
    if liveproof.degradation(found.live.proof) is not None:
        return  # Every record is degraded by now: what the controls saw is not known any more.
    wanted, units, done = rules(found.card), root_units(found.roots), 0
    by_leg = {item.leg: item for item in found.reads.legs}
    trials = [Trial(record, by_leg.get(record.leg)) for record in found.records]
    everything = tuple(case.case_id for case in found.records[0].case_results)
    while rounds := next_rounds(wanted, Trials(trials[:done]), units):
        for order in (order for pair in rounds for order in pair):
            if done >= len(found.records):
                yield Wrong("legs", f"leg {order.name} is missing; the controls ask for it")
                return
            cases = everything if order.cases is None else order.cases
            wanted_leg = (order.name, order.role, str(order.label))
            yield from is_ordered(found, found.records[done], wanted_leg, cases)
            done += 1
    for record in found.records[done:]:
        yield Wrong(record_place(record.leg), "no control asks for this leg")


def check_all_cases(suite: SuiteFile | None, found: AnyDocuments) -> Iterator[Wrong]:
    """No case of the suite is left out."""
    first = found.records[0]
    for case in suite.suite.cases if suite is not None else ():
        if all(row.case_id != case.id for row in first.case_results):
            yield Wrong(record_place(first.leg), f"case {case.id} of the suite is left out")


def is_ordered(
    found: AnyDocuments,
    record: RunRecord,
    wanted: tuple[str, LegRole, str],
    cases: tuple[str, ...],
) -> Iterator[Wrong]:
    """A leg is the one that the controls ask for.

    Args:
        found: The documents.
        record: The leg.
        wanted: Its name, role and variant.
        cases: Ids of its cases, in order.
    """
    at, (name, _, variant) = record_place(record.leg), wanted
    if (record.leg, record.role, record.variant) != wanted:
        yield Wrong(at, f"is not leg {name} ({variant}), which the controls ask for here")
        return
    if tuple(case.case_id for case in record.case_results) != cases:
        yield Wrong(f"{at}#/case_results", "are not the cases that this leg was to run")
    run_id = f"{found.card.run_id}-{name.replace('_', '-')}"
    if record.run_id != run_id:
        yield Wrong(f"{at}#/run_id", f"is {record.run_id}; a leg of this run has {run_id}")


# ------------------------------------------------------------------------------------- identity


def check_identity(found: AnyDocuments) -> Iterator[Wrong]:
    """Every document is of the same suite, image, agent, runtime and hook environment."""
    card, inputs = found.card, found.card.inputs
    for record in found.records:
        at, suite, runtime = record_place(record.leg), record.suite, record.runtime
        stated = (suite.id, suite.path, suite.sha256)
        if stated != (card.suite_id, card.suite_path, inputs.suite_sha256):
            yield Wrong(f"{at}#/suite", "is not the suite of the scorecard")
        if runtime is None:
            yield Wrong(f"{at}#/runtime", "is not stated")
            continue
        pairs = (
            ("engine", runtime.engine, inputs.engine),
            ("oci_runtime", runtime.oci_runtime, inputs.oci_runtime),
            ("image", runtime.image, inputs.image),
            ("image_id", runtime.image_id, inputs.image_id),
            ("agent_sha256", runtime.agent_sha256, inputs.agent_sha256),
            ("workspace_mode", runtime.workspace_mode, inputs.workspace_mode),
        )
        for name, mine, theirs in pairs:
            if mine != theirs:
                yield Wrong(f"{at}#/runtime/{name}", "is not that of the scorecard")
    if inputs.hook_environment_sha256 != digest(found.hooks.host):
        yield Wrong(f"{HOOKS}#/host", "is not what the scorecard has the digest of")
    if inputs.engine != f"docker {found.sandbox.engine.version}":
        yield Wrong("evidence/sandbox.json#/engine/version", "is not that of the scorecard")
    if len({(record.git.commit, record.git.dirty) for record in found.records}) > 1:
        yield Wrong("legs", "are not all of the same commit")


def check_varied(found: Documents) -> Iterator[Wrong]:
    """The roots differ, unless that they do not is the point."""
    off, on = (content.sha256 for content in found.roots.roots[:2])
    if found.card.controls.null_check:
        if off != on:
            yield Wrong(f"{SCORECARD}#/controls/null_check", "the roots are not the same")
    elif off == on and off is not None:
        yield Wrong(ROOTS, "both roots are the same, and it is no null check")


def check_notes(suite: SuiteFile | None, found: AnyDocuments) -> Iterator[Wrong]:
    """Warnings that follow from suite, roots and runtime are there."""
    mine, card = notes(found), found.card
    wanted = list(suite_warnings(suite.suite)) if suite is not None else []
    if is_gvisor(card.inputs.oci_runtime):
        wanted += gvisor.warnings(shared=card.inputs.workspace_mode.startswith("shared_"))
    for line in wanted:
        if line not in mine:
            yield Wrong(f"{SCORECARD}#/warnings", f"does not say: {line}")
    if isinstance(found, Documents) and not found.card.controls.null_check:
        for path in _helpful_in_both(found.roots):
            if not any(line.startswith(f"helpful artifact {path} is in the") for line in mine):
                yield Wrong(f"{SCORECARD}#/warnings", f"does not say that {path} is in both roots")


def _helpful_in_both(roots: ContextRoots) -> Iterator[str]:
    by_leg = {content.leg: content for content in roots.roots}
    off, on = by_leg.get(OFF), by_leg.get(ON)
    if off is None or on is None or on.context is None:
        return
    both = {item.path for item in off.entries if item.kind == "f"} & {
        item.path for item in on.entries if item.kind == "f"
    }
    for artifact in on.context.artifacts:
        if artifact.role == "helpful" and artifact.path in both:
            yield artifact.path
