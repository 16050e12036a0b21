"""Evidence documents held against each other: what one states, the others must bear out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.core import inside
from runner.core.confine import is_gvisor
from runner.core.hookenv import NAMESPACES
from runner.core.plan import supported_variants, suppression
from runner.core.treehash import TreeRecord, content_digest
from runner.core.trials import OFF, ON
from runner.core.units import mixed, records
from runner.model.contextroots import ContextRoots, RootContent
from runner.model.evidence import HooksEvidence, SandboxEvidence
from runner.model.leg import ContextRoot, Degradation, DegradedReason
from runner.model.observation import InsideEnd, InsideReport
from runner.model.reads import ContextReads, LegReads
from runner.model.record import RunRecord
from runner.model.suite import SuiteFile

ROOTS: Final = "evidence/context-roots.json"
SANDBOX: Final = "evidence/sandbox.json"
HOOKS: Final = "evidence/hooks.json"
READS: Final = "evidence/context-reads.json"


class Wrong(NamedTuple):
    """One thing that does not fit: where, and how."""

    where: str
    problem: str


def record_place(leg: str) -> str:
    """Where the record of a leg lies."""
    return f"legs/{leg}/record.json"


# ------------------------------------------------------------------------------- context roots


def check_roots(roots: ContextRoots, found: Sequence[RunRecord]) -> Iterator[Wrong]:
    """Digests follow from the entries, and are those that the legs had."""
    contents: dict[str, RootContent] = {content.leg: content for content in roots.roots}
    if [content.leg for content in roots.roots] != [OFF, ON]:
        yield Wrong(f"{ROOTS}#/roots", "must be context_off and context_on, in this order")
        return
    entries: dict[str, tuple[TreeRecord, ...]] = {}
    for index, content in enumerate(roots.roots):
        at = f"{ROOTS}#/roots/{index}"
        try:
            entries[content.leg] = records(content.entries)
            digest = content_digest(entries[content.leg])
        except ValueError as error:
            yield Wrong(f"{at}/entries", str(error))
            return
        ordered = sorted(entries[content.leg], key=lambda record: record.path)
        if list(entries[content.leg]) != ordered:
            yield Wrong(f"{at}/entries", "not in the order of their paths")
        if content.sha256 is None and content.entries:
            yield Wrong(f"{at}/entries", "a root that was not staged has none")
        if content.sha256 is not None and content.sha256 != digest:
            yield Wrong(f"{at}/sha256", "does not follow from the entries")
        if content.context is not None and content.context.label != content.label:
            yield Wrong(f"{at}/label", "is not the label of its context.json")
    for record in found:
        yield from _root_of(record, contents, entries)


def _root_of(
    record: RunRecord,
    contents: Mapping[str, RootContent],
    entries: Mapping[str, tuple[TreeRecord, ...]],
) -> Iterator[Wrong]:
    at = record_place(record.leg)
    if record.role is None:
        yield Wrong(f"{at}#/role", "a leg of a comparison has one")
        return
    if record.role.root == "mixed":
        try:
            placed = mixed(entries[OFF], entries[ON], record.role.on_units)
            wanted: str | None = content_digest(item.record for item in placed)
        except (ValueError, KeyError) as error:
            yield Wrong(f"{at}#/role/on_units", f"such a root cannot be: {error}")
            return
    else:
        content = contents[record.role.root]
        wanted = content.sha256
        if record.context_root_label != content.label:
            yield Wrong(f"{at}#/context_root_label", f"is not {content.label}, as its root's is")
    if record.context_root_sha256 != wanted:
        yield Wrong(f"{at}#/context_root_sha256", f"is not that of {record.role.root}")


# ----------------------------------------------------------------------------- degraded reasons


def check_legs(
    suite: SuiteFile | None,
    roots: ContextRoots,
    found: Sequence[RunRecord],
    sandbox: SandboxEvidence,
    reads: ContextReads,
) -> Iterator[Wrong]:
    """Every leg is degraded by what the evidence shows, and by nothing that it refutes.

    Args:
        suite: None for a private holdout.
        roots: Both context roots.
        found: Every record, before live state is considered.
        sandbox: Containers and what was seen from inside.
        reads: Read traces; some say why a root was not looked at from inside at start.
    """
    late = {leg.leg for leg in reads.legs if leg.granularity == "leg_of_one_case"}
    contents: dict[str, RootContent] = {content.leg: content for content in roots.roots}
    for record in found:
        at = f"{record_place(record.leg)}#/degraded_detail"
        own = record.degradation
        if own is not None and own.reason is DegradedReason.CONTEXT_ROOT_MUTATED_LIVE_STATE:
            continue  # What it was by itself is no longer known.
        at_start = not (record.leg in late and _under_gvisor(record))
        shown = dict(_shown(suite, contents, record, sandbox, at_start=at_start))
        if own is None:
            for detail, why in shown.items():
                yield Wrong(at, f"the leg is not degraded, but {why} ({detail})")
        elif own.detail in _EXPLAINED and own.detail not in shown:
            yield Wrong(at, f"{own.reason.value}/{own.detail} is borne out by nothing")
        elif own.detail not in _EXPLAINED:
            yield from _observed(record, own, at)


_EXPLAINED: Final = frozenset(
    {"inherited", "option_env", "image_env", "suite_env", "scrub_prefix", "case_env"}
    | {"missing", "unreadable", "unsafe_entry", "digest_mismatch", "directory_differs"}
    | {"environment_differs", "sandbox_differs"}
)
"""Details that other documents have to bear out."""

_SUPPRESSED: Final = ("inherited", "option_env", "image_env")


def _shown(
    suite: SuiteFile | None,
    contents: Mapping[str, RootContent],
    record: RunRecord,
    sandbox: SandboxEvidence,
    *,
    at_start: bool,
) -> Iterator[tuple[str, str]]:
    """Details that the evidence of a leg gives, and in what words."""
    off = record.environment is not None and record.environment.hooks_disabled
    stated = record.degraded_detail or ""
    by_suite = None
    if suite is not None:
        by_suite = suppression(suite.suite, invoker={}, options={}, image={}, suite_path=suite.path)
    if by_suite is not None and not (off and stated in _SUPPRESSED):
        yield by_suite.detail, "the suite suppresses hooks"
    elif off:
        detail = stated if stated in _SUPPRESSED or by_suite is None else by_suite.detail
        yield detail or "inherited", "hooks were suppressed"
    root = contents.get(record.role.root) if record.role is not None else None
    if root is not None and root.sha256 is None:
        named = stated if stated in {"missing", "unreadable", "unsafe_entry"} else "missing"
        yield ("unsafe_entry" if root.refusal else named), "its context root was not staged"
    for seen in (record.inside, record.inside_end):
        if seen is not None:
            yield from _seen(record, seen, at_start=at_start)
    differing = [item for item in sandbox.containers if item.leg == record.leg and item.differences]
    told = [line for line in sandbox.problems if line.startswith(f"{record.leg}: ")]
    if differing or told:
        yield "sandbox_differs", "its sandbox was not what was asked for"


def _under_gvisor(record: RunRecord) -> bool:
    return record.runtime is not None and is_gvisor(record.runtime.oci_runtime)


def _seen(
    record: RunRecord, seen: InsideReport | InsideEnd, *, at_start: bool
) -> Iterator[tuple[str, str]]:
    root = None
    if record.context_root_label is not None:
        root = ContextRoot(label="", sha256=record.context_root_sha256, path="")
    if inside.root_degradation(root, seen, at_start=at_start) is not None:
        yield "digest_mismatch", "the context root inside was not the one that was staged"
    passed = record.environment.hook_environment if record.environment is not None else {}
    if any(seen.environment_sha256.get(name) != value for name, value in passed.items()):
        yield "environment_differs", "the hook environment inside was not the host's"


def _observed(record: RunRecord, own: Degradation, at: str) -> Iterator[Wrong]:
    """A leg that came to its end in order did not stop on the way."""
    if own.reason is DegradedReason.CONTEXT_VARIANT_UNSUPPORTED:
        if record.variant in supported_variants(record.axis):
            yield Wrong(at, f"{record.variant} is a variant of the axis")
        return
    containers = {case.container for case in record.case_results}
    reached = all(case.expectations for case in record.case_results)
    if reached and len(containers) == 1 and record.inside_end is not None:
        yield Wrong(at, f"the leg came to its end, yet is said to have stopped: {own.detail}")


# -------------------------------------------------------------------------------------- sandbox

_HOST: Final[Mapping[str, object]] = {
    "NetworkMode": "none",
    "Privileged": False,
    "ReadonlyRootfs": True,
    "CapDrop": ["ALL"],
    "SecurityOpt": ["no-new-privileges:true"],
    "IpcMode": "private",
    "PidMode": "",
    "UTSMode": "",
}
_WRITABLE: Final = frozenset({"/workspace", "/ao-upper"})


def check_sandbox(sandbox: SandboxEvidence, found: Sequence[RunRecord]) -> Iterator[Wrong]:
    """Containers are confined as they must be, and differences are told."""
    legs = {record.leg: record for record in found}
    for index, container in enumerate(sandbox.containers):
        at = f"{SANDBOX}#/containers/{index}"
        record = legs.get(container.leg)
        if record is None:
            yield Wrong(f"{at}/leg", f"there is no record of leg {container.leg}")
            continue
        fields = ", ".join(item.field for item in container.differences)
        line = f"{container.leg}: created container differs in {fields}"
        if fields and line not in sandbox.problems:
            yield Wrong(f"{SANDBOX}#/problems", f"does not tell of {fields} of {container.leg}")
        if not fields:
            yield from _profile(container.profile, f"{at}/profile")
        if record.runtime is not None and container.profile.get("image") != record.runtime.image_id:
            yield Wrong(f"{at}/profile/image", "is not the image of the run")
    yield from _ordinals(sandbox, found)
    yield from _insides(sandbox, found)


def _profile(profile: Mapping[str, Any], at: str) -> Iterator[Wrong]:
    host = profile.get("host")
    if not isinstance(host, dict):
        yield Wrong(f"{at}/host", "says nothing")
        return
    for name, wanted in _HOST.items():
        if host.get(name) != wanted:
            yield Wrong(f"{at}/host/{name}", "is less confined than a leg may be")
    if profile.get("network_disabled") is not True:
        yield Wrong(f"{at}/network_disabled", "is less confined than a leg may be")
    mounts = profile.get("mounts")
    for number, mount in enumerate(mounts if isinstance(mounts, list) else []):
        if not mount.get("read_only") and mount.get("target") not in _WRITABLE:
            yield Wrong(f"{at}/mounts/{number}", "is writable")


def _ordinals(sandbox: SandboxEvidence, found: Sequence[RunRecord]) -> Iterator[Wrong]:
    for record in found:
        mine = [item.ordinal for item in sandbox.containers if item.leg == record.leg]
        if mine != list(range(len(mine))):
            yield Wrong(f"{SANDBOX}#/containers", f"are not all there for leg {record.leg}")
        ran = [case.container for case in record.case_results if case.expectations]
        if ran and max(ran) >= len(mine):
            yield Wrong(record_place(record.leg), "names a container that was not read back")


def _insides(sandbox: SandboxEvidence, found: Sequence[RunRecord]) -> Iterator[Wrong]:
    if [item.leg for item in sandbox.inside] != [record.leg for record in found]:
        yield Wrong(f"{SANDBOX}#/inside", "does not have the legs that were run, in their order")
        return
    for index, (item, record) in enumerate(zip(sandbox.inside, found, strict=True)):
        at = f"{SANDBOX}#/inside/{index}"
        if item.start != record.inside:
            yield Wrong(f"{at}/start", "is not what the record of the leg has")
        if item.end != record.inside_end:
            yield Wrong(f"{at}/end", "is not what the record of the leg has")
        if item.start is None or record.runtime is None:
            continue
        for line in inside.sandbox_problems(
            item.start,
            case_user=(item.start.case_uid, 0),
            agent_sha256=record.runtime.agent_sha256,
            gvisor=is_gvisor(record.runtime.oci_runtime),
        ):
            if f"{record.leg}: {line}" not in sandbox.problems:
                yield Wrong(f"{SANDBOX}#/problems", f"does not tell that {line} ({record.leg})")
        if item.start.case_uid == 0:
            yield Wrong(f"{at}/start/case_uid", "cases ran as root")


# ---------------------------------------------------------------------------------------- hooks


def check_hooks(
    hooks: HooksEvidence, sandbox: SandboxEvidence, found: Sequence[RunRecord]
) -> Iterator[Wrong]:
    """The hook environment is in each leg what it is on the host, where it says so."""
    legs = {record.leg: record for record in found}
    for index, item in enumerate(hooks.legs):
        at = f"{HOOKS}#/legs/{index}"
        record = legs.get(item.leg)
        if record is None:
            yield Wrong(f"{at}/leg", f"there is no record of leg {item.leg}")
            continue
        if record.environment is not None:
            if record.environment.hook_environment != hooks.host:
                where = f"{record_place(item.leg)}#/environment/hook_environment"
                yield Wrong(where, "is not what the host had")
            if record.environment.dropped != hooks.dropped:
                where = f"{record_place(item.leg)}#/environment/dropped"
                yield Wrong(where, "is not what was dropped on the host")
        start, end = _names(record.inside), _names(record.inside_end)
        if (item.inside_at_start, item.inside_at_end) != (start, end):
            yield Wrong(at, "is not what the record of the leg saw from inside")
        created = _created(sandbox, item.leg)
        if item.created_configuration != created:
            yield Wrong(f"{at}/created_configuration", "is not what the engine read back")
        directory = hooks.directory.sha256 if hooks.directory is not None else None
        inside_twice = (item.directory_at_start, item.directory_at_end)
        mine = {name: value for name, value in (start or {}).items() if name in hooks.host}
        preserved = (
            start is not None
            and start == end
            and mine == hooks.host
            and set(hooks.host) <= set(created)
            and (directory is None or inside_twice == (directory, directory))
        )
        if item.preserved != preserved:
            yield Wrong(f"{at}/preserved", f"the evidence gives {str(preserved).lower()}")


def _names(seen: InsideReport | InsideEnd | None) -> dict[str, str] | None:
    if seen is None:
        return None
    return {
        name: value
        for name, value in sorted(seen.environment_sha256.items())
        if name.startswith(NAMESPACES)
    }


def _created(sandbox: SandboxEvidence, leg: str) -> tuple[str, ...]:
    found: set[str] = set()
    for item in sandbox.containers:
        names = item.profile.get("environment_names")
        if item.leg == leg and isinstance(names, list):
            found |= {name for name in names if str(name).startswith(NAMESPACES)}
    return tuple(sorted(found))


# ---------------------------------------------------------------------------------------- reads


def check_reads(
    reads: ContextReads, roots: ContextRoots, found: Sequence[RunRecord]
) -> Iterator[Wrong]:
    """Read traces are of legs and cases that were run, and of artifacts that were there."""
    legs = {record.leg: record for record in found}
    known = {entry.path for content in roots.roots for entry in content.entries}
    seen: set[str] = set()
    for index, leg in enumerate(reads.legs):
        at = f"{READS}#/legs/{index}"
        record = legs.get(leg.leg)
        if record is None or leg.leg in seen:
            yield Wrong(f"{at}/leg", f"there is no such leg, or twice: {leg.leg}")
            continue
        seen.add(leg.leg)
        yield from _boundaries(leg, record, at)
        cases = {case.case_id for case in record.case_results}
        for number, case in enumerate(leg.cases):
            if case.case_id not in cases:
                yield Wrong(f"{at}/cases/{number}/case_id", "is no case of the leg")
            strange = [path for path in (*case.opened, *case.by_hooks) if path not in known]
            if strange:
                yield Wrong(f"{at}/cases/{number}", f"no root has {strange[0]}")


def _boundaries(leg: LegReads, record: RunRecord, at: str) -> Iterator[Wrong]:
    """A trace is as fine as its runtime allows, and a complete one leaves no case out."""
    one_case = leg.granularity == "leg_of_one_case"
    if leg.granularity is not None and one_case is not _under_gvisor(record):
        yield Wrong(f"{at}/granularity", f"cannot be under the runtime of leg {leg.leg}")
    ran = [case.container for case in record.case_results if case.expectations]
    if one_case and len(set(ran)) < len(ran):
        yield Wrong(f"{at}/granularity", "cases shared a container")
    order = [case.case_id for case in record.case_results]
    told = [case.case_id for case in leg.cases]
    if told != [case_id for case_id in order if case_id in told]:
        yield Wrong(f"{at}/cases", "are not in the order in which they ran")
    ended = {case.case_id for case in record.case_results if case.degraded_reason is None}
    if leg.state == "complete" and not ended <= set(told):
        yield Wrong(f"{at}/cases", f"are said to be complete, without {min(ended - set(told))}")
