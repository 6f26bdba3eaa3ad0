# Corral: everything a person or a CI runs. `make` alone lists the targets.

SHELL := /bin/bash
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
LOCKS := requirements/uv.txt requirements/server.txt requirements/dev.txt
# Set them to pass something on: make test PYTEST='-k store', make demo DEMO='--keep', make bench NAME=server
PYTEST ?=
NOISE ?=
# ROOM is the former name of PACKAGE.
PACKAGE ?= $(ROOM)
SUITE ?=
DEMO ?=
UP ?=
NAME ?=

# Tests and the demo start hundreds of Python processes: compiling each module once is worth its file.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(VENV)/.locked portal  ## Make .venv from the locked requirements and build the portal

# The environment is made again only when a lock, the project's metadata or the place of the tree changes.
STAMP = { cat $(LOCKS) pyproject.toml; pwd; } | sha256sum
.PHONY: $(VENV)/.locked
$(VENV)/.locked:
	@stamp=$$($(STAMP)); \
	if [ "$$(cat $@ 2>/dev/null)" != "$$stamp" ]; then \
	  set -e; \
	  $(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Corral needs Python 3.11 or later; name one: make setup PYTHON=python3.11")'; \
	  echo "making $(VENV) from requirements/"; \
	  $(BIN)/python -c '' 2>/dev/null || $(PYTHON) -m venv --clear $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt; \
	  VIRTUAL_ENV=$(VENV) $(UV) pip sync --quiet --compile-bytecode --require-hashes requirements/uv.txt requirements/dev.txt; \
	  VIRTUAL_ENV=$(VENV) $(UV) pip install --quiet --no-deps --no-build-isolation --editable .; \
	  echo "$$stamp" > $@; \
	fi

.PHONY: portal
portal: $(VENV)/.locked  ## Build the portal into corral/portal/static when its sources changed
	@$(BIN)/python hatch_build.py

.PHONY: demo
demo: setup  ## Start Corral, train a model on two workers, print how it went, stop
	@$(BIN)/python examples/demo.py $(DEMO)

.PHONY: up
up: setup  ## Start the demo's platform and leave it running (UP='--port 9000' passes options on)
	@$(BIN)/corral up --detach --cluster examples/cluster.yaml $(UP)

.PHONY: down
down: setup  ## Stop what `make up` started; jobs run on
	@$(BIN)/corral down

# What a change is checked with every few minutes; CONTRIBUTING says what comes after it.
CHECKED := kernel spec model scheduler launcher frameworks service store control runtime
.PHONY: check
check: $(VENV)/.locked  ## Lint, types and the quick tests in under two minutes; PACKAGE=scheduler: one package in seconds
	@$(BIN)/python -m tests.suite.known
	@$(BIN)/python -m tests.suite --forked --memory $(if $(PACKAGE),,--beside lint) $(SUITE) -- --hypothesis-profile=small \
	  -q -p no:schemathesis -m 'not postgres and not frameworks and not large$(if $(PACKAGE),, and not processes)' $(PYTEST) $(addprefix tests/,$(or $(PACKAGE),$(CHECKED)))

.PHONY: test
test: setup testbeds  ## Run every check and every test (NOISE=1: while another program keeps the machine busy)
	@$(BIN)/python -m tests.suite --beside lint --beside portal-test $(if $(NOISE),--noise) $(SUITE) -- $(PYTEST)

.PHONY: testbeds
testbeds: $(VENV)/.locked
	@tests/testbeds/apt.sh
	@$(BIN)/python -m tests.testbeds.kubernetes
	@$(BIN)/python -m tests.testbeds.hadoop
	@$(BIN)/python -m tests.testbeds.oidc
	@$(BIN)/python -m tests.testbeds.vscode
	@$(BIN)/python -m tests.testbeds.prometheus
	@$(BIN)/python -m tests.testbeds.hosts
	@$(BIN)/python -m tests.frameworks.environments

# mypy compares sources by their hashes: a new clone begins with what the last one found out.
TYPES = $(or $(CORRAL_CACHE),$(HOME)/.cache/corral)/types.tar
.PHONY: lint
lint: $(VENV)/.locked  ## Check style, types and who imports whom
	@$(BIN)/ruff check --quiet .
	@$(BIN)/lint-imports | awk '/^Broken contracts/ { broken = 1 } /^Contracts: / || broken'; exit $${PIPESTATUS[0]}
	@[ -d .mypy_cache ] || { new=1; mkdir .mypy_cache; ! [ -e "$(TYPES)" ] || tar -C .mypy_cache -xf "$(TYPES)"; }; \
	$(BIN)/mypy || exit; \
	[ -z "$$new" ] || { mkdir -p "$(dir $(TYPES))" && tar -C .mypy_cache -cf "$(TYPES).$$$$" . && \
		mv "$(TYPES).$$$$" "$(TYPES)"; } || echo "the next clone begins its type check anew"

.PHONY: portal-test
portal-test: portal
	@cd web && { [ -d node_modules ] || npm ci --no-audit --no-fund --loglevel=error; } && npm run --silent check && npm test --silent

.PHONY: bench
bench: setup  ## List the benchmarks, or run one: make bench NAME=server
	@$(BIN)/python -m bench $(NAME)

.PHONY: wheel
wheel: setup  ## Build the wheel into dist/, for deploy/Dockerfile
	@rm -f dist/corral-*.whl && $(BIN)/python -m build --wheel --no-isolation --outdir dist . >/dev/null && ls dist/corral-*.whl

.PHONY: docs
docs: $(VENV)/.locked  ## Write the generated parts of docs/ and the types of the API anew
	@$(BIN)/python docs/generate.py
	@cd web && { [ -d node_modules ] || npm ci --no-audit --no-fund --loglevel=error; } && npm run --silent types

.PHONY: lock
COMPILE = $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" $(LOCKFLAGS)
lock:  ## Solve the requirements anew (LOCKFLAGS=--upgrade takes newer ones)
	@[ -x $(UV) ] || { $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet uv; }
	@printf 'uv>=0.6\n' | $(COMPILE) -o requirements/uv.txt -
	@$(COMPILE) pyproject.toml -o requirements/server.txt
	@$(COMPILE) -c requirements/server.txt pyproject.toml --all-extras --group dev -o requirements/dev.txt
	@$(COMPILE) -c requirements/dev.txt pyproject.toml --all-extras -o requirements/image.txt
	@cd web && node lock.mjs
	@for name in pytorch tensorflow jax mpi notebook horovod; do $(COMPILE) --overrides requirements/frameworks/overrides.in \
	  examples/$$name/requirements.txt -o requirements/frameworks/$$name.txt || exit 1; done
	@printf 'tensorboard>=2.20\nsetuptools<81\n' | $(COMPILE) -o requirements/frameworks/tensorboard.txt -
	@printf 'horovod==0.28.1\n' | $(COMPILE) --no-deps -o requirements/frameworks/horovod-source.txt -

.PHONY: clean
clean:  ## Remove what setup, builds and tests made in this tree
	@rm -rf $(VENV) build dist corral/portal/static web/node_modules web/dist examples/*/.venv bench/results \
	  .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache .schemathesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
