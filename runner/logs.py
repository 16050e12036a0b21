"""The only module that configures structlog: events to stderr, results never."""

from __future__ import annotations

import logging
import sys

import structlog


def configure(*, verbose: int, color: bool) -> None:
    """Set logging up once.

    Args:
        verbose: 0 shows warnings, 1 information, 2 everything.
        color: Whether the terminal takes colour.
    """
    level = {0: logging.WARNING, 1: logging.INFO}.get(verbose, logging.DEBUG)
    renderer: structlog.typing.Processor = (
        structlog.dev.ConsoleRenderer(colors=color)
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
