"""The log: events to stderr, results never. The only module that imports structlog.

structlog takes a fifth of a second to import, and most runs log nothing: it is imported and
configured when the first event is logged.
"""

from __future__ import annotations

import functools
import logging
import sys
from typing import Any


class Log:
    """Structured events; safe to use from several threads."""

    def __init__(self) -> None:
        self._verbose = 0
        self._color = False

    def configure(self, *, verbose: int, color: bool) -> None:
        """Say how much is shown.

        Args:
            verbose: 0 shows warnings, 1 information, 2 everything.
            color: Whether the terminal takes colour.
        """
        self._verbose = verbose
        self._color = color

    def debug(self, event: str, **facts: object) -> None:
        """What only a developer wants to know."""
        if self._verbose > 1:
            self._logger.debug(event, **facts)

    def info(self, event: str, **facts: object) -> None:
        """What happens."""
        if self._verbose:
            self._logger.info(event, **facts)

    def warning(self, event: str, **facts: object) -> None:
        """What should not have happened, though the run goes on."""
        self._logger.warning(event, **facts)

    @functools.cached_property
    def _logger(self) -> Any:
        import structlog

        level = {0: logging.WARNING, 1: logging.INFO}.get(self._verbose, logging.DEBUG)
        renderer: structlog.typing.Processor = (
            structlog.dev.ConsoleRenderer(colors=self._color)
            if sys.stderr.isatty()
            else structlog.processors.JSONRenderer(sort_keys=True)
        )
        structlog.configure(
            processors=[
                structlog.contextvars.merge_contextvars,
                structlog.processors.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
                renderer,
            ],
            wrapper_class=structlog.make_filtering_bound_logger(level),
            logger_factory=structlog.PrintLoggerFactory(sys.stderr),
            cache_logger_on_first_use=True,
        )
        return structlog.get_logger()


log = Log()
