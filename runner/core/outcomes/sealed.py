"""Errors that carry nothing of what was being read.

A traceback keeps every frame that an exception went through, and with the frame its variables. A
function that handles holdout values is therefore sealed: what leaves it is a fresh error without
frames, causes or contexts of ours.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from runner.errors import AoEvalError, InternalError

P = ParamSpec("P")
R = TypeVar("R")


def sealed(function: Callable[P, R]) -> Callable[P, R]:
    """Let nothing out of a function but its result or an error that says nothing of its input.

    An error of ours keeps its message. Any other exception becomes an `InternalError` that names
    its type only, since its text may quote a value.
    """

    @functools.wraps(function)
    def guarded(*args: P.args, **kwargs: P.kwargs) -> R:
        refusal: AoEvalError | None = None
        try:
            return function(*args, **kwargs)
        except AoEvalError as error:
            refusal = error
        except Exception as error:  # noqa: BLE001  # whatever it is, its text must not get out
            refusal = InternalError(
                f"{function.__name__} failed ({type(error).__name__})",
                remedy="nothing was written; please report this with the version, not the input",
            )
        # The arguments are in this frame, and this frame is in the traceback.
        del args, kwargs
        refusal.__cause__ = refusal.__context__ = None
        raise refusal.with_traceback(None)

    return guarded
