# make audit [TARGET=name-or-module:attribute]   audit the reference and torch's paged attention, or TARGET
# make test                                      the tests of the suite and the audit of the reference under pytest
# Both need only Python >= 3.11, pip and make; the first run creates .venv.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
SOURCES := $(shell find tokenlaw spec impl properties stats -name '*.py')

.PHONY: audit test install

install: $(VENV)/.installed

$(VENV)/.dependencies: pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt ".[dev]"
	@touch $@

# A copy, not an editable install: what is tested is what users get.
$(VENV)/.installed: $(VENV)/.dependencies $(SOURCES)
	@rm -rf build
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --force-reinstall -c constraints.txt .
	@touch $@

audit: $(VENV)/.installed
	@TOKENLAW=$(BIN)/tokenlaw sh examples/audit.sh $(TARGET)

test: $(VENV)/.installed
	$(BIN)/pytest -n auto --dist worksteal -p no:benchmark tests
	$(BIN)/pytest --pyargs tokenlaw.properties tokenlaw.stats
