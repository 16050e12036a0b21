"""The orchestrator's side of the agent protocol: whole streams, cut, mutated and forged ones."""

from __future__ import annotations

import base64
import json
import zlib
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.wire import (
    MARKS_TARGET,
    MAX_FRAME,
    Bye,
    CaseEnded,
    CaseStarted,
    Chunk,
    Decoder,
    Event,
    Fatal,
    FileChunk,
    Hello,
    Limits,
    encode_plan,
    runnable,
)
from runner.errors import InputError, InternalError, ProtocolViolation
from runner.model.leg import (
    Axis,
    CasePlan,
    Command,
    ContextRoot,
    Degradation,
    DegradedReason,
    LegPlan,
    Probe,
)

NONCE = "0123456789abcdef" * 2
LIMITS = Limits(stream_bytes=100, file_bytes=50, hash_bytes=1000)
EMPTY = sha256().hexdigest()


def digest(data: bytes) -> str:
    return sha256(data).hexdigest()


def plan(*cases: CasePlan, **more: Any) -> LegPlan:
    values: dict[str, Any] = {
        "leg": "context_on",
        "axis": Axis.CONTEXT,
        "variant": "context_on",
        "run_id": "r1",
        "root": None,
        "env": {"PATH": "/bin", "HOME": "/home/case"},
        "cases": cases,
    }
    return LegPlan(**(values | more))


def case(index: int, *, static: bool = False, files: int = 0, probes: int = 0) -> CasePlan:
    command = Command(argv=("true",), cwd="/workspace")
    return CasePlan(
        index=index,
        case_id=f"case-{index}",
        command=None if static else command,
        timeout_seconds=5,
        files=tuple(f"/workspace/{n}" for n in range(files)),
        probes=tuple(Probe(expectation=10 + n, command=command) for n in range(probes)),
    )


class Pen:
    """Writes frames as the agent does."""

    def __init__(self, nonce: str = NONCE) -> None:
        self.nonce = nonce
        self.sequence = 0
        self.crc = 0
        self.lines: list[bytes] = []

    def frame(self, **body: Any) -> Pen:
        inner = json.dumps(body, separators=(",", ":"))[1:-1]
        line = f'{{"n":"{self.nonce}","s":{self.sequence},{inner}'.encode()
        self.crc = zlib.crc32(line, self.crc)
        self.sequence += 1
        self.lines.append(line + b',"k":"%08x"}\n' % self.crc)
        return self

    def hello(self, **change: Any) -> Pen:
        report = {
            "agent_sha256": EMPTY, "uid": 0, "case_uid": 65532, "capabilities": "e0",
            "case_capabilities": "0", "no_new_privs": True, "seccomp": 2, "interfaces": ["lo"],
            "routes": 0, "mounts": ["/ overlay ro"], "writable": ["/tmp"],
            "context_root_sha256": None, "environment_sha256": {"PATH": EMPTY},
            "kernel": "6.1", "python": "3.11.2",
        }  # fmt: skip
        return self.frame(t="hello", r=report | change)

    def out(self, index: int, data: bytes, *, execution: int = 0, stream: int = 1) -> Pen:
        text = base64.b64encode(data).decode()
        return self.frame(t="out", c=index, x=execution, f=stream, d=text)

    def data(self, index: int, number: int, data: bytes) -> Pen:
        return self.frame(t="data", c=index, i=number, d=base64.b64encode(data).decode())

    def file(self, index: int, number: int, state: str = "absent", **more: Any) -> Pen:
        return self.frame(**({"t": "file", "c": index, "i": number, "st": state, "z": 0, "kp": 0,
                              "h": None} | more))  # fmt: skip

    def end(self, index: int, facts: Any, **more: Any) -> Pen:
        return self.frame(**({"t": "end", "c": index, "e": facts, "u": None, "w": False} | more))

    def bye(self, done: int, reason: str = "done", **more: Any) -> Pen:
        ends: dict[str, Any] = {"w": reason, "ctx": None, "hks": None, "env": {}, "n": done}
        return self.frame(**({"t": "bye"} | ends | more))

    def bytes(self) -> bytes:
        return b"".join(self.lines)


def facts(out: bytes = b"", err: bytes = b"", /, **change: Any) -> dict[str, Any]:
    made = {
        "x": 0, "g": None, "to": False, "oom": False, "err": None, "ms": 3, "st": 0,
        "o": [len(out), min(len(out), LIMITS.stream_bytes), digest(out)],
        "e": [len(err), min(len(err), LIMITS.stream_bytes), digest(err)],
    }  # fmt: skip
    return made | change


def decoder(*cases: CasePlan) -> Decoder:
    return Decoder(plan(*cases), nonce=NONCE, limits=LIMITS)


CASES = (case(0), case(2, files=3, probes=2), case(3, static=True, files=1))


def whole() -> Pen:
    """A stream with everything in it."""
    big = bytes(range(200))
    pen = Pen().hello().frame(t="start", c=0)
    pen.out(0, b"hello ").out(0, b"oops", stream=2).out(0, b"world\n")
    pen.end(0, facts(b"hello world\n", b"oops", x=7), u={"tokens": 5}, w=None)
    pen.frame(t="start", c=2).out(2, big[:60]).out(2, big[60:100])
    pen.data(2, 0, b"abc").file(2, 0, "regular", z=3, kp=3, h=digest(b"abc"))
    pen.file(2, 1)
    pen.data(2, 2, big[:50]).file(2, 2, "regular", z=200, kp=50, h=digest(big))
    pen.out(2, b"probe", execution=1)
    pen.frame(t="exec", c=2, x=1, e=facts(b"probe", x=None, g=9, to=True, oom=True))
    pen.frame(t="exec", c=2, x=2, e=facts(x=None, err="not_found", oom=None))
    pen.end(2, facts(big), w=True)
    pen.frame(t="start", c=3).file(3, 0, "directory").end(3, None)
    return pen.bye(3)


def decode(data: bytes, *cases: CasePlan) -> list[Event]:
    made = decoder(*(cases or CASES))
    events = made.feed(data)
    made.finish()
    return events


def test_a_whole_stream_becomes_its_events() -> None:
    events = decode(whole().bytes())
    kinds = [type(event) for event in events]
    assert kinds == [
        Hello, CaseStarted, Chunk, Chunk, Chunk, CaseEnded, CaseStarted, Chunk, Chunk, FileChunk,
        FileChunk, Chunk, CaseEnded, CaseStarted, CaseEnded, Bye,
    ]  # fmt: skip
    first, second, third = (event for event in events if isinstance(event, CaseEnded))
    assert first.execution is not None
    assert (first.execution.exit_code, first.usage, first.wrote_workspace) == (
        7,
        {"tokens": 5},
        None,
    )
    assert second.execution is not None
    assert (second.execution.stdout.size, second.execution.stdout.kept) == (200, 100)
    assert [f.state for f in second.files] == ["regular", "absent", "regular"]
    assert [f.path for f in second.files] == list(CASES[1].files)
    assert set(second.probes) == {10, 11}
    assert second.probes[10].timed_out
    assert second.probes[11].start_error == "not_found"
    assert (third.index, third.case_id, third.execution) == (3, "case-3", None)
    assert isinstance(events[-1], Bye)
    assert events[-1].end.cases_done == 3


@settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=30))
def test_where_the_stream_is_cut_makes_no_difference(cuts: list[int]) -> None:
    data = whole().bytes()
    points = [0, *sorted(cut % len(data) for cut in cuts), len(data)]
    made = decoder(*CASES)
    events: list[Event] = []
    for start, end in pairwise(points):
        events += made.feed(data[start:end])
    made.finish()
    assert events == decode(data)


@settings(max_examples=500, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 255))
def test_a_mutated_byte_is_refused(position: int, change: int) -> None:
    data = bytearray(whole().bytes())
    data[position % len(data)] ^= change
    with pytest.raises(ProtocolViolation):
        decode(bytes(data))


@settings(deadline=None)
@given(st.integers(0, 10_000))
def test_a_stream_that_ends_early_is_refused_at_its_end(length: int) -> None:
    data = whole().bytes()
    made = decoder(*CASES)
    made.feed(data[: length % len(data)])
    with pytest.raises(ProtocolViolation):
        made.finish()


@settings(deadline=None)
@given(st.data())
def test_lost_repeated_and_swapped_frames_are_refused(data: st.DataObject) -> None:
    lines = whole().lines
    index = data.draw(st.integers(0, len(lines) - 2))
    kind = data.draw(st.sampled_from(["lost", "repeated", "swapped"]))
    changed = {
        "lost": lines[:index] + lines[index + 1 :],
        "repeated": [*lines[: index + 1], *lines[index:]],
        "swapped": [*lines[:index], lines[index + 1], lines[index], *lines[index + 2 :]],
    }[kind]
    with pytest.raises(ProtocolViolation):
        decode(b"".join(changed))


@settings(deadline=None)
@given(st.binary(min_size=1, max_size=300), st.integers(0, 50))
def test_bytes_put_between_frames_are_refused(junk: bytes, place: int) -> None:
    lines = list(whole().lines)
    lines.insert(place % (len(lines) + 1), junk)
    with pytest.raises(ProtocolViolation):
        decode(b"".join(lines))


def test_a_forged_frame_without_the_nonce_is_refused() -> None:
    pen, forger = Pen().hello().frame(t="start", c=0), Pen("f" * 32)
    forger.sequence, forger.crc = pen.sequence, pen.crc
    forger.end(0, facts())
    made = decoder(case(0))
    made.feed(pen.bytes())
    with pytest.raises(ProtocolViolation):
        made.feed(forger.bytes())


def test_once_refused_a_stream_stays_refused() -> None:
    made = decoder(case(0))
    with pytest.raises(ProtocolViolation):
        made.feed(b"junk\n")
    with pytest.raises(ProtocolViolation):
        made.feed(Pen().hello().bytes())
    with pytest.raises(ProtocolViolation):
        made.finish()


def test_a_line_over_the_limit_is_refused_before_it_is_stored() -> None:
    made = decoder(case(0))
    for _ in range(MAX_FRAME // 1024 - 1):
        assert made.feed(b"x" * 1024) == []
    with pytest.raises(ProtocolViolation):
        made.feed(b"x" * 1024)
    assert not made._tail
    with pytest.raises(ProtocolViolation):
        decoder(case(0)).feed(b"x" * (MAX_FRAME + 1) + b"\n")


def broken(pen: Pen, *cases: CasePlan) -> None:
    made = decoder(*cases)
    made.feed(b"".join(pen.lines[:-1]))  # all but the last frame are fine
    with pytest.raises(ProtocolViolation):
        made.feed(pen.lines[-1])


def started(index: int = 0) -> Pen:
    return Pen().hello().frame(t="start", c=index)


@pytest.mark.parametrize(
    "change",
    [
        {"x": 256}, {"x": -1}, {"x": True}, {"x": 1.0}, {"x": None}, {"g": 9}, {"x": None, "g": 0},
        {"x": None, "g": 128}, {"to": None}, {"to": 1}, {"oom": 0}, {"err": "Not A Token"},
        {"err": "not_found"}, {"ms": -1}, {"st": None}, {"st": "0"}, {"o": [0, 0]},
        {"o": [1, 1, digest(b"x")]}, {"o": [2, 3, EMPTY]}, {"o": [3, 2, EMPTY]},
        {"e": [0, 0, EMPTY.upper()]}, {"e": [0, 0, digest(b"x")]}, {"e": None}, {"more": 1},
        {"o": [2, 2, digest(b"hx")]}, {"o": [200, 2, EMPTY]},
    ],
    ids=str,
)  # fmt: skip
def test_execution_facts_that_contradict_are_refused(change: dict[str, Any]) -> None:
    good = started().out(0, b"hi").end(0, facts(b"hi"))
    assert isinstance(decoder(case(0)).feed(good.bytes())[-1], CaseEnded)
    broken(started().out(0, b"hi").end(0, facts(b"hi") | change), case(0))


def test_a_program_that_did_not_start_has_no_effects() -> None:
    gone = {"x": None, "err": "not_found"}
    decoder(case(0)).feed(started().end(0, facts(**gone)).bytes())
    broken(started().end(0, facts(**gone, to=True)), case(0))
    broken(started().end(0, facts(**gone, st=1)), case(0))
    broken(started().out(0, b"x").end(0, facts(b"x", **gone)), case(0))


@pytest.mark.parametrize(
    "change",
    [
        {"st": "regular", "z": 3, "kp": 3, "h": digest(b"abd")},
        {"st": "regular", "z": 3, "kp": 2, "h": digest(b"abc")},
        {"st": "regular", "z": 4, "kp": 3, "h": digest(b"abc")},
        {"st": "regular", "z": 3, "kp": 3, "h": None}, {"st": "absent"}, {"st": "strange"},
        {"st": "unreadable", "z": 9, "kp": 3, "h": EMPTY}, {"st": "directory", "z": 1},
        {"st": None}, {"h": 5},
    ],
    ids=str,
)  # fmt: skip
def test_file_facts_that_contradict_are_refused(change: dict[str, Any]) -> None:
    what = case(0, static=True, files=1)
    good = {"st": "regular", "z": 3, "kp": 3, "h": digest(b"abc")}
    decoder(what).feed(started().data(0, 0, b"abc").file(0, 0, **_renamed(good)).bytes())
    broken(started().data(0, 0, b"abc").file(0, 0, **_renamed(good | change)), what)


def _renamed(values: dict[str, Any]) -> dict[str, Any]:
    values = dict(values)
    values["state"] = values.pop("st")
    return values


def test_a_file_beyond_the_hash_bound_has_no_digest() -> None:
    what = case(0, static=True, files=1)
    pen = started().data(0, 0, bytes(50)).file(0, 0, "regular", z=1001, kp=50)
    events = decode(pen.end(0, None).bye(1).bytes(), what)
    ended = next(event for event in events if isinstance(event, CaseEnded))
    assert ended.files[0].sha256 is None
    broken(started().data(0, 0, bytes(50)).file(0, 0, "regular", z=1001, kp=50, h=EMPTY), what)


@pytest.mark.parametrize(
    "pen, cases",
    [
        (Pen().frame(t="start", c=0), [case(0)]),
        (Pen().hello().hello(), [case(0)]),
        (Pen().hello(uid="0"), [case(0)]),
        (Pen().hello(surprise=1), [case(0)]),
        (Pen().frame(t="what"), [case(0)]),
        (Pen().frame(t=["start"]), [case(0)]),
        (Pen().frame(c=0), [case(0)]),
        (Pen().hello().frame(t="start", c=1), [case(0), case(1)]),
        (Pen().hello().frame(t="start", c=True), [case(1)]),
        (started().frame(t="start", c=1), [case(0), case(1)]),
        (started().out(1, b"x"), [case(0), case(1)]),
        (started().out(0, b"x", stream=3), [case(0)]),
        (started().out(0, b"x", execution=1), [case(0)]),
        (started().out(0, b"x", execution=1), [case(0, files=1, probes=1)]),
        (started().out(0, b"x", execution=2), [case(0, probes=2)]),
        (started().out(0, b"x", execution=1).out(0, b"y"), [case(0, probes=1)]),
        (started().file(0, 0).out(0, b"x"), [case(0, files=2)]),
        (started().data(0, 0, b"x").out(0, b"x"), [case(0, files=1)]),
        (started().out(0, b"x"), [case(0, static=True)]),
        (started().out(0, b""), [case(0)]),
        (started().frame(t="out", c=0, x=0, f=1, d="a b="), [case(0)]),
        (started().out(0, bytes(60)).out(0, bytes(41)), [case(0)]),
        (started().data(0, 0, bytes(51)), [case(0, files=1)]),
        (started().data(0, 1, b"x"), [case(0, files=2)]),
        (started().file(0, 1), [case(0, files=2)]),
        (started().file(0, 0), [case(0)]),
        (started().out(0, b"x", execution=1).file(0, 0), [case(0, probes=1)]),
        (started().frame(t="exec", c=0, x=2, e=facts()), [case(0, probes=2)]),
        (started().frame(t="exec", c=0, x=1, e=None), [case(0, probes=1)]),
        (started().end(0, facts()), [case(0, files=1)]),
        (started().end(0, facts()), [case(0, probes=1)]),
        (started().end(0, None), [case(0)]),
        (started().end(0, facts()), [case(0, static=True)]),
        (started().end(0, None, w=True), [case(0, static=True)]),
        (started().end(0, None, u={"tokens": 1}), [case(0, static=True)]),
        (started().end(0, facts(), u={}), [case(0)]),
        (started().end(0, facts(), u={"tokens": -1}), [case(0)]),
        (started().end(0, facts(), u={"other": 1}), [case(0)]),
        (started().end(0, facts(), w=1), [case(0)]),
        (Pen().hello().bye(0), [case(0)]),
        (Pen().bye(0), []),
        (Pen().hello().bye(0, "dirty"), [case(0)]),
        (started().bye(0), [case(0)]),
        (started().end(0, facts()).bye(0), [case(0)]),
        (started().end(0, facts()).bye(1, "dirty"), [case(0), case(1)]),
        (started().end(0, facts(), w=True).bye(1, "dirty"), [case(0)]),
        (started().end(0, facts(), w=True).bye(1, "bored"), [case(0), case(1)]),
        (started().end(0, facts()).bye(1).bye(1), [case(0)]),
        (started().end(0, facts()).bye(1, ctx="x"), [case(0)]),
        (started().end(0, facts()).bye(True), [case(0)]),
        (Pen().frame(t="fatal", w="oh no", m="x"), [case(0)]),
        (Pen().frame(t="fatal", w="oh", m=None), [case(0)]),
        (Pen().frame(t="fatal", w="oh", m="x").hello(), [case(0)]),
    ],
)
def test_what_the_grammar_does_not_allow_is_refused(pen: Pen, cases: list[CasePlan]) -> None:
    broken(pen, *cases)


@pytest.mark.parametrize("reason, wrote", [("dirty", True), ("dirty", None), ("leftover", False)])
def test_a_container_may_end_before_its_cases_and_say_why(reason: str, wrote: bool | None) -> None:
    pen = started().end(0, facts(), w=wrote).bye(1, reason)
    made = decoder(case(0), case(1))
    bye = made.feed(pen.bytes())[-1]
    made.finish()
    assert isinstance(bye, Bye)
    assert (bye.reason, made.cases_done, made.ended) == (reason, 1, True)


def test_a_fatal_frame_ends_the_stream_at_any_time() -> None:
    for pen in (Pen(), started(), started().out(0, b"x")):
        made = decoder(case(0))
        event = made.feed(pen.frame(t="fatal", w="unkillable", m="said why").bytes())[-1]
        made.finish()
        assert event == Fatal("unkillable", "said why")


def test_refusals_never_quote_what_the_agent_sent() -> None:
    secret = "holdout-value-4711"
    for pen in (
        Pen().hello(kernel=secret, uid=secret),
        started().end(0, facts(err=secret.upper())),
        started().frame(t=secret, c=0),
        started().end(0, facts(), u={secret: 1}),
    ):
        with pytest.raises(ProtocolViolation) as caught:
            decoder(case(0)).feed(pen.bytes())
        assert secret not in str(caught.value).lower()


# ---------------------------------------------------------------------------------------- plans


def encoded(leg: LegPlan, **more: Any) -> dict[str, Any]:
    options: dict[str, Any] = {
        "nonce": NONCE, "uid": 65532, "gid": 65532, "upper": "/ao-upper", "share_workspace": False,
        "leg_seconds": 910,
    }  # fmt: skip
    line = encode_plan(leg, **(options | more))
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    document = json.loads(line)
    assert isinstance(document, dict)
    return document


def test_a_plan_carries_names_of_the_environment_and_no_value() -> None:
    leg = plan(case(0), env={"AO_B": "secret-value", "AO_A": "x", "AO_USAGE_FILE": "/tmp/u"})
    document = encoded(leg)
    assert document["env_names"] == ["AO_A", "AO_B", "AO_USAGE_FILE"]
    assert document["usage_file"] == "/tmp/u"
    assert "secret-value" not in json.dumps(document)


def test_a_plan_names_the_context_root_only_when_there_is_one() -> None:
    assert encoded(plan(case(0)))["context_root"] is None
    root = ContextRoot(label="on", sha256=None, path="x")
    assert encoded(plan(case(0), root=root))["context_root"] == "/context/agents"


def test_a_plan_says_where_marks_are_and_whether_the_root_may_be_opened_at_start() -> None:
    document = encoded(plan(case(0)))
    assert (document["marks"], document["root_at_start"]) == (None, True)
    document = encoded(plan(case(0)), marks=MARKS_TARGET, root_at_start=False)
    assert (document["marks"], document["root_at_start"]) == ("/ao-marks", False)


def test_cases_degraded_beforehand_are_neither_sent_nor_expected() -> None:
    skipped = case(1).model_copy(
        update={
            "degraded": Degradation(
                reason=DegradedReason.RUNTIME_UNAVAILABLE, detail="live_runtime"
            )
        }
    )
    leg = plan(case(0), skipped, case(2))
    assert [c.index for c in runnable(leg)] == [0, 2]
    assert [c["index"] for c in encoded(leg)["cases"]] == [0, 2]


def test_every_text_survives_the_way_in() -> None:
    odd = 'a\nb\udcff\u2028\0\\"'
    command = Command(argv=("sh", odd), cwd="/w", stdin=odd, env={"X": odd})
    what = CasePlan(index=0, case_id="c", command=command, timeout_seconds=1, files=(odd,))
    sent = encoded(plan(what))["cases"][0]
    assert sent["command"] == {
        "argv": ["sh", odd], "cwd": "/w", "stdin": odd, "env": {"X": odd}
    }  # fmt: skip
    assert sent["files"] == [odd]


@pytest.mark.parametrize("bad", [{"nonce": "xyz"}, {"nonce": "ab"}, {"uid": 0}, {"gid": 0}])
def test_a_plan_for_root_or_without_a_nonce_is_a_defect(bad: dict[str, Any]) -> None:
    with pytest.raises(InternalError):
        encoded(plan(case(0)), **bad)


def test_a_plan_over_the_limit_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.core.planline.MAX_PLAN", 100)
    with pytest.raises(InputError, match="split the suite"):
        encoded(plan(case(0)))
