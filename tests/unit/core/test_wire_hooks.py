"""Hooks in the agent protocol: what the agent is told of them, and what is believed of its word."""

from __future__ import annotations

import base64
import json
from hashlib import sha256
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from runner.core.wire import CaseEnded, Decoder, Event, HookChunk, Limits, encode_plan
from runner.errors import ProtocolViolation
from runner.model.hooks import Hook, HookEvent, HooksDirectory
from runner.model.leg import CasePlan, LegPlan
from tests.unit.core.test_wire import NONCE, Pen, case, digest, facts, plan

START, END = HookEvent.SESSION_START, HookEvent.SESSION_END
HOOK_LIMITS = Limits(stream_bytes=100, file_bytes=50, hash_bytes=1000, hook_bytes=40)


def hook(event: HookEvent, index: int = 0, command: str = "true") -> Hook:
    return Hook(
        event=event,
        index=index,
        command=command,
        command_sha256=sha256(command.encode()).hexdigest(),
        timeout_seconds=7,
    )


def directory(*hooks: Hook) -> HooksDirectory:
    return HooksDirectory(sha256=digest(b"h"), entries=1, size=1, hooks=hooks, not_run=())


AROUND = directory(hook(START), hook(START, 1), hook(END))


def leg(*cases: CasePlan, hooks: HooksDirectory | None = AROUND) -> LegPlan:
    return plan(*cases, hooks=hooks)


def decoder(*cases: CasePlan, hooks: HooksDirectory | None = AROUND) -> Decoder:
    return Decoder(leg(*cases, hooks=hooks), nonce=NONCE, limits=HOOK_LIMITS)


class HookPen(Pen):
    """A pen that writes frames of hooks, too."""

    def hout(self, number: int, data: bytes, index: int = 0, stream: int = 1) -> HookPen:
        text = base64.b64encode(data).decode()
        self.frame(t="hout", c=index, h=number, f=stream, d=text)
        return self

    def hook(self, number: int, stated: Any, index: int = 0) -> HookPen:
        self.frame(t="hook", c=index, h=number, e=stated)
        return self

    def start(self, index: int = 0) -> HookPen:
        self.frame(t="start", c=index)
        return self


def greeted() -> HookPen:
    pen = HookPen()
    pen.hello(hooks_directory_sha256=digest(b"h"))
    return pen


def begun() -> HookPen:
    """The hooks before the case are over."""
    return greeted().start().hook(0, facts()).hook(1, facts())


CASES = (case(0, files=1, probes=1), case(1, static=True), case(2))


def whole() -> HookPen:
    big = bytes(60)
    pen = greeted().start().hout(0, b"one").hout(0, b"err", stream=2)
    pen.hook(0, facts(b"one", b"err", x=3)).hook(1, facts(x=None, g=9, to=True))
    pen.out(0, b"case").file(0, 0)
    pen.out(0, b"probe", execution=1).frame(t="exec", c=0, x=1, e=facts(b"probe"))
    pen.hout(2, big[:40]).hook(2, facts() | {"o": [60, 40, digest(big)]})
    pen.end(0, facts(b"case"), w=True)
    pen.start(1).end(1, None)
    pen.start(2).hook(0, facts(), 2).hook(1, facts(x=None, err="bad_cwd"), 2)
    pen.hook(2, facts(), 2).end(2, facts())
    pen.bye(3, hks=digest(b"h"))
    return pen


def decode(data: bytes) -> list[Event]:
    made = decoder(*CASES)
    events = made.feed(data)
    made.finish()
    return events


def test_hooks_come_back_with_their_case() -> None:
    events = decode(whole().bytes())
    first, static, last = (event for event in events if isinstance(event, CaseEnded))
    assert [item.exit_code for item in first.hooks] == [3, None, 0]
    assert first.hooks[1].timed_out
    assert (first.hooks[2].stdout.size, first.hooks[2].stdout.kept) == (60, 40)
    assert static.hooks == ()
    assert [item.start_error for item in last.hooks] == [None, "bad_cwd", None]
    chunks = [(e.hook, e.stream, e.data) for e in events if isinstance(e, HookChunk)]
    assert chunks == [(0, "stdout", b"one"), (0, "stderr", b"err"), (2, "stdout", bytes(40))]


@settings(deadline=None)
@given(st.lists(st.integers(0, 10_000), max_size=20))
def test_where_the_stream_is_cut_makes_no_difference(cuts: list[int]) -> None:
    data = whole().bytes()
    made = decoder(*CASES)
    events: list[Event] = []
    for start, end in pairwise([0, *sorted(cut % len(data) for cut in cuts), len(data)]):
        events += made.feed(data[start:end])
    made.finish()
    assert events == decode(data)


def broken(pen: Pen, *cases: CasePlan, hooks: HooksDirectory | None = AROUND) -> None:
    made = decoder(*cases, hooks=hooks)
    made.feed(b"".join(pen.lines[:-1]))  # all but the last frame are fine
    with pytest.raises(ProtocolViolation):
        made.feed(pen.lines[-1])


@pytest.mark.parametrize(
    "pen, cases",
    [
        (greeted().start().end(0, facts()), [case(0)]),  # no hook ran
        (begun().end(0, facts()), [case(0)]),  # the last one did not
        (greeted().start().hook(1, facts()), [case(0)]),
        (greeted().start().hook(0, facts()).hook(0, facts()), [case(0)]),
        (greeted().start().hout(1, b"x"), [case(0)]),
        (greeted().start().hook(0, facts(), 1), [case(0)]),
        (greeted().start().hook(0, facts(b"x")), [case(0)]),  # of which nothing arrived
        (greeted().start().hout(0, b"x").hook(0, facts()), [case(0)]),
        (greeted().start().hout(0, b"x").hook(0, facts(b"y")), [case(0)]),
        (greeted().start().hook(0, None), [case(0)]),
        (greeted().start().hout(0, bytes(41)), [case(0)]),  # beyond the limit of hooks
        (greeted().start().hout(0, b"x", stream=3), [case(0)]),
        (greeted().start().out(0, b"x"), [case(0)]),  # the case before its hooks
        (greeted().start().hook(0, facts()).out(0, b"x"), [case(0)]),
        (greeted().start().hook(0, facts()).file(0, 0), [case(0, files=1)]),
        (greeted().start().hook(0, facts()).data(0, 0, b"x"), [case(0, files=1)]),
        (begun().hook(2, facts()), [case(0, files=1)]),  # the last hook before the look
        (begun().hook(2, facts()), [case(0, probes=1)]),
        (begun().hout(2, b"x").out(0, b"x"), [case(0)]),
        (begun().hook(2, facts()).out(0, b"x"), [case(0)]),
        (begun().hook(2, facts()).hook(3, facts()), [case(0)]),
        (begun().hout(2, b"x").end(0, facts()), [case(0)]),
        (greeted().start().hook(0, facts()), [case(0, static=True)]),
        (greeted().start().hout(0, b"x"), [case(0, static=True)]),
        (greeted().hook(0, facts()), [case(0)]),
        (greeted().bye(0, hks=digest(b"h")[:-1]), []),
    ],
)  # fmt: skip
def test_hooks_out_of_place_are_refused(pen: Pen, cases: list[CasePlan]) -> None:
    broken(pen, *cases)


@pytest.mark.parametrize("hooks", [None, directory()])
def test_a_hook_that_was_not_planned_is_refused(hooks: HooksDirectory | None) -> None:
    broken(greeted().start().hook(0, facts()), case(0), hooks=hooks)
    made = decoder(case(0), hooks=hooks)
    (_, _, ended) = made.feed(greeted().start().end(0, facts()).bytes())
    assert isinstance(ended, CaseEnded)
    assert ended.hooks == ()


def encoded(planned: LegPlan) -> dict[str, Any]:
    line = encode_plan(
        planned, nonce=NONCE, uid=65532, gid=65532, upper=None, share_workspace=False, leg_seconds=1
    )
    document: dict[str, Any] = json.loads(line)
    return document


def test_the_agent_is_told_of_hooks_once_however_many_cases_there_are() -> None:
    around = directory(hook(START, command='"${CLAUDE_PLUGIN_ROOT}"/x'), hook(END))
    document = encoded(leg(case(0), case(1), hooks=around))
    assert (document["hooks_directory"], document["hooks_before"]) == ("/hooks", 1)
    first, last = document["hooks"]
    assert first["argv"] == ["sh", "-c", '"${CLAUDE_PLUGIN_ROOT}"/x']
    assert (first["cwd"], first["timeout_seconds"]) == ("/workspace", 7)
    place = {"CLAUDE_PLUGIN_ROOT": "/hooks", "CLAUDE_PROJECT_DIR": "/workspace"}
    assert first["env"] == place
    assert json.loads(first["stdin"]) == {
        "cwd": "/workspace", "hook_event_name": "SessionStart", "source": "startup"
    }  # fmt: skip
    assert json.loads(last["stdin"])["reason"] == "other"
    assert all(
        item.keys() == encoded(leg(case(0)))["cases"][0].keys() for item in document["cases"]
    )


def test_without_a_hooks_directory_the_agent_is_told_of_none() -> None:
    document = encoded(leg(case(0), hooks=None))
    told = (document["hooks_directory"], document["hooks"], document["hooks_before"])
    assert told == (None, [], 0)
