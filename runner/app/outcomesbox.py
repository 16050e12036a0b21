"""The outcomes container, and the copies of the named files that it sees."""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Generator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Self

from runner.app.images import base_image, require
from runner.app.oneshot import run_once
from runner.app.outcomesimage import outcomes_reference
from runner.app.request import Surroundings
from runner.contracts.judge import problem
from runner.core.confine import LABEL, plain_container
from runner.engine.docker_engine import DockerEngine
from runner.errors import AoEvalError, InputError, InternalError, PrerequisiteError
from runner.host.caseuser import case_user, give
from runner.host.locks import RunHome
from runner.model.container import ImageInfo, Mount

_SECONDS = 300.0
_MOST_INPUT = 64 << 20
# A reply quotes the payload, whose quotation marks are then escaped.
_MOST_REPLY = 64 << 20
_PROGRAM = (
    "import sys; sys.path.insert(0, '/opt/ao-eval/site'); "
    "from runner.inside.outcomes import main; sys.exit(main())"
)
_ENTRY = ("python3", "-I", "-B", "-c", _PROGRAM)


class Refused(AoEvalError):
    """A refusal from inside, passed on with its own exit code.

    Args:
        line: The whole message.
        code: Exit code.
        warnings: What the command would have warned of; they are shown before a refusal, too.
    """

    def __init__(self, line: str, code: int, warnings: tuple[str, ...] = ()) -> None:
        super().__init__(line)
        self.exit_code = code  # type: ignore[misc]
        self.warnings = warnings


@contextmanager
def warned(warnings: Sequence[str]) -> Generator[None]:
    """Let no refusal of the block keep from the user what the container has warned of.

    Args:
        warnings: One line each.
    """
    try:
        yield
    except AoEvalError as error:
        raise Refused(error.line(), error.exit_code, tuple(warnings)) from error


class Copy(NamedTuple):
    """A named input as the container gets it.

    Attributes:
        name: As the user named it, for messages.
        file: Its name inside.
        sha256: Of its bytes.
    """

    name: str
    file: str
    sha256: str

    @property
    def entry(self) -> dict[str, str]:
        """As it stands in the request."""
        return {"name": self.name, "file": self.file}


def require_contract(contract: str, plain: Any) -> None:
    """Refuse what came out of the container and is not what a schema says.

    Raises:
        InternalError: Names the place only: the message of a schema may quote the document.
    """
    found = problem(contract, plain)
    if found is not None:
        raise InternalError(f"the container printed no {contract}", where=found.pointer or "/")


class Box:
    """The container of one command. There is no way to do its work without it.

    Args:
        surroundings: The invoker's side.
    """

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self._stack = ExitStack()
        self._mounts: list[Mount] = []
        self._count = 0

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._engine = DockerEngine.connect(self._surroundings.environment)
            self._image = self._find_image()
            self._home = stack.enter_context(RunHome.create(self._surroundings.staging_base))
            self._name = f"{LABEL}-outcomes-{self._home.token[:12]}"
            self._inputs = self._folder("/in", read_only=True)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _find_image(self) -> ImageInfo:
        leg = require(self._engine, None, base_image(self._surroundings.environment)).reference
        reference = outcomes_reference(leg)
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

    def add(self, path: Path) -> Copy:
        """Copy a named input; it has a number inside, and its own name in messages.

        Raises:
            InputError: It cannot be read, or is too large.
        """
        try:
            with path.open("rb") as file:
                data = file.read(_MOST_INPUT + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", where=str(path)) from error
        if len(data) > _MOST_INPUT:
            raise InputError(f"is larger than {_MOST_INPUT >> 20} MiB", where=str(path))
        copy = Copy(str(path), f"{self._count}", hashlib.sha256(data).hexdigest())
        self._count += 1
        self._put(self._inputs / copy.file, data)
        return copy

    def entry(self, path: Path | None) -> dict[str, str] | None:
        """Copy a named input that may be left out; its entry of the request."""
        return None if path is None else self.add(path).entry

    def lend_ledger(self, files: dict[str, bytes]) -> None:
        """Give the container a copy of the ledger and its head.

        Args:
            files: Bytes by suffix.
        """
        folder = self._folder("/ledger", read_only=False)
        for suffix, data in files.items():
            self._put(folder / f"ledger.json{suffix}", data)

    def lend_manifest(self) -> None:
        """Give the container an empty folder for the manifest."""
        self._manifest = self._folder("/manifest", read_only=False)

    def manifest_files(self) -> dict[str, bytes]:
        """What it wrote there: exactly the two documents, each valid.

        Raises:
            InternalError: It is something else.
        """
        contracts = {"manifest.json": "run-manifest.v1", "record.json": "eval-run.v1"}
        files = {}
        for name, contract in contracts.items():
            path = self._manifest / name
            if path.is_symlink() or not path.is_file():
                raise InternalError(f"the container wrote no {name}")
            files[name] = path.read_bytes()
            require_contract(contract, json.loads(files[name]))
        return files

    @staticmethod
    def _put(path: Path, data: bytes) -> None:
        try:
            path.write_bytes(data)
            path.chmod(0o600)
            give(path)
        except OSError as error:
            raise PrerequisiteError(
                f"no copy for the container can be made: {error.strerror}",
                where=str(path.parent),
                remedy="set AO_EVAL_STAGING_DIR to a directory with space",
            ) from error

    def run(self, request: dict[str, Any]) -> dict[str, Any]:
        """Run the container on a request.

        Raises:
            AoEvalError: What the container refused, or could not do.
        """
        self._put(self._inputs / "request.json", json.dumps(request).encode())
        spec = plain_container(
            name=self._name,
            image_id=self._image.id,
            entrypoint=_ENTRY,
            user=case_user(),
            mounts=tuple(self._mounts),
            labels={f"{LABEL}.home": str(self._home.path)},
            runtime=self._engine.info().default_runtime or None,
        )
        # By name, too: an interruption can come between the creation and the return of the id.
        self._stack.callback(self._engine.remove, self._name)
        printed = run_once(
            self._engine,
            spec,
            self._image,
            api=self._engine.api,
            seconds=_SECONDS,
            most=_MOST_REPLY,
        )
        try:
            reply = json.loads(printed.stdout)
            code = int(reply["exit"])
        except (ValueError, KeyError, TypeError):
            # What it printed stays here: it may quote an input.
            told = "ran out of memory" if printed.oom_killed else f"exited {printed.exit_code}"
            raise InternalError(f"the outcomes container {told} without an answer") from None
        if code:
            raise Refused(str(reply["error"]), code, tuple(map(str, reply.get("warnings", ()))))
        return dict(reply)
