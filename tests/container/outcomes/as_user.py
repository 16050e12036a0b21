"""Runs `ao-eval` as another user: UID GROUP,… ARGUMENT….

The modules are imported first: the interpreter itself need not be readable for that user.
"""

from __future__ import annotations

import codecs
import contextlib
import encodings
import importlib
import io
import os
import pkgutil
import sys

import docker
import jsonschema

import runner
from runner.cli.main import main

if __name__ == "__main__":
    for room in ("app", "cli", "contracts", "core", "engine", "host", "ledger", "model"):
        package = importlib.import_module(f"{runner.__name__}.{room}")
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    for codec in pkgutil.iter_modules(encodings.__path__):
        with contextlib.suppress(ImportError, LookupError):
            importlib.import_module(f"encodings.{codec.name}")
            codecs.lookup(codec.name)
    # What these import on use only, they import now.
    with contextlib.suppress(docker.errors.DockerException):
        docker.APIClient(version="auto").containers(all=True)
    jsonschema.Draft202012Validator({"type": "object"}).is_valid({})
    with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
        main(["outcomes", "ingest", "--help"])
    user, groups = int(sys.argv[1]), [int(group) for group in sys.argv[2].split(",")]
    os.umask(0o022)
    os.setgroups(groups)
    os.setresgid(user, user, user)
    os.setresuid(user, user, user)
    main(sys.argv[3:])
