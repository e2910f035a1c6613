# The environment is made once, and made again when pyproject.toml changes. A try that failed leaves
# no stamp, so that the next one starts afresh.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: golden test exhaustive mutants bench check wheel test-wheel digests clean

golden: .venv/installed
	$(BIN)/mor-ref exhaustive e4m3

test: .venv/installed
	$(BIN)/python -m pytest -n auto

exhaustive: .venv/installed
	$(BIN)/python -m pytest --tier=exhaustive

mutants: .venv/installed
	$(BIN)/python tests/mutation/run.py

bench: .venv/installed
	$(BIN)/python benchmarks/conversions.py

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

wheel: .venv/installed
	$(BIN)/python -m build --wheel --no-isolation

# The tests once more, against what users install instead of the source tree.
test-wheel: wheel
	rm -rf build/wheel
	$(BIN)/python -m pip install --quiet --no-deps --target build/wheel dist/mor_ref-*.whl
	PYTHONPATH=build/wheel PYTHONSAFEPATH=1 $(BIN)/python -m pytest -n auto tests

digests: .venv/installed
	$(BIN)/python -m mor_ref.golden.exhaustive golden/v1/exhaustive.json

clean:
	rm -rf .venv dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/made:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mor_ref needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": call make PYTHON=python3.11")'
	rm -rf .venv
	$(PYTHON) -m venv .venv
	touch $@

.venv/installed: .venv/made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@
