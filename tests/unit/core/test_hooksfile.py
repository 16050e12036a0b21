"""The reader of `hooks.json`."""

from __future__ import annotations

import json
from hashlib import sha256
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runner.core.hooksfile import HooksFile, read_hooks
from runner.errors import InputError
from runner.model.hooks import HookEvent

START, END = HookEvent.SESSION_START, HookEvent.SESSION_END


def hook(command: str = "true", **more: Any) -> dict[str, Any]:
    return {"type": "command", "command": command, **more}


def group(*hooks: Any, **more: Any) -> dict[str, Any]:
    return {"hooks": list(hooks), **more}


def read(**events: Any) -> HooksFile:
    return read_hooks(json.dumps({"hooks": events}).encode(), "around/hooks.json")


def test_hooks_come_in_the_order_in_which_they_run() -> None:
    found = read(
        SessionEnd=[group(hook("last", timeout=5))],
        SessionStart=[group(hook("a"), hook("b")), group(hook("c", timeout=1))],
    )
    told = [(item.event, item.index, item.command, item.timeout_seconds) for item in found.hooks]
    assert told == [
        (START, 0, "a", 60), (START, 1, "b", 60), (START, 2, "c", 1), (END, 0, "last", 5)
    ]  # fmt: skip
    assert found.hooks[1].command_sha256 == sha256(b"b").hexdigest()
    assert found.not_run == ()


def test_what_is_not_run_is_listed_by_pointer() -> None:
    found = read(
        PreToolUse=[group(hook("x"), matcher="Bash"), "of a shape that is not ours to judge"],
        SessionStart=[group(hook("a"), matcher="resume"), group(hook("b"), matcher="startup")],
        Stop=[],
    )
    assert [(item.index, item.command) for item in found.hooks] == [(0, "b")]
    assert found.not_run == ("/hooks/SessionStart/0", "/hooks/PreToolUse", "/hooks/Stop")


@pytest.mark.parametrize(
    "matcher, runs",
    [
        (None, True), ("", True), ("*", True), ("startup", True), ("startup|resume", True),
        ("start.*", True), ("start", False), ("clear|compact", False), ("Startup", False),
    ],
)  # fmt: skip
def test_a_matcher_is_held_against_the_whole_source(matcher: str | None, runs: bool) -> None:
    found = read(SessionStart=[group(hook(), matcher=matcher)])
    assert bool(found.hooks) is runs
    assert bool(found.not_run) is not runs


def test_members_without_effect_are_known() -> None:
    data = {"$schema": "x", "description": "y", "hooks": {}}
    assert read_hooks(json.dumps(data).encode(), "h") == HooksFile((), ())
    assert read(SessionStart=[group(hook(statusMessage="Loading"))]).hooks


@pytest.mark.parametrize(
    "document, pointer",
    [
        ([], "#"),
        ({}, "#/hooks"),
        ({"hooks": []}, "#/hooks"),
        ({"hooks": {}, "more": 1}, "#/more"),
        ({"hooks": {"SessionStart": {}}}, "#/hooks/SessionStart"),
        ({"hooks": {"PreToolUse": "x"}}, "#/hooks/PreToolUse"),
        ({"hooks": {"SessionStart": [hook()]}}, "#/hooks/SessionStart/0/type"),
        ({"hooks": {"SessionStart": ["x"]}}, "#/hooks/SessionStart/0"),
        ({"hooks": {"SessionStart": [{}]}}, "#/hooks/SessionStart/0/hooks"),
        ({"hooks": {"SessionStart": [{"hooks": [1]}]}}, "#/hooks/SessionStart/0/hooks/0"),
        ({"hooks": {"SessionStart": [group(matcher=1)]}}, "#/hooks/SessionStart/0/matcher"),
        ({"hooks": {"SessionStart": [group(matcher="(")]}}, "#/hooks/SessionStart/0/matcher"),
    ],
)
def test_an_unknown_shape_is_refused_where_it_is(document: Any, pointer: str) -> None:
    with pytest.raises(InputError) as caught:
        read_hooks(json.dumps(document).encode(), "around/hooks.json")
    assert caught.value.where == f"around/hooks.json{pointer}"


@pytest.mark.parametrize(
    "bad, member",
    [
        ({"type": "prompt"}, "type"), ({"type": None}, "type"), ({"command": ""}, "command"),
        ({"command": "  "}, "command"), ({"command": ["a"]}, "command"),
        ({"command": "a\0b"}, "command"), ({"timeout": 0}, "timeout"),
        ({"timeout": True}, "timeout"), ({"timeout": 1.5}, "timeout"),
        ({"timeout": 1e9}, "timeout"), ({"timeout": "5"}, "timeout"), ({"async": True}, "async"),
    ],
    ids=str,
)  # fmt: skip
@pytest.mark.parametrize("matcher", ["", "resume"])
def test_a_bad_hook_is_refused_whether_or_not_it_would_run(
    bad: dict[str, Any], member: str, matcher: str
) -> None:
    with pytest.raises(InputError) as caught:
        read(SessionEnd=[group(hook(), {**hook(), **bad}, matcher=matcher)])
    assert caught.value.where == f"around/hooks.json#/hooks/SessionEnd/0/hooks/1/{member}"


@pytest.mark.parametrize(
    "data", [b"", b"{", b'{"hooks":{},"hooks":{}}', b"\xff", b"\xef\xbb\xbf{}"]
)
def test_what_is_not_strict_json_is_refused(data: bytes) -> None:
    with pytest.raises(InputError, match=r"around/hooks\.json#"):
        read_hooks(data, "around/hooks.json")


_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["hooks", "SessionStart", "SessionEnd", "matcher", "type", "command"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=12,
)


@given(_JSON)
def test_any_document_is_read_or_refused_in_one_line(document: Any) -> None:
    found = _outcome(json.dumps(document).encode())
    if isinstance(found, InputError):
        assert "\n" not in found.line()
        assert found.where is not None
        assert found.where.startswith("h#")
    else:
        events = [hook.event for hook in found.hooks]
        assert events == sorted(events, key=[START, END].index)


def _outcome(data: bytes) -> HooksFile | InputError:
    try:
        return read_hooks(data, "h")
    except InputError as error:
        return error
