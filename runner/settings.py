"""The only module that reads the process environment and configuration files."""

from __future__ import annotations

import os
import tempfile
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from runner.errors import InputError

PREFIX = "AO_EVAL_"
_YEAR_9999 = 253_402_300_799


def environment() -> dict[str, str]:
    """A copy of the invoker's environment."""
    return dict(os.environ)


def home() -> Path:
    """The invoker's home directory."""
    return Path.home()


def staging_base(environ: Mapping[str, str]) -> Path:
    """Folder for staged trees: `AO_EVAL_STAGING_DIR`, else the system's for temporary files."""
    return Path(environ.get("AO_EVAL_STAGING_DIR") or tempfile.gettempdir())


def source_date_epoch(environ: Mapping[str, str]) -> int | None:
    """`SOURCE_DATE_EPOCH` in seconds, if it is set.

    Raises:
        InputError: It is not a non-negative integer, or too large for a date.
    """
    text = environ.get("SOURCE_DATE_EPOCH")
    if not text:
        return None
    if not (text.isascii() and text.isdigit()):
        raise InputError("is not a number of seconds", where="SOURCE_DATE_EPOCH")
    # Text is compared by its length first: int() refuses thousands of digits.
    digits = text.lstrip("0") or "0"
    if len(digits) > len(str(_YEAR_9999)) or int(digits) > _YEAR_9999:
        raise InputError("is beyond the year 9999", where="SOURCE_DATE_EPOCH")
    return int(digits)


def configured(directory: Path) -> dict[str, Any]:
    """Defaults for options: `ao-eval.toml`, else `[tool.ao-eval]` of `pyproject.toml`.

    Looked for in `directory` only: a setting that comes from far away surprises.

    Raises:
        InputError: The file cannot be read, is not TOML, or holds no table there.
    """
    for name, keys in (("ao-eval.toml", ()), ("pyproject.toml", ("tool", "ao-eval"))):
        path = directory / name
        if not path.is_file():
            continue
        try:
            found: Any = tomllib.loads(path.read_text(encoding="utf-8"))
        except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
            raise InputError(f"is not valid TOML: {error}", where=str(path)) from error
        except OSError as error:
            reason = error.strerror or type(error).__name__
            raise InputError(f"cannot be read: {reason}", where=str(path)) from error
        for key in keys:
            found = found.get(key, {}) if isinstance(found, dict) else None
        if not isinstance(found, dict):
            raise InputError("[tool.ao-eval] is not a table", where=str(path))
        if found:
            return {name.replace("-", "_"): value for name, value in found.items()}
    return {}
