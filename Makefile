# `make run` and `make test` are the two commands; both keep their environment in .venv/.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready

.PHONY: run test check lock clean
.DEFAULT_GOAL := run

## run: install, then run the whole pipeline on the sample site
run: $(READY)
	$(BIN)/hchem refresh

## test: install what the tests need, then run them
test: $(VENV)/.ready-dev
	$(BIN)/python -m pytest $(PYTEST_ARGS)

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

clean:
	rm -rf $(VENV) build dist *.egg-info
