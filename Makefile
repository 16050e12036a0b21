# Every target does the set-up it needs; what is set up already costs no noticeable time.
# Logic lives in scripts/ and in the package, not here.
SHELL := /bin/bash
.DELETE_ON_ERROR:
# The prerequisites venv, engine and images have an order, and recipes print progress.
.NOTPARALLEL:

VENV := .venv
BIN := $(VENV)/bin
AO_EVAL := $(BIN)/ao-eval

# What `make eval-ab` evaluates: a suite or a folder of suites.
SUITES ?= fixtures/suites
# Base of the leg image; empty: a Debian root file system made by mmdebstrap.
BASE_IMAGE ?=
# Which tests `make test` runs (pytest -m), and more arguments for pytest.
MARKS ?= not slow and not soak and not matrix and not bench
PYTEST_ARGS ?=
# More arguments for `ao-eval ab`.
AB_ARGS ?=

# More arguments for `make test-matrix`: --engine trixie, --runtime runsc, --keep, pytest's own.
MATRIX_ARGS ?=

# Which images `make images` builds: leg, outcomes; empty for both.
IMAGES ?=

export BASE_IMAGE
# Its helper container comes from a registry, which need not be reachable; our tests clean up.
export TESTCONTAINERS_RYUK_DISABLED := true

PYTEST := $(BIN)/python -m pytest

.PHONY: help
help: ## This list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- set-up

.PHONY: venv
venv: ## .venv from the locked, hash-checked dependencies
	@scripts/ensure-venv

.PHONY: engine
engine: ## A Docker engine: yours, or on Debian/Ubuntu as root one that is installed and started
	@scripts/ensure-engine

.PHONY: engine-stop
engine-stop: ## Stop the dockerd that `make engine` started, and no other
	@scripts/ensure-engine --stop

.PHONY: image-tools
image-tools:
	@scripts/ensure-image-tools

.PHONY: images
images: venv engine image-tools ## Both images (BASE_IMAGE=... to build on an image of yours)
	@$(AO_EVAL) images build $(IMAGES) $(if $(BASE_IMAGE),--base-image '$(BASE_IMAGE)')

# --- the main job

.PHONY: eval-ab
eval-ab: IMAGES := leg
eval-ab: venv engine images ## Evaluate the bundled suites without and with context (SUITES=...)
	@$(AO_EVAL) ab $(SUITES) $(AB_ARGS)

.PHONY: reap
reap: venv ## Remove containers and volumes that a killed run left behind
	@$(AO_EVAL) reap

# --- tests and checks

.PHONY: test
test: venv engine images ## Tests, those in real containers included
	$(PYTEST) -m '$(MARKS)' $(PYTEST_ARGS)

.PHONY: test-unit
test-unit: venv ## Tests that need no engine
	$(PYTEST) tests/unit $(PYTEST_ARGS)

.PHONY: test-slow
test-slow: MARKS := slow and not matrix and not bench
test-slow: test ## Slow tests

.PHONY: test-soak
test-soak: MARKS := soak
test-soak: test ## Many runs in a row: 200 in one process

.PHONY: test-matrix
test-matrix: venv ## Container tests on Docker 20.10 and 26.1, with runc and with gVisor; needs root
	@$(BIN)/python -m tests.matrix $(MATRIX_ARGS)

.PHONY: bench
bench: venv engine images ## Measure: ratios to bare host loops and to two docker runs
	@$(BIN)/python -m tests.bench $(BENCH_ARGS)

.PHONY: coverage
coverage: venv ## Coverage of the tests that need no engine
	$(PYTEST) tests/unit --cov --cov-report=term $(PYTEST_ARGS)

.PHONY: check
check: venv ## Format, lint, types, import contracts, schema drift, shell scripts
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-logo
	$(AO_EVAL) schema --check schemas
	@scripts/check-shell

.PHONY: format
format: venv ## Format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

.PHONY: lock
lock: venv ## Lock the dependencies anew (LOCK_ARGS='--upgrade' for newer versions)
	@scripts/lock $(LOCK_ARGS)

.PHONY: clean
clean: ## Remove what was built in this folder; images and the engine stay
	rm -rf $(VENV) build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .coverage
	find runner tests -name __pycache__ -type d -prune -exec rm -rf {} +
