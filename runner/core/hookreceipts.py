"""What came of hooks, compared between legs: a case whose hooks differ supports no claim.

Compared are which hooks ran, how they ended and that they completed. Output and duration are not:
the one may depend on the context, the other on the machine.
"""

from __future__ import annotations

from collections.abc import Sequence

from runner.core.degrade import hooks_disabled, status_of, worst
from runner.model.hooks import HookReceipt
from runner.model.leg import Axis, Degradation
from runner.model.record import CaseResult

NOT_STARTED = (126, 127)
"""Exit codes by which `sh` says that a program cannot be executed or is not there."""

Results = Sequence[CaseResult]


def completed(receipt: HookReceipt) -> bool:
    """Whether a hook was started and came to its own end, whatever its exit code.

    A program that is missing ends `sh` with 127. That nothing of the hook ran must not pass for a
    hook that ran; a script that ends with that code for another reason is not believed either.
    """
    return (
        receipt.exit_code is not None
        and receipt.exit_code not in NOT_STARTED
        and not receipt.timed_out
        and not receipt.oom_killed
        and receipt.signal is None
        and receipt.start_error is None
    )


def complete(case: CaseResult) -> bool:
    """Whether every hook around a case completed."""
    return all(map(completed, case.hooks))


def _comparable(receipt: HookReceipt) -> tuple[object, ...]:
    return (
        receipt.event,
        receipt.index,
        receipt.command_sha256,
        receipt.exit_code,
        receipt.signal,
        receipt.timed_out,
        receipt.oom_killed,
        receipt.start_error,
    )


def equal(sides: Sequence[CaseResult]) -> bool | None:
    """Whether the hooks around one case ended the same way in every leg that reached it.

    Args:
        sides: The results of one case, one for each leg.

    Returns:
        None when fewer than two legs reached it.
    """
    reached = [side for side in sides if _reached(side)]
    if len(reached) < 2:
        return None
    first, *others = ([_comparable(receipt) for receipt in side.hooks] for side in reached)
    return all(other == first for other in others)


def _reached(side: CaseResult) -> bool:
    """A leg that did not reach the case is degraded for its own reason, and has no receipts.

    Without receipts and without a reason the hooks are missing, which is a difference.
    """
    return bool(side.hooks) or side.degraded_reason is None


def settle(legs: Sequence[Results]) -> tuple[tuple[CaseResult, ...], ...]:
    """Degrade cases whose hooks differ between the legs, in every leg, or did not complete.

    Args:
        legs: The results of each leg, of the same cases in the same order.

    Returns:
        The same, with `hooks_disabled` and `receipts_differ` or `hook_incomplete` where it is due.
    """
    rows = [_settle_case(sides) for sides in zip(*legs, strict=True)]
    return tuple(zip(*rows, strict=True)) if rows else tuple(() for _ in legs)


def settle_round(
    legs: Sequence[Results], variants: Sequence[tuple[Axis, str]]
) -> tuple[tuple[CaseResult, ...], ...]:
    """Settle legs that ran side by side.

    The off-leg of the skill axis runs no hooks, which is what it is for: there the receipts of a
    leg are held against those of its own variant only.

    Args:
        legs: The results of each leg, of the same cases in the same order.
        variants: Axis and variant of each leg.
    """
    kinds = [variant if axis is Axis.SKILL else None for axis, variant in variants]
    settled: dict[int, tuple[CaseResult, ...]] = {}
    for kind in dict.fromkeys(kinds):
        places = [place for place, other in enumerate(kinds) if other == kind]
        settled.update(zip(places, settle([legs[place] for place in places]), strict=True))
    return tuple(settled[place] for place in range(len(legs)))


def _settle_case(sides: Sequence[CaseResult]) -> tuple[CaseResult, ...]:
    differ = equal(sides) is False
    settled = []
    for side in sides:
        if differ and _reached(side):
            settled.append(_degrade(side, hooks_disabled("receipts_differ")))
        elif not complete(side):
            settled.append(_degrade(side, hooks_disabled("hook_incomplete")))
        else:
            settled.append(side)
    return tuple(settled)


def _degrade(case: CaseResult, degradation: Degradation) -> CaseResult:
    own = None
    if case.degraded_reason is not None and case.degraded_detail is not None:
        own = Degradation(reason=case.degraded_reason, detail=case.degraded_detail)
    chosen = worst([own, degradation]) or degradation
    return case.model_copy(
        update={
            "status": status_of(chosen),
            "score": None,
            "degraded_reason": chosen.reason,
            "degraded_detail": chosen.detail,
        }
    )
