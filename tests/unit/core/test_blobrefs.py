"""Which stored output belongs to which statement of a record, and what can be wrong with it."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest

from runner.core.blobrefs import EMPTY_SHA256, Reference, Stored, mismatch, references
from runner.model.record import FileRecord, ProbeRecord, StreamRecord
from tests.unit.builders import PASSED, case, record, result, suite_file

DATA = b"hello"
SHA = hashlib.sha256(DATA).hexdigest()
PLACE = "legs/context_on/cases/a/stdout"


def reference(**fields: Any) -> Reference:
    """An output of five bytes, all of them kept."""
    values: dict[str, Any] = {
        "pointer": "/case_results/0/stdout", "place": PLACE, "path": PLACE,
        "size": 5, "kept": 5, "sha256": SHA, "limit": 5,
    }  # fmt: skip
    return Reference(**(values | fields))


def test_every_output_of_a_case_has_one_place() -> None:
    suite = suite_file(case("a"))
    stream = StreamRecord(size=1, kept=1, sha256=SHA)
    row = result(suite, "a", [PASSED]).model_copy(
        update={
            "stdout": stream,
            "stderr": stream,
            "probes": tuple(
                ProbeRecord(expectation=number, exit_code=0, timed_out=False, start_error=None,
                            stdout=stream, stderr=stream)
                for number in (2, 5)
            ),
            "files": (FileRecord(path="/x", state="regular"),) * 2,
        }
    )  # fmt: skip
    found = list(references(record(suite, [row])))
    places = [item.place.removeprefix("legs/context_on/cases/a/") for item in found]
    assert places == [
        "stdout", "stderr", "probe-1.stdout", "probe-1.stderr", "probe-2.stdout",
        "probe-2.stderr", "file-0", "file-1",
    ]  # fmt: skip
    assert len({item.pointer for item in found}) == len(found)


def test_statement_and_bytes_agree() -> None:
    assert mismatch(reference(), {PLACE: Stored(5, SHA)}, withheld=False) is None
    empty = reference(path=None, size=0, kept=0, sha256=EMPTY_SHA256)
    assert mismatch(empty, {}, withheld=False) is None
    # All bytes were hashed, some were kept: their digest says nothing of those that are stored.
    cut = reference(size=9, sha256="0" * 64)
    assert mismatch(cut, {PLACE: Stored(5, SHA)}, withheld=False) is None


@pytest.mark.parametrize(
    "fields, found, problem",
    [
        ({}, {}, "is missing"),
        ({}, {PLACE: Stored(4, SHA)}, "has 4 bytes, 5 were kept"),
        ({}, {PLACE: Stored(5, EMPTY_SHA256)}, "has another SHA-256 than stated"),
        ({"kept": 6}, {PLACE: Stored(5, SHA)}, "keeps 6 of 5 bytes"),
        ({"size": 9, "limit": 8}, {PLACE: Stored(5, SHA)}, "keeps 5 of 9 bytes"),
        ({"path": "legs/context_off/cases/a/stdout"}, {}, "its place is"),
        ({"path": "../../etc/passwd"}, {}, "its place is"),
        ({"path": None}, {}, "keeps 5 bytes and names no file"),
        ({"path": None, "size": 0, "kept": 0}, {}, "digest of something else"),
    ],
)
def test_every_disagreement_is_told(
    fields: dict[str, Any], found: dict[str, Stored], problem: str
) -> None:
    assert problem in (mismatch(reference(**fields), found, withheld=False) or "")


def test_nothing_of_a_private_holdout_may_be_stored() -> None:
    stored = {PLACE: Stored(5, SHA)}
    assert "private holdout" in (mismatch(reference(), stored, withheld=True) or "")
    assert mismatch(reference(path=None), {}, withheld=True) is None
