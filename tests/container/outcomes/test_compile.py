"""`ao-eval outcomes compile` and `hash` through the command line."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

import pytest

from runner.contracts.judge import problem
from tests.container.outcomes.commands import (
    COMPILE,
    INGEST,
    JUDGE_HASH,
    MARKER,
    Done,
    Json,
    Outcomes,
    says_the_marker,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from tests.container.outcomes.conftest import MakeOutcomes

pytestmark = [pytest.mark.container, pytest.mark.timeout(600)]

QUICK = {"c1 html", "c6 split", "nan", "c13 unknown key", "c13 duplicate key"}
"""Rows of the two tables that are not left to `make test-slow`; unit tests have all of them."""

JUDGE = ("--judge-spec", INGEST / "judge.md")
HOLDOUT = ("--holdout-file", INGEST / "holdout.jsonl")


def changed(*descriptions: str, **fields: Any) -> Json:
    """The bundled holdout input with these criteria and members; None removes one."""
    made: Json = {**json.loads((COMPILE / "holdout.json").read_bytes()), **fields}
    if descriptions:
        made["criteria"] = [
            {"id": f"c{number}", "description": text, "weight": 1}
            for number, text in enumerate(descriptions)
        ]
    return {name: value for name, value in made.items() if value is not None}


def leaking(*descriptions: str, holdout: str = MARKER, **fields: Any) -> Json:
    """An input whose rubric carries a value in some form."""
    return changed(*descriptions, holdout_values=[holdout], **fields)


BASE64 = base64.b64encode(MARKER.encode()).decode()
VALID = json.dumps(changed("It is fine."))

# What refuses with exit 6, and what the refusal names: index, view and JSON pointer.
LEAKS: dict[str, tuple[Json, str]] = {
    "c1 html": (leaking("so x &lt; 5 holds", holdout="x < 5"), "value 0 (escapes) at /criteria/0"),
    "c2 quotes": (leaking('say "hi" then', holdout='say "hi"'), "value 0 (text) at /criteria/0"),
    "c3 case": (leaking(f"x {MARKER.upper()}"), "value 0 (letter case) at /criteria/0"),
    "c4 unicode": (leaking("x Amber-L\u200bantern-4711"), "value 0"),
    "c5 base64": (leaking(f"x {BASE64} y"), "value 0 (base64"),
    "c5 reversed": (leaking(f"x {MARKER[::-1]}"), "value 0 (reversed) at /criteria/0"),
    "c6 split": (leaking("Amber-Lan", "tern-4711"), "at several places read together"),
    "c7 description": (
        leaking("x", task={"id": "t", "description": f"Say {MARKER}."}),
        "at /instructions",
    ),
    "c10 assignment": (changed("target=Paris", holdout_values=["unrelated words"]), "/criteria/0"),
}

# What is no acceptable input, exit 2.
BROKEN: dict[str, object] = {
    "not json": "{",
    "nan": VALID.replace('"weight": 1', '"weight": NaN'),
    "c11 empty": {},
    "c11 no criteria": changed(criteria=[]),
    "c11 no hash": changed(judge_content_hash=None),
    "c11 a hash that is none": changed(judge_content_hash="x"),
    "c11 a weight of zero": changed(
        criteria=[{"id": "a", "description": "It is fine.", "weight": 0}]
    ),
    "c11 ids in another letter case": changed(
        criteria=[{"id": name, "description": "It is fine.", "weight": 1} for name in ("a", "A")]
    ),
    "c13 unknown key": changed(hint=MARKER),
    "c13 duplicate key": f'{{"task": {{"id": "{MARKER.lower()}", "id": "b"}}}}',
    "c13 duplicate key in another letter case": VALID.replace('"task"', '"Task": {}, "task"', 1),
    "deep": "[" * 100_000,
}


def of_tables(outcomes: Outcomes, names: set[str]) -> dict[str, Sequence[object]]:
    """Arguments for rows of the two tables."""
    inputs = {**BROKEN, **{name: made for name, (made, _) in LEAKS.items()}}
    return {name: (outcomes.write(f"{name}.json", inputs[name]), *JUDGE) for name in names}


def rows_of(table: Mapping[str, object]) -> list[Any]:
    """Names of a table's rows, those that are not quick marked as slow."""
    slow = pytest.mark.slow
    return [pytest.param(name, marks=() if name in QUICK else slow) for name in table]


@pytest.fixture(scope="module")
def rest(make_outcomes: MakeOutcomes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """The rows of the two tables that are not quick."""
    outcomes = make_outcomes(tmp_path_factory.mktemp("rest"))
    rows = of_tables(outcomes, {*LEAKS, *BROKEN} - QUICK)
    found = outcomes.table({name: ("compile", *given) for name, given in rows.items()})
    assert outcomes.end() == []
    return found


@pytest.fixture
def row(request: pytest.FixtureRequest, name: str) -> Done:
    """The command of a row."""
    of = "rest" if name in {*LEAKS, *BROKEN} - QUICK else "done"
    found: Done = request.getfixturevalue(of)[name]
    return found


@pytest.fixture(scope="module")
def done(make_outcomes: MakeOutcomes, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Done]:
    """Every command below, run once."""
    outcomes = make_outcomes(tmp_path_factory.mktemp("compile"))
    nothing = outcomes.write("no-answers.jsonl", '{"id": "x"}\n')
    short = outcomes.write("short.json", changed(holdout_values=["7", "a"]))
    unguarded = outcomes.write("unguarded.json", changed(split=None))
    copied = outcomes.folder / "rubric.json"
    precious = outcomes.write("precious.json", VALID)
    dev, holdout, leak = (COMPILE / f"{name}.json" for name in ("dev", "holdout", "leak"))
    rows: dict[str, Sequence[object]] = {
        "dev": (dev, *JUDGE, "--strict", "--out", copied),
        "holdout": (holdout, *JUDGE, *HOLDOUT, "--strict"),
        "leak": (leak, *JUDGE, *HOLDOUT),
        "leak, no judge": (leak, *HOLDOUT),
        "unguarded": (unguarded,),
        "unguarded, strict": (unguarded, *JUDGE, "--strict"),
        "no judge": (holdout, *HOLDOUT),
        "no judge, strict": (holdout, *HOLDOUT, "--strict"),
        "no judge, dev, strict": (dev, "--strict"),
        "short": (short, *JUDGE),
        "short, strict": (short, *JUDGE, "--strict"),
        "another judge": (dev, "--judge-spec", COMPILE / "README.md"),
        "empty holdout file": (dev, "--holdout-file", ""),
        "empty judge": (dev, "--judge-spec", ""),
        "empty out": (dev, "--out", ""),
        "missing holdout file": (dev, "--holdout-file", "no-such-file"),
        "no answers": (dev, "--holdout-file", nothing),
        "missing input": ("no-such-file",),
        "out over input": (precious, "--out", precious),
        "out nowhere": (dev, "--out", "no-such-folder/rubric.json"),
        "out over a device": (dev, "--out", "/dev/stdout"),
    }
    rows |= of_tables(outcomes, QUICK)
    found = outcomes.table({name: ("compile", *given) for name, given in rows.items()})
    assert precious.read_text(encoding="utf-8") == VALID
    assert found["dev"].code == 0, found["dev"]
    assert copied.read_text(encoding="utf-8") == found["dev"].stdout
    assert outcomes.end() == []
    return found


@pytest.mark.parametrize("name", ["dev", "holdout"])
def test_the_bundled_inputs_compile_to_the_bundled_rubric_without_a_word(
    done: dict[str, Done], name: str
) -> None:
    found = done[name]
    assert (found.code, found.stderr) == (0, "")
    assert found.stdout.rstrip("\n") == (INGEST / "rubric.json").read_text("utf-8").rstrip("\n")
    assert problem("outcomes-rubric.v1", found.document) is None
    assert found.document["judge_content_hash"] == JUDGE_HASH


@pytest.mark.parametrize("name", ["leak", *rows_of(LEAKS)])
def test_a_leak_is_refused_by_index_view_and_pointer_and_never_quoted(row: Done, name: str) -> None:
    found = row
    assert found.code == 6, found
    wanted = "value 0 (base64) at /criteria/1/description" if name == "leak" else LEAKS[name][1]
    assert wanted in found.refusal
    assert says_the_marker(found.stdout + found.stderr) == []
    assert "Traceback" not in found.stderr


@pytest.mark.parametrize("name", rows_of(BROKEN))
def test_what_is_no_acceptable_input_is_a_usage_error_that_quotes_nothing(
    row: Done, name: str
) -> None:
    found = row
    assert found.code == 2, found
    assert f"{name}.json" in found.refusal
    quoted = found.stderr.replace(f"{name}.json", "")
    assert says_the_marker(quoted) == []


def test_c7_without_holdout_values_it_warns_and_strict_refuses(done: dict[str, Done]) -> None:
    loud, strict = done["unguarded"], done["unguarded, strict"]
    assert loud.code == 0
    assert any(line.startswith("NO holdout values were given") for line in loud.warnings)
    assert strict.code == 6
    assert "no holdout values were given" in strict.refusal


def test_a_value_too_short_to_be_certified_is_named_by_index_and_strict_refuses(
    done: dict[str, Done],
) -> None:
    loud, strict = done["short"], done["short, strict"]
    assert loud.code == 0
    assert any("not scannable" in line and "0, 1" in line for line in loud.warnings)
    assert strict.code == 6
    assert "not scannable" in strict.refusal


def test_c12_the_hash_is_that_of_the_judge_specification(done: dict[str, Done]) -> None:
    assert done["another judge"].code == 6
    assert "/judge_content_hash" in done["another judge"].refusal


def test_c12_a_hash_that_nothing_was_compared_with_warns_and_strict_refuses_it(
    done: dict[str, Done],
) -> None:
    loud, strict, dev = (done[f"no judge{more}"] for more in ("", ", strict", ", dev, strict"))
    for found in (loud, dev):
        assert (found.code, len(found.warnings)) == (0, 1)
        assert "the judge content hash was NOT recomputed" in found.warnings[0]
    assert strict.code == 6
    assert "/judge_content_hash" in strict.refusal
    assert "give --judge-spec" in strict.refusal


def test_what_was_not_checked_is_said_before_a_leak_is_refused(done: dict[str, Done]) -> None:
    found = done["leak, no judge"]
    assert found.code == 6
    assert "value 0 (base64)" in found.refusal
    assert ["NOT recomputed" in line for line in found.warnings] == [True]


@pytest.mark.parametrize(
    "name, where",
    [
        ("empty holdout file", "--holdout-file"),
        ("empty judge", "--judge-spec"),
        ("empty out", "--out"),
        ("missing holdout file", "no-such-file"),
        ("no answers", "no-answers.jsonl"),
        ("missing input", "no-such-file"),
        ("out over input", "would overwrite an input"),
        ("out nowhere", "--out no-such-folder/rubric.json"),
        ("out over a device", "not a regular file"),
    ],
)
def test_an_option_that_cannot_be_meant_is_a_usage_error(
    done: dict[str, Done], name: str, where: str
) -> None:
    assert done[name].code == 2, done[name]
    assert where in done[name].refusal


def test_hash_computes_what_compile_compares(outcomes: Outcomes) -> None:
    spec = (INGEST / "judge.md").read_bytes()
    marked = outcomes.write("judge.md", b"\xef\xbb\xbf" + spec.replace(b"\n", b"  \r\n") + b"\n\n")
    for path in (INGEST / "judge.md", marked):
        found = outcomes.outcomes("hash", path)
        assert (found.code, found.stdout) == (0, f"{JUDGE_HASH}\n"), found.stderr
    other = outcomes.write("other.md", spec + b"Be kind.\n")
    assert outcomes.outcomes("hash", other).stdout != f"{JUDGE_HASH}\n"
