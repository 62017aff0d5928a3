# On a fresh machine with Python 3.11 or newer each target does all the set-up it needs.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
DEMO_INSTALLED := .venv/.installed-lab

.PHONY: help setup demo test test-all test-long coverage browser lint types bench gpu-check torture audit docs build clean

help:            ## this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' $(MAKEFILE_LIST) | expand -t 12

setup: $(INSTALLED)  ## make .venv and install arml with everything the other targets need

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab,pretrained,ray,tune,torchjd,dev]'
	touch $(INSTALLED)

# The demo needs less than the tests do: a newcomer waits for that much less. Where everything is installed, nothing more is.
$(DEMO_INSTALLED): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv .venv
	test $(INSTALLED) -nt pyproject.toml || \
		$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[lab]'
	touch $(DEMO_INSTALLED)

demo: $(DEMO_INSTALLED)   ## see it work: one experiment on real data, an answer and a page to open; two to three minutes
	$(BIN)/arml demo

test: $(INSTALLED) browser   ## tests of everything, on real processes and in a browser too; the slow ones are left out
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not slow and not long"

test-all: $(INSTALLED) browser   ## the slow tests, too: frameworks, compilers, convergence
	$(BIN)/python -m pytest -n 2 --dist loadfile -m "not long"

test-long: $(INSTALLED)   ## the long tests: three processes, long samples, scripts with many variants
	$(BIN)/python -m pytest -n 2 --dist loadfile -m long

coverage: $(INSTALLED) browser   ## all tests, and the branches of src that they reach; takes longer than test-all
	$(BIN)/python -m pytest -n 2 --dist loadfile --cov --cov-report=
	$(BIN)/coverage report
	@$(BIN)/coverage json -q -o - | $(BIN)/python tools/low_coverage.py

browser:         ## Debian's chromium for the tests of the report page, where it can be installed
	@command -v chromium >/dev/null || [ -n "$$ARML_CHROMIUM" ] || { \
		if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null; then \
			apt-get install -y -q chromium >/dev/null 2>&1 || \
			{ apt-get update -q >/dev/null 2>&1; apt-get install -y -q chromium >/dev/null 2>&1; }; \
		fi; } || echo "chromium could not be installed: tests of the report page in a browser are skipped"

lint: $(INSTALLED)   ## format and lint
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(INSTALLED)  ## mypy, strict
	$(BIN)/mypy

bench: $(INSTALLED)  ## cost of an update against the number of tasks
	$(BIN)/python benchmarks/step.py
	$(BIN)/arml bench

gpu-check: $(INSTALLED)  ## every learner on your GPU against the CPU, speed and memory; DEVICE=cuda:1 chooses one
	$(BIN)/python tools/gpu_check.py --device $(or $(DEVICE),auto)

torture: $(INSTALLED)  ## kill, interrupt, starve and misfeed the commands; hours, goes on where it stopped; see docs/reliability.md
	cd tests && OMP_NUM_THREADS=1 ../$(BIN)/python -m torture --out ../runs/torture

audit: $(INSTALLED)  ## known vulnerabilities of dependencies, and risky code
	$(BIN)/python tools/audit.py

docs: $(INSTALLED)   ## the documentation as HTML in docs/_build, with tutorials that are run; a warning is an error
	$(BIN)/sphinx-build -W --keep-going -b html docs docs/_build/html

build: $(INSTALLED)  ## sdist and wheel in dist/, tried without and with the extra lab
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .
	$(BIN)/python tools/check_build.py dist

clean:           ## remove everything that was made
	rm -rf .venv docs/_build runs .pytest_cache .mypy_cache .ruff_cache .hypothesis dist .coverage .coverage.*
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
