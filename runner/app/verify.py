"""Check an evidence directory: offline, without an engine, and nothing of it is ever executed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from runner.app.storedrun import RENDERINGS, SUITE, Attested, StoredRun, allowed
from runner.app.verifyaxis import check_evidence, check_run, remade, renderings
from runner.app.verifyreport import Report
from runner.attest.dsse import EnvelopeError, signed_by
from runner.attest.keys import PublicKey
from runner.attest.statement import ATTESTATION, TEST_RESULT_FILE, is_file, measurement, tested
from runner.core.blobrefs import Stored, mismatch, references
from runner.core.canon import document
from runner.core.crosscheck import (
    Wrong,
    record_place,
)
from runner.core.firstdifference import first_difference
from runner.core.rederive import (
    SCORECARD,
    WITHOUT_SUITE,
    AnyDocuments,
    SkillDocuments,
    unknown_suite,
)
from runner.core.rejudge import NotJudged, derive
from runner.model.base import Value
from runner.model.suite import SuiteFile, Visibility
from runner.model.verification import Verification


class _Context(NamedTuple):
    """What the checks look at."""

    run: StoredRun
    found: AnyDocuments
    suite: SuiteFile | None
    attested: dict[str, Attested]


def verify(
    directory: Path, *, key: PublicKey | None = None, suite: Path | None = None
) -> Verification:
    """Check an evidence directory.

    Args:
        directory: The evidence directory of a comparison.
        key: Whose signature it must have; None: only consistency is checked.
        suite: The suite, where a private holdout's evidence does not hold it.

    Raises:
        InputError: It is no evidence directory of a comparison.
    """
    run, report = StoredRun(directory), Report()
    try:
        found = run.documents(lambda where, what: report.tell("documents", where, what))
        attested = {
            name: item
            for name in (ATTESTATION, TEST_RESULT_FILE)
            if (item := run.envelope(name, lambda w, p: report.tell("documents", w, p))) is not None
        }
        if found is None:
            report.impossible("scorecard", "a document is missing or cannot be understood")
            report.run("files", len(run.files.files), _entries(run))
        else:
            _all(run, found, attested, suite, report)
        report.run("documents", len(run.files.files), ())
        authorship = _signature(attested, key, report)
    finally:
        run.files.close()
    return _verification(
        directory, found, report, key=key, authorship=authorship, attested=attested
    )


def _all(
    run: StoredRun,
    found: AnyDocuments,
    attested: dict[str, Attested],
    given: Path | None,
    report: Report,
) -> None:
    holdout = found.records[0].suite.visibility is Visibility.PRIVATE_HOLDOUT
    suite = run.suite(given, found.card, lambda where, what: report.tell("outputs", where, what))
    if suite is not None and suite.suite.is_holdout != holdout:
        first = record_place(found.records[0].leg)
        report.tell("outputs", first, "has another visibility than the suite")
    context = _Context(run, found, suite, attested)
    outputs = [item for record in found.records for item in references(record)]
    places = {item.path for item in outputs if item.path is not None}
    report.run("files", len(run.files.files), _files(context, places, holdout=holdout))
    report.run("attestation", len(run.files.files), _attestation(context))
    report.run("outputs", len(outputs), _outputs(context, holdout=holdout))
    judged = sum(len(case.expectations) for record in found.records for case in record.case_results)
    if suite is None:
        why = "the suite is a private holdout and was not given (--suite FILE)"
        report.impossible("judgements", why if holdout else "there is no suite")
        report.taken.append("statuses and scores of cases: the suite is not known")
    else:
        report.run("judgements", judged, _judgements(context, suite, report))
    if holdout:
        report.taken.append("verdicts: outputs of a private holdout are stored nowhere")
    report.run("legs", len(found.records), check_run(suite, found))
    report.run("evidence", 5, check_evidence(suite, found))
    report.run("scorecard", 1, _scorecard(context, report))
    report.run("renderings", len(RENDERINGS), _renderings(context))


# ------------------------------------------------------------------------------- files, statements


def _entries(run: StoredRun) -> Iterator[Wrong]:
    for path, why in run.files.refused.items():
        yield Wrong(path, f"is {why}" if not why.startswith("cannot") else why)


def _files(context: _Context, outputs: set[str], *, holdout: bool) -> Iterator[Wrong]:
    yield from _entries(context.run)
    there = context.run.files.files.keys()
    wanted = allowed(context.found, outputs, holdout=holdout)
    for path in sorted(wanted - there):
        yield Wrong(path, "is missing")
    for path in sorted(there - wanted):
        yield Wrong(path, "has no place in an evidence directory")


def _attestation(context: _Context) -> Iterator[Wrong]:
    run, found = context.run, context.found
    for name in (ATTESTATION, TEST_RESULT_FILE):
        if name not in context.attested:
            yield Wrong(name, "there is no such statement that can be understood")
    attestation = context.attested.get(ATTESTATION)
    if attestation is not None:
        stated = {
            item.name: item.digest.get("sha256", "")
            for item in attestation.statement.subject
            if is_file(item)
        }
        digests = {path: sha for path, sha in run.files.digests.items() if path != ATTESTATION}
        predicate = attestation.statement.predicate
        run_id = getattr(predicate, "run_id", None)
        if run_id != found.card.run_id:
            yield Wrong(ATTESTATION, f"is of another run: {run_id}, not {found.card.run_id}")
        for path in sorted(stated.keys() | digests.keys()):
            if path not in digests:
                yield Wrong(path, "is attested and missing")
            elif path not in stated:
                yield Wrong(path, "is not attested")
            elif stated[path] != digests[path]:
                yield Wrong(path, "has another SHA-256 than attested")
        wanted: Value = measurement(found.card, found.sandbox, digests)
        yield from _same(ATTESTATION, attestation.statement, wanted)
    result = context.attested.get(TEST_RESULT_FILE)
    if result is not None:
        card_sha256 = run.files.digests.get(SCORECARD, "")
        yield from _same(TEST_RESULT_FILE, result.statement, tested(found.card, card_sha256))


def _same(where: str, mine: Value, wanted: Value) -> Iterator[Wrong]:
    """The first field in which a document is not what it must be."""
    different = first_difference(document(mine), document(wanted))
    if different is not None:
        yield Wrong(f"{where}#{different.pointer or '/'}", different.words)


# ------------------------------------------------------------------------------ outputs, judgements


def _outputs(context: _Context, *, holdout: bool) -> Iterator[Wrong]:
    files = {path: Stored(item.size, item.sha256) for path, item in context.run.files.files.items()}
    taken: set[str] = set()
    for record in context.found.records:
        for item in references(record):
            problem = mismatch(item, files, withheld=holdout)
            if problem is None and item.path is not None and item.path in taken:
                problem = f"{item.path} is named twice"
            if item.path is not None:
                taken.add(item.path)
            if problem is not None:
                yield Wrong(f"{record_place(record.leg)}#{item.pointer}", problem)
    if context.suite is None and not holdout and SUITE not in files:
        yield Wrong(SUITE, "is missing, and the suite is no private holdout")


def _judgements(context: _Context, suite: SuiteFile, report: Report) -> Iterator[Wrong]:
    found = context.found
    pairs = [found.records[start : start + 2] for start in range(0, len(found.records), 2)]
    roots = None if isinstance(found, SkillDocuments) else found.roots
    try:
        made = derive(suite, pairs, found.live.proof, context.run.files.read, roots)
    except NotJudged as error:
        yield Wrong("legs", str(error))
        return
    for record, derived in zip(found.records, made, strict=True):
        report.taken += derived.taken
        place = record_place(record.leg)
        mine, wanted = document(record), document(derived.record)
        # What a case came to explains what the leg came to: it is named first.
        first = first_difference(
            {"case_results": mine["case_results"]}, {"case_results": wanted["case_results"]}
        )
        different = first or first_difference(mine, wanted)
        if different is not None:
            yield Wrong(f"{place}#{different.pointer or '/'}", different.words)


# ------------------------------------------------------------------------------------ the scorecard


def _scorecard(context: _Context, report: Report) -> Iterator[Wrong]:
    found, suite = context.found, context.suite or unknown_suite(context.found.card)
    made = remade(suite, found, context.run.files.read)
    mine, wanted = document(found.card), document(made)
    if context.suite is None:
        report.taken.append("aggregates, delta and statistics: the suite's weights are not known")
        for name in WITHOUT_SUITE:
            del mine[name], wanted[name]
    different = first_difference(mine, wanted)
    if different is not None:
        yield Wrong(f"{SCORECARD}#{different.pointer or '/'}", different.words)


def _renderings(context: _Context) -> Iterator[Wrong]:
    render = renderings(context.found)
    for name in RENDERINGS:
        if name not in context.run.files.files:
            continue  # `files` has said so.
        made = render[name]()
        if context.run.files.read(name) != (made.encode() if isinstance(made, str) else made):
            yield Wrong(name, "is not the rendering of this scorecard")


# ------------------------------------------------------------------------------------ the signature


def _signature(
    attested: dict[str, Attested], key: PublicKey | None, report: Report
) -> Literal["shown", "refuted", "consistency_only"]:
    if key is None:
        report.impossible("signature", "no key was given: consistency only")
        return "consistency_only"
    before = len(report.problems)
    report.run("signature", len(attested), _signed(attested, key))
    return "shown" if len(report.problems) == before else "refuted"


def _signed(attested: dict[str, Attested], key: PublicKey) -> Iterator[Wrong]:
    for name in (ATTESTATION, TEST_RESULT_FILE):
        item = attested.get(name)
        if item is None:
            yield Wrong(name, "there is nothing signed")
            continue
        hints = [signature.keyid for signature in item.envelope.signatures]
        if not hints:
            yield Wrong(name, "is not signed")
            continue
        if key.key_id not in hints:
            yield Wrong(name, f"is signed by another key ({', '.join(hints)})")
            continue
        try:
            if not signed_by(item.envelope, [key]):
                yield Wrong(name, "the signature does not fit what is stated")
        except EnvelopeError as error:
            yield Wrong(name, str(error))


# ------------------------------------------------------------------------------------- the verdict

_MACHINE = (
    "that the machine which observed told the truth: what it saw is taken as it was stored "
    "(outputs, exit codes, live-state manifests, what the engine reported)"
)
_STATED = "digests of workspace, image and agent: they are stated, and not stored to be recomputed"


def _verification(
    directory: Path,
    found: AnyDocuments | None,
    report: Report,
    *,
    key: PublicKey | None,
    authorship: Literal["shown", "refuted", "consistency_only"],
    attested: dict[str, Attested],
) -> Verification:
    not_shown = [_MACHINE, _STATED, *dict.fromkeys(report.taken)]
    if key is None:
        not_shown.insert(0, "who made it: consistent forgeries pass without a key (--key PUB)")
    return Verification(
        schema_version=1,
        directory=str(directory),
        run_id=found.card.run_id if found is not None else None,
        verdict="rejected" if report.problems else "accepted",
        authorship=authorship,
        key_id=key.key_id if key is not None else None,
        signed_by=tuple(
            dict.fromkeys(
                signature.keyid
                for item in attested.values()
                for signature in item.envelope.signatures
            )
        ),
        checks=report.in_order(),
        problems=tuple(report.problems),
        not_shown=tuple(not_shown),
    )
