# One word per intent. `make help` lists them.
PYTHON ?= python3
SECONDS ?= 60
VENV   ?= .venv
BIN    := $(VENV)/bin

export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export PYSPARK_DRIVER_PYTHON := $(abspath $(BIN)/python)

.PHONY: help install demo check fmt docs test fuzz up down bench build clean
.DEFAULT_GOAL := help

help: ## list these words
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 10

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[test]'
	@touch $@

install: $(VENV)/.installed ## make .venv and install everything into it

demo: $(VENV)/.installed ## stream an order-entry workload from the embedded emulator through Spark
	@$(BIN)/informix-cdc demo

check: $(VENV)/.installed ## format, lint, types, architecture
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=connector:checkpoints:capture_client $(BIN)/lint-imports --no-cache
	$(BIN)/pytest -q tests/test_architecture.py

fmt: $(VENV)/.installed ## put the code into its format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(VENV)/.installed ## make the tables of README and docs/ anew from the code
	cd tests && $(abspath $(BIN))/python -m manual.made_parts && $(abspath $(BIN))/python -m faults.fault_matrix

test: $(VENV)/.installed ## the whole test suite
	$(BIN)/pytest --numprocesses 2 --dist loadfile

fuzz: $(VENV)/.installed ## feed noise to every door for SECONDS each, guided by coverage
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[fuzz]'
	cd tests && for door in $$($(abspath $(BIN))/python -m fuzz); do $(abspath $(BIN))/python -m fuzz $$door $(SECONDS) || exit 1; done

up: ## start Informix and a shop that changes it, in Docker: docker/README.md
	docker compose -f docker/compose.yaml up --build --detach --wait

down: ## remove what runs in Docker, with its data
	docker compose -f docker/compose.yaml --profile '*' down --volumes

bench: $(VENV)/.installed ## measure; prints the table that stands in docs/evidence/performance.md
	$(BIN)/python -m pytest tests/benchmarks --run-benchmarks -q -s

build: $(VENV)/.installed ## a wheel in dist/
	$(BIN)/python -m build --wheel

clean: ## remove what the other words made
	rm -rf $(VENV) build dist *.egg-info
