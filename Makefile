# Two commands need nothing but Python 3.11+, pip and make: make demo, make test.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
TWO := --numprocesses 2 --dist loadscope --no-loadscope-reorder
# The tests' ledgers and servers flush thousands of times: their files lie in memory where it has room for them.
# Servers may run as another user, so the folder is open like /tmp.
IN_MEMORY = $(shell [ "$$(df --output=avail /dev/shm 2>&1 | tail -n 1)" -gt 4000000 ] 2>/dev/null && [ -w /dev/shm ] && echo -p /dev/shm XXXXXX)
PYTEST_IN_MEMORY = @folder=$$(mktemp -d $(IN_MEMORY)) && chmod 1777 "$$folder" && trap 'rm -rf "$$folder"' EXIT && TMPDIR="$$folder" $(BIN)/python -m pytest
OF_ROOM = $(and $(wildcard tests/$(ROOM)),$(wildcard tests/$(ROOM) src/sfumato/$(ROOM) docs/$(ROOM).md $(CONTRACTS:%=tests/contracts/test_%.py)))
CONTRACTS = $(shell grep -hor --include='*.py' 'tests\.contracts\.[a-z_]*' tests/$(ROOM) | sort -u | cut -d . -f 3)
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check
SOURCES := $(shell find src -name '*.py')
NOISE_PEERS := diffprivlib opendp python-dp
ATTACKED_PEERS = opendp diffprivlib pipelinedp python-dp smartnoise tumult opacus
ACCOUNTING_PEERS := autodp dp-accounting opacus opendp prv-accountant
MINING_PEERS := mlxtend opendp
SYNOPSIS_PEERS := opendp diffprivlib dpcrpy
LEARNING_PEERS := opacus jax-privacy diffprivlib
TELEMETRY_PEERS := pure-ldp multi-freq-ldpy
FEDERATED_PEERS := flower
SYNTHETIC_PEERS := dpmm opendp-mbi scikit-learn smartnoise-synth
ENGINE_PEERS := opendp-polars smartnoise pipelinedp tumult
# The tests start hundreds of processes: what those import is compiled once.
export PYTHONDONTWRITEBYTECODE =

.PHONY: docs torch installed demo demo-census demo-stream demo-synthetic demo-telemetry demo-learning demo-graph demo-hospitals demo-federation test durations coverage prove chaos lint format proofs corpus clean lock bench bench-noise bench-accounting bench-query bench-engines bench-largest bench-ledger bench-census bench-graph bench-synopsis bench-synthetic bench-telemetry bench-telemetry-stored bench-learning bench-federated figures demo-mining bench-mining bench-mining-scale demo-service bench-service bench-service-lomas soak-service bench-audit demo-audit bench-attacks

demo: $(VENV)/.run
	$(BIN)/sfumato demo --report demo-report.html

# Census tables down two geographies: demo-census.html.
demo-census: $(VENV)/.run
	$(BIN)/sfumato demo census

# Rides day by day under one charge; ten years of births denoised.
demo-stream: $(VENV)/.run
	$(BIN)/sfumato demo stream

# Synthetic rows of the census extract, and a page that says how good they are.
demo-synthetic: $(VENV)/.run
	$(BIN)/sfumato demo synthetic

# A million devices: collector, shuffler, clients in Node and Java, and a page: demo-telemetry.html.
demo-telemetry: $(VENV)/.dev
	$(BIN)/sfumato demo telemetry

# What accuracy costs, a training that is killed and resumed, and, after `make torch`, a network.
demo-learning: $(VENV)/.run
	$(BIN)/sfumato demo learning

# Made-up notes in two languages, pictures, baskets and paths, and a model of notes, from one account: demo-mining.html.
demo-mining: $(VENV)/.run
	$(BIN)/sfumato demo mining

# Three hospitals as processes, one study, no pooled data; one is killed and comes back: demo-federation.html.
demo-federation: $(VENV)/.dev
	$(BIN)/sfumato demo federation

# A census area from its tables, an audit, the hospitals' documents: demo-audit.html, demo-audit/.
demo-audit: $(VENV)/.run
	$(BIN)/sfumato demo audit

# A service for two analysts: a race, a kill, a restart, the report: demo-service.html.
demo-service: $(VENV)/.dev
	$(BIN)/sfumato demo service

# A graph under two units, the attack on its hub, and a synthetic graph: demo-graph.html.
demo-graph: $(VENV)/.run
	$(BIN)/sfumato demo graph

# Three hospitals, made up: one patient over three tables.
demo-hospitals: $(VENV)/.run
	$(BIN)/sfumato demo hospitals

# PyTorch, for networks: these versions alone, beside the pins with hashes. Without dependencies:
# they would bring another mpmath, and the libraries of graphics cards.
torch: $(VENV)/.torch

$(VENV)/.torch: $(VENV)/.dev
	$(PIP) --no-deps torch==2.13.0 filelock==4.2.12 fsspec==2026.9.0 jinja2==3.1.6 markupsafe==3.0.4 \
	  networkx==3.6.1 sympy==1.14.0
	@touch $@

# On two cores, whole groups, those that take longest first (tests/contracts/order.py).
# ROOM=sql: one room, its docstrings and page, and the tests of the contracts that it uses.
test: $(VENV)/.dev
ifdef ARGS
	$(BIN)/python -m pytest $(ARGS)
else
	$(PYTEST_IN_MEMORY) $(TWO) $(and $(ROOM),$(or $(OF_ROOM),$(error tests/ has no room $(ROOM))))
endif

# All tests, and the CPU seconds of each: tests/durations.json.
durations: $(VENV)/.dev
	$(PYTEST_IN_MEMORY) -p tests.contracts.durations $(TWO)

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

# What a user has: the wheel and requirements/run.txt alone, tried from an empty folder; two minutes.
installed: .installed/.done
	rm -rf .installed/wheel
	.installed/bin/python -m hatchling build -t wheel -d .installed/wheel
	.installed/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall .installed/wheel/*.whl
	.installed/bin/python tools/installed.py .installed/bin

.installed/.done: requirements/run.txt
	$(PYTHON) -m venv --clear .installed
	.installed/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/run.txt
	@touch $@

format: $(VENV)/.dev
	$(BIN)/ruff check --fix-only --quiet .
	$(BIN)/ruff format .

# After reading a proof note against its changed function: record the new hashes.
proofs: $(VENV)/.dev
	$(BIN)/python tools/proofs.py update

# What each statement of tests/query/corpus becomes once it is bounded.
corpus: $(VENV)/.dev
	$(BIN)/python -m tools.corpus update

# The site of the documentation, in site/: open site/index.html, no server is needed.
docs: $(VENV)/.docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# Pins for every platform, with hashes and without addresses (needs uv).
lock:
	cd requirements && for set in run dev docs; do \
	  uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-header -q $$set.in -o $$set.txt; \
	done

# Every benchmark. They report; a missed bar is no error.
bench: bench-noise bench-accounting bench-query bench-engines bench-ledger bench-telemetry

# Ours and the peers in one run. A peer that does not install here is named and left out.
bench-noise: $(VENV)/.run $(NOISE_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.noise $(ONLY)

bench-telemetry: $(VENV)/.run $(TELEMETRY_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.telemetry $(ONLY)
	$(BIN)/python -m benchmarks.telemetry_estimates $(ONLY)
	$(BIN)/python -m benchmarks.telemetry_accuracy

# 100,000,000 stored reports: minutes to make them, and 3.3 gigabytes. Not part of `bench`.
bench-telemetry-stored: $(VENV)/.run
	$(BIN)/python -m benchmarks.telemetry_stored

# Steps of a study, its accuracy beside a curator's, a site's alone and Flower's, and whole runs of five processes,
# ten minutes.
bench-federated: $(VENV)/.dev $(FEDERATED_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.federated

# Words, pairs and sets of items that are found at epsilon 1, and their CPU seconds, beside OpenDP's
# threshold and plain mlxtend; ten minutes.
bench-mining: $(VENV)/.dev $(MINING_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.mining

# 100,000,000 words and 1,000,000 pictures: minutes, and 2 gigabytes of disk. Not part of `bench`.
bench-mining-scale: $(VENV)/.dev
	$(BIN)/python -m benchmarks.mining 1 scales

# Steps of networks beside ordinary ones and those of Opacus, three minutes; then the accuracy of models
# beside those of diffprivlib, two minutes; then digits of MNIST, ten fits of two minutes, where its file is there.
bench-learning: $(VENV)/.run $(VENV)/.torch $(LEARNING_PEERS:%=.bench/%/.done)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.learning
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.learning_accuracy $(ONLY)
	$(if $(ONLY),,OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.learning_pictures)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.learning_scale

# What audits notice and take: forms, canaries, noise, tables, a training; two minutes.
bench-audit: $(VENV)/.run
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.audit

# Published attacks on sfumato and on others: docs/attacks.md; ten minutes.
bench-attacks: $(VENV)/.run $(ATTACKED_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.attacks

bench-accounting: $(VENV)/.run $(ACCOUNTING_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.accounting $(ONLY)

bench-query: $(VENV)/.run .bench/opendp-polars/.done
	$(BIN)/python -m benchmarks.query $(ONLY)
	$(BIN)/python -m benchmarks.askers $(ONLY)
	$(BIN)/python -m benchmarks.clips
	$(BIN)/python -m benchmarks.numbers_that_hold
	$(BIN)/python -m benchmarks.outer
	$(BIN)/python -m benchmarks.medians $(ONLY)

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

# The service over HTTP beside the session in process; a minute.
bench-service: $(VENV)/.dev
	$(BIN)/python -m benchmarks.service

# A count over HTTP beside lomas-server, which needs six gigabytes (it imports torch); a minute.
bench-service-lomas: $(VENV)/.dev .bench/lomas/.done
	$(BIN)/python -m benchmarks.service_lomas

# Twenty analysts for ten minutes: each charge is paid once, and memory stays. SECONDS=120 ANALYSTS=20
SECONDS ?= 600
ANALYSTS ?= 20
soak-service: $(VENV)/.dev
	$(BIN)/python -m benchmarks.service_soak --seconds $(SECONDS) --analysts $(ANALYSTS)

# Ranges, tables of many columns, streams; three minutes and two gigabytes.
# Errors of graphs on two published ones, and a million edges; two minutes.
bench-graph: $(VENV)/.run
	$(BIN)/python -m benchmarks.graph

bench-synopsis: $(VENV)/.run $(SYNOPSIS_PEERS:%=.bench/%/.done)
	$(BIN)/python -m benchmarks.synopsis

# Adult and the ACS extract, five runs each, in quarter of an hour; the classifier has an environment of
# its own. The fits of other libraries take two hours once, and are kept in .bench/fits.
bench-synthetic: $(VENV)/.run $(SYNTHETIC_PEERS:%=.bench/%/.done)
	OMP_NUM_THREADS=1 $(BIN)/python -m benchmarks.synthetic

# Census tables: the errors of each level, and 100,000 blocks; a minute and two gigabytes.
bench-census: $(VENV)/.run
	$(BIN)/python -m benchmarks.census

# The pictures and tables of docs/, from benchmarks/results.
figures: $(VENV)/.run
	$(BIN)/python -m benchmarks.figures
	$(BIN)/python -m benchmarks.figures_accounting
	$(BIN)/python -m benchmarks.figures_engines
	$(BIN)/python -m benchmarks.figures_synopsis
	$(BIN)/python -m benchmarks.figures_telemetry
	$(BIN)/python -m benchmarks.table_accounting
	$(BIN)/python -m benchmarks.table_bars
	$(BIN)/python -m benchmarks.table_scale

clean:
	rm -rf $(VENV) .bench .installed .mypy_cache .ruff_cache .pytest_cache .hypothesis demo-report.html demo-census.html demo-telemetry.html demo-learning.html demo-federation.html demo-service.html demo-audit.html demo-audit site

$(VENV)/.run: requirements/run.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("sfumato needs Python 3.11 or newer" if sys.version_info < (3, 11) else 0)'
	$(PYTHON) -m venv $(VENV)
	$(PIP) --require-hashes -r requirements/run.txt
	$(PIP) --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: $(VENV)/.run requirements/dev.txt
	$(PIP) --require-hashes -r requirements/dev.txt
	@touch $@

$(VENV)/.docs: $(VENV)/.run requirements/docs.txt
	$(PIP) --require-hashes -r requirements/docs.txt
	@touch $@

# Tried again each time until it installs; only the pins, as wheels (autodp has none and is plain Python).
.bench/%/.done: benchmarks/peers/%.txt
	@$(PYTHON) -m venv --clear $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --only-binary :all: --no-deps -r $< \
	  && touch $@ || echo "skipped: $* does not install here"
