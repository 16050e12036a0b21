"""Context that was there and had no part, and how that is known."""

from __future__ import annotations

from collections.abc import Sequence

from runner.core.attribute import ablation
from runner.core.sentinels import is_sentinel
from runner.core.trials import ON, Trials
from runner.model.contextfile import ContextArtifact, ContextFile
from runner.model.controls import Unit
from runner.model.scorecard import IgnoredContext

_MOST = 20


def ignored(
    trials: Trials,
    case_id: str,
    units: Sequence[Unit],
    groups: Sequence[tuple[str, ...]],
    context: ContextFile | None,
) -> tuple[IgnoredContext, ...]:
    """What is known of the on-root's artifacts that did not decide a case.

    Sentinels are told of whatever became of the case; other artifacts when it did not change. What
    was not opened is known from a complete trace only. Of a case that changed, one that was opened
    is told only when an ablation showed that it changes nothing: opened, it may be the cause.

    Args:
        trials: All legs.
        case_id: The case; its pair is valid.
        units: Difference between the roots.
        groups: Units as an ablation varied them.
        context: `context.json` of the on-root.
    """
    changes = {unit.path: unit.change for unit in units}
    on = trials.first(ON, case_id)
    opened = trials.opened(ON, case_id)
    if on is None or opened is None:
        return ()
    tied = len({*trials.outcomes(ON, case_id), *trials.outcomes("context_off", case_id)}) == 1
    here = {path for path, change in changes.items() if change != "removed"}
    declared = [item for item in (context.artifacts if context else ()) if item.path in here]
    told = [item for item in declared if tied or is_sentinel(item)]
    if tied and not declared and here:
        unread = len(here - opened)
        return (
            IgnoredContext(
                kind="not_opened" if unread == len(here) else "opened_without_effect",
                detail=f"{unread} of {len(here)} entries that only this root has were not opened",
            ),
        )
    ablated = ablation(trials, case_id, groups)
    decisive = {*ablated.necessary, *ablated.sufficient} if ablated else set()
    hits = {hit.artifact for hit in on.sentinels}
    found = []
    for item in told:
        if item.path in hits or item.path in decisive:
            continue
        kept = ablated is not None and ablated.complete and ablated.reproduced
        if tied or kept or item.path not in opened:
            found.append(_line(item, opened=item.path in opened, ablated=kept))
    if len(found) > _MOST:
        more = IgnoredContext(kind=found[_MOST].kind, detail=f"and {len(found) - _MOST} more")
        found = [*found[:_MOST], more]
    return tuple(found)


def _line(item: ContextArtifact, *, opened: bool, ablated: bool) -> IgnoredContext:
    words = ["opened"] if opened else ["present", "not opened"]
    if opened and is_sentinel(item):
        words.append("token absent")  # outputs are searched for tokens of sentinels only
    if ablated:
        words.append("ablation unchanged")
    return IgnoredContext(
        kind="opened_without_effect" if opened else "not_opened",
        detail=f"{', '.join(words)}: {item.path} ({item.role})",
    )
