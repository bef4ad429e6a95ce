# One word per intent. `make help` lists them.
PYTHON ?= python3
SECONDS ?= 60
VENV   ?= .venv
BIN    := $(VENV)/bin
# Tests wait too: with more workers than cores others go on meanwhile. Each takes some five seconds of
# the processor before its first test.
WORKERS ?= 4
SPARK_WORKERS ?= 5
# Who shares a worker: tests/harness/runs/workers.py
PYTEST := $(BIN)/pytest --dist loadscope
PIP    := $(BIN)/python -m pip install --disable-pip-version-check --progress-bar off

export PYSPARK_PYTHON := $(abspath $(BIN)/python)
export PYSPARK_DRIVER_PYTHON := $(abspath $(BIN)/python)
# Every worker of pytest and every process of Spark would compile all modules again.
unexport PYTHONDONTWRITEBYTECODE

# The time of all files of a wheel, so that two builds of a commit are one file, byte for byte.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 1577836800)

.PHONY: help install demo check fmt docs quick test test-all test-times mutants thorough matrix witnesses fuzz containers up down bench figures build jar release check-workflows constraints clean
.DEFAULT_GOAL := help

help: ## list these words
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed, this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@echo "Making $(VENV) ..."
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml
	@echo "Installing the product and what its tests need into $(VENV): one to three minutes ..."
	$(PIP) --editable '.[test]'
	@touch $@ $(VENV)/.demo-installed

# The demo needs no tools for tests; where they are installed already, so is what it needs.
$(VENV)/.demo-installed: $(BIN)/python pyproject.toml
	@echo "Installing the product and Spark into $(VENV): about a minute ..."
	$(PIP) --editable '.[spark,delta]'
	@touch $@

install: $(VENV)/.installed ## make .venv and install everything into it

demo: $(VENV)/.demo-installed ## mirror an order-entry workload of the embedded emulator into Delta tables
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

docs: $(VENV)/.installed ## make the tables and pictures of README and docs/ anew from the code
	cd tests && $(abspath $(BIN))/python -m manual.made_parts && $(abspath $(BIN))/python -m faults.fault_matrix
	@echo "Drawing the pictures; the demo runs for one of them, half a minute ..."
	cd tests && $(abspath $(BIN))/python -m manual.pictures demo

SITE := build/site/env
$(SITE)/.installed: .ci/site/requirements.txt
	$(PYTHON) -m venv $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --requirement $<
	@touch $@

.PHONY: site site-pictures site-requirements
site: $(SITE)/.installed ## the documentation site, into build/site/html; VERSION=1.2.3 adds a version to the branch `site`
	cd tests && $(abspath $(SITE))/bin/python -m manual.site $(VERSION)

site-pictures: site ## look at each page in Chromium at three widths, light and dark: fails on overflow and errors
	cd tests && $(abspath $(SITE))/bin/python -m manual.site.browser

site-requirements: ## versions and hashes of the site's tools, anew from .ci/site/requirements.in
	$(PYTHON) -m venv build/site/uv && build/site/uv/bin/python -m pip install --quiet --disable-pip-version-check uv
	build/site/uv/bin/uv pip compile --quiet --universal --upgrade --no-annotate --no-header --generate-hashes \
	  --python-version 3.11 --output-file .ci/site/requirements.txt .ci/site/requirements.in

quick: $(VENV)/.installed ## tests that neither start Spark nor are slow, with few examples: about a minute
	@echo "Tests without Spark, with a tenth of the examples, on $(WORKERS) workers ..."
	HYPOTHESIS_PROFILE=quick $(PYTEST) -q --numprocesses $(WORKERS) -m "not slow and not spark and not only_in_all"

test: $(VENV)/.installed ## the test suite: six minutes on two idle cores
	@cd tests && $(abspath $(BIN))/python -m harness.spark.class_archive
	@echo "The tests, on $(SPARK_WORKERS) workers: those with Spark come first ..."
	$(PYTEST) --numprocesses $(SPARK_WORKERS) -m "not only_in_all"

test-all: $(VENV)/.installed ## all tests, with more Sparks, seeds and examples: 45 minutes
	@cd tests && $(abspath $(BIN))/python -m harness.spark.class_archive
	HYPOTHESIS_PROFILE=all $(PYTEST) --numprocesses $(SPARK_WORKERS)

test-times: $(VENV)/.installed ## make test, and what each folder and test took; kept for the order of the next run
	@cd tests && $(abspath $(BIN))/python -m harness.spark.class_archive
	$(PYTEST) -q --numprocesses $(SPARK_WORKERS) -m "not only_in_all" --times

mutants: $(VENV)/.installed ## put known defects into a copy of the tree, and name the test that notices each: three minutes
	cd tests && $(abspath $(BIN))/python -m mutants --killers-only

thorough: $(VENV)/.installed ## all failpoints, more seeds, ten times the examples, a long fuzz: hours
	@echo "All tests with ten times the examples, other ones each time ..."
	HYPOTHESIS_PROFILE=thorough INFORMIX_CDC_TEST_PATIENCE=10 $(PYTEST) --numprocesses $(SPARK_WORKERS)
	$(MAKE) fuzz SECONDS=600

witnesses: $(VENV)/.installed ## let IBM's, Debezium's, Spark's and GBASE's clients judge the emulator: Java 17, Maven Central
	@echo "Fetching jars into .witnesses/ when they are missing, some 60 MB ..."
	$(BIN)/pytest tests/lab/witnesses --run-witnesses -q -rs

matrix: $(VENV)/.installed ## one stream on the oldest and newest PySpark and Python, and a Delta MERGE
	@echo "Six environments with a Spark each in .matrix/: some 5 GB, and minutes when they are made ..."
	cd tests && $(abspath $(BIN))/python -m lab.matrix

fuzz: $(VENV)/.installed ## feed noise to every door for SECONDS each, guided by coverage
	@echo "Installing atheris ..."
	$(PIP) --editable '.[fuzz]'
	cd tests && for door in $$($(abspath $(BIN))/python -m lab.fuzz); do $(abspath $(BIN))/python -m lab.fuzz $$door $(SECONDS) || exit 1; done

containers: $(VENV)/.installed ## build our images and run them against the emulator: a Docker engine, or root on Debian; half an hour
	cd tests && $(abspath $(BIN))/python -m lab.containers

up: ## start Informix and a shop that changes it, in Docker: docker/README.md
	docker compose -f docker/compose.yaml up --detach --wait informix
	docker compose -f docker/compose.yaml up --build --detach --wait

down: ## remove what runs in Docker, with its data
	docker compose -f docker/compose.yaml --profile '*' down --volumes

bench: $(VENV)/.installed ## measure: one table with each figure beside its peer; some twelve minutes on 2 idle cores
	$(BIN)/python -m pytest tests/lab/benchmarks --run-benchmarks -q -s -rs

figures: ## put the table of the last `make bench` into docs/evidence/performance.md
	cd tests && $(abspath $(BIN))/python -m lab.benchmarks.page

# Refused without a javac: nobody would see that a wheel has no jar, only that it reads slowly. Whoever
# wants such a wheel runs `pip wheel .`.
build: jar ## a wheel in dist/, with the reader in the JVM: needs a JDK
	$(BIN)/python -m build --wheel

jar: $(VENV)/.installed ## compile the reader in the JVM to where `informix-cdc jar` finds it
	@$(BIN)/informix-cdc jar --compile

# The tools of a release have an environment of their own: no test needs them. PySpark is among them because its
# jars are what the reader in the JVM is compiled against; it has no wheel and is built with the setuptools that
# was checked first, as in .ci/run.
RELEASE_TOOLS := build/release-tools
$(RELEASE_TOOLS)/.installed: .ci/release/requirements.txt
	@echo "Installing the tools of a release into $(RELEASE_TOOLS): about a minute ..."
	rm -rf $(RELEASE_TOOLS) && $(PYTHON) -m venv $(RELEASE_TOOLS)
	awk '/^[a-z]/ { wanted = /^setuptools==/ } wanted' $< > $(RELEASE_TOOLS)/setuptools.txt
	for list in $(RELEASE_TOOLS)/setuptools.txt $<; do \
	  $(RELEASE_TOOLS)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps \
	  --no-build-isolation --requirement $$list || exit 1; done
	@touch $@

release: $(RELEASE_TOOLS)/.installed ## build and check sdist and wheel of the last commit, upload nothing: a JDK, some ten minutes
	PYTHONPATH=.ci $(RELEASE_TOOLS)/bin/python -m release

check-workflows: $(VENV)/.installed ## check .github/workflows with actionlint, which needs Go, and their scripts with shellcheck
	PATH="$(abspath $(BIN)):$$PATH" go run github.com/rhysd/actionlint/cmd/actionlint@v1.7.12

constraints: ## what CI installs, anew: the newest versions that the project allows
	rm -rf build/constraints && $(PYTHON) -m venv build/constraints
	build/constraints/bin/python -m pip install --quiet --disable-pip-version-check --upgrade setuptools
	build/constraints/bin/python -m pip install --quiet --disable-pip-version-check --editable '.[test]' 'hatchling>=1.27'
	{ echo "# Made by \`make constraints\`; .ci/run installs these versions and no others."; \
	  build/constraints/bin/python -m pip freeze --all --exclude pip --exclude-editable; } > .ci/constraints.txt
	build/constraints/bin/python -m pip install --quiet --disable-pip-version-check uv
	{ echo "# Made by \`make constraints\`: the SHA-256 of every file that the index has of these versions."; \
	  build/constraints/bin/uv pip compile --quiet --universal --no-deps --no-annotate --no-header --generate-hashes \
	  .ci/constraints.txt; } > .ci/hashes.txt
	{ echo "# Made by \`make constraints\`: the tools of \`make release\`, with hashes."; \
	  build/constraints/bin/uv pip compile --quiet --universal --python-version 3.11 --no-annotate --no-header --generate-hashes \
	  --constraints .ci/constraints.txt .ci/release/requirements.in; } > .ci/release/requirements.txt
	rm -rf build/constraints

clean: ## remove what the other words made
	rm -rf $(VENV) .matrix build dist *.egg-info connector/informix_cdc/jvm/informix-cdc.jar
