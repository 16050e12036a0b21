"""Models are built on first use, which may be in several threads at once."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import sys
import threading
from pydantic import ValidationError
from runner.contracts.registry import CONTRACTS

sys.setswitchinterval(1e-6)
THREADS = 6
for contract in CONTRACTS:
    assert not contract.model.__pydantic_complete__, contract.name
    barrier, seen = threading.Barrier(THREADS), []

    def first_use():
        barrier.wait()
        try:
            contract.model.model_validate({})
        except ValidationError as error:
            seen.append(str(error))
        except BaseException as error:
            seen.append(repr(error))
        else:
            seen.append("valid")

    threads = [threading.Thread(target=first_use) for _ in range(THREADS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    (alike,) = set(seen)
    assert "Field required" in alike, alike
"""


def test_models_used_first_by_several_threads_at_once_validate_as_they_should() -> None:
    """pydantic before its `model_rebuild` had a lock took the base class's validator meanwhile."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
