"""Entry of the outcomes container: one request in, one reply out, nothing else.

Runs as an unprivileged user without a network. Sees only copies of the files that the request
names, read-only, and for an ingest copies of the ledger and a folder for the manifest. Whatever
goes wrong, the reply holds one line that quotes no input; there is no traceback to leak one.
"""

from __future__ import annotations

import json
import random
import resource
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from runner.core.canon import canonical, document
from runner.core.outcomes.compile import compile_rubric
from runner.core.outcomes.gates import (
    Stated,
    carried_text,
    read_rubric,
    refuse_leaks,
    resolve,
)
from runner.core.outcomes.holdout import collect_holdout, read_holdout_files
from runner.core.outcomes.inputs import read_compile_input
from runner.core.outcomes.leakscan import find
from runner.core.outcomes.manifest import compare, graded_record, run_manifest
from runner.core.outcomes.score import read_score
from runner.core.outcomes.verdict import council_verdict
from runner.core.outcomes.views import needles
from runner.errors import AoEvalError, HoldoutRefusal
from runner.ledger import jsonfile
from runner.model.burn import Burn

INPUTS: Final = Path("/in")
REQUEST: Final = INPUTS / "request.json"
LEDGER: Final = Path("/ledger/ledger.json")
MANIFEST: Final = Path("/manifest")
CPU_SECONDS: Final = 600
NAMED: Final = 5
"""So many indexes are named in a warning; the rest is counted."""

Named = tuple[str, bytes]


def main() -> int:
    """Answer the request; exit 0 whenever there is an answer, refusals included."""
    # Nobody watches it any longer when its command was killed.
    resource.setrlimit(resource.RLIMIT_CPU, (CPU_SECONDS, CPU_SECONDS))
    request: dict[str, Any] = {}
    warnings: list[str] = []
    try:
        request = json.loads(REQUEST.read_bytes())
        handle = {"compile": _compile, "ingest": _ingest}[request["command"]]
        reply = handle(request, warnings)
    except AoEvalError as error:
        ledger = request.get("ledger_name")
        if ledger is not None and error.where is not None:
            error.where = error.where.replace(str(LEDGER), ledger)
        reply = {"exit": error.exit_code, "error": error.line(), "warnings": warnings}
    except Exception as error:  # noqa: BLE001  its text may quote an answer
        reply = {
            "exit": 70,
            "error": f"internal error in the outcomes container: {type(error).__name__}",
        }
    sys.stdout.write(json.dumps(reply))
    return 0


def _named(item: dict[str, str]) -> Named:
    """A file of the request: the name it has for its owner, and its bytes."""
    return item["name"], (INPUTS / item["file"]).read_bytes()


def _compile(request: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    name, data = _named(request["input"])
    found = read_compile_input(data, name)
    judge = request["judge_spec"]
    compiled = compile_rubric(
        found,
        collect_holdout(found, [_named(item) for item in request["holdouts"]]),
        strict=request["strict"],
        judge_spec=None if judge is None else _named(judge),
        randomness=random.Random(request["seed"]),  # noqa: S311  shapes, not secrets
        warnings=warnings,
    )
    return {"exit": 0, "payload": compiled.payload.decode(), "warnings": warnings}


def _ingest(request: dict[str, Any], warnings: list[str]) -> dict[str, Any]:
    """Gates, then the scan, then the burn, then what is shown: a refusal burns nothing."""
    name, data = _named(request["score"])
    score = read_score(data, name)
    rubric = None
    if request["rubric"] is not None:
        rubric_name, rubric_data = _named(request["rubric"])
        rubric = read_rubric(rubric_data, rubric_name)
    baseline = None
    if request["baseline"] is not None:
        baseline_name, baseline_data = _named(request["baseline"])
        baseline = read_score(baseline_data, baseline_name)
    stated = Stated(**request["stated"])
    resolved = resolve(stated, score, rubric=rubric, strict=request["strict"], warnings=warnings)
    comparison = compare(resolved, baseline, rubric)
    bead, now_ms = request["bead"], request["now_ms"]
    manifest = None
    if request["manifest"] or (bead is not None and resolved.run_id is not None):
        # A malformed bead is an error whether or not there is a manifest to write it in.
        manifest = run_manifest(resolved, comparison, bead=bead, now_ms=now_ms)
    values = read_holdout_files([_named(item) for item in request["holdouts"]])
    if values:
        sought = needles(values)
        texts = carried_text(resolved, bead, comparison.baseline_run_id)
        refuse_leaks(texts, lambda payload: find(payload, sought))
        warnings += _not_scannable(sought.unscannable, strict=request["strict"])
    reply: dict[str, Any] = {"exit": 0, "run_id": resolved.run_id, "burn": None}
    head = None
    if resolved.burns:
        asked = Burn(
            suite_ref=resolved.suite_ref or "",
            gt_version=resolved.gt_version or "",
            run_id=resolved.run_id or "",
            score_sha256=resolved.score_sha256,
            grade_sha256=resolved.grade_sha256,
        )
        burned = jsonfile.burn(LEDGER, asked, now_ms=now_ms, ceiling_required=request["strict"])
        head = burned.head
        warnings += burned.warnings
        reply["burn"] = document(asked)
    verdict = council_verdict(resolved, head)
    if manifest is not None and request["manifest"]:
        (MANIFEST / "manifest.json").write_bytes(canonical(document(manifest)))
        record = graded_record(resolved, now_ms=now_ms)
        (MANIFEST / "record.json").write_bytes(canonical(document(record)))
    return {**reply, "verdict": document(verdict), "warnings": warnings}


def _not_scannable(indexes: Sequence[int], *, strict: bool) -> tuple[str, ...]:
    """What compile says of such values: a verdict is scanned as a rubric is."""
    if not indexes:
        return ()
    named = ", ".join(map(str, indexes[:NAMED]))
    more = f" and {len(indexes) - NAMED} more" if len(indexes) > NAMED else ""
    message = f"holdout values not scannable, too short or common to be certified: {named}{more}"
    if strict:
        raise HoldoutRefusal(message, where="holdout values")
    return (message,)


if __name__ == "__main__":
    sys.exit(main())
