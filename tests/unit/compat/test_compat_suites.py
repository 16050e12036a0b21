"""The public suites of the format's first project load unchanged.

They are data kept beside the checkout, never in it: `../shared/compat` or `$AO_EVAL_COMPAT`.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import jsonschema
import pytest

from runner.core.expect import file_targets, probe_command
from runner.core.suitefile import looks_like_suite, read_suite
from runner.model.suite import Suite

REPOSITORY = Path(__file__).resolve().parents[3]
EXPECTED = 20


def compat_folder() -> Path:
    """Folder of the public suites; skips where there is none."""
    named = os.environ.get("AO_EVAL_COMPAT")
    folder = Path(named) if named else REPOSITORY.parent / "shared" / "compat"
    if not named and not folder.is_dir():
        pytest.skip("compat suites are not beside this checkout")
    return folder / "suites"


def test_all_public_suites_load_and_satisfy_the_published_schema() -> None:
    files = sorted(compat_folder().glob("*.json"))
    assert len(files) == EXPECTED
    validator = jsonschema.Draft202012Validator(Suite.model_json_schema(mode="validation"))
    for file in files:
        data = file.read_bytes()
        suite = read_suite(data, str(file)).suite
        assert suite.cases
        assert looks_like_suite(data)
        validator.validate(json.loads(data))
        for case in suite.cases:
            assert all(path.startswith("/") for path in file_targets(case, suite_dir="/w/e"))
            assert [probe_command(item) for item in case.expectations] == [None] * len(
                case.expectations
            )
