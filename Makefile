# The two commands a newcomer needs are `make demo` and `make test`; `make help` lists the rest.
SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
PYTHON ?= python3
VENV := .venv
STAMP := $(VENV)/.installed
BIN := $(VENV)/bin
LAB ?= demo
# Most cluster tests wait more than they work, so a third process pays also on two cores.
WORKERS ?= 3
# How many chaos runs, and the first one's seed; minutes, nodes and sets of a soak.
RUNS ?= 10
SEED ?= 1
MINUTES ?= 30
NODES ?= 10000
SETS ?= 1000
# A file of tests/cluster that is called test_chart_… is among them without a line here.
CHART_TESTS := $(sort $(wildcard tests/cluster/test_chart_*.py)) tests/cluster/test_proving.py tests/cluster/test_companion.py
# Of what befalls gangs, what takes too long for every change.
GANG_TESTS := $(patsubst %,tests/cluster/test_%.py,backoff chaos feature_gates hot_swap node_loss oversubscribed plain_succession reasons release strangers user_reservations watching)
# Further arguments for pytest: make test-fast ARGS="-k lease -x"
ARGS ?=
# Hundreds of processes start in the tests; each would compile what it imports if it may not keep that.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: help setup lock crds schema vectors binaries lint style types test pytest test-fast test-long test-chart test-gangs test-node test-browser sbom rolls chaos soak demo demo-down story walk

help: ## Show what can be made
	@grep -hE '^[a-z%-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 16

setup: $(STAMP) ## Install everything Python needs into .venv

# Only a finished installation leaves the stamp, so an interrupted one is taken up again. A half-made
# environment has a python but no pip: it is made anew. Debian keeps what makes one in a package of its own.
$(STAMP): requirements-dev.txt pyproject.toml
	@echo "» Python packages into $(VENV) (about a minute the first time)"
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "Python 3.11 or newer is needed, $(PYTHON) is older: make PYTHON=/path/to/python3.11 $(MAKECMDGOALS)" >&2; exit 1; }
	@$(BIN)/python -m pip --version >/dev/null 2>&1 \
	  || $(PYTHON) -m venv --clear $(VENV) \
	  || { echo "No virtual environment could be made. On Debian: apt-get install python3-venv" >&2; exit 1; }
	@# Python compiles what is imported, when it is; to compile all of it now takes a third of the time.
	@$(BIN)/python -m pip install --quiet --no-compile --require-hashes -r requirements-dev.txt
	@$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

lock: ## Resolve dependencies again into the hash-pinned requirements files (needs uv)
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml -o requirements.txt
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml --extra traces --group dev -c requirements.txt -o requirements-dev.txt
	uv pip compile --quiet --generate-hashes --no-emit-index-url --no-header --python-version 3.11 pyproject.toml --extra traces -c requirements-dev.txt -o requirements-traces.txt

crds: $(STAMP) ## Write the CustomResourceDefinitions from the models in api/
	@$(BIN)/python -m api crds

schema: $(STAMP) ## Write the policy's JSON Schema from the models in policies/
	@$(BIN)/python -m policies schema

vectors: ## Ask Kubernetes' own code again what pods take of a node (needs Go)
	@cd tests/vectors/pods && go run . >../pod_requests.json.new && mv ../pod_requests.json.new ../pod_requests.json

binaries: $(STAMP) ## Find, download or build the control plane (about 12 minutes the first time)
	@$(BIN)/penstock lab binaries

lint: style types ## Run formatter, linter, type checker and import contracts

style: $(STAMP)
	@echo "» ruff" && $(BIN)/ruff format --check --quiet . && $(BIN)/ruff check --quiet .
	@echo "» import contracts" && $(BIN)/lint-imports
	@echo "» generated files" && $(BIN)/python -m api crds --check && $(BIN)/python -m policies schema --check

types: $(STAMP)
	@echo "» mypy" && $(BIN)/mypy

# In a fresh clone mypy takes minutes on one core, so tests run meanwhile.
test: $(STAMP) style binaries ## Run everything that must pass: linters, unit tests and cluster tests
	@$(MAKE) --no-print-directory --jobs=2 types pytest

pytest: $(STAMP)
	@rm -f .coverage .coverage.*
	@$(BIN)/python -m pytest --numprocesses=$(WORKERS) --dist=loadfile --no-loadscope-reorder --cov --cov-report=term --cov-fail-under=80 -m "not long and not node and not image and not browser and not walk" $(ARGS)

test-fast: $(STAMP) ## Run the tests that need no control plane
	@$(BIN)/python -m pytest -m "not cluster and not long and not node and not image and not browser and not walk" $(ARGS)

test-long: $(STAMP) binaries ## Run the tests that take too long for every change
	@$(BIN)/python -m pytest -m long --timeout=3600 $(ARGS)
	@HYPOTHESIS_PROFILE=long $(BIN)/python -m pytest -m "not cluster and not long and not node and not image and not browser and not walk" --timeout=3600 $(ARGS)

# What the chart does in a lab: two processes, each with labs of its own, since they wait more than they work.
test-chart: $(STAMP) binaries ## Install, upgrade, roll back and remove the chart in labs (about 5 minutes)
	@$(BIN)/python -m pytest $(CHART_TESTS) -m "cluster and long" --numprocesses=2 --dist=loadfile --no-loadscope-reorder --timeout=900 --durations=10 $(ARGS)

# Like test-chart.
test-gangs: $(STAMP) binaries ## Lose nodes and leaders, steal room, drain, release and switch off under gangs in labs (about 7 minutes)
	@$(BIN)/python -m pytest $(GANG_TESTS) -m "cluster and long" --numprocesses=2 --dist=loadfile --no-loadscope-reorder --timeout=900 --durations=10 $(ARGS)

# Nothing is built, and pytest says why all is skipped, where no real node can be had.
test-node: $(STAMP) ## Run the tests that need a real kubelet and real containers (Linux, root)
	@$(BIN)/python -m penstock.lab.realnode.wanting || exit 0; $(BIN)/penstock lab binaries --real-node
	@$(BIN)/python -m pytest -m node --timeout=600 $(ARGS)

test-image: $(STAMP) ## Build the Containerfile twice with buildah, on a base made here (about 2 minutes, root)
	@$(BIN)/python -m pytest -m image --timeout=900 $(ARGS)

sbom: $(STAMP) ## Write what is in the image, as CycloneDX, to build/penstock.cdx.json
	@mkdir -p build
	@$(BIN)/python -m penstock.lab.images.bill >build/penstock.cdx.json.new
	@mv build/penstock.cdx.json.new build/penstock.cdx.json

test-browser: $(STAMP) ## Run the tests that need a browser, Chromium; pictures are in build/browser
	@command -v "$${PENSTOCK_CHROMIUM:-chromium}" >/dev/null || { echo "No Chromium. On Debian: apt-get install chromium" >&2; exit 1; }
	@$(BIN)/penstock lab binaries
	@$(BIN)/python -m pytest -m browser --timeout=600 $(ARGS)

rolls: $(STAMP) binaries ## Restart webhooks and rotate certificates under load (about 15 minutes)
	@$(BIN)/python -m tests.rolls $(ARGS)

chaos: $(STAMP) binaries ## Let everything fail while sets are at work, and judge the audit log (about 20 s a run)
	@$(BIN)/python -m tests.chaos --runs $(RUNS) --seed $(SEED) $(ARGS)

soak: $(STAMP) binaries ## Run a big cluster under churn and watch memory and latencies (about 45 minutes)
	@$(BIN)/python -m tests.chaos.soak --minutes $(MINUTES) --nodes $(NODES) --sets $(SETS) $(ARGS)

demo: $(STAMP) ## Start a lab with Penstock, run an example in it and show it as a tree
	@$(BIN)/penstock demo --name $(LAB)

demo-down: $(STAMP) ## Stop the demo's lab and everything in it
	@$(BIN)/penstock lab down --name $(LAB)

story: $(STAMP) ## Type a newcomer's first half hour, with every output checked (about a minute; make test-browser holds the docs against it)
	@$(BIN)/python -m tests.story $(ARGS)

walk: $(STAMP) binaries ## Type the commands of the documents in one lab and compare what is shown (about a minute)
	@$(BIN)/python -m pytest -m walk --timeout=900 $(ARGS)

bench-%: $(STAMP) ## Run a benchmark, e.g. make bench-engine; writes build/bench/NAME.json
	@$(BIN)/python -m tests.bench.$* $(ARGS)
