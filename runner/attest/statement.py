"""Scorecard and evidence -> what is attested: two in-toto statements over the same artifacts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

from runner.model.attestation import (
    MEASUREMENT,
    STATEMENT_TYPE,
    TEST_RESULT,
    AttestedRoot,
    AttestedSandbox,
    MeasurementPredicate,
    MeasurementStatement,
    ReadBack,
    ResourceDescriptor,
    TestResultPredicate,
    TestResultStatement,
)
from runner.model.evidence import SandboxEvidence
from runner.model.record import Status
from runner.model.scorecard import ContextScorecard, PairedCase
from runner.model.skillscorecard import AnyScorecard, SkillCase

ATTESTATION = "attestation.dsse.json"
TEST_RESULT_FILE = "test-result.dsse.json"
TREE, WITNESS = "aoTreeV1", "aoWitnessV1"
INPUT, LIVE = "input:", "live-state:"
"""Names of subjects that are no files of the directory begin with one of these."""


def is_file(subject: ResourceDescriptor) -> bool:
    """Whether a subject is a file of the evidence directory."""
    return not subject.name.startswith((INPUT, LIVE))


def measurement(
    card: AnyScorecard, sandbox: SandboxEvidence, files: Mapping[str, str]
) -> MeasurementStatement:
    """The statement of `attestation.dsse.json`.

    Args:
        card: The scorecard.
        sandbox: Containers as read back; the predicate holds every distinct profile.
        files: Every file of the evidence directory but the attestation itself: path -> SHA-256.
    """
    return MeasurementStatement(
        type=STATEMENT_TYPE,
        subject=(*_files(files), *_inputs(card), *_live(card)),
        predicate_type=MEASUREMENT,
        predicate=_predicate(card, sandbox),
    )


def tested(card: AnyScorecard, scorecard_sha256: str) -> TestResultStatement:
    """The statement of `test-result.dsse.json`, for readers that know nothing of ours.

    Its tests are the cases of the on-leg. It makes no mention of the off-leg: that one is there to
    be compared with, and is not meant to pass.

    Args:
        card: The scorecard.
        scorecard_sha256: SHA-256 of its file.
    """
    inputs = tuple(_inputs(card))
    return TestResultStatement(
        type=STATEMENT_TYPE,
        subject=(*_files({"scorecard.json": scorecard_sha256}), *inputs),
        predicate_type=TEST_RESULT,
        predicate=_test_result(card, inputs),
    )


def _files(files: Mapping[str, str]) -> Iterable[ResourceDescriptor]:
    for path, sha256 in sorted(files.items()):
        yield ResourceDescriptor(name=path, digest={"sha256": sha256})


def _inputs(card: AnyScorecard) -> Iterable[ResourceDescriptor]:
    """What went in: suite, roots, image, agent, workspace, hook environment."""
    inputs = card.inputs
    # No leg of the skill axis has a context root.
    legs = (card.context_off, card.context_on) if isinstance(card, ContextScorecard) else ()
    named = [
        ("suite", "sha256", inputs.suite_sha256),
        *((leg.variant, TREE, leg.context_root_sha256) for leg in legs),
        ("image", "sha256", inputs.image_id.removeprefix("sha256:")),
        ("agent", TREE, inputs.agent_sha256),
        ("workspace", TREE, inputs.workspace_sha256),
        ("hook_environment", "sha256", inputs.hook_environment_sha256),
        ("hooks_directory", TREE, card.integrity.hooks.directory_sha256),
    ]
    for name, algorithm, value in named:
        if value is not None:
            yield ResourceDescriptor(name=INPUT + name, digest={algorithm: value})


def _live(card: AnyScorecard) -> Iterable[ResourceDescriptor]:
    for root in card.integrity.live_state.roots:
        for when, sha256 in (("before", root.before_sha256), ("after", root.after_sha256)):
            if sha256 is not None:
                yield ResourceDescriptor(name=f"{LIVE}{when}:{root.path}", digest={WITNESS: sha256})


def _predicate(card: AnyScorecard, sandbox: SandboxEvidence) -> MeasurementPredicate:
    integrity, proof = card.integrity, card.integrity.sandbox
    profiles = []
    for container in sandbox.containers:
        if container.profile not in profiles:
            profiles.append(container.profile)
    return MeasurementPredicate(
        run_id=card.run_id,
        generated_at=card.generated_at,
        runner_version=card.inputs.runner_version,
        integrity=integrity.verdict,
        problems=integrity.problems,
        aggregate_delta=card.aggregate_delta,
        valid_pairs=card.pairing.valid_pairs,
        sandbox=AttestedSandbox(
            engine=card.inputs.engine,
            oci_runtime=card.inputs.oci_runtime,
            containers=proof.containers,
            differences=proof.differences,
            profiles=tuple(ReadBack(profile=profile) for profile in profiles),
            profile_sha256=proof.profile_sha256,
            network=proof.network,
            interfaces=proof.interfaces,
            capabilities=proof.capabilities,
            no_new_privs=proof.no_new_privs,
        ),
        live_state=tuple(
            AttestedRoot(
                path=root.path,
                fatal=root.fatal,
                before_sha256=root.before_sha256,
                after_sha256=root.after_sha256,
                changes=root.changes_total,
                changed_by=root.changed_by,
            )
            for root in integrity.live_state.roots
        ),
    )


def _on_side(row: PairedCase | SkillCase) -> tuple[str, Status]:
    if isinstance(row, PairedCase):
        return row.context_on.variant, row.context_on.status
    return "skill_on", row.skill_on_status


def _test_result(card: AnyScorecard, inputs: tuple[ResourceDescriptor, ...]) -> TestResultPredicate:
    passed, warned, failed = [], [], []
    for row in card.per_case:
        leg, status = _on_side(row)
        name = f"{leg}/{row.case_id}"
        if row.degraded_reason is not None or card.integrity.verdict != "clean":
            warned.append(name)
        elif status is Status.PASS:
            passed.append(name)
        else:
            failed.append(name)
    result: Literal["PASSED", "WARNED", "FAILED"] = "PASSED"
    if failed or card.integrity.verdict != "clean":
        result = "FAILED"
    elif warned:
        result = "WARNED"
    configuration = {f"{INPUT}suite", f"{INPUT}context_on", f"{INPUT}image"}
    return TestResultPredicate(
        result=result,
        configuration=tuple(item for item in inputs if item.name in configuration),
        passed_tests=tuple(passed),
        warned_tests=tuple(warned),
        failed_tests=tuple(failed),
    )
