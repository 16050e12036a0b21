"""Watch the live roots of a run: what they are, and what they look like before and after."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from runner.app.request import LiveOptions, Surroundings
from runner.core.liveproof import Watched, prove
from runner.errors import IntegrityError
from runner.host.liveroots import discover
from runner.host.witness import take_manifest
from runner.model.liveproof import LiveStateProof
from runner.model.tree import LiveRoot, Node, TreeManifest


@dataclass(frozen=True, slots=True)
class LiveWatch:
    """The live roots with their first manifests.

    Attributes:
        roots: Every live root.
        before: One manifest for each; None for one that could not be read.
        strict: A change of the home directory's root is fatal too.
    """

    roots: tuple[LiveRoot, ...]
    before: tuple[TreeManifest | None, ...]
    strict: bool

    @classmethod
    def begin(cls, suite: Path, surroundings: Surroundings, options: LiveOptions) -> LiveWatch:
        """Find the live roots and take the first manifests.

        Raises:
            IntegrityError: An entry of a live root cannot be read: a witness with holes proves
                nothing. Not for the home directory's root, whose change would not be fatal.
        """
        roots = discover(
            suite,
            surroundings.cwd,
            surroundings.environment,
            options.extra,
            surroundings.home,
        ).roots
        before: list[TreeManifest | None] = []
        for root in roots:
            try:
                before.append(take_manifest(Path(root.path)))
            except IntegrityError:
                if options.strict or not root.home:
                    raise
                before.append(None)
        return cls(roots, tuple(before), options.strict)

    @property
    def paths(self) -> tuple[Path, ...]:
        """Real paths of the roots."""
        return tuple(Path(root.real) for root in self.roots)

    @property
    def excluded(self) -> tuple[Path, ...]:
        """Every name of the roots: none of them may be seen in a workspace."""
        return (*self.paths, *(Path(root.path) for root in self.roots))

    def nodes(self) -> frozenset[Node]:
        """Device and inode of every entry of live state: none may be staged under another name."""
        return frozenset().union(*(item.nodes() for item in self.before if item is not None))

    def end(self, *, mounts_checked: int, reaching: tuple[str, ...]) -> LiveStateProof:
        """Take the second manifests and compare; one that cannot be taken is a difference."""
        return prove(
            [
                Watched(root, self.strict or not root.home, before, _again(root))
                for root, before in zip(self.roots, self.before, strict=True)
            ],
            mounts_checked=mounts_checked,
            mounts_reaching=reaching,
        )


def _again(root: LiveRoot) -> TreeManifest | None:
    try:
        return take_manifest(Path(root.path))
    except IntegrityError:
        return None
