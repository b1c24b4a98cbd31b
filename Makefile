# The commands a newcomer needs are `make demo` and `make test`; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
LAB ?= demo

.PHONY: help setup lock crds
help: ## Show what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(STAMP) ## Install everything Python needs into .venv

$(STAMP): requirements-dev.txt pyproject.toml
	@echo "» Python packages into $(VENV) (about a minute the first time)"
	@test -x $(VENV)/bin/python || $(PYTHON) -m venv $(VENV)
	@$(VENV)/bin/python -m pip install --quiet --require-hashes -r requirements-dev.txt
	@$(VENV)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

lock: ## Resolve dependencies again into the hash-pinned requirements files (needs uv)
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml -o requirements.txt
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml --group dev -o requirements-dev.txt

crds: $(STAMP) ## Write the CustomResourceDefinitions from the models in api/
	@$(VENV)/bin/python -m api crds
