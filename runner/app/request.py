"""What the user asked for, after the command line and before anything happened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from runner.core.confine import Resources
from runner.model.leg import Axis


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """The invoker's side: where we are and what the environment says.

    Attributes:
        cwd: Working directory.
        home: Home directory.
        environment: Environment variables.
        staging_base: Folder for staged trees.
        epoch: `SOURCE_DATE_EPOCH`, if set; the one declared clock of written documents.
    """

    cwd: Path
    home: Path
    environment: Mapping[str, str]
    staging_base: Path
    epoch: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sandbox:
    """How legs are confined.

    Attributes:
        image: Image reference; None for the leg image of this version.
        runtime: OCI runtime; None for the engine's default.
        resources: Limits of each container.
        extra_env: Variables of `--env`.
    """

    image: str | None = None
    runtime: str | None = None
    resources: Resources = field(default_factory=Resources)
    extra_env: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkspaceOptions:
    """What of the repository a leg sees.

    Attributes:
        top: Folder to take instead of the repository of the suite.
        include: Globs of ignored files to add.
        with_git: Add a synthetic one-commit `.git`.
        shared: One tree for the whole leg, whatever cases write.
    """

    top: Path | None = None
    include: tuple[str, ...] = ()
    with_git: bool = False
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveOptions:
    """What counts as live state.

    Attributes:
        extra: Roots of `--live-agents-dir`.
        strict: A change of the home directory's root is fatal too.
        allow_external: A change that is positively an outsider's is not fatal.
    """

    extra: tuple[Path, ...] = ()
    strict: bool = False
    allow_external: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Gates:
    """What the exit code is asked to say beyond integrity.

    Attributes:
        require_delta: Least `aggregate_delta` (its lower bound) of every suite.
        require_valid: No pair may be degraded.
        require_pass: The on-leg (or the single leg) must pass.
    """

    require_delta: float | None = None
    require_valid: bool = False
    require_pass: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunRequest:
    """One command: suites, roots, surroundings and outputs."""

    suites: tuple[Path, ...]
    surroundings: Surroundings
    out_dir: Path
    sandbox: Sandbox = field(default_factory=Sandbox)
    workspace: WorkspaceOptions = field(default_factory=WorkspaceOptions)
    live: LiveOptions = field(default_factory=LiveOptions)
    hooks_dir: Path | None = None
    """Hooks directory: what its `hooks.json` says runs around every case."""
    gates: Gates = field(default_factory=Gates)
    axis: Axis = Axis.CONTEXT
    off_root: Path | None = None
    on_root: Path | None = None
    variant: str | None = None
    """For a single leg: the variant as the user named it."""
    agents_dir: Path | None = None
    """For a single leg: its context root."""
    run_id: str | None = None
    out: Path | None = None
    delta_out: Path | None = None
    null_check: bool = False
    controls: Literal["none", "standard"] = "standard"
    attribute: Literal["trace", "ablate"] = "trace"
    ablation_legs: int = 40
    """Most legs of an ablation; units are varied together where they are too many."""
    sign_key: Path | None = None
    """Private key of whoever attests; None: the attestation is unsigned."""
    only: tuple[str, ...] = ()
    keep_seconds: int = 0
    """Above zero: leave the container of the only case for inspection this long."""
