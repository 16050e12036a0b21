"""Suite and axis -> legs: what will run, decided before anything does."""

from __future__ import annotations

import posixpath
from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

from runner.core import hookenv
from runner.core.confine import leg_variables
from runner.core.degrade import hooks_disabled, runtime_unavailable
from runner.core.expect import file_targets, probe_command
from runner.errors import InputError
from runner.model.hooks import HooksDirectory
from runner.model.leg import (
    Axis,
    CasePlan,
    Command,
    ContextRoot,
    Degradation,
    DegradedReason,
    LegPlan,
    LegRole,
    Probe,
    Variant,
)
from runner.model.suite import Case, CaseRuntime, Suite, Tier

DEFAULT_TIMEOUT_SECONDS = 30
_VARIANTS: dict[Axis, tuple[str, ...]] = {
    Axis.CONTEXT: (Variant.CONTEXT_OFF, Variant.CONTEXT_ON, Variant.NONE),
    Axis.SKILL: (Variant.SKILL_ON, Variant.SKILL_OFF),
}
APART: dict[Axis, frozenset[str]] = {
    Axis.CONTEXT: frozenset({"AO_CONTEXT_VARIANT"}),
    Axis.SKILL: frozenset({hookenv.HOOKS_SWITCH}),
}
"""Hook variables that make the legs of an axis what they are; all others are equal in both."""

_LIVE = frozenset({CaseRuntime.CLAUDE, CaseRuntime.CODEX, CaseRuntime.MANUAL})


class LegRequest(NamedTuple):
    """One leg that is asked for.

    Attributes:
        variant: Variant of the axis, or an unsupported name as the user gave it.
        root: Staged context root; None for a run without one.
        root_degraded: Why the root could not be staged.
        leg: Name of the leg; None: that of its variant.
        role: Why it is run, in a comparison.
        isolated: Every case gets a container of its own.
    """

    variant: str
    root: ContextRoot | None
    root_degraded: Degradation | None = None
    leg: str | None = None
    role: LegRole | None = None
    isolated: bool = False


def plan_leg(
    suite: Suite,
    request: LegRequest,
    *,
    axis: Axis,
    run_id: str,
    suite_dir: str,
    environment: Mapping[str, str],
    suppressed: Degradation | None,
    only: Sequence[str] = (),
    hooks: HooksDirectory | None = None,
) -> LegPlan:
    """Plan one leg.

    Args:
        suite: The suite.
        request: Variant and root.
        axis: What differs between the legs.
        run_id: Run id of this leg.
        suite_dir: Folder of the suite inside the container.
        environment: Base environment, hook environment included.
        suppressed: Why hooks are off in this run, if they are.
        only: Case ids to run; empty for all.
        hooks: The hooks directory. Its hooks are not run when they are suppressed.
    """
    return LegPlan(
        leg=request.leg or _leg_name(request.variant),
        axis=axis,
        variant=request.variant,
        run_id=run_id,
        root=request.root,
        env={**environment, **_leg_environment(axis, request.variant)},
        cases=tuple(
            _plan_case(case, index, suite, suite_dir, fixed=_fixed(axis))
            for index, case in enumerate(suite.cases)
            if not only or case.id in only
        ),
        hooks=_hooks(hooks, run=suppressed is None and request.variant != Variant.SKILL_OFF),
        degraded=_leg_degradation(request, axis, suppressed),
        role=request.role,
        isolated=request.isolated,
    )


def _leg_environment(axis: Axis, variant: str) -> dict[str, str]:
    """What the leg sets last, over everything else."""
    if axis is Axis.SKILL:
        switch = {hookenv.HOOKS_SWITCH: "1"} if variant == Variant.SKILL_OFF else {}
        return {**leg_variables(None), **switch}
    return leg_variables(None if variant == Variant.NONE else variant)


def _fixed(axis: Axis) -> frozenset[str]:
    """Variables that no case may set: they are the leg's."""
    return APART[axis].union(hookenv.LEG_VARIABLES)


def _hooks(hooks: HooksDirectory | None, *, run: bool) -> HooksDirectory | None:
    """The directory stays mounted and compared: only what it would run is taken away."""
    if hooks is None or run:
        return hooks
    return hooks.model_copy(update={"hooks": ()})


def _leg_name(variant: str) -> str:
    """A token even for a variant that is none of ours."""
    return variant if variant in {item.value for item in Variant} else "unsupported"


def _leg_degradation(
    request: LegRequest, axis: Axis, suppressed: Degradation | None
) -> Degradation | None:
    if request.variant not in supported_variants(axis):
        return Degradation(
            reason=DegradedReason.CONTEXT_VARIANT_UNSUPPORTED, detail=as_token(request.variant)
        )
    return suppressed or request.root_degraded


def supported_variants(axis: Axis) -> tuple[str, ...]:
    """The two variants of an axis; for the context axis also the plain run."""
    return _VARIANTS[axis]


def as_token(text: str) -> str:
    """A name as a bare token, for a degraded detail."""
    token = "".join(c if c.isascii() and c.isalnum() else "_" for c in text.lower())[:64]
    return token if token[:1].isalpha() else f"v_{token}"[:64]


def _plan_case(
    case: Case, index: int, suite: Suite, suite_dir: str, *, fixed: Collection[str]
) -> CasePlan:
    inputs = case.inputs or {}
    cwd = posixpath.normpath(posixpath.join(suite_dir, _text(inputs.get("cwd"))))
    environment = _strings(inputs.get("env"), fixed)
    command = _command(case, inputs, cwd, environment)
    return CasePlan(
        index=index,
        case_id=case.id,
        command=command,
        timeout_seconds=case.timeout_seconds
        or (suite.environment.timeout_seconds if suite.environment else None)
        or DEFAULT_TIMEOUT_SECONDS,
        files=file_targets(case, suite_dir=suite_dir),
        probes=tuple(
            Probe(
                expectation=position,
                command=Command(argv=("sh", "-c", text), cwd=cwd, env=environment),
            )
            for position, expectation in enumerate(case.expectations)
            if (text := probe_command(expectation)) is not None
        ),
        degraded=_case_degradation(case, suite, command),
    )


def _case_degradation(case: Case, suite: Suite, command: Command | None) -> Degradation | None:
    if suite.tier is not Tier.DETERMINISTIC:
        return runtime_unavailable("tier_not_deterministic")
    if case.runtime in _LIVE:
        return runtime_unavailable("live_runtime")
    if case.is_command and command is None:
        return runtime_unavailable("not_startable")
    return None


def _command(
    case: Case, inputs: Mapping[str, object], cwd: str, environment: Mapping[str, str]
) -> Command | None:
    """What a case starts: `shell` wins over `argv`, `argv` over `command` with `args`.

    Values of the wrong type count as absent, as in the format's first runner.
    """
    if not case.is_command:
        return None
    if shell := _text(inputs.get("shell")):
        argv: tuple[str, ...] = ("sh", "-c", shell)
    elif listed := _texts(inputs.get("argv")):
        argv = listed
    elif program := _text(inputs.get("command")):
        argv = (program, *_texts(inputs.get("args")))
    else:
        return None
    stdin = inputs.get("stdin")
    return Command(
        argv=argv,
        cwd=cwd,
        stdin=stdin if isinstance(stdin, str) else None,
        env=dict(environment),
    )


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _texts(value: object) -> tuple[str, ...]:
    return tuple(item for item in value if isinstance(item, str)) if isinstance(value, list) else ()


def _strings(value: object, fixed: Collection[str]) -> dict[str, str]:
    """Case `env`: strings only; the leg's own variables cannot be overridden."""
    if not isinstance(value, dict):
        return {}
    return {
        name: text for name, text in value.items() if isinstance(text, str) and name not in fixed
    }


def suppression(
    suite: Suite,
    *,
    invoker: Mapping[str, str],
    options: Mapping[str, str],
    image: Mapping[str, str],
    suite_path: str,
) -> Degradation | None:
    """Why hooks would be off in this run, wherever it comes from.

    Args:
        suite: The suite; its environment and the `env` of its cases are looked at.
        invoker: The invoker's whole environment.
        options: Variables of `--env`.
        image: `ENV` of the image.
        suite_path: For messages.

    Raises:
        InputError: A switch is set ambiguously.
    """
    if hookenv.suppressed_by(invoker, where="environment"):
        return hooks_disabled("inherited")
    if hookenv.suppressed_by(options, where="--env"):
        return hooks_disabled("option_env")
    if hookenv.suppressed_by(image, where="image ENV"):
        return hooks_disabled("image_env")
    environment = suite.environment
    if environment is not None and environment.disable_hooks:
        return hooks_disabled("suite_env")
    if environment is not None and hookenv.scrubs_hooks(environment.scrub_env_prefixes) is not None:
        return hooks_disabled("scrub_prefix")
    for index, case in enumerate(suite.cases):
        where = f"{suite_path}#/cases/{index}/inputs/env"
        own = _strings((case.inputs or {}).get("env"), hookenv.LEG_VARIABLES)
        if hookenv.suppressed_by(own, where=where):
            return hooks_disabled("case_env")
    return None


def check_only(suite: Suite, only: Sequence[str], suite_path: str) -> None:
    """Refuse case ids that the suite does not have.

    Raises:
        InputError: Naming the first unknown id.
    """
    known = {case.id for case in suite.cases}
    for case_id in only:
        if case_id not in known:
            raise InputError(f"no case {case_id!r}", where=suite_path, remedy="see `cases[].id`")
