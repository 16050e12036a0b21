"""The hook environment: what of it reaches a leg, and what would switch hooks off.

Context mode must not suppress hooks, directly or indirectly. So suppression is looked for in every
place it can come from, and a spelling that some hook might honour is refused as ambiguous.
"""

from __future__ import annotations

import hashlib
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from runner.errors import InputError

NAMESPACES = ("AGENTOPS_", "AO_", "CLAUDE_", "CODEX_")
"""Prefixes of the hook environment; also whole names a scrub prefix must not swallow."""

OURS = "AO_EVAL_"
"""Settings of this tool; never part of the hook environment."""

LEG_VARIABLES = ("AO_AGENTS_DIR", "AO_CONTEXT_VARIANT", "AO_USAGE_FILE")
"""Set by the leg last; no suite, case or option overrides them."""

HOOKS_SWITCH = "AGENTOPS_HOOKS_DISABLED"
"""The leg variable of the skill axis: `1` in its off-leg."""

SWITCHES = (HOOKS_SWITCH, "AGENTOPS_SESSION_START_DISABLED")
"""Exactly `1` switches hooks off."""

_CREDENTIAL_ENDS = ("_TOKEN", "_KEY", "_SECRET")
_CREDENTIAL_PARTS = ("PASSWORD",)


@dataclass(frozen=True, slots=True)
class HookEnvironment:
    """Hook variables that are passed on, and names that were held back.

    Attributes:
        passed: Name -> value.
        dropped: Names in the namespaces that look like credentials, sorted.
    """

    passed: Mapping[str, str]
    dropped: tuple[str, ...]

    def fingerprint(self) -> dict[str, str]:
        """Name -> SHA-256 of the value: evidence without values."""
        return {name: digest(value) for name, value in sorted(self.passed.items())}


def digest(value: str) -> str:
    """SHA-256 of an environment value, undecodable bytes as the system passed them."""
    return hashlib.sha256(value.encode("utf-8", "surrogateescape")).hexdigest()


def select(environment: Mapping[str, str]) -> HookEnvironment:
    """Pick the hook environment out of the invoker's.

    Leg variables are left out: the leg sets them itself.
    """
    passed: dict[str, str] = {}
    dropped: list[str] = []
    for name, value in sorted(environment.items()):
        if not name.startswith(NAMESPACES) or name.startswith(OURS) or name in LEG_VARIABLES:
            continue
        if _looks_like_credential(name):
            dropped.append(name)
        else:
            passed[name] = value
    return HookEnvironment(passed=passed, dropped=tuple(dropped))


def _looks_like_credential(name: str) -> bool:
    upper = name.upper()
    return upper.endswith(_CREDENTIAL_ENDS) or any(part in upper for part in _CREDENTIAL_PARTS)


def suppressed_by(environment: Mapping[str, str], *, where: str) -> str | None:
    """Name of a variable that switches hooks off, if one does.

    Args:
        environment: Names and values to look at.
        where: Where they come from, for the message.

    Raises:
        InputError: A switch has another non-empty value than `1`, or a look-alike name is set;
            some hook might honour it, so neither reading is safe.
    """
    found = None
    for name, value in sorted(environment.items()):
        if name in SWITCHES:
            if value == "1":
                found = found or name
            elif value != "":
                raise InputError(
                    f"{name} has a value that is neither empty nor 1",
                    where=where,
                    remedy="unset it, or set it to 1 to say that hooks are off",
                )
        elif value != "" and _folded(name) in _FOLDED_SWITCHES:
            raise InputError(
                f"{name!r} looks like a switch for hooks but is not one",
                where=where,
                remedy=f"unset it, or use {SWITCHES[0]}",
            )
    return found


def _folded(name: str) -> str:
    """Letters and digits of a name, width and case folded, plural and word order ignored."""
    folded = unicodedata.normalize("NFKC", name).casefold()
    words = "".join(c if c.isalnum() else " " for c in folded).split()
    return " ".join(sorted(word.removesuffix("s") for word in words))


_FOLDED_SWITCHES = frozenset(
    [_folded(name) for name in SWITCHES]
    + [_folded(name) for name in ("AGENTOPSHOOKSDISABLED", "AGENTOPS_DISABLE_HOOKS")]
    + [_folded(name) for name in ("AGENTOPS_HOOKSDISABLED", "AGENTOPS_HOOKS_OFF")]
)


def scrubs_hooks(prefixes: Iterable[str]) -> str | None:
    """A scrub prefix that would swallow a whole hook namespace, if there is one.

    Narrower prefixes cannot remove a hook variable either, but they are an honest wish about one
    name and only noted.
    """
    for prefix in prefixes:
        if any(namespace.startswith(prefix) for namespace in NAMESPACES):
            return prefix
    return None
