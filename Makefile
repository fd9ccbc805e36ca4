# Two commands matter: `make run` serves this folder, `make test` checks everything. Both set the checkout up first.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

PYTHON := $(shell for name in python3 python3.14 python3.13 python3.12 python3.11; do \
	"$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && { command -v "$$name"; break; }; done)
ifeq ($(origin PYTHON),command line)
VENV := .venv-$(shell $(PYTHON) -c 'import sys; print("%d.%d" % sys.version_info[:2])')
else
VENV := .venv
endif
SETUP = SETUP_VENV=$(VENV) $(if $(PYTHON),$(PYTHON),$(error Holdfast needs Python 3.11 or newer, and none was found)) scripts/setup.py
BIN := $(VENV)/bin
WEB = $(BIN)/python scripts/build_web.py
WORKERS ?= 2
TESTS ?= tests
CHECKED := src tests benchmarks scripts

# Some machines tell Python never to write bytecode, which doubles the start-up of every process here.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help run run-postgres test test-all proof release lint format web webtest pytest bench restricted torture docs lock \
	container setup clean

help: ## Show this list. Add PYTHON=python3.13 to run a target on another Python, in a .venv-3.13 of its own.
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 14

run: ## Serve this folder; stop with Ctrl-C.
	@$(SETUP) run
	@exec $(BIN)/holdfast serve .

run-postgres: setup ## The same with a PostgreSQL for the project store; both end with Ctrl-C, and its data with it.
	@PYTHONPATH=. exec $(BIN)/python scripts/run_postgres.py

test: lint webtest pytest ## Check everything: style, types, contracts, all tests.

test-all: test ## make test, and the slow proofs: kills, faults and races, fewer rights, a release on a clean machine, the image.
	$(BIN)/python -m tests.torture.store --mutants
	$(BIN)/python -m tests.torture.store --engine postgres --seconds 120 --client-kills 60 --server-kills 15 --crashes 5 --period 0.5
	$(BIN)/python -m tests.torture.workers --engine sqlite --mutants
	$(BIN)/python -m tests.torture.workers --engine postgres --seconds 60 --kills 40
	$(BIN)/python -m tests.torture.races --engine sqlite --rounds 1000
	$(BIN)/python -m tests.torture.races --engine postgres --rounds 1000
	$(BIN)/python -m tests.torture.changes --mutants
	$(MAKE) restricted
	$(MAKE) proof
	[ "$$(id -u)" != 0 ] || $(MAKE) container # only root mounts the root of an image

proof: setup ## Build the packages, install them on a clean machine, call every group of tools, measure.
	$(BIN)/python scripts/prove_release.py

container: setup ## Build the image without a registry, run it on a read-only root, restart it (as root on Linux).
	PYTHONPATH=. $(BIN)/python scripts/container_proof.py

release: setup ## Make a release ready: every check and test, packages, bill of materials; upload nothing.
	$(BIN)/python scripts/release.py

setup: ## Install what checking needs.
	@$(SETUP) dev

lint: setup ## Check style, types and the import contracts, of Python and of the console.
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy $(CHECKED)
	$(BIN)/lint-imports
	$(WEB) npm run --silent check
	$(WEB) npm run --silent lint

web: ## Build the web console, when its source has changed.
	@$(SETUP) web

webtest: setup ## Run the tests of the console's rules.
	$(WEB) npm run --silent test

pytest: setup ## Run the tests: first those that need the machine to themselves, then the others in parallel.
	$(BIN)/python -m pytest $(TESTS) -m alone || [ $$? -eq 5 ]
	$(BIN)/python -m pytest $(TESTS) -m "not alone" -n $(WORKERS) --dist loadgroup

bench: setup ## Run every benchmark.
	@shopt -s nullglob; for file in benchmarks/*.py; do echo "== $$file"; PYTHONPATH=. $(BIN)/python "$$file"; done

# What an attack meets elsewhere: a user with fewer rights than root, and a kernel that lacks what confines.
RESTRICTED := tests/attack/test_approvals.py tests/attack/test_own_answers.py tests/attack/test_policy.py \
	tests/attack/test_policy_slips.py tests/attack/test_quarantine.py tests/attack/test_review_rule.py \
	tests/attack/test_trust.py tests/unit/folders/test_jail.py tests/acceptance/test_jail.py

restricted: setup ## Run the attacks on trust and policy as nobody (when root), and as on a kernel without openat2 and Landlock.
	[ "$$(id -u)" != 0 ] || $(BIN)/python -m tests.helpers.restricted nobody \
		$(BIN)/python -m pytest -q -p no:cacheprovider -k "not device" $(RESTRICTED) # only root makes a device
	$(BIN)/python -m tests.helpers.restricted older $(BIN)/python -m pytest -q -p no:cacheprovider $(RESTRICTED)

torture: setup ## Torture store and changes (mutants, a million calls under kills, a strike at every system call); long attacks.
	$(BIN)/python -m tests.torture.store --mutants
	$(BIN)/python -m tests.torture.store --engine sqlite --seconds 120 --client-kills 60 --server-kills 30
	$(BIN)/python -m tests.torture.store --seconds 7200 --operations 1000000 --client-kills 800 \
		--server-kills 200 --crashes 50 --period 0.5
	$(BIN)/python -m tests.torture.store --engine sqlite --seconds 60 --client-kills 30 --server-kills 15 --share 12000
	$(BIN)/python -m tests.torture.store --engine postgres --seconds 60 --client-kills 30 --server-kills 15 --share 12000
	$(BIN)/python -m tests.torture.workers --engine sqlite --seconds 60 --kills 40
	$(BIN)/python -m tests.torture.workers --engine postgres --seconds 60 --kills 40
	$(BIN)/python -m tests.torture.workers --engine sqlite --mutants
	$(BIN)/python -m tests.torture.workers --engine postgres --mutants
	$(BIN)/python -m tests.torture.races --engine sqlite --rounds 10000
	$(BIN)/python -m tests.torture.races --engine postgres --rounds 10000
	$(BIN)/python -m tests.torture.races --engine sqlite --mutants
	$(BIN)/python -m tests.torture.races --engine postgres --mutants
	$(BIN)/python -m tests.torture.changes --mutants
	$(BIN)/python -m tests.torture.changes --seed 2026
	PYTHONPATH=. $(BIN)/python benchmarks/fairness.py
	PYTHONPATH=. $(BIN)/python benchmarks/disk_shares.py
	$(BIN)/python -m pytest -q tests/attack --attack-seconds 300 --timeout 900
	$(MAKE) restricted

format: setup ## Rewrite the files in the one format.
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

docs: setup ## Write the generated reference pages anew, and build the documentation site in build/site.
	$(BIN)/python scripts/document.py
	$(BIN)/python scripts/build_site.py

lock: ## Resolve the newest packages and pin them.
	@$(SETUP) lock

clean: ## Remove everything that set-up and checks left.
	rm -rf .venv .venv-* .cache build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache .hypothesis tests/node/node_modules web/node_modules
	rm -rf src/holdfast/console/static web/src/api/schema.d.ts
	find src tests benchmarks scripts -name __pycache__ -type d -prune -exec rm -rf {} +
