"""Break the engine on purpose, one place at a time, and count what the tests notice.

Cosmic Ray changes an operator, a comparison or a number; the tests of the module that `make test`
runs have to fail. A mutant that survives must be in survivors.toml with the reason why nothing
can notice it. Prints each module once it has been tried. Ends with status 1 if a survivor is not
listed.

`run.py MODULE ...` tries some modules alone, and `--sample N` that many mutants of each, chosen at
random, the same for the same `--seed`. Works on copies: the source tree is never changed.
"""

import argparse
import os
import random
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import contextmanager
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome, WorkResult
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent.parent
CONSOLE = Console(width=200, markup=False, highlight=False)

# The tests of modules whose tests have another name, the quickest to notice something first. After
# them, the engine is compared with every golden suite.
OTHER_TESTS = {
    "affine_blocks": ("affine",),
    "affine_orders": ("affine",),
    "amaxes": ("scales", "quantization", "policies", "mx", "nvfp4"),
    "block_tensors": ("quantization", "block_formats", "small_calls"),
    "block_steps": ("block_formats", "mx", "nvfp4", "thresholds"),
    "blocks": ("quantization", "policies", "mx"),
    "dequantization": ("quantization", "policies"),
    "dot": ("dot_engine",),
    "dot_amd": ("dot_engine",),
    "dot_binary32": ("dot_engine",),
    "dot_exact": ("dot_engine",),
    "dot_nvidia": ("dot_engine",),
    "dot_operands": ("dot_engine",),
    "dot_rounding": ("dot_engine",),
    "encoding": ("encoding", "format", "arrays"),
    "errors": ("quantization", "ladders"),
    "formats": ("encoding", "decoding"),
    "formulas": ("block_formats", "block_formulas", "mx", "nvfp4"),
    "fp8lm_adam": ("fp8lm",),
    "fp8lm_tensors": ("fp8lm",),
    "intrinsics": ("encoding", "quantization", "decoding"),
    "kernel": ("kernel_cache",),
    "levels_alphas": ("levels",),
    "measuring": ("representations",),
    "nearest": ("quantization", "encoding"),
    "outliers": ("selection", "before_blocks"),
    "parallel": ("arrays", "workers", "workers_split"),
    "percentiles": ("block_formats",),
    "policies": ("policies", "ladders"),
    "quantization": ("quantization", "policies"),
    "scales": ("scales", "quantization", "policies", "mx"),
    "squares": ("measures",),
    "steps": (),
    "small_tensors": ("small_calls", "quantization", "mx", "nvfp4", "block_formats"),
    "strips": ("quantization", "policies"),
    "unit_sums": ("metrics",),
    "widening": ("widening", "encoding"),
    "unrounded_y": ("measures",),
}


def module_named(path):
    """Return a module of the engine by the name of its file; those of a scheme begin with it."""
    is_of_scheme = path.parent.parent.name == "schemes"
    return path.parent.name + path.stem.removeprefix("engine") if is_of_scheme else path.stem


MODULES = {
    module_named(path): path.relative_to(ROOT).as_posix()
    for pattern in ("engine/[!_]*.py", "schemes/*/engine*.py")
    for path in sorted((ROOT / "mor_ref").glob(pattern))
}
SUITES = "tests/test_golden.py::test_the_engine_matches_every_bundled_suite"

# Loops of a mutant may not end. Seconds of the processor, not of a clock: a machine may be busy.
# The tests of a module take far fewer.
MOST_SECONDS = 600

# One other operator for each is enough, and for comparisons the negation and the boundary; without
# decorators, or with new variables, nothing compiles.
KEPT_BINARY = (
    "Add_Sub|Sub_Add|BitAnd_BitOr|BitOr_BitAnd|BitXor_BitAnd|LShift_RShift|RShift_LShift|"
    "Mul_FloorDiv|FloorDiv_Mul|Mod_Mul|Pow_Mul"
)
KEPT_COMPARISONS = "Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Lt_GtE|GtE_Lt|Gt_LtE|LtE_Gt"
CONFIG = f"""
[cosmic-ray]
module-path = "{{path}}"
timeout = 3600.0
excluded-modules = []
test-command = "sh -c 'ulimit -t {MOST_SECONDS}; exec {sys.executable} -m pytest {{arguments}}'"

[cosmic-ray.distributor]
name = "local"

[cosmic-ray.filters.operators-filter]
exclude-operators = [
  "core/ReplaceBinaryOperator_(?!({KEPT_BINARY})$)",
  "core/RemoveDecorator",
  "core/ReplaceComparisonOperator_(?!({KEPT_COMPARISONS})$)",
  "core/Variable.*",
]
"""


class Mutant:
    """One change, and whether the tests noticed it."""

    def __init__(self, mutation, outcome):
        self.line = mutation.start_pos[0]
        self.operator = mutation.operator_name.removeprefix("core/")
        self.survived = outcome.test_outcome == TestOutcome.SURVIVED
        diff = outcome.diff.splitlines()
        changed = [line for line in diff if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        self.before, self.after = (
            " ".join(line[1:].strip() for line in changed if line[0] == side) for side in "-+"
        )


@contextmanager
def copy_of_the_tree():
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        unwanted = (".venv", ".git", "dist", "build", "__pycache__", ".*_cache", ".hypothesis")
        shutil.copytree(ROOT, copy, ignore=shutil.ignore_patterns(*unwanted), symlinks=True)
        yield copy


def arguments_for(modules):
    """Return pytest's arguments for the tests of some modules, each file once."""
    names = dict.fromkeys(name for module in modules for name in OTHER_TESTS.get(module, (module,)))
    return ["-x", "-q", "-pno:cacheprovider", *(f"tests/test_{name}.py" for name in names), SUITES]


def mutants_of(module, sample, seed):
    """Return the mutants of a module of the engine that were tried, in a copy of the tree."""
    with copy_of_the_tree() as copy:
        arguments = " ".join(arguments_for([module]))
        (copy / "config.toml").write_text(CONFIG.format(path=MODULES[module], arguments=arguments))
        database = copy / "session.sqlite"
        run_in(copy, "cosmic-ray", "init", "config.toml", database)
        run_in(copy, "cr-filter-operators", database, "config.toml")
        if sample is not None:
            leave(sample, seed, database)
        run_in(copy, "cosmic-ray", "exec", "config.toml", database)
        with use_db(str(database), WorkDB.Mode.open) as tried:
            return [
                Mutant(item.mutations[0], result)
                for item, result in tried.completed_work_items
                if result.worker_outcome == WorkerOutcome.NORMAL
            ]


def run_in(copy, program, *arguments):
    environment = os.environ | {
        "PYTHONPATH": str(copy),
        "PYTHONDONTWRITEBYTECODE": "1",
        "NUMBA_CACHE_DIR": str(copy / "kernels"),
        "HYPOTHESIS_PROFILE": "first_failure",  # the same examples for each mutant
    }
    command = [Path(sys.executable).parent / program, *arguments]
    subprocess.run(command, cwd=copy, env=environment, check=True)


def leave(sample, seed, database):
    """Skip all mutants but some."""
    with use_db(str(database), WorkDB.Mode.open) as found:
        pending = list(found.pending_work_items)
        kept = random.Random(seed).sample(pending, min(sample, len(pending)))  # noqa: S311
        for item in pending:
            if item not in kept:
                found.set_result(item.job_id, WorkResult(WorkerOutcome.SKIPPED))


def report(module, mutants, known):
    """Print how many mutants of a module are noticed, and those that are not."""
    survivors = [mutant for mutant in mutants if mutant.survived]
    CONSOLE.print(f"{module}: {len(mutants) - len(survivors)} of {len(mutants)} are noticed")
    for each in survivors:
        listed = "listed" if (each.before, each.after) in known else "NOT LISTED"
        CONSOLE.print(f"  line {each.line}, {listed}: {each.before}  ->  {each.after}")


def main():
    """Try all mutants and report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("modules", nargs="*", metavar="MODULE", choices=[[], *MODULES])
    parser.add_argument("--sample", type=int, metavar="N")
    parser.add_argument("--seed", type=int, default=0, metavar="N")
    asked = parser.parse_args()
    modules = asked.modules or MODULES
    with copy_of_the_tree() as copy:  # the tests have to pass without a mutant
        run_in(copy, "python", "-m", "pytest", *arguments_for(modules))
    listed = tomllib.loads((Path(__file__).parent / "survivors.toml").read_text())["survivor"]
    known = {(entry["before"], entry["after"]) for entry in listed}
    mutants = []
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        tried = {
            pool.submit(mutants_of, module, asked.sample, asked.seed): module for module in modules
        }
        for of_module in as_completed(tried):
            report(tried[of_module], of_module.result(), known)
            mutants += of_module.result()
    survivors = [m for m in mutants if m.survived]
    unlisted = [m for m in survivors if (m.before, m.after) not in known]
    noticeable = len(mutants) - len(survivors) + len(unlisted)
    killed = 1 - len(unlisted) / max(noticeable, 1)
    CONSOLE.print(
        f"{len(mutants)} mutants, {len(survivors) - len(unlisted)} of them change nothing; "
        f"{killed:.1%} of the other {noticeable} are noticed"
    )
    return 1 if unlisted else 0


if __name__ == "__main__":
    sys.exit(main())
