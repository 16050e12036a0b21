"""An evidence directory on disk -> values, with everything that is wrong on the way."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple, TypeVar

from pydantic import ValidationError

from runner.app.suites import read_bytes
from runner.attest.dsse import MAX_BYTES, EnvelopeError, unwrap
from runner.attest.statement import ATTESTATION, TEST_RESULT_FILE
from runner.core.canon import canonical
from runner.core.crosscheck import HOOKS, READS, ROOTS, SANDBOX, record_place
from runner.core.livecheck import LIVE
from runner.core.rederive import SCORECARD, AnyDocuments, Documents, SkillDocuments
from runner.core.strictjson import StrictJsonError, loads, pointer
from runner.core.suitefile import read_suite
from runner.errors import InputError
from runner.host.evidencefiles import Changed, EvidenceFiles
from runner.model.attestation import DsseEnvelope, MeasurementStatement, TestResultStatement
from runner.model.base import Value
from runner.model.contextroots import ContextRoots
from runner.model.evidence import HooksEvidence, SandboxEvidence
from runner.model.liveproof import LiveStateEvidence
from runner.model.reads import ContextReads
from runner.model.record import RunRecord
from runner.model.scorecard import ContextScorecard
from runner.model.skillscorecard import AnyScorecard, SkillScorecard
from runner.model.suite import SuiteFile

SUITE = "suite.json"
RENDERINGS = ("report.html", "junit.xml", "summary.md")

V = TypeVar("V", bound=Value)
Tell = Callable[[str, str], None]
"""(where, problem)"""


class Attested(NamedTuple):
    """An envelope and the statement in it."""

    envelope: DsseEnvelope
    statement: MeasurementStatement | TestResultStatement


class StoredRun:
    """Reads what an evidence directory holds; every file at most once from where it was listed.

    Args:
        directory: The evidence directory.

    Raises:
        InputError: It is no evidence directory of a comparison.
    """

    def __init__(self, directory: Path) -> None:
        self.files = EvidenceFiles(directory, marks=(SCORECARD, ATTESTATION))

    def documents(self, tell: Tell) -> AnyDocuments | None:
        """Every document; None when one of them is missing or cannot be understood."""
        if self._is_skill():
            return self._skill_documents(tell)
        card = self._document(SCORECARD, "context-scorecard.v1", ContextScorecard, tell)
        live = self._document(LIVE, "live-state.v1", LiveStateEvidence, tell)
        sandbox = self._document(SANDBOX, "sandbox.v1", SandboxEvidence, tell)
        hooks = self._document(HOOKS, "hooks.v1", HooksEvidence, tell)
        reads = self._document(READS, "context-reads.v1", ContextReads, tell)
        roots = self._document(ROOTS, "context-roots.v1", ContextRoots, tell)
        records = self._records(sandbox, tell)
        if not (card and live and sandbox and hooks and reads and roots and records):
            return None
        return Documents(card, records, live, sandbox, hooks, reads, roots)

    def _is_skill(self) -> bool:
        """Which axis the scorecard claims to be of; all that follows has to bear it out."""
        try:
            plain = loads(self.files.read(SCORECARD), max_bytes=MAX_BYTES)
        except (KeyError, Changed, StrictJsonError):
            return False  # Whatever is wrong with it is told where it is read in earnest.
        return isinstance(plain, dict) and "skill_on_run_id" in plain

    def _skill_documents(self, tell: Tell) -> SkillDocuments | None:
        card = self._document(SCORECARD, "skill-scorecard.v1", SkillScorecard, tell)
        live = self._document(LIVE, "live-state.v1", LiveStateEvidence, tell)
        sandbox = self._document(SANDBOX, "sandbox.v1", SandboxEvidence, tell)
        hooks = self._document(HOOKS, "hooks.v1", HooksEvidence, tell)
        records = self._records(sandbox, tell)
        if not (card and live and sandbox and hooks and records):
            return None
        return SkillDocuments(card, records, live, sandbox, hooks)

    def _records(self, sandbox: SandboxEvidence | None, tell: Tell) -> tuple[RunRecord, ...] | None:
        """Records in the order in which the legs were run, which the sandbox evidence has."""
        order = [item.leg for item in sandbox.inside] if sandbox is not None else []
        there = {
            path.split("/")[1]
            for path in self.files.files
            if path.startswith("legs/") and path.endswith("/record.json") and path.count("/") == 2
        }
        found = []
        for leg in dict.fromkeys([*order, *sorted(there)]):
            place = record_place(leg)
            record = self._document(place, "eval-run.v1", RunRecord, tell)
            if record is None:
                continue
            if record.leg != leg:
                tell(f"{place}#/leg", f"is {record.leg}; here lies the record of {leg}")
            found.append(record)
        if len(found) < 2:
            tell("legs", "a comparison has at least two legs")
            return None
        return tuple(found) if len(found) == len({*order, *there}) else None

    def envelope(self, name: str, tell: Tell) -> Attested | None:
        """An envelope and its statement; what is wrong with them is told."""
        envelope = self._document(name, "dsse-envelope.v1", DsseEnvelope, tell)
        if envelope is None:
            return None
        contract, model = _STATEMENTS[name]
        try:
            payload, value = unwrap(envelope)
        except EnvelopeError as error:
            tell(name, str(error))
            return None
        statement = _understood(payload + b"\n", contract, model, lambda w, p: tell(name + w, p))
        del value
        return None if statement is None else Attested(envelope, statement)

    def suite(self, given: Path | None, card: AnyScorecard, tell: Tell) -> SuiteFile | None:
        """The suite: the stored one, or for a private holdout the one that was given.

        Args:
            given: `--suite`.
            card: The scorecard, which has its digest.
            tell: What is wrong.

        Returns:
            None when there is none, or it is not the one that was run.
        """
        if SUITE in self.files.files:
            data, where = self.files.read(SUITE), SUITE
        elif given is not None:
            data, where = read_bytes(given), f"--suite {given}"
        else:
            return None
        try:
            suite = read_suite(data, card.suite_path)
        except InputError as error:
            tell(where, error.summary)
            return None
        if suite.sha256 != card.inputs.suite_sha256:
            tell(where, "is not the suite that the scorecard has the digest of")
            return None
        if suite.suite.id != card.suite_id:
            tell(f"{SCORECARD}#/suite_id", f"is not {suite.suite.id}, as the suite says")
        if where == SUITE and suite.suite.is_holdout:
            tell(where, "a private holdout is not stored")
        return suite

    def _document(self, path: str, contract: str, model: type[V], tell: Tell) -> V | None:
        if path not in self.files.files:
            tell(path, "is missing")
            return None
        try:
            data = self.files.read(path)
        except Changed:
            tell(path, "changed while it was read")
            return None
        return _understood(data, contract, model, lambda where, what: tell(path + where, what))


_STATEMENTS: dict[str, tuple[str, type[MeasurementStatement | TestResultStatement]]] = {
    ATTESTATION: ("attestation.v1", MeasurementStatement),
    TEST_RESULT_FILE: ("test-result.v1", TestResultStatement),
}


def _understood(data: bytes, contract: str, model: type[V], tell: Tell) -> V | None:
    """One document: strict JSON, published schema, model, and the one canonical spelling."""
    from runner.contracts.judge import problem

    try:
        loads(data, max_bytes=MAX_BYTES)
    except StrictJsonError as error:
        tell(f"#{error.pointer}" if error.pointer else "", str(error))
        return None
    plain = json.loads(data)
    found = problem(contract, plain)
    if found is not None:
        tell(f"#{found.pointer or '/'}", found.message)
        return None
    try:
        value = model.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        tell(f"#{pointer(first['loc']) or '/'}", str(first["msg"]))
        return None
    if canonical(plain) != data:
        tell("", "is not in canonical form (RFC 8785)")
    return value


def allowed(found: AnyDocuments, outputs: Iterable[str], *, holdout: bool) -> set[str]:
    """Every file that has a place in an evidence directory.

    Args:
        found: The documents.
        outputs: Files of outputs that the records name.
        holdout: Neither suite nor outputs are stored.
    """
    files = {SCORECARD, LIVE, SANDBOX, HOOKS, ATTESTATION, TEST_RESULT_FILE, *RENDERINGS}
    if isinstance(found, Documents):
        files |= {READS, ROOTS}
    files |= {record_place(record.leg) for record in found.records}
    return files if holdout else files | {SUITE, *outputs}
