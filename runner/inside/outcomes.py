"""Entry of the outcomes container: one request in, one reply out, nothing else.

Runs as an unprivileged user without a network. Sees only copies of the files that the request
names, read-only, and for an ingest copies of the ledger and a folder for the manifest. Whatever
goes wrong, the reply holds one line that quotes no input; there is no traceback to leak one.
"""

from __future__ import annotations

import json
import random
import sys
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
from runner.core.outcomes.leakscan import scan
from runner.core.outcomes.manifest import compare, graded_record, run_manifest
from runner.core.outcomes.score import read_score
from runner.core.outcomes.verdict import council_verdict
from runner.errors import AoEvalError
from runner.ledger import jsonfile
from runner.model.burn import Burn

INPUTS: Final = Path("/in")
REQUEST: Final = INPUTS / "request.json"
LEDGER: Final = Path("/ledger/ledger.json")
MANIFEST: Final = Path("/manifest")

Named = tuple[str, bytes]


def main() -> int:
    """Answer the request; exit 0 whenever there is an answer, refusals included."""
    try:
        request = json.loads(REQUEST.read_bytes())
        handle = {"compile": _compile, "ingest": _ingest}[request["command"]]
        reply = handle(request)
    except AoEvalError as error:
        reply = {"exit": error.exit_code, "error": error.line()}
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


def _compile(request: dict[str, Any]) -> dict[str, Any]:
    name, data = _named(request["input"])
    found = read_compile_input(data, name)
    judge = request["judge_spec"]
    compiled = compile_rubric(
        found,
        collect_holdout(found, [_named(item) for item in request["holdouts"]]),
        strict=request["strict"],
        judge_spec=None if judge is None else _named(judge),
        randomness=random.Random(request["seed"]),  # noqa: S311  shapes, not secrets
    )
    return {"exit": 0, "payload": compiled.payload.decode(), "warnings": list(compiled.warnings)}


def _ingest(request: dict[str, Any]) -> dict[str, Any]:
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
    resolved = resolve(stated, score, rubric=rubric, strict=request["strict"])
    comparison = compare(resolved, baseline, rubric)
    bead, now_ms = request["bead"], request["now_ms"]
    manifest = None
    if request["manifest"]:
        manifest = run_manifest(resolved, comparison, bead=bead, now_ms=now_ms)
    values = read_holdout_files([_named(item) for item in request["holdouts"]])
    if values:
        texts = carried_text(resolved, bead, comparison.baseline_run_id)
        refuse_leaks(texts, lambda payload: scan(payload, values))
    warnings = list(resolved.warnings)
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
    if manifest is not None:
        (MANIFEST / "manifest.json").write_bytes(canonical(document(manifest)))
        record = graded_record(resolved, now_ms=now_ms)
        (MANIFEST / "record.json").write_bytes(canonical(document(record)))
    return {**reply, "verdict": document(verdict), "warnings": warnings}


if __name__ == "__main__":
    sys.exit(main())
