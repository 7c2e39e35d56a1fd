# Two commands need nothing but Python 3.11+, pip and make: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TWO := --numprocesses 2 --dist loadgroup --no-loadscope-reorder
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := $(shell find src -name '*.py')
NOISE_PEERS := diffprivlib opendp python-dp
ACCOUNTING_PEERS := autodp dp-accounting opacus opendp prv-accountant
ENGINE_PEERS := opendp-polars smartnoise pipelinedp tumult
# The tests start hundreds of processes: what those import is compiled once.
export PYTHONDONTWRITEBYTECODE =

.PHONY: demo demo-hospitals test durations coverage prove chaos lint format proofs corpus clean lock bench bench-noise bench-accounting bench-query bench-engines bench-largest bench-ledger figures

demo: $(VENV)/.run
	$(BIN)/sfumato demo --report demo-report.html

# Three hospitals, made up: one patient over three tables.
demo-hospitals: $(VENV)/.run
	$(BIN)/sfumato demo-hospitals

# On two cores, the groups that take longest first (tests/contracts/order.py).
test: $(VENV)/.dev
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(BIN)/python -m pytest $(TWO)
endif

# All tests, and the CPU seconds of each: tests/durations.json.
durations: $(VENV)/.dev
	$(BIN)/python -m pytest -p tests.contracts.durations $(TWO)

# The same on one core, and which lines it did not reach.
coverage: $(VENV)/.dev
	$(BIN)/python -m coverage run -m pytest $(ARGS)
	$(BIN)/python -m coverage report

# Minutes, not seconds: at least 1e8 draws of each law, thousands of tables, what the time of a draw tells.
# Without ARGS also the tests marked long, and the property tests with 500 examples instead of 25.
prove: $(VENV)/.dev
	$(BIN)/python -m pytest prove $(ARGS)
ifndef ARGS
	$(BIN)/python -m pytest tests -m "hypothesis or long" --hypothesis-profile long $(TWO)
endif

# Minutes too: a ledger whose processes are killed, whose server is crashed and whose callers race.
chaos: $(VENV)/.dev
	$(BIN)/python -m pytest chaos $(ARGS)

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

# What each statement of tests/query/corpus becomes once it is bounded.
corpus: $(VENV)/.dev
	$(BIN)/python -m tools.corpus update

# Pins for every platform, with hashes and without addresses (needs uv).
lock:
	cd requirements && for set in run dev; do \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q $$set.in -o $$set.txt; \
	done

# Every benchmark. They report; a missed bar is no error.
bench: bench-noise bench-accounting bench-query bench-engines bench-ledger

# Ours and the peers in one run. A peer that does not install here is named and left out.
bench-noise: $(VENV)/.run $(NOISE_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.noise $(ONLY)

bench-accounting: $(VENV)/.run $(ACCOUNTING_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.accounting $(ONLY)

bench-query: $(VENV)/.run
	$(BIN)/python -m benchmarks.query $(ONLY)
	$(BIN)/python -m benchmarks.askers $(ONLY)
	$(BIN)/python -m benchmarks.clips

# 1M and 10M rows, and 1M for the peers, which take long.
bench-engines: $(VENV)/.run $(ENGINE_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.engines $(ONLY)

# 100M rows: minutes to make and prepare them, and two gigabytes. Not part of `bench`.
bench-largest: $(VENV)/.run
	$(BIN)/python -m benchmarks.largest $(ONLY)

# Naive ledgers beside ours, in a file and on a server; the first run makes a ledger of 10^6 charges, which
# takes minutes. ONLY=small: everything in a minute, with fewer charges.
bench-ledger: $(VENV)/.run
	$(BIN)/python -m benchmarks.ledger $(ONLY)

# The pictures and tables of docs/, from benchmarks/results.
figures: $(VENV)/.run
	$(BIN)/python -m benchmarks.figures
	$(BIN)/python -m benchmarks.figures_accounting
	$(BIN)/python -m benchmarks.figures_engines
	$(BIN)/python -m benchmarks.table_accounting
	$(BIN)/python -m benchmarks.table_bars
	$(BIN)/python -m benchmarks.table_scale

clean:
	rm -rf $(VENV) .bench .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-report.html

$(VENV)/.run: requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("sfumato needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

# Tried again each time until it installs; only the pins, as wheels (autodp has none and is plain Python).
.bench/%/.done: benchmarks/peers/%.txt
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps -r $< \
	  && touch $@ || echo "skipped: $* does not install here"
