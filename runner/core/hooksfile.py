"""Reader of `hooks.json`: bytes in, the hooks that run around a case or one clear refusal out."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Final, NamedTuple, NoReturn

import re2

from runner.core import strictjson
from runner.core.jsonvalue import printable
from runner.errors import InputError
from runner.model.hooks import Hook, HookEvent

FILE_NAME: Final = "hooks.json"
DEFAULT_TIMEOUT_SECONDS: Final = 60
LONGEST_TIMEOUT_SECONDS: Final = 24 * 3600
SUBJECT: Final[Mapping[HookEvent, str]] = {
    HookEvent.SESSION_START: "startup",
    HookEvent.SESSION_END: "other",
}
"""What matchers of an event are held against: every case is a session begun afresh."""

_TOP = frozenset({"hooks", "description", "$schema"})
_GROUP = frozenset({"matcher", "hooks"})
_HOOK = frozenset({"type", "command", "timeout", "statusMessage"})


class HooksFile(NamedTuple):
    """What a `hooks.json` asks for.

    Attributes:
        hooks: In the order in which they run: every SessionStart, then every SessionEnd.
        not_run: JSON pointers of what is not: other events, groups whose matcher does not match.
    """

    hooks: tuple[Hook, ...]
    not_run: tuple[str, ...]


def read_hooks(data: bytes, path: str) -> HooksFile:
    """Read a hooks file.

    The events that are run are read strictly; of others only that they are lists.

    Args:
        data: Bytes of the file.
        path: Its name for messages.

    Raises:
        InputError: The file is refused; `where` is `<path>#<JSON pointer>`.
    """
    return _Reader(path).read(data)


class _Reader:
    def __init__(self, path: str) -> None:
        self._path = path

    def read(self, data: bytes) -> HooksFile:
        try:
            document = strictjson.loads(data)
        except strictjson.StrictJsonError as error:
            self._refuse(str(error), pointer=error.pointer)
        events = self._object(self._object(document, _TOP).get("hooks"), None, "hooks")
        hooks: list[Hook] = []
        not_run: list[str] = []
        for event in HookEvent:
            before = len(hooks)
            for number, found in enumerate(self._list(events.get(event, []), "hooks", event)):
                place = ("hooks", event, number)
                group = self._object(found, _GROUP, *place)
                # Read in any case, so that a mistake is told whether or not the group is run.
                listed = [
                    self._hook(
                        item, event, len(hooks) - before + position, *place, "hooks", position
                    )
                    for position, item in enumerate(self._list(group.get("hooks"), *place, "hooks"))
                ]
                if self._matches(group.get("matcher"), SUBJECT[event], *place, "matcher"):
                    hooks += listed
                else:
                    not_run.append(strictjson.pointer(place))
        for name, groups in events.items():
            if name not in set(HookEvent):
                self._list(groups, "hooks", name)
                not_run.append(strictjson.pointer(("hooks", name)))
        return HooksFile(tuple(hooks), tuple(not_run))

    def _matches(self, matcher: object, subject: str, *place: str | int) -> bool:
        if matcher is None or matcher in ("", "*"):
            return True
        if not isinstance(matcher, str):
            self._refuse("must be a string", *place)
        options = re2.Options()
        options.log_errors = False
        try:
            return re2.compile(matcher, options).fullmatch(subject) is not None
        except re2.error:
            self._refuse("is not a regular expression (RE2)", *place)

    def _hook(self, found: object, event: HookEvent, index: int, *place: str | int) -> Hook:
        hook = self._object(found, _HOOK, *place)
        if hook.get("type") != "command":
            self._refuse('must be "command": nothing else can run in a leg', *place, "type")
        command = hook.get("command")
        if not isinstance(command, str) or not command.strip() or "\0" in command:
            self._refuse("must be a command, without NUL characters", *place, "command")
        timeout = hook.get("timeout", DEFAULT_TIMEOUT_SECONDS)
        if type(timeout) is not int or not 1 <= timeout <= LONGEST_TIMEOUT_SECONDS:
            bounds = f"from 1 to {LONGEST_TIMEOUT_SECONDS}"
            self._refuse(f"must be a whole number of seconds {bounds}", *place, "timeout")
        return Hook(
            event=event,
            index=index,
            command=command,
            command_sha256=hashlib.sha256(command.encode("utf-8")).hexdigest(),
            timeout_seconds=timeout,
        )

    def _object(
        self, found: object, known: frozenset[str] | None, *place: str | int
    ) -> dict[str, object]:
        if not isinstance(found, dict):
            self._refuse("must be an object", *place)
        for name in found:
            if known is not None and name not in known:
                self._refuse("unknown field", *place, name)
        return found

    def _list(self, found: object, *place: str | int) -> list[object]:
        if not isinstance(found, list):
            self._refuse("must be a list", *place)
        return found

    def _refuse(self, what: str, *place: str | int, pointer: str | None = None) -> NoReturn:
        at = strictjson.pointer(place) if pointer is None else pointer
        raise InputError(what, where=f"{printable(self._path, 4096)}#{printable(at, 200)}")
