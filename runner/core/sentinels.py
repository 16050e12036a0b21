"""Sentinels: artifacts that are there on purpose and must leave no trace in any output.

A negative control that cannot fail proves nothing, so a sentinel must be in the root, have tokens,
and have them in its own content. What an output shows of a token in any of three readings counts:
its bytes, its text, and its text with case and compatibility forms folded.
"""

from __future__ import annotations

import posixpath
import unicodedata
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Final, NamedTuple, cast, get_args

from runner.core.confine import CONTEXT_ROOT
from runner.core.material import Captured, Material
from runner.core.units import mixed, records
from runner.model.contextfile import ContextArtifact, ContextFile, SentinelRole
from runner.model.contextroots import ContextRoots
from runner.model.controls import LegName, SentinelCheck
from runner.model.leg import LegRole
from runner.model.record import RunRecord, SentinelHit
from runner.model.tree import path_text

SHORTEST: Final = 3
"""Characters of a token; shorter ones occur in outputs by chance."""

_ROLES: Final = frozenset(get_args(SentinelRole))


class Search(NamedTuple):
    """What a search of the outputs of one case showed.

    Attributes:
        hits: Tokens that were found, one for each artifact and output.
        decided: False when an output was cut and nothing was found in what was kept.
    """

    hits: tuple[SentinelHit, ...] = ()
    decided: bool = True


class Flaw(NamedTuple):
    """Why `context.json` cannot serve: JSON pointer, what, and what to do."""

    pointer: str
    message: str
    remedy: str


def sentinels(context: ContextFile | None) -> tuple[ContextArtifact, ...]:
    """The artifacts that are negative controls."""
    if context is None:
        return ()
    return tuple(filter(is_sentinel, context.artifacts))


def is_sentinel(item: ContextArtifact) -> bool:
    """Whether an artifact is a negative control."""
    return item.role in _ROLES


def present(
    found: Sequence[ContextArtifact], paths: Collection[str]
) -> tuple[ContextArtifact, ...]:
    """Those whose artifact a root holds; a mixed root holds some of each root's."""
    return tuple(item for item in found if item.path in paths)


def leg_sentinels(roots: ContextRoots, role: LegRole) -> tuple[ContextArtifact, ...]:
    """The sentinels in the root of a leg, by what it was run for.

    Args:
        roots: Both roots as they were staged.
        role: Whose content the leg's root had.
    """
    whose = [item for item in roots.roots if role.root in {"mixed", item.leg}]
    watched = {item.path: item for root in whose for item in sentinels(root.context)}
    if role.root != "mixed":
        return tuple(watched.values())
    trees = {item.leg: records(item.entries) for item in roots.roots}
    placed = mixed(trees["context_off"], trees["context_on"], role.on_units)
    return present(tuple(watched.values()), {path_text(item.record.path) for item in placed})


def flaw(context: ContextFile, contents: Mapping[str, bytes]) -> Flaw | None:
    """The first reason why the labels of a root cannot be what they claim to be.

    Args:
        context: `context.json`.
        contents: Content of each regular file of the root that an artifact names.
    """
    seen: set[str] = set()
    for index, item in enumerate(context.artifacts):
        place = f"/artifacts/{index}"
        if item.path in seen or posixpath.normpath(item.path) != item.path:
            return Flaw(f"{place}/path", "names an artifact twice or roundabout", "name it once")
        seen.add(item.path)
        if item.path not in contents:
            what = "sentinel" if item.role in _ROLES else "artifact"
            return Flaw(
                f"{place}/path",
                f"the root holds no such {what}: {item.path}",
                "add the file, or take the label away",
            )
    helpful = {i.path: contents[i.path] for i in context.artifacts if i.role == "helpful"}
    for index, item in enumerate(context.artifacts):
        if item.role in _ROLES:
            found = _vacuous(item, contents[item.path], helpful)
            if found is not None:
                return Flaw(f"/artifacts/{index}/tokens{found.pointer}", *found[1:])
    return None


def _vacuous(item: ContextArtifact, content: bytes, helpful: Mapping[str, bytes]) -> Flaw | None:
    if not item.tokens:
        return Flaw("", "a sentinel without tokens can never be found", "give it one or more")
    for place, token in enumerate(item.tokens):
        if len(token.strip()) < SHORTEST:
            return Flaw(
                f"/{place}",
                f"a token needs at least {SHORTEST} characters",
                "take a word that only this artifact has",
            )
        if not _holds(content, token):
            return Flaw(
                f"/{place}",
                f"the token is not in {item.path}, so it can never be found",
                "take a word that is in it",
            )
        for path, other in helpful.items():
            if _holds(other, token):
                return Flaw(
                    f"/{place}",
                    f"the token is in {path} too, whose use it would blame",
                    "take a word that only the sentinel has",
                )
    return None


def search(material: Material, found: Sequence[ContextArtifact]) -> Search:
    """Look for tokens of sentinels in every output of a case.

    Args:
        material: What the case put out. Files of the context root itself are no output of it.
        found: The sentinels of the leg's root.
    """
    if not found:
        return Search()
    hits, cut = [], False
    for name, output in _outputs(material):
        text = _folded(output.data)
        for item in found:
            index = next(
                (
                    index
                    for index, token in enumerate(item.tokens)
                    if token.encode() in output.data or _fold(token) in text
                ),
                None,
            )
            if index is not None:
                hits.append(
                    SentinelHit(
                        artifact=item.path,
                        role=_role(item),
                        token=index,
                        output=name,
                        sha256=output.sha256,
                    )
                )
        cut = cut or not output.complete
    return Search(tuple(hits), decided=bool(hits) or not cut)


def _role(item: ContextArtifact) -> SentinelRole:
    role = item.role
    if role in {"helpful", "curated_only"}:
        raise ValueError(f"no sentinel: {item.path}")
    return cast("SentinelRole", role)


def _outputs(material: Material) -> Iterator[tuple[str, Captured]]:
    yield "stdout", material.stdout
    yield "stderr", material.stderr
    for index, probe in material.probes.items():
        yield f"probe-{index}.stdout", probe.stdout
        yield f"probe-{index}.stderr", probe.stderr
    for path, file in material.files.items():
        if file.captured is not None and not path.startswith(f"{CONTEXT_ROOT}/"):
            yield path, file.captured


def _holds(data: bytes, token: str) -> bool:
    return token.encode() in data or _fold(token) in _folded(data)


def _folded(data: bytes) -> str:
    """Folded text; text in UTF-16 is read as that as well."""
    texts = [data.decode("utf-8", "replace")]
    if b"\0" in data:
        texts += [data.decode(name, "replace") for name in ("utf-16-le", "utf-16-be")]
        texts.append(data[1:].decode("utf-16-le", "replace"))
    # What separates them is in no token.
    return "\0".join(map(_fold, texts))


def _fold(text: str) -> str:
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).casefold()


def sentinel_checks(
    root: LegName, found: Sequence[ContextArtifact], record: RunRecord
) -> tuple[SentinelCheck, ...]:
    """A row for each sentinel of a root that was staged, with the cases in which it was found."""
    return tuple(
        SentinelCheck(
            root=root,
            artifact=item.path,
            role=_role(item),
            present=True,
            hits=tuple(
                case.case_id
                for case in record.case_results
                if any(hit.artifact == item.path for hit in case.sentinels)
            ),
        )
        for item in found
    )
