# Needs python3 (3.11 to 3.13) and make. npm, where present, gives the tests a real anvil.
.DEFAULT_GOAL := help
SHELL := /bin/bash

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
export UV_CACHE_DIR := $(CURDIR)/.cache/uv
export PIP_CACHE_DIR := $(CURDIR)/.cache/pip
export RUFF_CACHE_DIR := $(CURDIR)/.cache/ruff
export MYPY_CACHE_DIR := $(CURDIR)/.cache/mypy
export npm_config_cache := $(CURDIR)/.cache/npm
export PYTHONPYCACHEPREFIX := $(CURDIR)/.cache/pyc
# Where the environment forbids it, each of the many processes would compile everything it imports anew.
export PYTHONDONTWRITEBYTECODE :=
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Made anew when the lock or what the package declares (its scripts, its pytest plugin) changes.
READY := .cache/setup-$(shell { cat requirements.lock bootstrap.lock; sed -n '/^\[project/,/^\[tool/p' pyproject.toml; } 2>/dev/null | cksum | cut -d' ' -f1)

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 12

setup: $(READY) ## make .venv from the lock with hashes

$(READY):
	@mkdir -p .cache
	@$(PYTHON) -c 'import sys; sys.exit(not (3,11) <= sys.version_info[:2] <= (3,13))' || { echo "Python 3.11 to 3.13 is needed: make PYTHON=python3.12 $(MAKECMDGOALS)"; exit 2; }
	@$(PYTHON) -m venv --clear $(VENV) || { echo "python3 cannot make a virtual environment: install its venv module (Debian: python3-venv)"; exit 2; }
	@echo "installing from requirements.lock into $(VENV) ..."
	@$(BIN)/python -m pip install -q --no-input --require-hashes -r bootstrap.lock
	@# Behind a proxy with an authority of its own, the system's certificates are the ones that fit.
	@$(BIN)/uv pip install -q --python $(BIN)/python --link-mode copy --require-hashes -r requirements.lock 2>.cache/install.log \
	  || $(BIN)/uv pip install -q --system-certs --python $(BIN)/python --link-mode copy --require-hashes -r requirements.lock \
	  || { cat .cache/install.log; exit 1; }
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --no-build-isolation -e .
	@rm -f .cache/setup-*; touch $@

demo: setup ## the main job on an embedded database and a local chain, under a minute
	@$(BIN)/fenced demo

test: setup ## every test but the long ones (starts its own servers)
	$(BIN)/python -m pytest -n auto --dist loadgroup tests

chaos: setup ## the long forms of the fault tests (FENCED_CHAOS_SEED chooses other timings)
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "chaos and not soak" tests

model: setup ## the wider bounds of the protocol's model
	$(BIN)/python -m pytest -n auto -m model_full -s --timeout 0 tests/model

check: lint types contracts test ## what must be green before a push

lint: setup ## ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

fmt: setup ## let ruff rewrite
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: setup ## mypy --strict
	$(BIN)/mypy

contracts: setup ## import-linter: who may import whom
	$(BIN)/lint-imports --cache-dir .cache/import-linter

bench: setup ## figures as ratios, with the baselines beside them
	$(BIN)/python -m tests.bench

soak: setup ## five minutes of load under random faults, on the devnet and on anvil (FENCED_CHAOS_SEED repeats one)
	$(BIN)/python -m pytest -n 0 -m soak -s --timeout 1800 tests/chaos/test_load.py

differential: setup ## our devnet beside real anvil and, where one is installed, real geth
	@$(BIN)/python -m tests.devnet.differential

plans: setup ## many random histories of the devnet, each judged after every step (FENCED_PLANS=2000)
	@FENCED_PLANS=$${FENCED_PLANS:-2000} $(BIN)/python -m pytest -q --timeout 0 tests/devnet/test_random_plans.py

devnet: setup ## a local chain on a free port
	@$(BIN)/fenced devnet

schema: setup ## write docs/schema.sql from the migrations
	$(BIN)/python -m tests.migrations.schema_document

lock: ## renew requirements.lock and bootstrap.lock
	$(BIN)/uv pip compile pyproject.toml --extra embedded --extra devnet --group test --group lint --group build \
	  --universal --python-version 3.11 --generate-hashes --no-header --no-annotate -q --upgrade -o requirements.lock

.PHONY: help setup demo test chaos model check lint fmt types contracts bench soak differential plans devnet schema lock
