"""Attest a comparison: the statements over everything that its evidence directory holds."""

from __future__ import annotations

from pathlib import Path

from runner.app.evidence import Evidence
from runner.attest.dsse import wrap
from runner.attest.keys import SigningKey, load_signing_key
from runner.attest.statement import ATTESTATION, TEST_RESULT_FILE, measurement, tested
from runner.logs import log
from runner.model.evidence import SandboxEvidence
from runner.model.skillscorecard import AnyScorecard


def signing_key(path: Path | None) -> SigningKey | None:
    """Read the key before anything runs: a wrong one must not cost a run.

    Args:
        path: `--sign-key`; None: the attestation is unsigned.

    Raises:
        InputError: It is no usable key.
        PrerequisiteError: The libraries for signatures are missing.
    """
    if path is None:
        return None
    key = load_signing_key(path)
    for warning in key.warnings:
        log.warning(warning)
    return key


def attest(
    evidence: Evidence,
    scorecard: AnyScorecard,
    sandbox: SandboxEvidence,
    key: SigningKey | None,
) -> None:
    """Write both statements; nothing may be written to the directory afterwards.

    Args:
        evidence: The directory, complete but for the statements.
        scorecard: The scorecard that was written.
        sandbox: The read-back that was written.
        key: Who signs.
    """
    result = tested(scorecard, evidence.digests["scorecard.json"])
    evidence.check("test-result.v1", result)
    evidence.write("dsse-envelope.v1", TEST_RESULT_FILE, wrap(result, key))
    statement = measurement(scorecard, sandbox, evidence.digests)
    evidence.check("attestation.v1", statement)
    evidence.write("dsse-envelope.v1", ATTESTATION, wrap(statement, key))
