# Every target installs what it needs. Start with: make demo
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready

.PHONY: help setup demo test test-frameworks test-engines test-browser test-pythons check fmt docs benchmarks clean

help:
	@echo "make demo        compare PyTorch and JAX on ResNet-20 with 1 and 2 workers; ends with a page (sets everything up)"
	@echo "make test        check, then all tests (sets everything up)"
	@echo "make test-frameworks  contract tests of every framework, each in its own environment (builds them)"
	@echo "make test-engines  one study by ssh, MPI, Slurm and Ray over lab hosts (installs them; needs root)"
	@echo "make test-browser  the HTML report in Chromium: numbers, figures, downloads, light and dark; LaTeX; completion in zsh and fish (installs them, as root)"
	@echo "make test-pythons  the host's unit tests on every supported Python that is installed; PYTHONS=\"3.10 3.13\" for some"
	@echo "make docs        build the documentation site in site/ (installs what it needs into .venv)"
	@echo "make check       ruff and strict mypy"
	@echo "make benchmarks  measure the claims about cost and truth (about 40 minutes; needs a quiet machine)"

setup: $(STAMP)

$(STAMP): pyproject.toml src/paceline/_version.py
	$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 10) else "Paceline needs Python 3.10 or later: make PYTHON=python3.11 ...")'
	@echo "setting up $(VENV); this takes a minute or two"
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install -qq --editable '.[dev]'
	@touch $(STAMP)

demo: $(STAMP)
	$(BIN)/paceline run studies/quickstart.toml --again
	$(BIN)/paceline report studies/quickstart.toml --html quickstart.html

# If PyTorch's environment cannot be built, its tests are skipped with the reason and all others still run.
test: check
	-$(BIN)/paceline env build torch-cpu
	$(BIN)/python -m pytest -n auto --dist loadgroup -m "not frameworks and not engines and not browser"

# Frameworks that are too large for every test run: builds their environments, then runs their own tests. If one cannot be
# built, its tests are skipped with the reason.
test-frameworks: $(STAMP)
	-$(BIN)/paceline env build torch-cpu jax-cpu tensorflow-cpu mxnet-cpu keras-tensorflow-cpu keras-jax-cpu keras-torch-cpu mpi-cpu
	$(BIN)/python -m pytest -n auto --dist loadgroup -m frameworks

# The real engines, over hosts of the lab. Installs Debian packages as root, and Ray in its own environment.
RAY := $(or $(PACELINE_CACHE),$(or $(XDG_CACHE_HOME),$(HOME)/.cache)/paceline)/ray
test-engines: $(STAMP)
	tests/engines/install.sh $(RAY)
	PACELINE_TEST_RAY=$$(ls $(RAY)/bin/ray 2>/dev/null) $(BIN)/python -m pytest -m engines

# The HTML report in a real browser, and completion in real shells. Installs Chromium, pdflatex,
# zsh and fish from Debian, as root; if one cannot be had, its tests are skipped with the reason.
test-browser: $(STAMP)
	tests/browser/install.sh $(BIN)/python
	$(BIN)/python -m pytest -m "browser or shells"

# The host's unit tests on each Python that pyproject.toml names and this machine has, each in its own environment.
test-pythons: $(STAMP)
	$(BIN)/python tests/pythons.py $(PYTHONS)

# Strict: a page that is in no menu or a dead link fails the build (not with --quiet, which counts no warnings).
# Open site/index.html, or serve the folder.
docs: $(VENV)/.docs-ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "written: site/index.html"

$(VENV)/.docs-ready: $(STAMP)
	@$(BIN)/python -m pip install -qq --editable '.[docs]'
	@touch $@

check: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

fmt: $(STAMP)
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

benchmarks: $(STAMP)
	$(BIN)/paceline env build torch-cpu
	$(BIN)/python benchmarks/null.py
	$(BIN)/python benchmarks/lab.py
	$(BIN)/python benchmarks/predictor.py
	$(BIN)/python benchmarks/report.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/overhead.py
	$(BIN)/python benchmarks/adapters.py

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .pytest_cache .hypothesis site
