"""Outcomes: the work happens in a container of its own; what may leave it is checked again here."""

from __future__ import annotations

import json
import os
import secrets
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple, Self

from runner.app.images import base_image, require
from runner.app.oneshot import run_once
from runner.app.outcomesimage import outcomes_reference
from runner.app.request import Surroundings
from runner.contracts.judge import problem
from runner.core.canon import canonical, document
from runner.core.confine import LABEL, plain_container
from runner.core.outcomes.manifest import is_repeat, manifest_name
from runner.core.outcomes.verdict import refused_by_gate
from runner.engine.docker_engine import DockerEngine
from runner.errors import (
    AoEvalError,
    HoldoutRefusal,
    InputError,
    IntegrityError,
    InternalError,
    PrerequisiteError,
)
from runner.host.atomic import write_atomic
from runner.host.caseuser import case_user, give
from runner.host.locks import RunHome
from runner.ledger import jsonfile
from runner.model.burn import Burn
from runner.model.container import ImageInfo, Mount
from runner.model.verdict import CouncilVerdict, RunManifest

_SECONDS = 300.0
_MOST_INPUT = 64 << 20
_PROGRAM = (
    "import sys; sys.path.insert(0, '/opt/ao-eval/site'); "
    "from runner.inside.outcomes import main; sys.exit(main())"
)
_ENTRY = ("python3", "-I", "-B", "-c", _PROGRAM)


@dataclass(frozen=True, kw_only=True)
class CompileRequest:
    """What `outcomes compile` was asked for."""

    surroundings: Surroundings
    input: Path
    holdouts: tuple[Path, ...] = ()
    judge_spec: Path | None = None
    strict: bool = False
    image: str | None = None


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
    image: str | None = None


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


class _Refused(AoEvalError):
    """A refusal from inside, passed on with its own exit code."""

    def __init__(self, line: str, code: int) -> None:
        super().__init__(line)
        self.exit_code = code  # type: ignore[misc]


def compile_outcomes(request: CompileRequest) -> Shown:
    """Compile a task and its criteria to a rubric that may leave the machine.

    Raises:
        AoEvalError: Input, prerequisite or holdout gate; never quotes a value.
    """
    with _Box(request.surroundings, request.image) as box:
        reply = box.run(
            {
                "command": "compile",
                "strict": request.strict,
                "seed": secrets.token_hex(16),
                "input": box.add(request.input),
                "holdouts": [box.add(path) for path in request.holdouts],
                "judge_spec": None if request.judge_spec is None else box.add(request.judge_spec),
            }
        )
    payload = str(reply["payload"])
    _require("outcomes-rubric.v1", json.loads(payload))
    return Shown(payload.rstrip("\n"), tuple(reply["warnings"]))


def ingest_outcomes(request: IngestRequest) -> Shown:
    """Map a score to the council verdict, behind the gates.

    The ledger stays locked from the moment it is copied for the container until the burn that the
    container made on the copy is made on the file itself; both must end in the same head.

    Raises:
        AoEvalError: Input, prerequisite or holdout gate.
    """
    with ExitStack() as stack:
        box = stack.enter_context(_Box(request.surroundings, request.image))
        held = None
        if request.ledger is not None:
            held = stack.enter_context(jsonfile.exclusive(request.ledger))
            box.lend_ledger(held.files())
        manifest = request.manifest_out is not None
        if manifest:
            box.lend_manifest()
        now_ms = time.time_ns() // 1_000_000
        reply = box.run(
            {
                "command": "ingest",
                "strict": request.strict,
                "score": box.add(request.score),
                "rubric": None if request.rubric is None else box.add(request.rubric),
                "baseline": None if request.baseline is None else box.add(request.baseline),
                "holdouts": [box.add(path) for path in request.holdouts],
                "stated": {**request.stated, "ledger": held is not None},
                "bead": request.bead,
                "manifest": manifest,
                "now_ms": now_ms,
            }
        )
        verdict = _verdict(reply)
        folder = _manifest_folder(request, reply)
        files = box.manifest_files() if manifest else {}
        if folder is not None:
            # Looked at before the burn: a folder that cannot be used must not cost one.
            _check_manifest(folder, files)
        if reply["burn"] is not None:
            if held is None:
                raise InternalError("a burn without a ledger")
            burned = held.burn(Burn.model_validate(reply["burn"]), now_ms=now_ms)
            if burned.head != verdict.burn_ledger_head:
                raise IntegrityError("the burn in the container and the one on the file differ")
        notes = () if folder is None else _write_manifest(folder, files)
    gated = refused_by_gate(verdict.verdict, request.gate)  # type: ignore[arg-type]
    return Shown(
        canonical(document(verdict)).decode().rstrip("\n"),
        tuple(reply["warnings"]),
        notes,
        1 if gated else 0,
    )


def _verdict(reply: dict[str, Any]) -> CouncilVerdict:
    _require("council-verdict.v4", reply["verdict"])
    return CouncilVerdict.model_validate_json(json.dumps(reply["verdict"]))


def _require(contract: str, plain: Any) -> None:
    found = problem(contract, plain)
    if found is not None:
        # Its message may quote the document; the place is enough for us.
        raise InternalError(f"the container printed no {contract}", where=found.pointer or "/")


def _manifest_folder(request: IngestRequest, reply: dict[str, Any]) -> Path | None:
    if request.manifest_out is None:
        return None
    return request.manifest_out / manifest_name(str(reply["run_id"]))


def _check_manifest(folder: Path, files: dict[str, bytes]) -> None:
    """Refuse a folder that holds another run's manifest, or cannot be made."""
    existing = folder / "manifest.json"
    manifest = RunManifest.model_validate_json(files["manifest.json"])
    if existing.is_symlink() or folder.is_symlink():
        raise HoldoutRefusal("is a symbolic link", where=str(folder))
    if existing.exists():
        is_repeat(existing.read_bytes(), manifest)
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PrerequisiteError(
            f"cannot be made: {error.strerror}", where=str(folder), remedy="name another folder"
        ) from error
    if not os.access(folder, os.W_OK):
        raise PrerequisiteError("cannot be written", where=str(folder))


def _write_manifest(folder: Path, files: dict[str, bytes]) -> tuple[str, ...]:
    """Record first: whoever finds the manifest finds all of the run."""
    if (folder / "manifest.json").exists():
        return (f"manifest of this very grade is there already: {folder / 'manifest.json'}",)
    for name in ("record.json", "manifest.json"):
        write_atomic(folder / name, files[name])
    return (f"wrote run manifest: {folder / 'manifest.json'}",)


class _Box:
    """The outcomes container and the copies that it sees."""

    def __init__(self, surroundings: Surroundings, image: str | None) -> None:
        self._surroundings = surroundings
        self._stack = ExitStack()
        self._wanted = image
        self._mounts: list[Mount] = []
        self._count = 0

    def __enter__(self) -> Self:
        environment = self._surroundings.environment
        self._engine = DockerEngine.connect(environment)
        self._image = self._find_image()
        self._home = self._stack.enter_context(RunHome.create(self._surroundings.staging_base))
        self._inputs = self._folder("/in", read_only=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _find_image(self) -> ImageInfo:
        leg = (
            require(self._engine, None, base_image(self._surroundings.environment)).reference
            if self._wanted is None
            else ""
        )
        reference = self._wanted or outcomes_reference(leg)
        image = self._engine.image(reference)
        if image is None:
            raise PrerequisiteError(
                "image is not present", where=reference, remedy="run `ao-eval images build`"
            )
        return image

    def _folder(self, target: str, *, read_only: bool) -> Path:
        folder = self._home.path / secrets.token_hex(8)
        folder.mkdir(mode=0o700)
        give(folder)
        self._mounts.append(
            Mount(kind="bind", source=str(folder), target=target, read_only=read_only)
        )
        return folder

    def add(self, path: Path) -> dict[str, str]:
        """Copy a named input; it has a number inside, and its own name in messages."""
        try:
            with path.open("rb") as file:
                data = file.read(_MOST_INPUT + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
        if len(data) > _MOST_INPUT:
            raise InputError(f"is larger than {_MOST_INPUT >> 20} MiB", where=str(path))
        name = f"{self._count}"
        self._count += 1
        self._put(self._inputs / name, data)
        return {"name": str(path), "file": name}

    def lend_ledger(self, files: dict[str, bytes]) -> None:
        """Give the container a copy of the ledger and its head."""
        folder = self._folder("/ledger", read_only=False)
        for suffix, data in files.items():
            self._put(folder / f"ledger.json{suffix}", data)

    def lend_manifest(self) -> None:
        """Give the container a folder for the manifest."""
        self._manifest = self._folder("/manifest", read_only=False)

    def manifest_files(self) -> dict[str, bytes]:
        """What it wrote there: exactly the two documents, each valid."""
        contracts = {"manifest.json": "run-manifest.v1", "record.json": "eval-run.v1"}
        files = {}
        for name, contract in contracts.items():
            path = self._manifest / name
            if path.is_symlink() or not path.is_file():
                raise InternalError(f"the container wrote no {name}")
            files[name] = path.read_bytes()
            _require(contract, json.loads(files[name]))
        return files

    @staticmethod
    def _put(path: Path, data: bytes) -> None:
        path.write_bytes(data)
        path.chmod(0o600)
        give(path)

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run the container on a request.

        Raises:
            AoEvalError: What the container refused, or could not do.
        """
        self._put(self._inputs / "request.json", json.dumps(request).encode())
        spec = plain_container(
            name=f"{LABEL}-outcomes-{self._home.token[:12]}",
            image_id=self._image.id,
            entrypoint=_ENTRY,
            user=case_user(),
            mounts=tuple(self._mounts),
            labels={f"{LABEL}.home": str(self._home.path)},
        )
        printed = run_once(self._engine, spec, self._image, api=self._engine.api, seconds=_SECONDS)
        try:
            reply = json.loads(printed.stdout)
            code = int(reply["exit"])
        except (ValueError, KeyError, TypeError):
            # What it printed stays here: it may quote an input.
            told = "ran out of memory" if printed.oom_killed else f"exited {printed.exit_code}"
            raise InternalError(f"the outcomes container {told} without an answer") from None
        if code:
            raise _Refused(str(reply["error"]), code)
        return dict(reply)
