"""Watch the live roots of a run: what they are, what they look like before and after, who wrote."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from runner.app import clock
from runner.app.request import LiveOptions, Surroundings
from runner.core.liveproof import Watched, evidence, prove
from runner.core.livewatch import Watching
from runner.errors import IntegrityError
from runner.host.decoy import places, run_control
from runner.host.liveroots import discover
from runner.host.watch import Watch, open_watch
from runner.host.witness import take_manifest
from runner.model.liveproof import LiveStateEvidence
from runner.model.livewatch import Decoy
from runner.model.tree import LiveRoot, Node, TreeManifest


class LiveWatch:
    """The live roots of a run, watched from before their first manifests until `end`.

    Leaving the context ends the watch and takes the decoys away, whatever happened.

    Attributes:
        roots: Every live root.
        before: One manifest for each; None for one that could not be read.
    """

    def __init__(
        self,
        roots: Sequence[LiveRoot],
        options: LiveOptions,
    ) -> None:
        """Begin to watch, then take the first manifests.

        Raises:
            IntegrityError: An entry of a live root cannot be read: a witness with holes proves
                nothing. Not for the home directory's root, whose change would not be fatal.
        """
        self.roots = tuple(roots)
        self._options = options
        self._links = {
            root.path: named
            for root in self.roots
            if (named := _resolved_parent(root.path)) != os.fsencode(root.real)
        }
        self._control: threading.Thread | None = None
        self._decoys: tuple[Decoy, ...] = ()
        self._watch: Watch = open_watch(
            [*(os.fsencode(root.real) for root in self.roots), *self._links.values()]
        )
        try:
            self.before = tuple(self._first(root) for root in self.roots)
        except BaseException:
            self._watch.stop()
            raise
        self._watch.settle()
        self._since = time.time_ns()

    @classmethod
    def begin(cls, suite: Path, surroundings: Surroundings, options: LiveOptions) -> LiveWatch:
        """Find the live roots and begin; the errors are those of the constructor."""
        roots = discover(
            suite,
            surroundings.cwd,
            surroundings.environment,
            options.extra,
            surroundings.home,
        ).roots
        return cls(roots, options)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.end_control()
        self._watch.stop()

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

    def start_control(self, candidates: Sequence[Path]) -> None:
        """Begin the positive control beside whatever else happens; once for a run.

        Args:
            candidates: Folders in which decoys may lie, best first.
        """
        if self._control is None:
            self._control = threading.Thread(
                target=self._run_control, args=(tuple(candidates),), name="live-decoy", daemon=True
            )
            self._control.start()

    def _run_control(self, candidates: tuple[Path, ...]) -> None:
        named = [(root.path, os.fsencode(root.real)) for root in self.roots]
        try:
            decoys = places(named, candidates)
        except OSError as error:
            names = tuple(root.path for root in self.roots)
            decoys = (Decoy(b"", names, same_filesystem=False, note=str(error.strerror)),)
        self._decoys = run_control(decoys, self._watch, take_manifest)

    def end(
        self, *, mounts_checked: int, reaching: tuple[str, ...], legs: frozenset[str], t0: str
    ) -> LiveStateEvidence:
        """Take the second manifests, end the watch, and compare.

        A manifest that cannot be taken is a difference; a control that was not run has not fired.

        Args:
            mounts_checked: Mount sources of all containers that were compared.
            reaching: Those that reach a live root, in words.
            legs: Ids of all containers of the run.
            t0: When the first leg was begun.
        """
        self.end_control()
        watched = [
            Watched(root, self._fatal(root), before, _again(root))
            for root, before in zip(self.roots, self.before, strict=True)
        ]
        watching = Watching(
            report=self._watch.stop(),
            decoys=self._decoys,
            legs=legs,
            runner=os.getpid(),
            since=self._since,
            links=self._links,
        )
        proof = prove(
            watched,
            mounts_checked=mounts_checked,
            mounts_reaching=reaching,
            watching=watching,
            allow_external=self._options.allow_external,
        )
        return evidence(proof, watched, watching, t0=t0, t1=clock.now())

    def _fatal(self, root: LiveRoot) -> bool:
        return self._options.strict or not root.home

    def _first(self, root: LiveRoot) -> TreeManifest | None:
        try:
            return take_manifest(Path(root.path))
        except IntegrityError:
            if self._fatal(root):
                raise
            return None

    def end_control(self) -> None:
        """Wait until the control is over and its decoys are gone."""
        if self._control is not None:
            self._control.join()


def _resolved_parent(path: str) -> bytes:
    """Where a name lies, without following the name itself."""
    return os.fsencode(Path(os.path.realpath(Path(path).parent)) / Path(path).name)


def _again(root: LiveRoot) -> TreeManifest | None:
    try:
        return take_manifest(Path(root.path))
    except IntegrityError:
        return None
