# make demo   half a minute: PFN-TS and three other policies on a problem in which the context decides
# make test   every check: style, types, layers, doctests, tests
# make test-weights   the tests that need the TabPFN weights, which are fetched first (44 MB)
# make serve-demo   a decision service and a shop that uses it, for five minutes, with a page to watch
# make test-crash   200 services and 20 database servers killed under load, as many as a release deserves
# make package   wheel and sdist, and the wheel at work in a clean environment, alone and with extras (minutes)
# make docs   the site, in build/site: a broken link fails it     make gallery   its examples and figures anew
# make test-lowest   the core's tests with the lowest versions that pyproject.toml allows
# make install   .venv with every extra        make bench   the benchmarks
# Each target makes .venv first, or brings it up to date; only python3, pip and make need to be there.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet -c constraints.txt

.PHONY: demo docs gallery package serve-demo test test-crash test-lowest test-weights lint install bench clean

demo: $(VENV)/.ready-demo
	$(BIN)/pfnts demo

serve-demo: $(VENV)/.ready
	$(BIN)/python -m pfnts.service.demo

# One thread in each of the two workers, so that they do not fight over the cores.
test: export OMP_NUM_THREADS = 1
test: lint
	$(BIN)/python -m pytest -n 2

# `make test` runs these as well where the weights are at hand, and skips them where they are not.
test-weights: export OMP_NUM_THREADS = 1
test-weights: $(VENV)/.ready
	$(BIN)/pfnts weights tabpfn
	$(BIN)/python -m pytest tests/backbones -k "tabpfn or tabicl"

# Half of the kills for each store; more examples for the interface, more decisions for the propensities.
test-crash: export OMP_NUM_THREADS = 1
test-crash: export PFNTS_KILLS = 100
test-crash: export PFNTS_SERVER_KILLS = 20
test-crash: export PFNTS_EXAMPLES = 50
test-crash: export PFNTS_COPIES = 1000
test-crash: export PFNTS_DECISIONS = 100000
test-crash: $(VENV)/.ready
	$(BIN)/python -m pytest -rP $(addprefix tests/service/test_,crash.py replicas.py openapi.py serving.py)

lint: $(VENV)/.ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

# Warnings are failures. Its code blocks are run by `make test`, its examples there in a smaller size.
docs: export NO_MKDOCS_2_WARNING = 1
docs: $(VENV)/.ready-docs
	$(BIN)/mkdocs build
	@echo "Open build/site/index.html; it needs no server and no network."

gallery: $(VENV)/.ready
	mkdir -p build
	$(BIN)/python docs/figures/make_figures.py
	set -e; for script in docs/gallery/*.py; do \
	    echo "== $$script"; $(BIN)/python $$script > build/printed.txt; cat build/printed.txt; \
	    mv build/printed.txt $${script%.py}.txt; done

# A large download: the wheels of the lowest torch bring CUDA along.
test-lowest: export OMP_NUM_THREADS = 1
test-lowest:
	$(call environment,build/lowest)
	build/lowest/bin/python -m pip --disable-pip-version-check install --quiet -c constraints-lowest.txt \
	    --editable ".[bench,sklearn]" pytest hypothesis polars
	build/lowest/bin/python -m pytest -k "not (xgboost-ts or bf-ts)" \
	    tests/contexts tests/events tests/posterior tests/arms tests/policies/test_contract.py tests/test_regressor.py

# PYTHON=python3.13 tries it on another version of Python.
package: $(VENV)/.ready
	rm -rf dist build/clean
	$(BIN)/python -m build --outdir dist .
	$(call environment,build/clean)
	build/clean/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt torch
	build/clean/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt dist/*.whl
	build/clean/bin/python tests/installed.py
	build/clean/bin/python -m pip --disable-pip-version-check install --quiet -c constraints.txt \
	    "pfnts[service,sklearn] @ file://$(CURDIR)/$$(ls dist/*.whl)"
	build/clean/bin/python tests/installed.py

install: $(VENV)/.ready

bench: $(VENV)/.ready
	failed=; for script in benchmarks/*.py; do \
	    echo "== $$script"; $(BIN)/python $$script || failed="$$failed $$script"; \
	done; if [ -n "$$failed" ]; then echo "failed:$$failed"; exit 1; fi

clean:
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache

# torch comes first: the other packages then find it, and never pull in another version. One of the peers is
# built from source: where there is no compiler their tests are skipped.
$(VENV)/.ready: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) --editable ".[baselines,bench,ray,service,tabicl,tabpfn,dev]"
	-$(PIP) --editable ".[peers]"
	touch $@ $(VENV)/.ready-demo

# What the demo needs is a part of that, and quicker to install.
$(VENV)/.ready-demo: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) --editable ".[bench]"
	touch $@

$(VENV)/.ready-docs: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(PIP) torch
	$(PIP) --editable ".[bench,sklearn,service,docs]"
	touch $@

# Some systems split ensurepip off: there pip is installed into the new environment from outside.
define environment
	$(PYTHON) -m venv $(1) || ( rm -rf $(1) && $(PYTHON) -m venv --without-pip $(1) \
	    && $(PYTHON) -m pip --python $(1)/bin/python install --quiet pip )
endef

$(VENV)/bin/python:
	$(call environment,$(VENV))
