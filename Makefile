# The environment is made once, and brought up to date when pyproject.toml changes. There is a stamp
# only while it is whole: after a try that failed or was interrupted, the next one starts afresh.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: golden test exhaustive mutants bench check wheel test-wheel digests vectors clean

golden: .venv/installed
	rm -rf build/golden
	$(BIN)/mor-ref golden make --out build/golden
	$(BIN)/mor-ref golden check build/golden --same-as golden/v1

test: .venv/installed
	$(BIN)/python -m pytest -n auto

exhaustive: .venv/installed
	$(BIN)/python -m pytest --tier=exhaustive

mutants: .venv/installed
	$(BIN)/python tests/mutation/run.py

bench: .venv/installed
	$(BIN)/python benchmarks/conversions.py
	$(BIN)/python benchmarks/mixing.py

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

vectors: .venv/installed
	rm -rf golden/v1/MANIFEST.json golden/v1/*.safetensors golden/v1/negative
	$(BIN)/mor-ref golden make --out golden/v1

clean:
	rm -rf .venv dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mor_ref needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": call make PYTHON=python3.11")'
	@test -e $@ || { rm -rf .venv && $(PYTHON) -m venv .venv; }
	@rm -f $@
	@echo "installing into .venv, which takes a minute or two"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
