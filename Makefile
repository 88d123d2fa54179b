# Commands for users: 'make demo', 'make test' and 'make docs'. Each sets up everything that it needs in .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
WHEEL := $(VENV)/.wheel
SOURCES := $(shell find fpgaprune hw examples -type f -not -name '*.pyc')
# Tests run from an empty folder, so that they import the installed wheel and not this checkout.
OUTSIDE := $(CURDIR)/build/outside
# Test files run in this many processes; TensorFlow loads once in each.
WORKERS ?= 2
# In the order of their names: files of few tests take longest, and last of all they would leave a process idle.
PARALLEL = -n $(WORKERS) --dist loadfile --no-loadscope-reorder
PYTEST = cd $(OUTSIDE) && FPGAPRUNE_FROM_WHEEL=1 $(CURDIR)/$(BIN)/python -m pytest -c $(CURDIR)/pyproject.toml --rootdir $(CURDIR) -p no:cacheprovider

# Python keeps the bytecode of the tests: compiling it anew takes each process as long as collecting them.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo docs test test-fast test-all test-lock mutants format lint bench bench-estimate lock clean

demo: $(WHEEL)
	@command -v g++ > /dev/null || echo "g++ was not found, so the demo skips the C simulation; install a C++ compiler if you want it"
	$(BIN)/fpgaprune run

# The pages of docs/ and the README as a site: open build/site/index.html. What the code says is written anew first.
docs: $(READY)
	PYTHONPATH=$(CURDIR) $(BIN)/python docs/generate/write.py
	NO_MKDOCS_2_WARNING=1 PYTHONPATH=$(CURDIR) $(BIN)/python -P -m mkdocs build

test: lint $(WHEEL)
	@mkdir -p $(OUTSIDE)
	$(PYTEST) $(CURDIR)/tests $(PARALLEL) -m "not slow"

test-fast: $(WHEEL)
	@mkdir -p $(OUTSIDE)
	$(PYTEST) $(CURDIR)/tests $(PARALLEL) -m "not slow and not flow"

test-all: lint $(WHEEL)
	@mkdir -p $(OUTSIDE)
	$(PYTEST) $(CURDIR)/tests $(PARALLEL)

# The whole contract of the lock, slow cases included, as two processes.
test-lock: $(WHEEL)
	@mkdir -p $(OUTSIDE)
	@($(PYTEST) $(CURDIR)/tests/contract/test_lock_optimizers.py) & optimizers=$$!; \
	($(PYTEST) $(CURDIR)/tests/contract/test_lock.py $(CURDIR)/tests/contract/test_lock_fit.py $(CURDIR)/tests/teeth/test_lock_mutants.py); \
	rest=$$?; wait $$optimizers && exit $$rest

# How many random mutants of each package its tests notice: make mutants PACKAGES="certify estimate" NUMBER=40 SEED=0
mutants: $(WHEEL)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python --group mutants
	$(BIN)/python -m pytest -q -p no:cacheprovider tests/unit/test_mutants.py
	nice -n 10 $(BIN)/python tests/mutants/run_mutants.py --number $(or $(NUMBER),40) --seed $(or $(SEED),0) \
	  $(or $(PACKAGES),certify) $(MUTANTS)

# Formats all Python files, and repairs what ruff can repair.
format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/lint-imports
	$(BIN)/mypy

bench: $(WHEEL)
	@mkdir -p $(OUTSIDE)
	cd $(OUTSIDE) && for script in $(CURDIR)/tests/benchmarks/bench_*.py; do $(CURDIR)/$(BIN)/python $$script || exit 1; done

# Errors of the estimates with one repository left out at a time: make bench-estimate ROWS=calibration.jsonl
bench-estimate: $(WHEEL)
	$(BIN)/python tests/benchmarks/bench_estimate.py $(or $(ROWS),../shared/ground_truth/calibration.jsonl)

# Regenerates requirements.lock: every dependency, pinned, with hashes and without index addresses.
lock: $(READY)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile pyproject.toml --group dev --universal --python-version 3.11 --upgrade \
	  --generate-hashes --no-annotate --no-emit-index-url --no-emit-find-links --no-header --quiet -o requirements.lock

$(WHEEL): $(READY) $(SOURCES) pyproject.toml README.md LICENSE
	rm -rf build/wheel
	$(BIN)/python -m build --wheel --no-isolation --outdir build/wheel . > /dev/null
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall build/wheel/*.whl
	@touch $@

$(READY): requirements.lock
	@command -v $(PYTHON) > /dev/null || { echo "Python was not found as '$(PYTHON)': install Python 3.11 or newer, or say 'make PYTHON=/path/to/python'"; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { echo "'$(PYTHON)' is older than Python 3.11: install a newer one, or say 'make PYTHON=/path/to/python'"; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' || { echo "'$(PYTHON)' has no venv module: install it (on Debian: apt-get install python3-venv)"; exit 1; }
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	@touch $@

clean:
	rm -rf $(VENV) build runs
