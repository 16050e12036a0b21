"""Wall-clock time for documents; one place, so that `SOURCE_DATE_EPOCH` rules all of them."""

from __future__ import annotations

import time


def utc(seconds: float) -> str:
    """Seconds since 1970 as RFC 3339 in UTC, whole seconds."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(int(seconds)))


def now() -> str:
    """The present, for records of what happened when."""
    return utc(time.time())


def stamp(epoch: int | None) -> str:
    """Time of generation: the declared clock if there is one, else the present."""
    return utc(time.time() if epoch is None else epoch)


def compact(seconds: float) -> str:
    """`20261130T203008Z`, for names."""
    return time.strftime("%Y%m%dT%H%M%SZ", time.gmtime(int(seconds)))
