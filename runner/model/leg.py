"""Plans: what is to run. A plan is a value; nothing in it has happened yet."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Literal

from pydantic import Field

from runner.model.base import Items, RunId, Sha256, Token, Value
from runner.model.contextfile import ContextArtifact
from runner.model.hooks import HooksDirectory


class Axis(StrEnum):
    """What differs between the legs."""

    CONTEXT = "context"
    SKILL = "skill"


class Variant(StrEnum):
    """Side of an axis. `none` is a plain run without a context root."""

    CONTEXT_OFF = "context_off"
    CONTEXT_ON = "context_on"
    SKILL_ON = "skill_on"
    SKILL_OFF = "skill_off"
    NONE = "none"


class DegradedReason(StrEnum):
    """Closed set of the context usefulness contract."""

    HOOKS_DISABLED = "hooks_disabled"
    CONTEXT_ROOT_UNAVAILABLE = "context_root_unavailable"
    CONTEXT_ROOT_MUTATED_LIVE_STATE = "context_root_mutated_live_state"
    CONTEXT_VARIANT_UNSUPPORTED = "context_variant_unsupported"
    INSUFFICIENT_DECISION_EVIDENCE = "insufficient_decision_evidence"
    RUNTIME_UNAVAILABLE = "runtime_unavailable"


class Degradation(Value):
    """Why a leg or case cannot support a claim."""

    reason: DegradedReason
    detail: Token


class Command(Value):
    """What one execution starts. Either `argv` or `shell` was given in the suite."""

    argv: Annotated[Items[str], Field(min_length=1)]
    cwd: str
    """Absolute path inside the container."""
    stdin: str | None = None
    env: dict[str, str] = Field(default_factory=dict)
    """Added to the leg's environment for this execution."""


class Probe(Value):
    """An extra execution that an expectation asks for, under the same rules as the case."""

    expectation: int
    """Index of the expectation in the case."""
    command: Command


class CasePlan(Value):
    """One case as the agent has to run it."""

    index: Annotated[int, Field(ge=0)]
    """Position in the suite."""
    case_id: str
    command: Command | None = None
    """None: a static case, nothing runs, only files are looked at."""
    timeout_seconds: Annotated[int, Field(ge=1)]
    files: Items[str] = ()
    """Absolute container paths to snapshot after the command, as the case user."""
    probes: Items[Probe] = ()
    degraded: Degradation | None = None
    """Set when the case is known beforehand not to be runnable (a live runtime, say)."""


class ContextRoot(Value):
    """A staged context root."""

    label: str
    sha256: Sha256 | None
    """Content digest of the staged tree; None when it could not be staged."""
    path: str
    """As the user named it."""
    entries: int = 0
    size: int = 0
    """Bytes of regular files."""
    sentinels: Items[ContextArtifact] = ()
    """Negative controls that it holds."""


class LegRole(Value):
    """Why a leg of a comparison is run."""

    purpose: Literal["first", "replicate", "label_swap", "ablation"]
    root: Literal["context_off", "context_on", "mixed", "skill_off", "skill_on"]
    """Whose content its context root has; the label that cases see is the leg's variant. On the
    skill axis, where no leg has a root: the variant."""
    ordinal: Annotated[int, Field(ge=1)]
    """Counts legs of one purpose and root; the first legs and their replicates count together."""
    on_units: Items[str] = ()
    """Of a mixed root: the units that have their `context_on` version."""


class LegPlan(Value):
    """One leg: a variant, its root, its environment, its cases."""

    leg: Token
    """Name of the leg within the run: `context_off`, `context_on`."""
    axis: Axis
    variant: str
    """A `Variant` value, or the unsupported name as the user gave it."""
    run_id: RunId
    root: ContextRoot | None
    env: dict[str, str]
    """The whole environment that cases start with, before case `env` is added."""
    cases: Items[CasePlan]
    hooks: HooksDirectory | None = None
    """What runs around every command case; without hooks when they are suppressed."""
    degraded: Degradation | None = None
    """Set when the whole leg is degraded before anything ran."""
    role: LegRole | None = None
    """None for a plain run."""
    isolated: bool = False
    """Every case gets a container of its own."""
