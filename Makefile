# Two commands need nothing but Python 3.11+, pip and make: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := $(shell find src -name '*.py')

.PHONY: demo test lint format proofs clean lock

demo: $(VENV)/.run
	$(BIN)/sfumato demo --report demo-report.html

test: $(VENV)/.dev
	$(BIN)/python -m coverage run -m pytest $(ARGS)
	$(BIN)/python -m coverage report

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache
	$(BIN)/python tools/proofs.py check

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

# After reading a proof note against its changed function: record the new hashes.
proofs: $(VENV)/.dev
	$(BIN)/python tools/proofs.py update

# Pins for every platform, with hashes and without addresses (needs uv).
lock:
	cd requirements && for set in run dev; do \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q $$set.in -o $$set.txt; \
	done

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-report.html

$(VENV)/.run: requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("sfumato needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@
