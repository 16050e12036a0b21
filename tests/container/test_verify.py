"""`ao-eval verify` on real evidence: the honest directory passes, every tampered copy is rejected.

Each tampered copy is made twice where that makes sense: as it is, held against the signature of
whoever made the run; and made consistent again by a forger who has the product but not the key,
held against the evidence alone.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from cryptography.hazmat.primitives import serialization as ser
from cryptography.hazmat.primitives.asymmetric import ed25519
from pydantic import ValidationError

from runner.app.verify import verify
from runner.attest.keys import PublicKey, SigningKey, load_public_key, load_signing_key
from runner.attest.statement import ATTESTATION, TEST_RESULT_FILE
from runner.model.verification import Verification
from tests.conftest import MakeProject
from tests.container.forging import Forger, Json, row
from tests.container.projects import EXIT_0, NEEDS_HINT, Project, Result, case

pytestmark = [pytest.mark.container, pytest.mark.slow]

LEGS = ("context_off", "context_on")
READS, HANGS, TELLS, WRITES, DETECTS, STATIC = (
    "reads", "hangs", "tells", "writes", "detects", "static",
)  # fmt: skip
PUBLIC = ser.PublicFormat.SubjectPublicKeyInfo


class Keys(NamedTuple):
    """Files of keys: the maker's, and a stranger's."""

    private: Path
    public: Path
    stranger: Path

    @property
    def key(self) -> PublicKey:
        """The maker's."""
        return load_public_key(self.public)

    @property
    def other(self) -> SigningKey:
        """The stranger's."""
        return load_signing_key(self.stranger)


class Made(NamedTuple):
    """A signed run, another of the same suite, and the keys."""

    project: Project
    honest: Path
    other: Path
    keys: Keys


def keep_key(folder: Path, name: str) -> Path:
    """A fresh private key."""
    key = ed25519.Ed25519PrivateKey.generate()
    path = folder / name
    path.write_bytes(
        key.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.PKCS8, ser.NoEncryption())
    )
    path.chmod(0o600)
    public = key.public_key().public_bytes(ser.Encoding.PEM, PUBLIC)
    path.with_suffix(".pub").write_bytes(public)
    return path


def run(project: Project, path: Path, run_id: str, key: Path, *more: object) -> Result:
    """A signed run under the default controls, at a declared time."""
    return project.ao_eval(
        "ab", path, "--controls", "standard", "--run-id", run_id, "--sign-key", key, *more,
        SOURCE_DATE_EPOCH="1700000000",
    )  # fmt: skip


@pytest.fixture(scope="module")
def made(make_project: MakeProject, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two signed runs of a suite that has a bit of everything."""
    folder = tmp_path_factory.mktemp("verify")
    project = make_project(folder / "project")
    private, stranger = keep_key(folder, "maker"), keep_key(folder, "stranger")
    probe = {"command": "echo built v1.22.0", "pattern": r"v([0-9.]+)"}
    path = project.suite(
        case(READS, NEEDS_HINT + " && echo found it"),
        case(HANGS, "sleep 60", timeout_seconds=1),
        case(
            TELLS,
            "echo out; echo err >&2",
            EXIT_0,
            {"type": "stdout_contains", "value": "out"},
            {"type": "stderr_contains", "value": "nothing of it", "required": False},
        ),
        case(
            WRITES,
            "echo '{\"n\": 3}' > made.json",
            {"type": "json_path", "target": "made.json:$.n", "value": 3},
            {"type": "file_absent", "target": "gone.json"},
        ),
        case(
            DETECTS,
            "echo version v1.22.0",
            {"type": "stdout_contains_auto_detect", "value": probe},
        ),
        {
            **case(STATIC, None, {"type": "file_exists", "target": "notes.txt"}),
            "kind": "documentation",
        },
    )
    project.write({"evals/notes.txt": "notes\n"})
    directories = []
    for run_id in ("first", "second"):
        # Beside the repository: in it they would be part of the next run's workspace.
        out = folder / run_id
        result = run(project, path, run_id, private, "--out-dir", out)
        assert result.code == 0, result.stderr
        directories.append(next(out.iterdir()))
    return Made(
        project, directories[0], directories[1],
        Keys(private, private.with_suffix(".pub"), stranger),
    )  # fmt: skip


# ------------------------------------------------------------------------------------- the honest


def test_the_honest_directory_is_accepted_and_its_author_shown(made: Made) -> None:
    result = made.project.ao_eval("verify", made.honest, "--key", made.keys.public)
    assert result.code == 0, result.stdout
    assert f"signed by key {made.keys.key.key_id}" in result.stdout
    found = verify(made.honest, key=made.keys.key)
    assert {item.state for item in found.checks} == {"passed"}
    assert len(found.checks) == 10
    assert any("told the truth" in line for line in found.not_shown)


def test_without_a_key_only_consistency_is_shown(made: Made) -> None:
    result = made.project.ao_eval("verify", made.honest)
    assert result.code == 0
    assert "accepted: " in result.stdout
    assert "consistency only" in result.stdout
    document = made.project.ao_eval("verify", made.honest, "--json").document
    assert document["authorship"] == "consistency_only"
    assert document["verdict"] == "accepted"


def test_it_works_where_there_is_neither_engine_nor_the_suite_nor_the_program_s_folder(
    made: Made, tmp_path: Path
) -> None:
    copy = tmp_path / "elsewhere"
    shutil.copytree(made.honest, copy)
    for path in copy.rglob("*"):
        path.chmod(0o500 if path.is_dir() else 0o400)
    result = made.project.ao_eval(
        "verify", copy, "--key", made.keys.public, DOCKER_HOST="unix:///nowhere"
    )
    assert result.code == 0, result.stdout + result.stderr


def test_the_run_showed_what_the_tampering_needs(made: Made) -> None:
    card = json.loads((made.honest / "scorecard.json").read_bytes())
    assert card["aggregate_delta"] == 0.2
    assert row(card["per_case"], HANGS)["degraded_detail"] == "timeout"
    assert row(card["per_case"], READS)["score_delta"] == 1
    assert card["controls"]["legs"] > 10


def test_the_same_inputs_give_the_same_bytes(made: Made, tmp_path: Path) -> None:
    path = made.project.repo / "evals" / "demo.json"
    result = run(made.project, path, "first", made.keys.private, "--out-dir", tmp_path / "again")
    assert result.code == 0, result.stderr
    (directory,) = (tmp_path / "again").iterdir()
    names = ("scorecard.json", "report.html", "junit.xml", "summary.md", TEST_RESULT_FILE)
    for name in names:
        assert (directory / name).read_bytes() == (made.honest / name).read_bytes(), name


def test_usage_is_told_apart_from_rejection(made: Made, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert made.project.ao_eval("verify", tmp_path / "empty").code == 2
    assert made.project.ao_eval("verify", tmp_path / "missing").code == 2
    assert made.project.ao_eval("verify", made.honest, "--key", tmp_path / "no").code == 2
    assert made.project.ao_eval("verify", made.honest, "--key", made.keys.private).code == 2
    (tmp_path / "one").mkdir()
    shutil.copy(made.honest / "scorecard.json", tmp_path / "one")
    assert made.project.ao_eval("verify", tmp_path / "one").code == 5


# ------------------------------------------------------------------- what a forger makes consistent


class Edit(NamedTuple):
    """One forgery.

    Attributes:
        name: What is forged.
        change: How.
        told: What the reason must say (regular expression), whether a key is given or not.
        again: What the forger makes anew afterwards.
    """

    name: str
    change: Callable[[Forger], object]
    told: str
    again: tuple[str, ...] = ("rerender", "reseal")


CARD, RECORD = ("rerender", "reseal"), ("reassemble", "rerender", "reseal")


def on_card(name: str, change: Callable[[Json], object], told: str) -> Edit:
    return Edit(name, lambda forger: forger.edit_card(change), told)


def on_case(
    name: str, case_id: str, change: Callable[[Json], object], told: str, leg: str = "context_on"
) -> Edit:
    return Edit(name, lambda forger: forger.edit_case(leg, case_id, change), told, RECORD)


def on_file(name: str, file: str, change: Callable[[Json], object], told: str, *again: str) -> Edit:
    return Edit(name, lambda forger: forger.edit(file, change), told, again or RECORD)


def put(**values: object) -> Callable[[Json], object]:
    return lambda item: item.update(values)


def in_row(case_id: str, **values: object) -> Callable[[Json], object]:
    return lambda card: row(card["per_case"], case_id).update(values)


def clean(case_row: Json) -> Json:
    """A degraded row of a record, made to look like a pass."""
    case_row.update(
        status="pass", score=1, degraded_reason=None, degraded_detail=None, failure_message=None
    )
    for item in case_row["expectations"]:
        item.update(verdict="passed")
    return case_row


def swap_legs(forger: Forger) -> None:
    """The rows of the two legs exchanged, with their records."""
    off, on = (forger.read(f"legs/{leg}/record.json") for leg in LEGS)
    off["case_results"], on["case_results"] = on["case_results"], off["case_results"]
    for leg, record in zip(LEGS, (off, on), strict=True):
        forger.write(f"legs/{leg}/record.json", record)
    folders = [forger.path / "legs" / leg / "cases" for leg in LEGS]
    aside = forger.path / "aside"
    folders[0].rename(aside)
    folders[1].rename(folders[0])
    aside.rename(folders[1])
    for leg, other in (LEGS, LEGS[::-1]):
        place = forger.path / "legs" / leg / "record.json"
        text = place.read_text(encoding="utf-8")
        place.write_text(text.replace(f"legs/{other}/cases", f"legs/{leg}/cases"), encoding="utf-8")


def swap_roots(forger: Forger) -> None:
    """The two context roots exchanged."""

    def change(roots: Json) -> None:
        first, second = roots["roots"]
        first["leg"], second["leg"] = second["leg"], first["leg"]
        roots["roots"] = [second, first]

    forger.edit("evidence/context-roots.json", change)


def drop_legs(pattern: str) -> Callable[[Forger], None]:
    """Take every trace of some legs away."""

    def change(forger: Forger) -> None:
        for leg in list(forger.legs()):
            if re.fullmatch(pattern, leg):
                shutil.rmtree(forger.path / "legs" / leg)

        def without(*names: str) -> Callable[[Json], None]:
            def drop(value: Json) -> None:
                for name in names:
                    value[name] = [x for x in value[name] if not re.fullmatch(pattern, x["leg"])]

            return drop

        forger.edit("evidence/sandbox.json", without("containers", "inside"))
        forger.edit("evidence/hooks.json", without("legs"))
        forger.edit("evidence/context-reads.json", without("legs"))

    return change


def drop_case(forger: Forger) -> None:
    """Take a case out of every record, with its outputs."""
    for leg in forger.legs():
        forger.edit_record(
            leg,
            lambda record: record.update(
                case_results=[x for x in record["case_results"] if x["case_id"] != TELLS]
            ),
        )
        shutil.rmtree(forger.path / "legs" / leg / "cases" / TELLS, ignore_errors=True)


def add_case(forger: Forger) -> None:
    """Put a copy of a case under another name into the first records."""
    for leg in LEGS:
        forger.edit_record(
            leg,
            lambda record: record["case_results"].append(
                {**row(record["case_results"], STATIC), "case_id": "another"}
            ),
        )


def replace_output(*, told: bool) -> Callable[[Forger], None]:
    """Other bytes for an output; the record is told of them or not."""
    import hashlib

    data = b"nothing of the kind\n"
    place = f"legs/context_on/cases/{TELLS}/stdout"

    def change(forger: Forger) -> None:
        (forger.path / place).write_bytes(data)
        if told:
            stream = {"size": len(data), "kept": len(data), "path": place,
                      "sha256": hashlib.sha256(data).hexdigest()}  # fmt: skip
            forger.edit_case("context_on", TELLS, put(stdout=stream))

    return change


def other_suite(change: Callable[[Json], object]) -> Callable[[Forger], None]:
    """Another suite, with its digest wherever it is stated."""
    import hashlib

    def forge(forger: Forger) -> None:
        forger.edit("suite.json", change)
        sha256 = hashlib.sha256((forger.path / "suite.json").read_bytes()).hexdigest()
        for leg in forger.legs():
            forger.edit_record(leg, lambda record: record["suite"].update(sha256=sha256))
        forger.edit_card(lambda card: card["inputs"].update(suite_sha256=sha256))

    return forge


def first_container(change: Callable[[Json], object]) -> Callable[[Json], object]:
    return lambda sandbox: change(sandbox["containers"][0])


def live_root(change: Callable[[Json], object]) -> Callable[[Json], object]:
    return lambda live: change(live["proof"]["roots"][0])


SANDBOX, LIVE = "evidence/sandbox.json", "evidence/live-state.json"
HOOKS, ROOTS = "evidence/hooks.json", "evidence/context-roots.json"
LIE = "0" * 64

EDITS: tuple[Edit, ...] = (
    # The scorecard alone.
    on_card("another delta", put(aggregate_delta=0.9), r"scorecard.json#/aggregate_delta"),
    on_card("no delta", put(aggregate_delta=None), r"scorecard.json#/aggregate_delta"),
    on_card("a score of a row", in_row(READS, score_delta=0.5), r"per_case/0/score_delta"),
    on_card(
        "a row's status", lambda c: c["per_case"][2]["context_off"].update(status="fail"),
        r"per_case/2/context_off/status",
    ),
    on_card(
        "rows swapped", lambda c: c["per_case"].insert(0, c["per_case"].pop()), r"per_case/0/"
    ),
    on_card("a row removed", lambda c: c["per_case"].pop(), r"per_case: has 5 items"),
    on_card(
        "a row added", lambda c: c["per_case"].append({**c["per_case"][5], "case_id": "x"}),
        r"per_case: has 7 items",
    ),
    on_card(
        "sides of a row swapped",
        lambda c: c["per_case"][0].update(
            context_off={**c["per_case"][0]["context_on"], "variant": "context_off"},
            context_on={**c["per_case"][0]["context_off"], "variant": "context_on"},
        ),
        r"per_case/0/context_o",
    ),
    on_card(
        "a degraded detail", in_row(HANGS, degraded_detail="crash"), r"per_case/1/degraded_detail"
    ),
    on_card(
        "a degraded reason", in_row(HANGS, degraded_reason="runtime_unavailable"),
        r"per_case/1/degraded_reason",
    ),
    on_card("an attribution", in_row(READS, artifact_attribution=["none"]), r"artifact_attribut"),
    on_card(
        "an excerpt",
        lambda c: next(
            x for x in c["per_case"][0]["decision_evidence"] if x["kind"] == "command_output"
        ).update(excerpt="exit 7"),
        r"decision_evidence/\d+/excerpt",
    ),
    on_card(
        "a digest of evidence",
        lambda c: next(
            x for x in c["per_case"][0]["decision_evidence"] if x["kind"] == "command_output"
        ).update(sha256=LIE),
        r"decision_evidence/\d+/sha256",
    ),
    on_card(
        "ignored context", lambda c: c["per_case"][2].update(ignored_context_evidence=[]),
        r"ignored_context_evidence",
    ),
    on_card("improved pairs", lambda c: c["resolution"].update(improved=3), r"resolution/improved"),
    on_card(
        "a p-value", lambda c: c["resolution"].update(mcnemar_exact_p=0.01),
        r"resolution/mcnemar_exact_p",
    ),
    on_card(
        "a bound", lambda c: c["pairing"].update(delta_lower_bound=0.7),
        r"pairing/delta_lower_bound",
    ),
    on_card("valid pairs", lambda c: c["pairing"].update(valid_pairs=6), r"pairing/valid_pairs"),
    on_card(
        "a leg's aggregate", lambda c: c["context_off"].update(aggregate_score=0.1),
        r"context_off/aggregate_score",
    ),
    on_card("a null check", lambda c: c["controls"].update(null_check=True), r"null_check"),
    on_card("controls: rows", lambda c: c["controls"].update(cases=[]), r"controls/cases"),
    on_card(
        "controls: how many", lambda c: c["controls"].update(extra_replicates=20),
        r"controls/extra_replicates",
    ),
    on_card(
        "controls: none", lambda c: c["controls"].update(mode="none"), r"no control asks|controls"
    ),
    on_card("attributed cases", lambda c: c["attribution"].update(cases=[]), r"attribution/cases"),
    on_card("units", lambda c: c["attribution"]["units"].pop(), r"attribution/units"),
    on_card(
        "a problem hidden", lambda c: c["integrity"].update(problems=["x"]), r"integrity/problems"
    ),
    on_card("a verdict", lambda c: c["integrity"].update(verdict="violated"), r"integrity/verdict"),
    on_card(
        "an image", lambda c: c["inputs"].update(image_id=f"sha256:{LIE}"), r"runtime/image_id"
    ),
    on_card("an agent", lambda c: c["inputs"].update(agent_sha256=LIE), r"runtime/agent_sha256"),
    on_card("an engine", lambda c: c["inputs"].update(engine="docker 1"), r"runtime/engine"),
    on_card("a runtime", lambda c: c["inputs"].update(oci_runtime="crun"), r"runtime/oci_runtime"),
    on_card(
        "a hook environment", lambda c: c["inputs"].update(hook_environment_sha256=LIE),
        r"hooks.json#/host",
    ),
    on_card("a run id", put(run_id="another"), r"a leg of this run has another"),
    on_card("a suite id", put(suite_id="another"), r"suite_id|is not the suite of the scorecard"),
    on_card(
        "a profile's digest", lambda c: c["integrity"]["sandbox"].update(profile_sha256=LIE),
        r"sandbox/profile_sha256",
    ),
    # Records, the scorecard made again.
    on_case("a verdict in a record", TELLS, lambda x: x["expectations"][2].update(verdict="passed"),
            r"context_on/record.json#/case_results/2/expectations/2/verdict"),
    on_case("a pass instead of a timeout", HANGS, clean, r"case_results/1/"),
    on_case("a timeout hidden", HANGS, lambda x: clean(x).update(timed_out=False),
            r"case_results/1/"),
    on_case("another degraded detail", HANGS, put(degraded_detail="crash"),
            r"case_results/1/degraded_detail"),
    on_case("a score in a record", TELLS, put(score=0.5), r"case_results/2/score"),
    on_case("a status in a record", TELLS, put(status="fail"), r"case_results/2/status"),
    on_case("an exit code", TELLS, put(exit_code=3), r"case_results/2/"),
    on_case("a fingerprint", WRITES, lambda x: x["expectations"][0].update(fingerprint=LIE),
            r"case_results/3/expectations/0/fingerprint"),
    on_case("a message", WRITES, lambda x: x["expectations"][0].update(message="x"),
            r"case_results/3/expectations/0/message"),
    on_case("a file that was absent", WRITES, lambda x: x["files"][1].update(state="regular"),
            r"case_results/3/"),
    on_case("a probe", DETECTS, lambda x: x["probes"][0].update(start_error="not_found"),
            r"case_results/4/"),
    on_case("an expectation dropped", TELLS, lambda x: x["expectations"].pop(),
            r"case_results/2/expectations: has 2 items"),
    on_case("a size", TELLS, lambda x: x["stdout"].update(size=99), r"keeps 4 of 99 bytes"),
    on_case("a digest", TELLS, lambda x: x["stdout"].update(sha256=LIE), r"another SHA-256"),
    on_case("an output disowned", TELLS, lambda x: x["stdout"].update(path=None),
            r"names no file"),
    on_case("another's output", TELLS,
            lambda x: x["stdout"].update(path=f"legs/context_off/cases/{TELLS}/stdout"),
            r"its place is"),
    on_case("critical", TELLS, put(critical=True), r"case_results/2/critical"),
    on_case("dimensions", TELLS, put(dimensions=["safety"]), r"case_results/2/dimensions"),
    Edit("a leg's status", lambda f: f.edit_record("context_on", put(status="pass")),
         r"context_on/record.json#/status", RECORD),
    Edit("a leg degraded", lambda f: f.edit_record("context_off", lambda r: (
        r.update(degraded_reason="runtime_unavailable", degraded_detail="engine_lost",
                 verdict="inconclusive"),
        [x.update(degraded_reason="runtime_unavailable", degraded_detail="engine_lost")
         for x in r["case_results"]])), r"context_off", RECORD),
    Edit("a leg's root", lambda f: f.edit_record("context_on", put(context_root_sha256=LIE)),
         r"context_root_sha256", RECORD),
    Edit("a leg's variant", lambda f: f.edit_record("context_on_r2", put(variant="context_off")),
         r"is not leg context_on_r2", RECORD),
    Edit("a leg's run id", lambda f: f.edit_record("context_on", put(run_id="second-context-on")),
         r"run_id", RECORD),
    Edit("legs swapped", swap_legs, r"context_o", RECORD),
    Edit("roots swapped", swap_roots, r"context_root_sha256", RECORD),
    Edit("replicates left out", drop_legs(r".*_r\d+"), r"is missing; the controls ask", RECORD),
    Edit("one replicate left out", drop_legs(r"context_on_r10"), r"missing|is not leg", RECORD),
    Edit("swapped labels left out", drop_legs(r".*_swapped"), r"is not leg context_off_swapped",
         RECORD),
    Edit("a case left out", drop_case, r"case tells of the suite is left out", RECORD),
    Edit("a case added", add_case, r"no case 'another'", ("rerender", "reseal")),
    Edit("an output replaced", replace_output(told=False), r"stdout has 20 bytes|another SHA-256",
         RECORD),
    Edit("an output and its digest replaced", replace_output(told=True),
         r"case_results/2/", RECORD),
    Edit("another expectation", other_suite(
        lambda s: s["cases"][2]["expectations"][1].update(value="nothing")),
        r"case_results/2/", RECORD),
    Edit("another weight", other_suite(
        lambda s: s["scoring"]["dimensions"].append(
            {"name": "safety", "weight": 9, "threshold": 0.5})), r"record.json#/", RECORD),
    Edit("a case of the suite optional", other_suite(
        lambda s: s["cases"][0]["expectations"][0].update(required=False)), r"case_results/0/",
        RECORD),
    on_file("the suite alone", "suite.json", put(name="other"), r"suite.json: is not the suite"
            , "reseal"),
    # Evidence, the scorecard made again.
    on_file("a network", SANDBOX, first_container(
        lambda c: c["profile"]["host"].update(NetworkMode="bridge")), r"host/NetworkMode"),
    on_file("a privilege", SANDBOX, first_container(
        lambda c: c["profile"]["host"].update(Privileged=True)), r"host/Privileged"),
    on_file("a writable mount", SANDBOX, first_container(
        lambda c: [m.update(read_only=False) for m in c["profile"]["mounts"]]), r"is writable"),
    on_file("a container left out", SANDBOX, lambda s: s["containers"].pop(0),
            r"are not all there|not read back"),
    on_file("a difference untold", SANDBOX, first_container(
        lambda c: c.update(differences=[{"field": "Image", "asked": 1, "found": 2}])),
        r"does not tell of Image"),
    on_file("an inside report", SANDBOX, lambda s: s["inside"][0]["start"].update(
        capabilities="00000000000000ff"), r"inside/0/start"),
    on_file("an engine's version", SANDBOX, lambda s: s["engine"].update(version="1"),
            r"engine/version"),
    on_file("a hook preserved", HOOKS, lambda h: h["legs"][0].update(preserved=False),
            r"legs/0/preserved"),
    on_file("a hook variable", HOOKS, lambda h: h["host"].update(AO_X=LIE), r"hook_environment"),
    on_file("an entry of a root", ROOTS, lambda r: r["roots"][1]["entries"][1].update(sha256=LIE),
            r"roots/1/sha256: does not follow"),
    on_file("an entry left out", ROOTS, lambda r: r["roots"][1]["entries"].pop(),
            r"roots/1/sha256: does not follow"),
    on_file("a root's label", ROOTS, lambda r: r["roots"][1].update(label="x"),
            r"context_root_label"),
    on_file("reads of nobody", "evidence/context-reads.json", lambda r: r["legs"].append(
        {"leg": "nobody", "state": "unavailable", "detail": "x", "granularity": None,
         "cases": []}), r"there is no such leg"),
    on_file("live state: after", LIVE, live_root(put(after_sha256=LIE)), r"live-state.json"),
    on_file("live state: a writer", LIVE, live_root(put(changed_by="by_outsider")),
            r"live-state.json|degraded"),
    on_file("live state: the claim", LIVE, lambda x: x["proof"].update(claim="never written"),
            r"proof/claim"),
    on_file("live state: the decoys", LIVE, lambda x: x["proof"]["decoys"][0].update(witnessed=3),
            r"decoys/0/verdict"),
    on_file("live state: mounts", LIVE, lambda x: x["proof"].update(mounts_checked=0),
            r"mounts_checked"),
)  # fmt: skip


def again(forger: Forger, edit: Edit) -> None:
    """Make the rest consistent, as far as it goes: some lies no scorecard can be made of."""
    for step in edit.again:
        with contextlib.suppress(ValidationError):
            getattr(forger, step)()


def reasons(found: Verification) -> str:
    """All problems as text."""
    return "\n".join(f"{item.check}: {item.where}: {item.problem}" for item in found.problems)


COUNTED: list[str] = []
"""Tampered copies that were rejected with their reason."""


def rejected(found: Verification, told: str, name: str) -> None:
    """The copy is rejected, for this reason among others."""
    assert found.verdict == "rejected", name
    assert re.search(told, reasons(found)), (name, told, reasons(found))
    assert all(item.problem for item in found.problems)
    COUNTED.append(name)


@pytest.mark.parametrize("edit", EDITS, ids=lambda edit: edit.name)
def test_an_edited_copy_is_rejected_by_the_evidence_alone_however_consistent_it_is_made(
    made: Made, tmp_path: Path, edit: Edit
) -> None:
    plain = Forger(made.honest, tmp_path / "plain")
    edit.change(plain)
    found = verify(plain.path, key=made.keys.key)
    rejected(found, edit.told, f"{edit.name}, as it is")
    assert "attest" in reasons(found)

    forged = Forger(made.honest, tmp_path / "forged")
    edit.change(forged)
    again(forged, edit)
    rejected(verify(forged.path), edit.told, f"{edit.name}, consistent and unsigned")


def test_a_flipped_bit_in_any_file_is_rejected_and_the_file_named(
    made: Made, tmp_path: Path
) -> None:
    forger = Forger(made.honest, tmp_path / "copy")
    key = made.keys.key
    names = forger.files()
    assert len(names) > 60
    for name in names:
        original = (forger.path / name).read_bytes()
        # Somewhere in the middle; where it is does not matter, as the digest of all is attested.
        forger.flip(name, len(original) * 5 // 9)
        rejected(verify(forger.path, key=key), re.escape(name), f"bit flipped in {name}")
        (forger.path / name).write_bytes(original)
    assert verify(forger.path, key=key).verdict == "accepted"


# ------------------------------------------------------------------- what only a signature can tell


def dated(forger: Forger) -> None:
    forger.edit_card(put(generated_at="2001-01-01T00:00:00Z"))


def of_another_commit(forger: Forger) -> None:
    for leg in forger.legs():
        forger.edit_record(leg, lambda record: record["git"].update(commit="0" * 40, dirty=False))


def faster(forger: Forger) -> None:
    for leg in forger.legs():
        forger.edit_record(leg, lambda record: record["timings"].update(run_ms=1))


def both_legs_fail(forger: Forger) -> None:
    """A case that passed everywhere now fails everywhere: no control sees a difference."""
    for leg in forger.legs():
        if any(
            x["case_id"] == TELLS for x in forger.read(f"legs/{leg}/record.json")["case_results"]
        ):
            forger.edit_case(leg, TELLS, put(exit_code=1))
    forger.rejudge()


ONLY_SIGNED: tuple[tuple[str, Callable[[Forger], None]], ...] = (
    ("another date", dated),
    ("another commit", of_another_commit),
    ("other timings", faster),
    ("a case fails in both legs, from its exit code upwards", both_legs_fail),
)


@pytest.mark.parametrize("name, forge", ONLY_SIGNED, ids=[name for name, _ in ONLY_SIGNED])
def test_a_wholly_consistent_forgery_is_caught_by_the_signature_alone(
    made: Made, tmp_path: Path, name: str, forge: Callable[[Forger], None]
) -> None:
    forger = Forger(made.honest, tmp_path / "copy")
    forge(forger)
    if forge is not dated:
        forger.reassemble()
    forger.rerender()
    forger.reseal()
    found = verify(forger.path)
    assert found.verdict == "accepted", reasons(found)
    assert found.authorship == "consistency_only"
    assert any("consistent forgeries pass" in line for line in found.not_shown)

    rejected(verify(forger.path, key=made.keys.key), "is not signed", f"{name}, unsigned")
    forger.reseal(made.keys.other)
    found = verify(forger.path, key=made.keys.key)
    rejected(found, "is signed by another key", f"{name}, signed by a stranger")
    assert found.authorship == "refuted"


def test_signatures_are_not_taken_for_what_they_are_not(made: Made, tmp_path: Path) -> None:
    key = made.keys.key
    stranger = made.keys.other

    def attempt(name: str, change: Callable[[Forger], object], told: str) -> None:
        forger = Forger(made.honest, tmp_path / name)
        change(forger)
        rejected(verify(forger.path, key=key), told, name)

    def on_envelope(change: Callable[[Json], object], *names: str) -> Callable[[Forger], None]:
        def forge(forger: Forger) -> None:
            for name in names or (ATTESTATION, TEST_RESULT_FILE):
                forger.edit(name, change)

        return forge

    def swap_signatures(forger: Forger) -> None:
        first, second = forger.read(ATTESTATION), forger.read(TEST_RESULT_FILE)
        first["signatures"], second["signatures"] = second["signatures"], first["signatures"]
        forger.write(ATTESTATION, first)
        forger.write(TEST_RESULT_FILE, second)

    def as_the_maker(forger: Forger) -> None:
        """Signed by a stranger under the maker's key id."""
        forger.reseal(stranger)
        for name in (ATTESTATION, TEST_RESULT_FILE):
            forger.edit(name, lambda e: e["signatures"][0].update(keyid=key.key_id))

    def replay(*names: str) -> Callable[[Forger], None]:
        def forge(forger: Forger) -> None:
            for name in names:
                shutil.copy(made.other / name, forger.path / name)

        return forge

    attempt("stripped", on_envelope(put(signatures=[])), "attestation.dsse.json: is not signed")
    attempt("stripped-one", on_envelope(put(signatures=[]), TEST_RESULT_FILE), "is not signed")
    attempt("re-signed", lambda f: f.reseal(stranger), "is signed by another key")
    attempt("disguised", as_the_maker, "the signature does not fit")
    attempt("exchanged", swap_signatures, "the signature does not fit")
    attempt("hint", on_envelope(lambda e: e["signatures"][0].update(keyid=LIE)), "by another key")
    attempt("garbled", on_envelope(lambda e: e["signatures"][0].update(sig="AAAA")), "does not fit")
    attempt("no-base64", on_envelope(lambda e: e["signatures"][0].update(sig="%")), "not base64")
    attempt("type", on_envelope(put(payloadType="application/json")), r"#/payloadType")
    attempt("replayed", replay(ATTESTATION, TEST_RESULT_FILE), "is of another run: second")
    attempt("replayed-one", replay(TEST_RESULT_FILE), "test-result.dsse.json")
    attempt("replayed-card", replay("scorecard.json"), "scorecard.json")
    attempt("replayed-live", replay("evidence/live-state.json"), "live-state.json")
    attempt("gone", lambda f: (f.path / ATTESTATION).unlink(), "attestation.dsse.json: is missing")
    attempt("gone-too", lambda f: (f.path / TEST_RESULT_FILE).unlink(), "is missing")

    # The whole honest run of somebody else: everything fits, but the key.
    whole = Forger(made.other, tmp_path / "whole")
    assert verify(whole.path, key=key).verdict == "accepted"
    unknown = PublicKey(stranger.signer.public_key)
    rejected(verify(whole.path, key=unknown), "is signed by another key", "an unknown key")


def test_files_that_do_not_belong_are_rejected_and_named(made: Made, tmp_path: Path) -> None:
    key = made.keys.key
    output = f"legs/context_on/cases/{TELLS}/stdout"

    def link(forger: Forger, name: str) -> None:
        target = tmp_path / "target"
        shutil.copy(forger.path / name, target)
        (forger.path / name).unlink()
        (forger.path / name).symlink_to(target)

    def link_folder(forger: Forger) -> None:
        shutil.move(forger.path / "evidence", tmp_path / "moved")
        (forger.path / "evidence").symlink_to(tmp_path / "moved")

    def attested(forger: Forger) -> None:
        (forger.path / "evidence" / "more.json").write_bytes(b"{}")
        forger.reseal()

    changes: tuple[tuple[str, Callable[[Forger], object], str], ...] = (
        ("added", lambda f: (f.path / "notes.txt").write_bytes(b"x"), "notes.txt: .*no place"),
        ("added-and-attested", attested, "evidence/more.json: has no place"),
        ("added-output", lambda f: (f.path / f"{output}2").write_bytes(b"x"), "stdout2"),
        ("added-leg", lambda f: shutil.copytree(f.path / "legs/context_on", f.path / "legs/x"),
         "legs/x/record.json"),
        ("hidden", lambda f: (f.path / ".hidden").write_bytes(b"x"), "hidden: .*no place"),
        ("removed-output", lambda f: (f.path / output).unlink(), f"{output} is missing"),
        ("removed-report", lambda f: (f.path / "report.html").unlink(), "report.html: is missing"),
        ("removed-suite", lambda f: (f.path / "suite.json").unlink(), "suite.json"),
        ("removed-record", lambda f: (f.path / "legs/context_off_r2/record.json").unlink(),
         "context_off_r2/record.json: is missing"),
        ("removed-evidence", lambda f: (f.path / "evidence/hooks.json").unlink(),
         "hooks.json: is missing"),
        ("linked-output", lambda f: link(f, output), f"{output}: is a symbolic link"),
        ("linked-card", lambda f: link(f, "scorecard.json"), "scorecard.json: is a symbolic link"),
        ("linked-folder", link_folder, "evidence: is a symbolic link"),
        ("fifo", lambda f: os.mkfifo(f.path / "pipe"), "pipe: is a FIFO"),
        ("folder", lambda f: (f.path / "empty").mkdir(), "empty: is an empty folder"),
        ("odd-name", lambda f: (f.path / "a\nb").write_bytes(b""), "a name that none"),
        ("report", lambda f: (f.path / "report.html").write_bytes(b"<p>+0.9</p>"),
         "report.html: is not the rendering"),
        ("junit", lambda f: (f.path / "junit.xml").write_bytes(b"<testsuites/>"),
         "junit.xml: is not the rendering"),
        ("summary", lambda f: (f.path / "summary.md").write_bytes(b"all well"),
         "summary.md: is not the rendering"),
        ("spelling", lambda f: (f.path / "scorecard.json").write_text(
            json.dumps(f.read("scorecard.json"), indent=1), encoding="utf-8"), "canonical form"),
        ("duplicate-key", lambda f: (f.path / "scorecard.json").write_bytes(
            b'{"run_id":"x",' + (f.path / "scorecard.json").read_bytes()[1:]), "duplicate key"),
        ("more-fields", lambda f: f.edit_card(put(note="x")), "scorecard.json#"),
        ("renamed-leg", lambda f: (f.path / "legs/context_on_r2").rename(f.path / "legs/zz"),
         "legs/zz"),
    )  # fmt: skip
    for name, change, told in changes:
        forger = Forger(made.honest, tmp_path / name)
        change(forger)
        rejected(verify(forger.path, key=key), told, name)
        shutil.rmtree(tmp_path / name, ignore_errors=True)
        shutil.rmtree(tmp_path / "moved", ignore_errors=True)


@pytest.fixture(scope="module", autouse=True)
def _count() -> Iterator[None]:
    """Say how many tampered copies there were."""
    yield
    distinct = len(set(COUNTED))
    print(f"\ntampered copies rejected with their reason: {distinct}")
