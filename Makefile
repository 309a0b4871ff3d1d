# Redrive's own commands. They need make and a Python of at least 3.11; everything else is installed from the hashed
# locks in requirements/ into .venv (to run and to check) and .venv-test (to test the built wheel).

PYTHON ?= python3
ARGS ?=
.DEFAULT_GOAL := help
.PHONY: help demo serve test test-long proof-foundation coverage check format docs bench lock clean

RUN := .venv/bin
TEST := .venv-test/bin
PIP_FLAGS := --quiet --disable-pip-version-check
# Two processes, a file's tests in one of them, files in random order: tests wait more than they compute.
BESIDE := -n 2 --dist=loadfile --no-loadscope-reorder
SOURCES := $(shell find src -type f -not -name '*.pyc' 2>/dev/null)
# The first interpreter that is new enough: the one asked for, then python3, then named versions.
FIND_PYTHON = for name in $(PYTHON) python3 python3.13 python3.12 python3.11; do \
	if "$$name" -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then echo "$$name"; break; fi; done

help: ## Show these targets
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "  ARGS=… goes to the command, PYTHON=… picks the interpreter (at least 3.11)"

demo: .venv/.run ## Run one night of a game's payment reconciliation and break things on purpose (under a minute)
	@$(RUN)/redrive demo $(ARGS)

serve: .venv/.run ## Start the server on redrive.db at 127.0.0.1:7077
	@$(RUN)/redrive serve $(ARGS)

test: .venv-test/.wheel ## Build the wheel, install it and run the tests against it (ARGS=tests/domain for a part)
	@echo "Testing the installed wheel with $$($(TEST)/python --version), real PostgreSQL, and MariaDB where it is installed"
	@env -u PYTHONPATH REDRIVE_TEST_INSTALLED=1 $(TEST)/python -m pytest $(BESIDE) $(ARGS)

test-long: .venv-test/.wheel ## As test, with the slow tests and many more random examples
	@env -u PYTHONPATH REDRIVE_TEST_INSTALLED=1 HYPOTHESIS_PROFILE=long \
		$(TEST)/python -m pytest -m "slow or not slow" --timeout=900 --session-timeout=14400 $(ARGS)

proof-foundation: .venv-test/.wheel ## The proofs' long forms, hours: resumable, results in proof/results (ARGS="NAME --minutes 20")
	@env -u PYTHONPATH $(TEST)/python -m tests.proof $(ARGS)

coverage: .venv-test/.wheel ## As test, and say which lines and branches of the package no test reaches
	@$(TEST)/python -m coverage erase
	@env -u PYTHONPATH REDRIVE_TEST_INSTALLED=1 $(TEST)/python -m coverage run -m pytest $(ARGS); code=$$?; \
		$(TEST)/python -m coverage combine --quiet && $(TEST)/python -m coverage report; exit $$code

check: .venv/.dev ## Style, types, the directions between rooms, generated pages (says what is wrong, changes nothing)
	@failed=""; \
	step() { name="$$1"; echo "== $$name"; shift; "$$@" || failed="$$failed · $$name"; }; \
	step "style" $(RUN)/ruff check --quiet --output-format concise .; \
	step "format" $(RUN)/ruff format --check --quiet .; \
	step "types, strict" $(RUN)/mypy; \
	step "directions between rooms" $(RUN)/lint-imports --no-cache --no-logo; \
	step "generated pages are fresh" env PYTHON=$(RUN)/python tools/pages.sh --check; \
	if [ -n "$$failed" ]; then echo "failed$$failed"; exit 1; fi; echo "all checks passed"

format: .venv/.dev ## Format the code and apply the linter's safe fixes
	@$(RUN)/ruff check --fix --quiet . ; $(RUN)/ruff format .

docs: .venv/.run ## Generate the pages that come from code (contract, state machine)
	@PYTHON=$(RUN)/python tools/pages.sh

bench: .venv-test/.wheel ## Measure, as ratios within one run; writes JSON beside the table
	@env -u PYTHONPATH $(TEST)/python -m bench $(ARGS)

lock: .venv/.dev ## Write the hashed locks anew (UPGRADE=1 for the newest versions)
	@$(RUN)/python -m pip install $(PIP_FLAGS) uv && UV=$(RUN)/uv tools/lock.sh

clean: ## Remove the environments and all caches
	@rm -rf .venv .venv-test build dist .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

.venv/bin/python .venv-test/bin/python:
	@python="$$($(FIND_PYTHON))"; \
	if [ -z "$$python" ]; then \
		echo "Redrive needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version 2>&1 || true). Try: make PYTHON=/path/to/python3.12"; exit 1; fi; \
	folder="$(@:/bin/python=)"; echo "Making $$folder with $$("$$python" --version)"; \
	"$$python" -m venv "$$folder" || { rm -rf "$$folder"; \
		echo "$$python cannot make a virtual environment (Debian: apt-get install python3-venv)"; exit 1; }

.venv/.run: requirements/run.txt pyproject.toml | .venv/bin/python
	@echo "Installing what the server and the command line need into .venv (once)"
	@$(RUN)/python -m pip install $(PIP_FLAGS) --require-hashes --no-deps -r $<
	@$(RUN)/python -m pip install $(PIP_FLAGS) --no-deps --no-build-isolation -e .
	@touch $@

.venv/.dev: requirements/dev.txt .venv/.run
	@echo "Installing the checking tools into .venv (once)"
	@$(RUN)/python -m pip install $(PIP_FLAGS) --require-hashes --no-deps -r $<
	@touch $@

.venv-test/.lock: requirements/test.txt | .venv-test/bin/python
	@echo "Installing what the tests need into .venv-test (once)"
	@$(TEST)/python -m pip install $(PIP_FLAGS) --require-hashes --no-deps -r $<
	@touch $@

.venv-test/.wheel: $(SOURCES) pyproject.toml .venv-test/.lock
	@echo "Building and installing the wheel"
	@rm -rf .venv-test/wheel
	@$(TEST)/python -m pip wheel $(PIP_FLAGS) --no-deps --no-build-isolation --wheel-dir .venv-test/wheel .
	@$(TEST)/python -m pip install $(PIP_FLAGS) --no-deps --no-index --force-reinstall .venv-test/wheel/*.whl
	@touch $@
