"""Break the engine's conversion steps on purpose, one place at a time, and count what is noticed.

Cosmic Ray changes an operator, a comparison or a number; the probe beside this file has to fail.
A mutant that survives must stand in survivors.toml with the reason why nothing can notice it. Ends
with status 1 if fewer than 95 % die, or if a survivor is not listed.

Works on copies: the source tree is never changed.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import tomllib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from cosmic_ray.work_db import WorkDB, use_db
from cosmic_ray.work_item import TestOutcome, WorkerOutcome
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parent.parent.parent
MODULES = ("encoding", "targets", "decoding")
ENOUGH = 0.95

# One other operator for each is enough, and for comparisons the negation and the boundary; without
# decorators, or with new variables, nothing compiles.
KEPT_BINARY = (
    "Add_Sub|Sub_Add|BitAnd_BitOr|BitOr_BitAnd|BitXor_BitAnd|LShift_RShift|RShift_LShift|"
    "Mul_FloorDiv|FloorDiv_Mul|Mod_Mul|Pow_Mul"
)
KEPT_COMPARISONS = "Eq_NotEq|NotEq_Eq|Lt_LtE|LtE_Lt|Gt_GtE|GtE_Gt|Lt_GtE|GtE_Lt|Gt_LtE|LtE_Gt"
CONFIG = f"""
[cosmic-ray]
module-path = "mor_ref/engine/{{module}}.py"
timeout = 180.0
excluded-modules = []
test-command = "{sys.executable} -m pytest -x -q -p no:cacheprovider tests/mutation/probe.py"

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
    """One change, and whether the probe noticed it."""

    def __init__(self, mutation, outcome):
        self.module = Path(mutation.module_path).stem
        self.line = mutation.start_pos[0]
        self.operator = mutation.operator_name.removeprefix("core/")
        self.survived = outcome.test_outcome == TestOutcome.SURVIVED
        diff = outcome.diff.splitlines()
        changed = [line for line in diff if line[:1] in "+-" and line[:3] not in ("+++", "---")]
        self.before, self.after = (
            " ".join(line[1:].strip() for line in changed if line[0] == side) for side in "-+"
        )


def mutants_of(module):
    """Every mutant of a module of the engine, tried in a copy of the tree."""
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "tree"
        shutil.copytree(
            ROOT,
            copy,
            ignore=shutil.ignore_patterns(".venv", ".git", "dist", "__pycache__", ".*_cache"),
        )
        (copy / "config.toml").write_text(CONFIG.format(module=module))
        environment = os.environ | {
            "PYTHONPATH": str(copy),
            "PYTHONDONTWRITEBYTECODE": "1",
            "NUMBA_CACHE_DIR": str(copy / "kernels"),
        }
        for command in (
            ["cosmic-ray", "init", "config.toml", "session.sqlite"],
            ["cr-filter-operators", "session.sqlite", "config.toml"],
            ["cosmic-ray", "exec", "config.toml", "session.sqlite"],
        ):
            tool = Path(sys.executable).parent / command[0]
            subprocess.run([tool, *command[1:]], cwd=copy, env=environment, check=True)
        with use_db(str(copy / "session.sqlite"), WorkDB.Mode.open) as database:
            tried = [
                Mutant(item.mutations[0], result)
                for item, result in database.completed_work_items
                if result.worker_outcome == WorkerOutcome.NORMAL
            ]
    return tried


def main():
    """Try all mutants and report."""
    modules = sys.argv[1:] or MODULES
    with ThreadPoolExecutor(os.cpu_count()) as pool:
        mutants = [mutant for tried in pool.map(mutants_of, modules) for mutant in tried]
    listed = tomllib.loads((Path(__file__).parent / "survivors.toml").read_text())["survivor"]
    known = {(entry["before"], entry["after"]) for entry in listed}
    survivors = [mutant for mutant in mutants if mutant.survived]
    table = Table("module", "line", "before", "after", "listed", box=None)
    for mutant in survivors:
        is_listed = (mutant.before, mutant.after) in known
        table.add_row(
            mutant.module,
            str(mutant.line),
            mutant.before,
            mutant.after,
            "yes" if is_listed else "NO",
        )
    console = Console(width=200)
    console.print(table)
    killed = 1 - len(survivors) / len(mutants)
    console.print(f"{len(mutants)} mutants, {len(survivors)} survive: {killed:.1%} are noticed")
    unlisted = [m for m in survivors if (m.before, m.after) not in known]
    return 1 if unlisted or killed < ENOUGH else 0


if __name__ == "__main__":
    sys.exit(main())
