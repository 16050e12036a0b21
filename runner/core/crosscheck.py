"""Evidence documents held against each other: what one states, the others must bear out."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from runner.core import hookreceipts, inside
from runner.core.confine import is_gvisor
from runner.core.hookenv import NAMESPACES
from runner.core.plan import APART
from runner.core.treehash import TreeRecord, content_digest
from runner.core.trials import OFF, ON
from runner.core.units import mixed, records
from runner.model.contextroots import ContextRoots, RootContent
from runner.model.evidence import CaseReceipts, HooksEvidence, SandboxEvidence
from runner.model.leg import Axis
from runner.model.observation import InsideEnd, InsideReport
from runner.model.reads import ContextReads, LegReads
from runner.model.record import RunRecord

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


def under_gvisor(record: RunRecord) -> bool:
    """Whether the leg's runtime is gVisor."""
    return record.runtime is not None and is_gvisor(record.runtime.oci_runtime)


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
        passed = {k: v for k, v in hooks.host.items() if k not in APART[record.axis]}
        mine = {name: value for name, value in (start or {}).items() if name in passed}
        preserved = (
            start is not None
            and start == end
            and mine == passed
            and set(passed) <= set(created)
            and (directory is None or inside_twice == (directory, directory))
        )
        if item.preserved != preserved:
            yield Wrong(f"{at}/preserved", f"the evidence gives {str(preserved).lower()}")


def check_receipts(hooks: HooksEvidence, found: Sequence[RunRecord]) -> Iterator[Wrong]:
    """What is said of hooks around each case follows from the receipts of the first legs."""
    first = [record for record in found if record.role and record.role.purpose == "first"]
    if hooks.directory is None or any(record.degraded_reason for record in first):
        return  # Rows of a degraded leg do not say any more which of them were reached.
    # On the skill axis one leg alone runs hooks: there is nothing to compare.
    compared = all(record.axis is Axis.CONTEXT for record in first)
    wanted = tuple(
        CaseReceipts(
            case_id=sides[0].case_id,
            complete=all(map(hookreceipts.complete, sides)),
            equal=hookreceipts.equal(sides) if compared else None,
        )
        for sides in zip(*(record.case_results for record in first), strict=True)
        if any(side.hooks for side in sides)
    )
    if hooks.directory.cases != wanted:
        yield Wrong(f"{HOOKS}#/directory/cases", "do not follow from the receipts in the records")


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
    if leg.granularity is not None and one_case is not under_gvisor(record):
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
