"""The signing key: read before anything runs, seen by no case, and never a silent failure."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization as ser
from cryptography.hazmat.primitives.asymmetric import ed25519

from tests.container.projects import Project, case

pytestmark = pytest.mark.container

LOOK = "ls -A .. ; ! ls .. | grep -q key.pem && ! grep -rl PRIVATE .. /context /hooks 2>/dev/null"


def keep_key(path: Path) -> Path:
    """A fresh private key."""
    key = ed25519.Ed25519PrivateKey.generate()
    pkcs8 = ser.PrivateFormat.PKCS8
    path.write_bytes(key.private_bytes(ser.Encoding.PEM, pkcs8, ser.NoEncryption()))
    path.chmod(0o644)
    return path


def test_a_key_that_lies_in_the_repository_is_seen_by_no_case_and_its_mode_warned_of(
    project: Project,
) -> None:
    key = keep_key(project.repo / "key.pem")
    result = project.ao_eval(
        "ab", project.suite(case("looks", LOOK)), AO_EVAL_SIGN_KEY=str(key), AO_EVAL_CONTROLS="none"
    )
    assert result.code == 0, result.stderr
    assert result.case("looks")["status"] == "pass", result.output("looks")
    assert "chmod 600" in result.stderr
    assert len(result.read("attestation.dsse.json")["signatures"]) == 1
    assert b"PRIVATE KEY" not in b"".join(
        path.read_bytes() for path in result.evidence.rglob("*") if path.is_file()
    )
    # It is left out for the sake of the key alone: without one it is a file like any other.
    plain = project.ao_eval("run", project.repo / "evals" / "demo.json")
    assert plain.case("looks", "none")["status"] == "fail"


def test_a_key_where_cases_could_read_it_is_refused(project: Project) -> None:
    path = project.suite(case("looks", "true"))
    key = keep_key(project.root("on") / "key.pem")
    refused = project.ao_eval("ab", path, "--sign-key", key)
    assert refused.code == 2
    assert "lies in a folder that cases see" in refused.stderr
    assert refused.directories == ()


def test_a_wrong_key_ends_the_command_before_any_leg(project: Project) -> None:
    path = project.suite(case("looks", "true"))
    (project.repo / "no.pem").write_text("no key\n", encoding="utf-8")
    for name in ("no.pem", "missing.pem"):
        refused = project.ao_eval("ab", path, "--sign-key", name)
        assert refused.code == 2
        assert f"--sign-key {name}" in refused.stderr
        assert refused.directories == ()


def test_without_a_key_the_statements_are_there_and_nobody_signed_them(project: Project) -> None:
    result = project.ao_eval("ab", project.suite(case("looks", "true")))
    for name in ("attestation.dsse.json", "test-result.dsse.json"):
        assert result.read(name)["signatures"] == []
    assert (result.evidence / "suite.json").read_bytes() == (
        project.repo / "evals" / "demo.json"
    ).read_bytes()
    accepted = project.ao_eval("verify", result.evidence, "--json")
    assert accepted.code == 0, accepted.stdout
    assert accepted.document["authorship"] == "consistency_only"
    assert accepted.document["signed_by"] == []


def test_a_private_holdout_is_verified_as_far_as_it_can_be_and_says_how_far(
    project: Project,
) -> None:
    secret = "the-answer-is-41"
    path = project.suite(
        case("knows", f"echo {secret}", {"type": "stdout_contains", "value": secret}),
        case("not", "echo x", {"type": "stdout_contains", "value": secret}),
        visibility="private_holdout",
    )
    result = project.ao_eval("ab", path)
    assert result.code == 0, result.stderr
    assert not (result.evidence / "suite.json").exists()

    blind = project.ao_eval("verify", result.evidence)
    assert blind.code == 0, blind.stdout
    for words in ("(--suite FILE)", "stored nowhere", "weights are not known"):
        assert words in blind.stdout
    told = project.ao_eval("verify", result.evidence, "--suite", path)
    assert told.code == 0, told.stdout
    assert "verdicts, statuses, scores" in told.stdout.partition("not shown:")[0]
    assert secret not in blind.stdout + told.stdout

    record = result.evidence / "legs" / "context_on" / "record.json"
    value = json.loads(record.read_bytes())
    value["case_results"][1].update(score=1, status="pass")
    record.write_text(json.dumps(value, separators=(",", ":"), sort_keys=True) + "\n")
    for arguments in ((), ("--suite", path)):
        assert project.ao_eval("verify", result.evidence, *arguments).code == 5

    other = project.repo / "other.json"
    another = {**json.loads(path.read_bytes()), "name": "another"}
    other.write_text(json.dumps(another), encoding="utf-8")
    wrong = project.ao_eval("verify", result.evidence, "--suite", other)
    assert wrong.code == 5
    assert "is not the suite that the scorecard has the digest of" in wrong.stdout
