"""One case at a time: its bytes come in, a judged result goes out, the bytes are let go."""

from __future__ import annotations

import hashlib
import hmac
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

from runner.core.expect import evaluate
from runner.core.material import Captured, CapturedFile, CapturedProbe, Material
from runner.core.score import case_result
from runner.core.sentinels import search
from runner.core.wire import (
    CaseEnded,
    Chunk,
    ExecutionFacts,
    FileChunk,
    FileFacts,
    HookChunk,
    StreamFacts,
)
from runner.model.contextfile import ContextArtifact
from runner.model.hooks import Hook, HookReceipt, HooksDirectory, HookStream
from runner.model.leg import CasePlan
from runner.model.observation import (
    CaseObservation,
    Execution,
    FileObservation,
    StreamObservation,
)
from runner.model.record import CaseResult
from runner.model.suite import SuiteFile

EMPTY_SHA256 = hashlib.sha256(b"").hexdigest()


class BlobStore(Protocol):
    """Where outputs are kept as evidence."""

    def put(self, leg: str, case_id: str, name: str, data: bytes) -> str:
        """Store bytes, return their path below the evidence directory. Called by several legs."""


class Collector:
    """Gathers the output of the running case of one leg.

    Args:
        suite: The suite and its holdout key.
        suite_dir: Folder of the suite inside the container.
        leg: Name of the leg.
        blobs: Where outputs go. A private holdout's outputs go nowhere.
        hooks: What runs around its cases.
        sentinels: Negative controls in its context root.
    """

    def __init__(
        self,
        suite: SuiteFile,
        suite_dir: str,
        leg: str,
        blobs: BlobStore,
        *,
        hooks: HooksDirectory | None = None,
        sentinels: Sequence[ContextArtifact] = (),
    ) -> None:
        self._suite = suite
        self._suite_dir = suite_dir
        self._leg = leg
        self._blobs = blobs
        self._output: dict[tuple[int, str], bytearray] = defaultdict(bytearray)
        self._files: dict[int, bytearray] = defaultdict(bytearray)
        self._sentinels = sentinels
        self._hooks = hooks.hooks if hooks is not None else ()
        self._hook_output: dict[tuple[int, str], bytearray] = defaultdict(bytearray)

    def add(self, chunk: Chunk | HookChunk | FileChunk) -> None:
        """Keep bytes of the running case."""
        if isinstance(chunk, Chunk):
            self._output[chunk.execution, chunk.stream] += chunk.data
        elif isinstance(chunk, HookChunk):
            self._hook_output[chunk.hook, chunk.stream] += chunk.data
        else:
            self._files[chunk.file] += chunk.data

    def judge(self, plan: CasePlan, ended: CaseEnded, container: int) -> CaseResult:
        """Judge the case that ended and forget its bytes."""
        case = self._suite.suite.cases[plan.index]
        material = Material(
            exit_code=0 if ended.execution is None else ended.execution.exit_code,
            stdout=self._captured(0, "stdout", ended.execution),
            stderr=self._captured(0, "stderr", ended.execution),
            files={
                file.path: _captured_file(file, bytes(self._files[number]))
                for number, file in enumerate(ended.files)
            },
            probes={
                probe.expectation: CapturedProbe(
                    exit_code=facts.exit_code,
                    timed_out=facts.timed_out,
                    start_error=facts.start_error,
                    stdout=self._captured(number, "stdout", facts),
                    stderr=self._captured(number, "stderr", facts),
                )
                for number, probe in enumerate(plan.probes, start=1)
                if (facts := ended.probes.get(probe.expectation)) is not None
            },
        )
        holdout = self._suite.suite.is_holdout
        judged = [
            evaluate(case, index, material, suite_dir=self._suite_dir, holdout=holdout)
            for index in range(len(case.expectations))
        ]
        found = search(material, self._sentinels)
        result = case_result(case, plan, self._observe(plan, ended, container), judged, found)
        if holdout:
            result = _withheld(result, self._digest)
        self.forget()
        return result

    def forget(self) -> None:
        """Let go of the bytes of a case that will not end."""
        self._output.clear()
        self._files.clear()
        self._hook_output.clear()

    def _captured(self, number: int, stream: str, facts: ExecutionFacts | None) -> Captured:
        if facts is None:
            return Captured(b"", 0, EMPTY_SHA256)
        measured = facts.stdout if stream == "stdout" else facts.stderr
        return Captured(bytes(self._output[number, stream]), measured.size, measured.sha256)

    def _observe(self, plan: CasePlan, ended: CaseEnded, container: int) -> CaseObservation:
        return CaseObservation(
            index=ended.index,
            case_id=ended.case_id,
            container=container,
            execution=self._execution(plan, 0, ended.execution) if ended.execution else None,
            probes={
                probe.expectation: self._execution(plan, number, ended.probes[probe.expectation])
                for number, probe in enumerate(plan.probes, start=1)
            },
            files=tuple(
                FileObservation(
                    path=file.path,
                    state=file.state,
                    size=file.size,
                    kept=file.kept,
                    sha256=None if file.sha256 is None else self._digest(file.sha256),
                    blob=self._store(plan, f"file-{number}", bytes(self._files[number])),
                )
                for number, file in enumerate(ended.files)
            ),
            usage=_usage(ended.usage),
            wrote_workspace=ended.wrote_workspace,
            hooks=tuple(
                self._receipt(plan, number, self._hooks[number], facts)
                for number, facts in enumerate(ended.hooks)
            ),
        )

    def _receipt(
        self, plan: CasePlan, number: int, hook: Hook, facts: ExecutionFacts
    ) -> HookReceipt:
        return HookReceipt(
            event=hook.event,
            index=hook.index,
            command_sha256=hook.command_sha256,
            exit_code=facts.exit_code,
            signal=facts.signal,
            timed_out=facts.timed_out,
            oom_killed=facts.oom_killed,
            start_error=facts.start_error,
            duration_ms=facts.duration_ms,
            stdout=self._hook_stream(plan, number, "stdout", facts.stdout),
            stderr=self._hook_stream(plan, number, "stderr", facts.stderr),
        )

    def _hook_stream(
        self, plan: CasePlan, number: int, stream: str, facts: StreamFacts
    ) -> HookStream:
        data = bytes(self._hook_output[number, stream])
        return HookStream(
            size=facts.size,
            kept=facts.kept,
            sha256=self._digest(facts.sha256),
            path=self._store(plan, f"hook-{number}.{stream}", data),
        )

    def _execution(self, plan: CasePlan, number: int, facts: ExecutionFacts) -> Execution:
        return Execution(
            exit_code=facts.exit_code,
            signal=facts.signal,
            timed_out=facts.timed_out,
            oom_killed=facts.oom_killed,
            start_error=facts.start_error,
            duration_ms=facts.duration_ms,
            stragglers=facts.stragglers,
            stdout=self._stream(plan, number, "stdout", facts.stdout),
            stderr=self._stream(plan, number, "stderr", facts.stderr),
        )

    def _stream(
        self, plan: CasePlan, number: int, stream: str, facts: StreamFacts
    ) -> StreamObservation:
        name = stream if number == 0 else f"probe-{number}.{stream}"
        return StreamObservation(
            size=facts.size,
            kept=facts.kept,
            sha256=self._digest(facts.sha256),
            blob=self._store(plan, name, bytes(self._output[number, stream])),
        )

    def _digest(self, sha256: str) -> str:
        """A digest as it may be published.

        A private holdout's is keyed with its suite's bytes: a short answer cannot be guessed from
        it, yet whoever has the suite can check it.
        """
        key = self._suite.holdout_key
        if key is None:
            return sha256
        return f"hmac-sha256:{hmac.new(key, sha256.encode(), hashlib.sha256).hexdigest()}"

    def _store(self, plan: CasePlan, name: str, data: bytes) -> str | None:
        if not data or self._suite.suite.is_holdout:
            return None
        return self._blobs.put(self._leg, plan.case_id, name, data)


def _withheld(result: CaseResult, keyed: Callable[[str], str]) -> CaseResult:
    """A case of a private holdout as it may be recorded.

    An exit code, a path or a target may be the very value that an expectation asks for; files have
    numbers instead.
    """
    numbers = {file.path: f"file-{number}" for number, file in enumerate(result.files)}
    streams = {name: name for name in ("exit_code", "stdout", "stderr")}
    return result.model_copy(
        update={
            "exit_code": None,
            "probes": tuple(
                probe.model_copy(update={"exit_code": None}) for probe in result.probes
            ),
            "files": tuple(
                file.model_copy(update={"path": numbers[file.path]}) for file in result.files
            ),
            "sentinels": tuple(
                hit.model_copy(
                    update={
                        "output": numbers.get(hit.output, hit.output),
                        "sha256": keyed(hit.sha256),
                    }
                )
                for hit in result.sentinels
            ),
            "expectations": tuple(
                item.model_copy(
                    update={
                        "target": None,
                        "rests_on": (streams | numbers).get(item.rests_on or ""),
                    }
                )
                for item in result.expectations
            ),
        }
    )


def _captured_file(facts: FileFacts, data: bytes) -> CapturedFile:
    if facts.state != "regular":
        return CapturedFile(facts.state)
    return CapturedFile("regular", Captured(data, facts.size, facts.sha256 or ""))


def _usage(reported: Mapping[str, int] | None) -> dict[str, int] | None:
    return None if reported is None else dict(reported)
