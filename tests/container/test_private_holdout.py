"""The answers of a private holdout do not leave the box, by any file, stream or message."""

from __future__ import annotations

import base64
import gzip
import hashlib
import hmac
import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.container.projects import NEEDS_HINT, Json, Project, Result, case

pytestmark = pytest.mark.container

WORD = "zebra-quartz-7351"
NUMBER = 734519.25
ANSWERS = tuple(f"{WORD}-{kind}" for kind in ("out", "err", "file", "json", "probe", "wrong"))
OUT, ERR, FILE, JSON, PROBE, WRONG = ANSWERS


def _contains(stream: str, value: str, **more: object) -> Json:
    return {"type": f"{stream}_contains", "value": value, **more}


def _cases() -> list[Json]:
    document = json.dumps({"answer": JSON, "score": NUMBER})
    return [
        case(
            "streams",
            f"cat words/out; cat words/err >&2; {NEEDS_HINT} && echo {OUT}x",
            _contains("stdout", OUT),
            _contains("stdout", f"{OUT}x"),
            _contains("stderr", ERR),
            _contains("stderr", WRONG),
        ),
        case(
            "files",
            f"cp words/file /tmp/copy; echo '{document}'; cat words/broken >&2",
            {"type": "artifact_contains", "target": "words/file", "value": FILE},
            {"type": "artifact_contains", "target": "words/file", "value": WRONG},
            {"type": "file_exists", "target": "/tmp/copy"},
            {"type": "json_path", "target": "stdout.answer", "value": JSON},
            {"type": "json_path", "target": "stdout.answer", "value": WRONG},
            {"type": "json_path", "target": "stderr.answer", "value": WRONG},
            {"type": "score_at_least", "target": "stdout.score", "value": NUMBER},
            {"type": "score_at_least", "target": "stdout.score", "value": NUMBER + 1},
        ),
        case(
            "detected",
            "cat words/probe",
            {
                "type": "stdout_contains_auto_detect",
                "value": {"command": "cat words/probe", "pattern": f"({WORD}-pr[a-z]+)"},
            },
            {
                "type": "stdout_contains_auto_detect",
                "value": {"command": f"echo {PROBE}", "pattern": f"({WORD}-never)"},
            },
        ),
        case("not-startable", inputs={"argv": [f"/{WRONG}"]}),
        case("late", f"echo {OUT}; exec sleep 60", _contains("stdout", OUT), timeout_seconds=1),
    ]


@pytest.fixture(scope="module")
def holdout(
    tmp_path_factory: pytest.TempPathFactory, make_project: object
) -> tuple[Project, Result]:
    """One comparison on a private holdout, with the log as loud as it gets."""
    assert callable(make_project)
    project: Project = make_project(tmp_path_factory.mktemp("holdout"))
    words = {"out": OUT, "err": ERR, "file": FILE, "probe": PROBE, "broken": f"{{{WRONG}"}
    project.write({f"evals/words/{name}": f"{text}\n" for name, text in words.items()})
    path = project.suite(*_cases(), visibility="private_holdout")
    copies = ("--out", "record.json", "--delta-out", "delta.json")
    return project, project.ao_eval("ab", path, "-vv", *copies)


def _forms(answer: str) -> Iterator[bytes]:
    """The answer as it might be found: plain, folded, reversed, encoded."""
    raw = answer.encode()
    yield from (raw, raw.upper(), raw[::-1], raw.hex().encode(), answer.encode("utf-16-le"))
    yield answer.replace("-", "").encode()
    for shift in range(3):  # base64 of a text depends on where in it the answer begins
        encoded = base64.b64encode(b"\0" * shift + raw)[4:-4]
        if len(encoded) > 6:
            yield encoded


def _told(project: Project, result: Result) -> Iterator[tuple[str, bytes]]:
    yield "stdout", result.stdout.encode()
    yield "stderr", result.stderr.encode()
    copies = [path for path in project.repo.iterdir() if path.suffix == ".json"]
    assert len(copies) == 3
    files = [path for path in result.evidence.rglob("*") if path.is_file()]
    assert len(files) >= 9
    for path in (*copies, *files):
        data = path.read_bytes()
        if data[:2] == b"\x1f\x8b":
            data += gzip.decompress(data)
        yield str(path), str(path).encode() + b"\n" + data


def test_the_run_itself_is_an_ordinary_one(holdout: tuple[Project, Result]) -> None:
    _, result = holdout
    assert result.code == 0, result.stderr
    rows = {row["case_id"]: row for row in result.card["per_case"]}
    assert rows["streams"]["score_delta"] == 0.25
    assert rows["late"]["degraded_detail"] == "timeout"
    verdicts = [item["verdict"] for item in result.case("files")["expectations"]]
    assert verdicts == [
        "passed",
        "failed",
        "passed",
        "passed",
        "failed",
        "failed",
        "passed",
        "failed",
    ]
    assert [item["verdict"] for item in result.case("detected")["expectations"]] == [
        "passed",
        "failed",
    ]


def test_no_answer_is_in_any_file_or_stream_in_any_form(holdout: tuple[Project, Result]) -> None:
    for name, data in _told(*holdout):
        for answer in (*ANSWERS, WORD, str(NUMBER), "734519"):
            for form in _forms(answer):
                assert form not in data, (name, answer, form)


def test_digests_are_keyed_so_that_a_short_answer_cannot_be_guessed_from_them(
    holdout: tuple[Project, Result],
) -> None:
    project, result = holdout
    outputs = [f"{text}\n".encode() for text in ANSWERS]
    outputs += [text.encode() for text in ANSWERS]
    plain = {hashlib.sha256(text).hexdigest() for text in outputs}
    for name, data in _told(project, result):
        for digest in plain:
            assert digest.encode() not in data, name
    stream = result.case("detected")["stdout"]
    assert stream["path"] is None
    assert stream["sha256"].startswith("hmac-sha256:")
    # Whoever has the suite can check what was recorded.
    suite = (project.repo / "evals" / "demo.json").read_bytes()
    known = hashlib.sha256(f"{PROBE}\n".encode()).hexdigest().encode()
    assert suite
    assert stream["sha256"] != "hmac-sha256:" + hmac.new(b"", known, "sha256").hexdigest()


def test_outputs_are_not_stored_and_evidence_has_no_excerpt(
    holdout: tuple[Project, Result],
) -> None:
    _, result = holdout
    assert not list(result.evidence.glob("legs/*/cases"))
    evidence = [
        item
        for row in result.card["per_case"]
        for item in row["decision_evidence"]
        if item["kind"] == "command_output" and item["stream"] != "exit_code"
    ]
    assert evidence
    assert {item["excerpt"] for item in evidence} == {None}
    for leg in ("context_off", "context_on"):
        for item in result.record(leg)["case_results"]:
            assert {fact["fingerprint"] for fact in item["expectations"]} <= {None}


def test_a_path_that_holds_an_answer_is_not_told(project: Project) -> None:
    path = project.suite(
        case(
            "one",
            f"echo {FILE} > /tmp/{FILE}",
            {"type": "artifact_contains", "target": f"/tmp/{FILE}", "value": FILE},
            {"type": "file_exists", "target": f"/tmp/{FILE}"},
            {"type": "file_absent", "target": f"/tmp/{JSON}"},
            _contains("stdout", JSON),
        ),
        visibility="private_holdout",
    )
    result = project.ao_eval("run", path)
    assert result.code == 0, result.stderr
    told = b"".join(file.read_bytes() for file in result.evidence.rglob("*") if file.is_file())
    assert WORD.encode() not in told


@pytest.mark.parametrize(
    "expectation",
    [
        {"type": "artifact_contains", "target": f"words/{WORD}"},
        {"type": "exit_code", "value": WORD},
        {
            "type": "stdout_contains_auto_detect",
            "value": {"command": "true", "pattern": f"({WORD}"},
        },
        {"type": "stdout_contains", "value": {WORD: WORD}},
        {"type": WORD, "value": WORD},
    ],
)
def test_a_holdout_that_is_refused_is_refused_without_quoting_it(
    project: Project, expectation: Json
) -> None:
    path: Path = project.suite(
        case("one", "true", expectation), name="secret", visibility="private_holdout"
    )
    for command in (("ab", path), ("validate", path)):
        result = project.ao_eval(*command)
        assert result.code == 2
        assert WORD not in result.stdout + result.stderr
        assert "/cases/0/expectations/0" in result.stderr
