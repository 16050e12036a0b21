"""Everything between the request and the first container: read, watch, stage, choose."""

from __future__ import annotations

import os
import secrets
import time
from collections.abc import Generator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from runner.app.hooks import StagedHooks, stage_hooks
from runner.app.images import base_image, require
from runner.app.live import LiveWatch
from runner.app.request import RunRequest
from runner.app.roots import RootOfLeg, default_root, stage_root
from runner.app.session import Session, Stage
from runner.app.suites import load_suite
from runner.app.undisturbed import undisturbed
from runner.app.workspace import choose_mode
from runner.core import gvisor, hookenv
from runner.core.confine import LABEL, WORKSPACE, is_gvisor
from runner.core.plan import check_only, suppression
from runner.core.score import suite_warnings
from runner.engine.docker_engine import DockerEngine
from runner.errors import InputError, PrerequisiteError
from runner.host.agentfiles import stage_agent
from runner.host.caseuser import case_user, keeper
from runner.host.filesystem import filesystem_type
from runner.host.head import head
from runner.host.locks import RunHome
from runner.host.repository import repository_of
from runner.host.rundir import check_out_dir
from runner.host.staging import normalise
from runner.host.survey import DIRECTORY_FLAGS
from runner.host.workspace import stage_workspace
from runner.logs import log
from runner.model.container import ImageInfo
from runner.model.hooks import HooksDirectory
from runner.model.leg import Degradation
from runner.model.record import GitRef
from runner.model.suite import SuiteFile


@dataclass(frozen=True)
class Bench:
    """The engine and the image; the same for all suites of a command."""

    engine: DockerEngine
    image: ImageInfo


@dataclass(frozen=True)
class Prepared:
    """A suite, staged and watched, ready for its legs.

    Attributes:
        suite: The suite.
        session: What its legs share.
        watch: Live roots and their first manifests.
        roots: Context root of each variant.
        hooks: The hook environment.
        hooks_directory: What runs around cases, if a hooks directory was given.
        suppressed: Why hooks are off, if they are.
        git: Commit of the suite's repository.
        warnings: What is worth knowing.
        staging_ms: Time spent staging.
        decoy_places: Folders in which the live proof may plant mutations, best first.
    """

    suite: SuiteFile
    session: Session
    watch: LiveWatch
    roots: Mapping[str, RootOfLeg]
    hooks: hookenv.HookEnvironment
    hooks_directory: HooksDirectory | None
    suppressed: Degradation | None
    git: GitRef
    warnings: tuple[str, ...]
    staging_ms: int
    decoy_places: tuple[Path, ...]


def open_bench(request: RunRequest) -> Bench:
    """Connect to the user's engine and find the image.

    Raises:
        PrerequisiteError: Engine, image or OCI runtime is missing.
    """
    engine = DockerEngine.connect(request.surroundings.environment)
    runtime = request.sandbox.runtime
    if runtime is not None and runtime not in engine.info().runtimes:
        raise PrerequisiteError(
            "the engine has no such OCI runtime",
            where=f"--runtime {runtime}",
            remedy=f"it has: {', '.join(engine.info().runtimes)}",
        )
    if not engine.endpoint.local:
        raise PrerequisiteError(
            "the engine is remote; legs bind folders of this machine",
            where=engine.endpoint.url,
            remedy="use an engine on this machine",
        )
    image = require(engine, request.sandbox.image, base_image(request.surroundings.environment))
    if image.volumes:
        raise InputError(
            f"declares volumes ({', '.join(image.volumes)}), which would be writable",
            where=f"--image {image.reference}",
            remedy="use an image without VOLUME",
        )
    return Bench(engine, image)


@contextmanager
def prepared(
    request: RunRequest, bench: Bench, suite_path: Path, variants: Mapping[str, Path | None]
) -> Generator[Prepared]:
    """Stage one suite; everything is removed again when the block ends.

    Args:
        request: The command.
        bench: Engine and image.
        suite_path: The suite.
        variants: For each variant its context root; None for the default one.

    Raises:
        InputError: The suite, an option or a root is not acceptable.
        IntegrityError: Live state cannot be witnessed, or the workspace cannot be staged.
    """
    suite = load_suite(suite_path)
    check_only(suite.suite, request.only, suite.path)
    surroundings = request.surroundings
    suppressed = suppression(
        suite.suite,
        invoker=surroundings.environment,
        options=request.sandbox.extra_env,
        image=dict(entry.partition("=")[::2] for entry in bench.image.env),
        suite_path=suite.path,
    )
    with (
        LiveWatch.begin(suite_path, surroundings, request.live) as watch,
        ExitStack() as clean_up,
    ):
        check_out_dir(request.out_dir, watch.paths)
        begun = time.monotonic()
        home = RunHome.create(surroundings.staging_base)
        kept: list[str] = []
        clean_up.callback(_remove, home, kept)
        clean_up.callback(watch.end_control)
        stager = _Stager(request, watch, home.path, suite_path)
        roots = {
            variant: stager.root(variant, path or default_root(suite_path, variant))
            for variant, path in variants.items()
        }
        around = stager.hooks(roots)
        stage, git, notes = stager.workspace(roots, around)
        session = _session(request, bench, home, stage, watch, kept=kept)
        clean_up.callback(session.clean)
        try:
            yield Prepared(
                suite=suite,
                session=session,
                watch=watch,
                roots=roots,
                hooks=hookenv.select(surroundings.environment),
                hooks_directory=around.directory if around else None,
                suppressed=suppressed,
                git=git,
                warnings=(
                    *suite_warnings(suite.suite),
                    *notes,
                    *_runtime_warnings(session),
                    *(around.warnings if around else ()),
                ),
                staging_ms=int((time.monotonic() - begun) * 1000),
                decoy_places=(home.path, request.out_dir),
            )
        finally:
            with undisturbed():
                clean_up.close()


def runtime_of(request: RunRequest, bench: Bench) -> str | None:
    """The OCI runtime of the legs: the one that was asked for, else the engine's default."""
    return request.sandbox.runtime or bench.engine.info().default_runtime or None


def _runtime_warnings(session: Session) -> tuple[str, ...]:
    return gvisor.warnings(shared=session.shared) if is_gvisor(session.runtime) else ()


def _remove(home: RunHome, kept: Sequence[str]) -> None:
    if kept:
        # A kept container shows what was staged: all of it waits for the reaper.
        return
    for left in home.close():
        log.warning("left behind on disk", path=left, remedy="run `ao-eval reap`")


def _session(
    request: RunRequest,
    bench: Bench,
    home: RunHome,
    stage: Stage,
    watch: LiveWatch,
    *,
    kept: list[str],
) -> Session:
    sandbox = request.sandbox
    return Session(
        engine=bench.engine,
        api=bench.engine.api,
        token=home.token[:12],
        image=bench.image,
        # By name: what is asked of the engine, and believed of a leg, depends on it.
        runtime=runtime_of(request, bench),
        resources=sandbox.resources,
        case_user=case_user(),
        stage=stage,
        mode=choose_mode(
            stage.workspace,
            filesystem_type(stage.workspace),
            bench.engine.info(),
            local=bench.engine.endpoint.local,
        ),
        shared=request.workspace.shared,
        live_roots=watch.paths,
        labels={
            LABEL: "1",
            f"{LABEL}.home": str(home.path),
            f"{LABEL}.token": home.token,
            f"{LABEL}.keep": str(request.keep_seconds),
        },
        keep_seconds=request.keep_seconds,
        kept=kept,
    )


class _Stager:
    """Puts what legs see below the run's home, under names that say nothing."""

    def __init__(self, request: RunRequest, watch: LiveWatch, home: Path, suite_path: Path) -> None:
        self._request = request
        self._watch = watch
        self._home = home
        self._suite = Path(os.path.realpath(suite_path))
        self._named = suite_path

    def _check_key_apart(self, folder: Path) -> None:
        """No case may see what could sign another result."""
        key = self._request.sign_key
        if key is not None and Path(os.path.realpath(key)).is_relative_to(os.path.realpath(folder)):
            raise InputError(
                "lies in a folder that cases see",
                where=f"--sign-key {key}",
                remedy=f"keep it out of {folder}",
            )

    def _place(self) -> Path:
        return self._home / secrets.token_hex(8)

    def root(self, variant: str, path: Path) -> RootOfLeg:
        """Stage the context root of a variant."""
        self._check_key_apart(path)
        return stage_root(
            path,
            self._place(),
            variant=variant,
            owner=keeper(),
            forbidden=self._watch.nodes(),
            live=self._watch.paths,
        )

    def hooks(self, roots: Mapping[str, RootOfLeg]) -> StagedHooks | None:
        """Stage the hooks directory, if there is one."""
        if self._request.hooks_dir is None:
            return None
        self._check_key_apart(self._request.hooks_dir)
        context_roots = [Path(item.root.path) for item in roots.values()]
        return stage_hooks(
            self._request.hooks_dir,
            self._place(),
            owner=keeper(),
            forbidden=self._watch.nodes(),
            live=self._watch.paths,
            hidden=[*context_roots, *self._default_roots(), self._suite, self._request.out_dir],
        )

    def workspace(
        self, roots: Mapping[str, RootOfLeg], hooks: StagedHooks | None
    ) -> tuple[Stage, GitRef, tuple[str, ...]]:
        """Stage the view of the repository, and the agent."""
        options = self._request.workspace
        top = Path(os.path.realpath(options.top)) if options.top else repository_of(self._suite)
        if not self._suite.is_relative_to(top):
            raise InputError(
                "does not lie in the workspace", where=str(self._named), remedy=f"it is {top}"
            )
        destination = self._place()
        context_roots = [Path(item.root.path) for item in roots.values()]
        secret = [self._request.sign_key] if self._request.sign_key else []
        staged = stage_workspace(
            top,
            destination,
            suite_file=self._named,
            context_roots=[*context_roots, *self._default_roots()],
            exclude_roots=[*self._watch.excluded, self._request.out_dir, self._home, *secret],
            owner=case_user(),
            include=options.include,
            with_git=options.with_git,
            forbidden=self._watch.nodes(),
        )
        agent = self._place()
        agent_sha256 = stage_agent(agent)
        state = head(top, ignoring=self._ignored(top))
        relative = self._suite.parent.relative_to(top)
        _make_folders(destination, relative)
        notes: tuple[str, ...] = ()
        if staged.skipped_link_count:
            count, first = staged.skipped_link_count, staged.skipped_links[0]
            notes = (
                f"workspace: {count} links that leave the repository are absent: {first}, ...",
            )
        stage = Stage(
            home=self._home,
            agent=agent,
            agent_sha256=agent_sha256,
            workspace=destination,
            workspace_sha256=staged.sha256,
            suite_dir=str(Path(WORKSPACE) / relative),
            hooks=hooks.staged if hooks else None,
        )
        return stage, GitRef(commit=state.commit, dirty=state.dirty), notes

    def _default_roots(self) -> list[Path]:
        """Roots of the suite and of those beside it, whichever ones were given.

        No leg sees any of them as a plain folder: suites of one folder tend to share answers.
        """
        found = []
        for side in ("context_off", "context_on"):
            own = default_root(self._suite, side)
            beside = own.parents[2].glob(f"*/{own.parent.name}/{own.name}")
            found += [path for path in {own, *beside} if path.is_dir()]
        return sorted(found)

    def _ignored(self, top: Path) -> list[bytes]:
        out = Path(os.path.realpath(self._request.out_dir))
        return [os.fsencode(out.relative_to(top))] if out.is_relative_to(top) else []


def _make_folders(workspace: Path, relative: Path) -> None:
    """Make the folder in which cases start: git lists none in which nothing else may be seen."""
    missing = [
        workspace / folder
        for folder in (relative, *relative.parents)
        if not (workspace / folder).is_dir()
    ]
    for folder in reversed(missing):
        folder.mkdir()
    # Making a folder changes the times of the one above it.
    for folder in (*missing, missing[-1].parent) if missing else ():
        descriptor = os.open(folder, DIRECTORY_FLAGS)
        try:
            normalise(descriptor, 0o755, case_user())
        finally:
            os.close(descriptor)
