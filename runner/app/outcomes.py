"""Outcomes: the work happens in a container of its own; what may leave it is checked again here."""

from __future__ import annotations

import json
import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from runner.app.outcomesbox import Box, Copy, require_contract, warned
from runner.app.outcomesmanifest import run_folder
from runner.app.request import Surroundings
from runner.core.canon import canonical, document
from runner.core.outcomes.manifest import manifest_name
from runner.core.outcomes.sealed import sealed
from runner.core.outcomes.verdict import refused_by_gate
from runner.errors import IntegrityError, InternalError
from runner.ledger import jsonfile
from runner.model.burn import Burn
from runner.model.verdict import CouncilVerdict, Split


@dataclass(frozen=True, kw_only=True)
class CompileRequest:
    """What `outcomes compile` was asked for."""

    surroundings: Surroundings
    input: Path
    holdouts: tuple[Path, ...] = ()
    judge_spec: Path | None = None
    strict: bool = False


@dataclass(frozen=True, kw_only=True)
class IngestRequest:
    """What `outcomes ingest` was asked for."""

    surroundings: Surroundings
    score: Path
    stated: dict[str, Any]
    ledger: Path | None = None
    rubric: Path | None = None
    holdouts: tuple[Path, ...] = ()
    baseline: Path | None = None
    bead: str | None = None
    manifest_out: Path | None = None
    gate: str | None = None
    strict: bool = False


class Shown(NamedTuple):
    """What the user gets.

    Attributes:
        document: The one document on stdout.
        warnings: One line each.
        notes: Where something was written.
        exit_code: See the README.
    """

    document: str
    warnings: tuple[str, ...]
    notes: tuple[str, ...] = ()
    exit_code: int = 0


@sealed
def compile_outcomes(request: CompileRequest) -> Shown:
    """Compile a task and its criteria to a rubric that may leave the machine.

    Raises:
        AoEvalError: Input, prerequisite or holdout gate; never quotes a value.
    """
    with Box(request.surroundings) as box:
        reply = box.run(
            {
                "command": "compile",
                "strict": request.strict,
                "seed": secrets.token_hex(16),
                "input": box.add(request.input).entry,
                "holdouts": [box.add(path).entry for path in request.holdouts],
                "judge_spec": box.entry(request.judge_spec),
            }
        )
    payload = str(reply["payload"])
    require_contract("outcomes-rubric.v1", json.loads(payload))
    return Shown(payload.rstrip("\n"), tuple(reply["warnings"]))


@sealed
def ingest_outcomes(request: IngestRequest) -> Shown:
    """Map a score to the council verdict, behind the gates.

    The ledger stays locked from the moment it is copied for the container until the burn that the
    container made on the copy is made on the file itself; both must end in the same head. The
    manifest is on disk before the burn and gets its name after it.

    Raises:
        AoEvalError: Input, prerequisite or holdout gate.
    """
    with ExitStack() as stack:
        box = stack.enter_context(Box(request.surroundings))
        # Before the lock: a file that cannot be read keeps nobody waiting.
        score = box.add(request.score)
        asked = {
            "command": "ingest",
            "strict": request.strict,
            "score": score.entry,
            "rubric": box.entry(request.rubric),
            "baseline": box.entry(request.baseline),
            "holdouts": [box.add(path).entry for path in request.holdouts],
            "stated": {**request.stated, "ledger": request.ledger is not None},
            "bead": request.bead,
            "ledger_name": None if request.ledger is None else str(request.ledger),
            "manifest": request.manifest_out is not None,
        }
        held = None
        if request.ledger is not None:
            held = stack.enter_context(jsonfile.exclusive(request.ledger))
            box.lend_ledger(held.files())
        if request.manifest_out is not None:
            box.lend_manifest()
        now_ms = time.time_ns() // 1_000_000
        reply = box.run({**asked, "now_ms": now_ms})
        # Outside of the manifest's folder, which an error of its own must still clean up.
        stack.enter_context(warned(reply["warnings"]))
        verdict = _verdict(reply)
        burn = _burn(request, score, reply)
        folder = None
        if request.manifest_out is not None:
            path = request.manifest_out / manifest_name(str(reply["run_id"]))
            folder = stack.enter_context(run_folder(path))
            folder.prepare(box.manifest_files())
        head = None
        if burn is not None:
            if held is None:
                raise InternalError("a burn without a ledger")
            head = held.burn(burn, now_ms=now_ms, ceiling_required=request.strict).head
        if head != verdict.burn_ledger_head:
            raise IntegrityError("the burn in the container and the one on the file differ")
        notes = () if folder is None else (folder.commit(),)
    gated = refused_by_gate(verdict.verdict, request.gate)  # type: ignore[arg-type]
    return Shown(
        canonical(document(verdict)).decode().rstrip("\n"),
        tuple(reply["warnings"]),
        notes,
        1 if gated else 0,
    )


def _verdict(reply: dict[str, Any]) -> CouncilVerdict:
    require_contract("council-verdict.v4", reply["verdict"])
    return CouncilVerdict.model_validate_json(json.dumps(reply["verdict"]))


def _burn(request: IngestRequest, score: Copy, reply: dict[str, Any]) -> Burn | None:
    """The burn that the container asks for, checked against what the caller stated.

    The container reads a score of unknown origin; whether quota is used is not its word alone.

    Raises:
        IntegrityError: It is another one than was asked for, or missing.
    """
    stated = request.stated
    if reply["burn"] is None:
        if request.ledger is not None and stated["split"] == Split.HOLDOUT.value:
            raise IntegrityError("the container asks for no burn of a holdout")
        return None
    burn = Burn.model_validate(reply["burn"])
    pairs = (
        (stated["suite"], burn.suite_ref),
        (stated["gt_version"], burn.gt_version),
        (stated["run_id"], burn.run_id),
        (score.sha256, burn.score_sha256),
    )
    if any(ours not in {None, theirs} for ours, theirs in pairs):
        raise IntegrityError("the container asks for another burn than the one that was stated")
    return burn
