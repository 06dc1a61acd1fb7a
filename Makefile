# Two commands are all a newcomer needs: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: demo test check docs lowest sbom clean

demo: $(VENV)/ready
	$(BIN)/rdjepa demo

test: $(VENV)/ready
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(VENV)/ready
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports

# Slow: the tests with the lowest versions that pyproject.toml allows, in an environment of its own.
lowest:
	PYTHON=$(PYTHON) .ci/lowest

# The documentation as a site, in site/index.html; it needs no network.
docs: $(VENV)/ready
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# A CycloneDX bill of materials of the environment, with licences; the tool gets an environment of its own.
sbom: $(VENV)/ready
	$(PYTHON) -m venv build/sbom
	build/sbom/bin/python -m pip install --quiet --disable-pip-version-check "cyclonedx-bom>=7,<8"
	build/sbom/bin/cyclonedx-py environment --pyproject pyproject.toml --output-file sbom.json $(VENV)/bin/python

$(VENV)/ready: requirements.lock pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation -e .
	touch $@

clean:
	rm -rf $(VENV) build dist site src/*.egg-info .pytest_cache .ruff_cache .mypy_cache
