"""The evidence directory: every document validated before it is written, outputs as blobs."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from runner.app.legrunner import LegOutcome
from runner.app.prepare import Prepared
from runner.core import hookreceipts, units
from runner.core.canon import canonical, document
from runner.core.hookenv import NAMESPACES
from runner.core.plan import APART
from runner.core.trials import OFF, ON
from runner.errors import InternalError
from runner.host.rundir import RunDirectory
from runner.model.base import Value
from runner.model.contextroots import ContextRoots, RootContent
from runner.model.evidence import (
    CaseReceipts,
    ContainerEvidence,
    HooksDirectoryEvidence,
    HooksEvidence,
    LegHooks,
    LegInside,
    SandboxEvidence,
)
from runner.model.leg import Axis
from runner.model.reads import ContextReads

_UNSAFE = re.compile(r"[^A-Za-z0-9._:-]")


class Evidence:
    """One evidence directory in the making; also the blob store of its legs.

    Args:
        out_dir: Where evidence directories go.
        name: Name of this one.

    Attributes:
        digests: Path below the directory -> SHA-256, of everything that was written so far.
    """

    def __init__(self, out_dir: Path, name: str) -> None:
        self._directory = RunDirectory(out_dir, _UNSAFE.sub("-", name))
        self.digests: dict[str, str] = {}

    def __enter__(self) -> Self:
        self._directory.__enter__()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._directory.__exit__(kind, error, trace)

    def put(self, leg: str, case_id: str, name: str, data: bytes) -> str:
        """Store an output; its path below the directory."""
        path = self._directory.write_blob(("legs", leg, "cases", case_id, name), data)
        self.digests[path] = hashlib.sha256(data).hexdigest()
        return path

    def head(self, relative: str, size: int) -> bytes:
        """Leading bytes of a stored output."""
        with (self._directory.path / relative).open("rb") as blob:
            return blob.read(size)

    def write(self, contract: str, relative: str, value: Value) -> bytes:
        """Validate a document against its published schema and write it, canonically.

        Raises:
            InternalError: It does not match; nothing is written.
        """
        data = self.check(contract, value)
        self._write(relative, data)
        return data

    @staticmethod
    def check(contract: str, value: Value) -> bytes:
        """Canonical bytes of a document that matches its schema."""
        from runner.contracts.judge import problem

        plain = document(value)
        found = problem(contract, plain)
        if found is not None:
            raise InternalError(f"{contract} at {found.pointer or '/'}: {found.message}")
        return canonical(plain)

    def write_text(self, relative: str, data: str | bytes) -> None:
        """Write a rendering of the scorecard, or another file that is no document of ours."""
        self._write(relative, data.encode() if isinstance(data, str) else data)

    def _write(self, relative: str, data: bytes) -> None:
        self._directory.write_json(relative, data)
        self.digests[relative] = hashlib.sha256(data).hexdigest()

    def finish(self) -> Path:
        """Give the directory its name."""
        return self._directory.finalize()


def sandbox_evidence(prepared: Prepared, outcomes: Sequence[LegOutcome]) -> SandboxEvidence:
    """What the engine and the agents reported."""
    session = prepared.session
    return SandboxEvidence(
        schema_version=1,
        engine=session.engine.info(),
        containers=tuple(
            ContainerEvidence(
                leg=item.leg,
                ordinal=item.ordinal,
                profile=dict(item.profile),
                differences=item.differences,
            )
            for item in sorted(session.readbacks, key=lambda item: (item.leg, item.ordinal))
        ),
        inside=tuple(
            LegInside(leg=outcome.plan.leg, start=outcome.inside, end=outcome.end)
            for outcome in outcomes
        ),
        problems=tuple(line for outcome in outcomes for line in outcome.problems),
    )


def hooks_evidence(prepared: Prepared, outcomes: Sequence[LegOutcome]) -> HooksEvidence:
    """The hook environment in its three places."""
    environment = prepared.suite.suite.environment
    prefixes = environment.scrub_env_prefixes if environment else ()
    passed = prepared.hooks.fingerprint()
    return HooksEvidence(
        schema_version=1,
        host=passed,
        dropped=prepared.hooks.dropped,
        scrub_prefixes_without_effect=tuple(
            prefix for prefix in prefixes if prefix.startswith(NAMESPACES)
        ),
        directory=_hooks_directory(prepared, outcomes),
        legs=tuple(_leg_hooks(prepared, outcome, passed) for outcome in outcomes),
    )


def _hooks_directory(
    prepared: Prepared, outcomes: Sequence[LegOutcome]
) -> HooksDirectoryEvidence | None:
    directory = prepared.hooks_directory
    if directory is None:
        return None
    # Only the first legs ran every case: the receipts of the others were compared as they ended.
    first = [outcome for outcome in outcomes if _is_first(outcome)]
    # The plan's hooks are those that were run: none when they were suppressed.
    planned = [
        outcome.plan.hooks.hooks
        for outcome in outcomes
        if outcome.plan.hooks is not None and outcome.plan.hooks.hooks
    ]
    compared = all(outcome.plan.axis is Axis.CONTEXT for outcome in outcomes)
    return HooksDirectoryEvidence(
        sha256=directory.sha256,
        entries=directory.entries,
        size=directory.size,
        hooks=tuple(hook.ref for hook in planned[0]) if planned else (),
        not_run=directory.not_run,
        cases=tuple(
            CaseReceipts(
                case_id=sides[0].case_id,
                complete=all(map(hookreceipts.complete, sides)),
                equal=hookreceipts.equal(sides) if compared else None,
            )
            for sides in zip(*(outcome.results for outcome in first), strict=True)
            if any(side.hooks for side in sides)
        ),
    )


def _is_first(outcome: LegOutcome) -> bool:
    role = outcome.plan.role
    return role is None or role.purpose == "first"


def _leg_hooks(prepared: Prepared, outcome: LegOutcome, passed: dict[str, str]) -> LegHooks:
    start = _hooks_of(outcome.inside.environment_sha256) if outcome.inside else None
    end = _hooks_of(outcome.end.environment_sha256) if outcome.end else None
    leg = outcome.plan.leg
    created: set[str] = set()
    for item in prepared.session.readbacks:
        names = item.profile.get("environment_names")
        if item.leg == leg and isinstance(names, list):
            created |= {name for name in names if str(name).startswith(NAMESPACES)}
    passed = {name: value for name, value in passed.items() if name not in APART[outcome.plan.axis]}
    mine = {name: value for name, value in (start or {}).items() if name in passed}
    directory = prepared.hooks_directory
    directories = [
        seen.hooks_directory_sha256 if seen else None for seen in (outcome.inside, outcome.end)
    ]
    same = directory is None or directories == [directory.sha256] * 2
    return LegHooks(
        leg=leg,
        inside_at_start=start,
        inside_at_end=end,
        created_configuration=tuple(sorted(created)),
        directory_at_start=directories[0],
        directory_at_end=directories[1],
        preserved=(
            start is not None
            and start == end
            and mine == passed
            and set(passed) <= created
            and same
        ),
    )


def _hooks_of(fingerprint: dict[str, str]) -> dict[str, str]:
    return {
        name: value for name, value in sorted(fingerprint.items()) if name.startswith(NAMESPACES)
    }


def context_roots(prepared: Prepared) -> ContextRoots:
    """Both context roots, entry by entry."""
    return ContextRoots(
        schema_version=1,
        roots=tuple(
            RootContent(
                leg=leg,
                label=prepared.roots[leg].root.label,
                sha256=prepared.roots[leg].root.sha256,
                refusal=prepared.roots[leg].refusal,
                entries=units.entries(prepared.roots[leg].records),
                context=prepared.roots[leg].context,
            )
            for leg in (OFF, ON)
        ),
    )


def context_reads(outcomes: Sequence[LegOutcome]) -> ContextReads:
    """Read traces of all legs that have one."""
    return ContextReads(
        schema_version=1,
        legs=tuple(outcome.reads for outcome in outcomes if outcome.reads is not None),
    )
