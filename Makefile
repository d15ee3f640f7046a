# The two commands of a newcomer:  make demo  and  make test.  They need python3 >= 3.11 and nothing else.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check install --quiet --only-binary=:all:
# Two test processes share the cores: one thread each unless a test asks for more.
TEST_ENV := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 NUMBA_NUM_THREADS=2 MPLBACKEND=agg

.PHONY: help demo test lint types gallery docs chromium clean

help:
	@echo "make demo   install into $(VENV) and run examples/concentration.toml"
	@echo "make test   install with the test extra and run the whole suite"
	@echo "make lint   ruff and mypy --strict"
	@echo "make gallery remake every figure of docs/gallery.md (LEVEL=--quick: coarse)"
	@echo "make docs     build the documentation into build/site"
	@echo "make clean  remove what the other targets made"

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "tokensphere needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/installed: pyproject.toml | $(VENV)/bin/python
	@echo "Installing tokensphere into $(VENV) (wheels only, about half a minute) ..."
	$(PIP) --editable .
	@$(BIN)/python -m compileall -q app meshes pde validation  # pip does so for what is not editable
	@touch $@

$(VENV)/installed-test: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[test]'
	@touch $@

$(VENV)/installed-lint: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[lint]'
	@touch $@

demo: $(VENV)/installed
	$(BIN)/tokensphere run examples/concentration.toml --force

test: $(VENV)/installed-test chromium
	$(TEST_ENV) $(BIN)/python -m pytest -n 2 --dist loadfile

# Type checkers cannot follow the mapped folders: they read this tree of links instead.
types:
	@rm -rf build/types && mkdir -p build/types/tokensphere
	@ln -s $(addprefix $(CURDIR)/,$(wildcard app/*)) build/types/tokensphere/
	@ln -s $(CURDIR)/meshes $(CURDIR)/pde $(CURDIR)/validation build/types/tokensphere/

lint: $(VENV)/installed-lint types
	$(BIN)/ruff check .
	$(BIN)/mypy

# Every figure and number of docs/gallery.md anew; LEVEL=--quick takes under three minutes.
gallery: $(VENV)/installed
	$(BIN)/python examples/gallery/remake.py $(LEVEL) --out docs

$(VENV)/installed-docs: pyproject.toml | $(VENV)/bin/python
	$(PIP) --editable '.[docs]'
	@touch $@

docs: $(VENV)/installed-docs types
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# The tests of report.html need a real browser; where it cannot be installed, they say so and are skipped.
chromium:
	@command -v chromium >/dev/null 2>&1 || { \
	  [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && apt-get install -y -qq --no-install-recommends chromium >/dev/null 2>&1; } || \
	  echo "No Chromium (Debian: apt-get install chromium): the tests of the report's page will be skipped."

clean:
	rm -rf $(VENV) build dist *.egg-info .mypy_cache .pytest_cache .ruff_cache .hypothesis
	find app meshes pde validation -name __pycache__ -prune -exec rm -rf {} +  # compiled loops too
