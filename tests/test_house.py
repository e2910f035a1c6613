"""The house rules: which way imports point, style, types, and the cost of starting."""

import ast
import functools
import subprocess
import sys
from pathlib import Path

import pytest
from extras import imported

from mor_ref.operations import OPERATIONS
from mor_ref.schemes import SCHEMES

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "mor_ref"

# What each part may import of this package. A part is a module or a directory right under mor_ref.
MAY_IMPORT = {
    "__init__": {"schemes", "argument_checks", "definitions", "habits"},
    "argument_checks": set(),
    "habits": {"argument_checks", "definitions"},
    "former_names": set(),
    "__main__": {"cli"},
    "addresses": set(),
    "schemes": set(),
    "counts_in_words": set(),
    "printable": set(),
    "processor_modes": set(),
    "signals": set(),
    "tracing": set(),
    "mapped_files": set(),
    "whole_files": {"mapped_files"},
    "definitions": {"argument_checks", "definitions", "processor_modes"},
    "policies": {"argument_checks", "definitions", "metrics", "representations"},
    "recipes": {
        "schemes",
        "former_names",
        "argument_checks",
        "definitions",
        "metrics",
        "policies",
        "representations",
        "recipes",
    },
    "treatments": {"former_names", "recipes"},
    "exact": {"definitions", "exact", "policies", "processor_modes"},
    "metrics": {
        "argument_checks",
        "cuda",
        "definitions",
        "engine",
        "exact",
        "metrics",
        "representations",
        "processor_modes",
    },
    "representations": {
        "schemes",
        "former_names",
        "api",
        "argument_checks",
        "arrays",
        "cuda",
        "definitions",
        "exact",
        "representations",
    },
    "records": {"habits", "record_files", "record_pictures", "tracing"},
    "record_files": {"argument_checks", "arrays", "processor_modes", "whole_files"},
    "record_pictures": {"counts_in_words"},
    "arrays": {"argument_checks", "definitions"},
    "engine": {
        "schemes",
        "argument_checks",
        "arrays",
        "definitions",
        "engine",
        "processor_modes",
        "signals",
    },
    "cuda": {
        "schemes",
        "former_names",
        "argument_checks",
        "arrays",
        "cuda",
        "definitions",
        "metrics",
        "policies",
        "processor_modes",
        "recipes",
        "records",
        "representations",
    },
    "api": {
        "schemes",
        "former_names",
        "tracing",
        "api",
        "argument_checks",
        "arrays",
        "counts_in_words",
        "definitions",
        "engine",
        "metrics",
        "policies",
        "recipes",
        "representations",
        "record_files",
        "records",
        "processor_modes",
    },
    "fp8lm": {"api"},
    "explanations": {
        "addresses",
        "api",
        "argument_checks",
        "definitions",
        "exact",
        "explanations",
    },
    "workers": {"argument_checks", "engine", "signals", "workers"},
    "analysis": {
        "schemes",
        "former_names",
        "analysis",
        "api",
        "argument_checks",
        "arrays",
        "counts_in_words",
        "definitions",
        "mapped_files",
        "metrics",
        "policies",
        "printable",
        "representations",
        "recipes",
        "workers",
    },
    "deviations": {"schemes", "definitions", "deviations", "exact"},
    "mistakes": {"definitions", "deviations", "exact", "mistakes"},
    "proofs": {"definitions", "deviations", "exact", "mistakes", "proofs"},
    "operations": {
        "schemes",
        "fp8lm",
        "__init__",
        "arrays",
        "cuda",
        "definitions",
        "engine",
        "exact",
        "metrics",
        "operations",
        "policies",
        "recipes",
        "representations",
    },
    "golden": {
        "schemes",
        "argument_checks",
        "arrays",
        "definitions",
        "mapped_files",
        "deviations",
        "exact",
        "golden",
        "metrics",
        "operations",
        "policies",
        "representations",
        "recipes",
        "workers",
        "whole_files",
        "mistakes",
    },
    "layouts": {"argument_checks", "arrays", "golden", "operations", "processor_modes"},
    "pytest_plugin": {"argument_checks", "golden", "verify"},
    "verify": {
        "__init__",
        "addresses",
        "analysis",
        "api",
        "argument_checks",
        "arrays",
        "counts_in_words",
        "cuda",
        "definitions",
        "mapped_files",
        "deviations",
        "exact",
        "golden",
        "layouts",
        "metrics",
        "operations",
        "ptx",
        "signals",
        "recipes",
        "verify",
        "workers",
        "whole_files",
        "mistakes",
    },
    "ptx": {"cuda", "definitions", "processor_modes", "ptx"},
    "sources": {
        "definitions",
        "exact",
        "metrics",
        "policies",
        "recipes",
        "sources",
        "whole_files",
    },
    "torch": {
        "former_names",
        "api",
        "argument_checks",
        "arrays",
        "cuda",
        "definitions",
        "policies",
        "printable",
        "representations",
        "torch",
        "recipes",
    },
    "cli": {
        "schemes",
        "__init__",
        "addresses",
        "analysis",
        "argument_checks",
        "cli",
        "counts_in_words",
        "definitions",
        "explanations",
        "former_names",
        "golden",
        "metrics",
        "policies",
        "printable",
        "signals",
        "sources",
        "recipes",
        "verify",
        "workers",
        "whole_files",
        "mistakes",
        "proofs",
    },
}

# A row binds the implementations when it is called, and none of them calls another.
BINDERS = {"metrics", "representations"}
BOUND = {"api", "cuda", "engine", "exact"}

# Directories of the exact model, and of the modules that it reads.
WITHOUT_NUMPY = ("definitions", "exact")


def module_of(path):
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


MODULES = {module_of(path): path for path in sorted(PACKAGE.rglob("*.py"))}


# A file of a scheme is of the part that has the same of other chapters.
PARTS_OF_SCHEMES = {
    "definition": "definitions",
    "functions": "api",
    "representation": "representations",
    "recipe": "recipes",
    "operation": "operations",
    "suites": "golden",
    "inputs": "golden",
    "domain": "deviations",
}


def part_of(path):
    return part_of_module(module_of(path))


def part_of_module(module):
    names = module.split(".")
    if names[1:2] == ["schemes"] and len(names) == 4:
        file = names[3].split("_")[0]
        return PARTS_OF_SCHEMES.get(file, file)
    return names[1] if len(names) > 1 else "__init__"


@functools.cache
def imports_of(path):
    """Return the modules of this package that a module imports anywhere in its code."""
    return list(imports_among(path, ast.walk(ast.parse(path.read_text()))))


def loads_of(path):
    """Return the modules of this package that a module imports when it is loaded."""
    return list(imports_among(path, ast.parse(path.read_text()).body))


def imports_among(path, nodes):
    for node in nodes:
        if isinstance(node, ast.ImportFrom):
            assert node.level == 0, (
                f"{path}:{node.lineno} imports relatively, which hides from where"
            )
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        for name in names:
            found = name if name in MODULES else name.rpartition(".")[0]
            if found in MODULES:
                yield found


def imported_parts(path):
    yield from map(part_of_module, imports_of(path))


def test_imports_point_one_way():
    for path in MODULES.values():
        assert set(imported_parts(path)) <= MAY_IMPORT[part_of(path)], path


def test_the_table_allows_no_more_than_there_is():
    unused = {part: allowed - {part} for part, allowed in MAY_IMPORT.items()}
    for path in MODULES.values():
        unused[part_of(path)] -= set(imported_parts(path))
    assert not any(unused.values()), unused


def circles_among(imports):
    """Return sets of names that reach each other."""

    def reached_from(start):
        found, waiting = set(), [start]
        while waiting:
            new = imports[waiting.pop()] - found
            found |= new
            waiting += new
        return found

    reached = {name: reached_from(name) for name in imports}
    return {
        frozenset(other for other in reached[name] if name in reached[other])
        for name in imports
        if name in reached[name]
    }


def test_no_two_modules_import_each_other_in_a_circle():
    """Nor in a function, where the circle would only come later."""
    imports = {name: set(imports_of(path)) - {name} for name, path in MODULES.items()}
    assert circles_among(imports) == set()


def test_no_two_parts_import_each_other_in_a_circle():
    """Bindings of rows, which wait for a call, do not count."""
    imports = {part: set() for part in MAY_IMPORT}
    for path in MODULES.values():
        part = part_of(path)
        bound = BOUND if part in BINDERS else set()
        imports[part] |= set(imported_parts(path)) - bound - {part}
    assert circles_among(imports) == set()


@pytest.mark.parametrize("part", sorted(BINDERS))
def test_rows_bind_the_implementations_only_when_they_are_called(part):
    """Not when the module of the rows is loaded."""
    for path in MODULES.values():
        if part_of(path) == part:
            loaded = {name for name in loads_of(path) if part_of_module(name) in BOUND}
            assert loaded == set(), path


GROUPED = sorted({path.parts[-3] for path in PACKAGE.glob("*/*/*.py")})


@pytest.mark.tier("full", but=["[ptx]"])
@pytest.mark.parametrize("part", GROUPED)
def test_no_two_groups_of_a_part_import_each_other_in_a_circle(part):
    """A group is a directory or a module right under a part."""
    imports = {}
    for name, path in MODULES.items():
        if path.is_relative_to(PACKAGE / part) and name != f"mor_ref.{part}":
            others = (other.split(".") for other in imports_of(path))
            found = {names[2] for names in others if names[1:2] == [part] and len(names) > 2}
            group = name.split(".")[2]
            imports[group] = imports.get(group, set()) | found - {group}
    assert circles_among(imports) == set()


# The chapters of the specification that are computed: the exact model or its definitions have them.
CHAPTERS = {path.stem for path in (ROOT / "spec").glob("*.md")} & {
    *(path.stem for part in ("exact", "definitions") for path in (PACKAGE / part).glob("*.py")),
    *SCHEMES,
}

# The files that are not a chapter, with the reason.
DEQUANTIZATION = "the way back, of the chapters quantization, nvfp4 and mx"
DOT_AMD = "sums of AMD's matrix cores, of the chapter dot"
DOT_BINARY32 = "sums of binary32 and of integers, of the chapter dot"
DOT_NVIDIA = "sums of NVIDIA's tensor cores, of the chapter dot"
MATMUL = "products of matrices, of the chapter dot"
METRICS = "acceptance, a part of the chapter policies"
MEASURING = "error sums of any representation, of the chapters errors and policies"
UNIT_SUMS = "what metrics compare, a part of the chapter policies"
NEAREST = "rounding to nearest, of all chapters that quantize"
LARGE_TENSORS = "the large tensors of a chapter whose file is long without them"
BLOCK_FORMULAS = "the chapters mx, nvfp4, scales and gam as formulas"
OUTLIERS = "the columns that steps before the blocks keep, of the chapter block_formats"
PHILOX = "the random words of the chapter nvfp4"
STEPS_BEFORE = "steps before the blocks, of the chapter block_formats"
TABLES = "elements that are values of a table, of the chapter block_formats"
NO_CHAPTERS = {
    "definitions": {
        "before_blocks": STEPS_BEFORE,
        "block_formulas": BLOCK_FORMULAS,
        "catalogue": "the type of the tables of rows",
        "code_digest": "digests of a user's own code, of the chapter policies",
        "dot_arguments": "what functions of the chapter dot are given",
        "elements": "codes of scaled numbers, of the chapter block_formats",
        "finfo": "limits, of the chapter formats",
        "integer_grids": "integers, of the chapter affine and others",
        "format": "the type of a row of the chapter formats",
        "format_names": "names in other software, of the chapter formats",
        "formula_functions": "functions of a user in formulas, of the chapter block_formats",
        "formulas": "what formulas are, of the chapter block_formats",
        "matmul": MATMUL,
        "roles": "what a tensor is in a model, of the chapter policies",
        "table_format": TABLES,
        "tables": "the type of tables that records have",
        "unit_sums": UNIT_SUMS,
    },
    "exact": {
        "before_blocks": STEPS_BEFORE,
        "arithmetic": "the arithmetic of all chapters (notation.md)",
        "columns": "the arithmetic of all chapters, many numbers at a time",
        "dot_amd": DOT_AMD,
        "dot_binary32": DOT_BINARY32,
        "dot_nvidia": DOT_NVIDIA,
        "dot_terms": "products and terms, of the chapter dot",
        "error_columns": "error sums of many numbers, of the chapter errors",
        "matmul": MATMUL,
        "metrics": METRICS,
        "outliers": OUTLIERS,
        "philox": PHILOX,
        "step": "lets a deviation replace a step",
        "table_format": TABLES,
        "unit_sums": UNIT_SUMS,
    },
    "engine": {
        "before_blocks": STEPS_BEFORE,
        "block_steps": "steps of the chapter block_formats",
        "block_tensors": "whole tensors of the chapter block_formats",
        "amaxes": "the largest and the smallest magnitudes of blocks, of the chapter scales",
        "dequantization": DEQUANTIZATION,
        "dot_amd": DOT_AMD,
        "dot_binary32": DOT_BINARY32,
        "dot_exact": "sums that are rounded once, of the chapter dot",
        "dot_nvidia": DOT_NVIDIA,
        "dot_operands": "rows of numbers, of the chapter dot",
        "dot_rounding": "steps of all sums, of the chapter dot",
        "formulas": "formulas as text, of the chapter block_formats",
        "intrinsics": "instructions that Numba lacks",
        "kernel": "compiles all chapters",
        "matmul": MATMUL,
        "measuring": MEASURING,
        "nearest": NEAREST,
        "outliers": OUTLIERS,
        "philox": PHILOX,
        "parallel": "splits loops among threads",
        "percentiles": "percentiles of the chapter block_formats",
        "saturation": "what recordings count, a part of the chapter training",
        "small_tensors": "calls with few numbers, of the chapter block_formats",
        "squares": "squared errors, a part of the chapter errors",
        "steps": "single steps of all chapters",
        "strips": "cuts tensors for all loops",
        "table_format": TABLES,
        "widening": "reads numbers of 16 bits for all loops",
        "unit_sums": UNIT_SUMS,
        "unrounded_y": "a part of the chapter errors",
    },
    "api": {
        "before_blocks": STEPS_BEFORE,
        "border": "checks what holds for all public functions",
        "quantize": "of the chapters quantization and block_formats",
        "coded_blocks": "records as codes and scales, of the chapter dot",
        "dequantization": DEQUANTIZATION,
        "given_scales": "given amaxes and scales, of the chapters scales, nvfp4 and block_formats",
        "loading": "reads records of all chapters from files",
        "matmul": MATMUL,
        "matmul_operands": "records as rows, of the chapter dot",
        "matmul_segments": "products in segments of K, of the chapter dot",
        "measures": "errors and squares, of the chapter errors",
        "plans": "what calls with the same arguments share",
        "stochastic": "random words, of the chapters quantization, mx and nvfp4",
        "packing": "codes as bytes, of the chapters levels and shared",
        "philox": PHILOX,
    },
    "cuda": {
        "arrays": "takes arrays of users",
        "cache": "keeps compiled kernels",
        "conversions": "instructions of GPUs, of the chapters encoding and decoding",
        "device": "a GPU",
        "dot_functions": "the public functions of the chapter dot",
        "dot_products": "the chapter dot, whose name is that of a public function",
        "functions": "the public functions of the other chapters",
        "host": "a CPU that stands for a GPU",
        "launching": "launches the kernels of all chapters",
        "matmul_functions": "the public functions of products of matrices, of the chapter dot",
        "matmul_operands": "records and arrays as operands, of the chapter dot",
        "matrix_products": MATMUL,
        "measuring": MEASURING,
        "metrics": METRICS,
        "nvrtc": "compiles kernels",
        "ptx": "checks compiled kernels",
        "records": "what results have in common",
        "source": "finds the sources of kernels",
        "streams": "orders what runs at the same time",
        "structures": "the arguments of the kernels of all chapters",
        "unavailable": "the error of a missing GPU",
        "unit_sums": UNIT_SUMS,
    },
    "cuda/kernels": {
        "fp8lm_state": "steps of states, of the chapter fp8lm",
        "dot_amd": DOT_AMD,
        "dot_binary32": DOT_BINARY32,
        "dot_nvidia": DOT_NVIDIA,
        "dot_operands": "records and numbers of operands, of the chapter dot",
        "dot_terms": "products, terms and roundings, of the chapter dot",
        "conversions": "instructions of GPUs, of the chapters encoding and decoding",
        "packing": "codes as bytes, of the chapters levels and shared",
        "elementwise": "loops of the chapters encoding and decoding",
        "kernels": "declares the kernels of all chapters",
        "matmul": MATMUL,
        "measuring": MEASURING,
        "nearest": NEAREST,
        "numbers": "reads numbers for all chapters",
        "prelude": "hides what differs between compilers",
        "significands": "numbers as integers, of the chapters dot and policies",
        "vectors": "loads and stores for all chapters",
        "unit_sums": UNIT_SUMS,
    },
    "golden/suites": {
        "own": "suites of a user, of the chapters block_formats and policies",
        "own_policies": "suites of a user, of the chapter policies",
        "catalogue": "lists the suites of all chapters",
        "dot_integers": "products of integers, of the chapter dot",
        "dot_scaled": "products of blocks with scales, of the chapter dot",
        "large": "makes the suites of large tensors for the chapters",
        "matmul": MATMUL,
        "nvfp4_large": LARGE_TENSORS,
        "policies_large": LARGE_TENSORS,
        "quantization_large": LARGE_TENSORS,
        "tensor_cases": "makes the cases of tensors for the chapters",
        "metrics": METRICS,
    },
    "operations": {
        "catalogue": "lists the operations of all chapters",
        "bits": "between bits and numbers",
        "call": "the parameters and inputs of a call",
        "elements": "what tensors of several chapters have",
        "fields": "declares fields",
        "given_words": "random words, of the chapters quantization, mx and nvfp4",
        "integers": "integers as the bits of a field",
        "margins": "distances from thresholds, of the chapter policies",
        "matmul": MATMUL,
        "nearest": "the numbers that codes are the nearest to, of all chapters",
        "operation": "declares operations",
        "parameters": "the values that parameters have",
        "random_blocks": "random blocks of all chapters",
        "random_dots": "random rows of the chapter dot",
        "random_numbers": "random numbers of all chapters",
        "random_products": "random entries of products of matrices, of the chapter dot",
        "random_words": "the random words of all chapters",
        "results": "results as bits",
        "shapes": "the shapes of fields",
        "way_back": "from fields to y, for all chapters",
        "metrics": METRICS,
    },
}


@pytest.mark.parametrize("part", NO_CHAPTERS)
def test_a_chapter_has_the_name_that_it_has_in_the_specification(part):
    endings = {".py", ".cu", ".cuh"}
    there = {path.stem for path in (PACKAGE / part).iterdir() if path.suffix in endings}
    assert there - CHAPTERS - {"__init__"} == NO_CHAPTERS[part].keys()


@pytest.mark.parametrize(
    "path",
    [path for path in MODULES.values() if part_of(path) in WITHOUT_NUMPY],
    ids=lambda path: f"{path.parent.name}.{path.stem}",
)
def test_the_exact_model_names_no_array_library(path):
    text = path.read_text().replace('error_model="numpy"', "")  # of Numba, which compiles scalars
    assert "numpy" not in text.replace("NumPy", "")


def test_the_exact_model_needs_no_array_library():
    done = subprocess.run(
        [sys.executable, "-c", "import sys, mor_ref.exact; print('numpy' in sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "False"


@pytest.mark.tier("full", but=["command0", "command1"])
@pytest.mark.parametrize("command", [["ruff", "check"], ["ruff", "format", "--check"], ["mypy"]])
def test_style_and_types(command):
    tool, *arguments = command
    imported(tool)
    where = [] if tool == "mypy" else ["."]
    done = subprocess.run(
        [sys.executable, "-m", tool, *arguments, *where],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.tier("full", but=["[golden.load]"])
@pytest.mark.parametrize(
    "name",
    ["cuda.mor", "deviations.applied", "exact.encode", "golden.load", "verify.assert_bit_exact"],
)
def test_parts_are_there_after_an_import_of_the_package(name):
    """And not before they are asked for."""
    part = name.partition(".")[0]
    script = (
        "import sys, mor_ref\n"
        f"assert 'mor_ref.{part}' not in sys.modules and 'numpy' not in sys.modules\n"
        f"assert callable(mor_ref.{name}) and {part!r} in dir(mor_ref)"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


# What takes long to load; time itself depends on the machine.
SLOW = {"asyncio", "distributed", "jinja2", "llvmlite", "matplotlib", "ml_dtypes",
        "multiprocessing", "numba", "numpy", "safetensors", "torch"}  # fmt: skip


def loaded_by(statement):
    """Return the packages, and the modules of this one, that a statement loads."""
    script = f"""
import sys
try:
    {statement}
except SystemExit:
    pass
print(*sys.modules, file=sys.stderr)
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    modules = done.stderr.split()
    ours = {name for name in modules if name.startswith("mor_ref.")}
    return {name.partition(".")[0] for name in modules}, ours


def test_starting_is_quick():
    packages, ours = loaded_by("import mor_ref")
    assert not packages & (SLOW | {"rich", "typer"})
    assert ours == {
        "mor_ref.argument_checks",
        "mor_ref.schemes",
        *(
            f"mor_ref.definitions{name}"
            for name in ("", ".catalogue", ".encoding", ".format", ".format_names", ".formats")
        ),
    }
    help_of = "sys.argv[:] = ['mor-ref', '--help']; from mor_ref.cli import main; main()"
    packages, more = loaded_by(help_of)
    assert not packages & SLOW
    assert {name for name in more - ours if not name.startswith("mor_ref.cli")} == {
        "mor_ref.printable",
        "mor_ref.signals",
    }


@pytest.mark.tier("full")
def test_operations_are_asked_and_not_known_by_name():
    """Declarations have what some of them need and others do not."""
    found = []
    for path in [*PACKAGE.glob("verify/**/*.py"), *PACKAGE.glob("golden/**/*.py")]:
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Compare) and "operation" in ast.unparse(node.left):
                compared = ast.walk(ast.Tuple(node.comparators))
                names = {one.value for one in compared if isinstance(one, ast.Constant)}
                found += [(path, node.lineno)] * bool(names & OPERATIONS.keys())
    assert found == []


def test_mutants_are_made_of_every_module_of_the_engine():
    listed = ast.parse((ROOT / "tests" / "mutation" / "run.py").read_text())
    (table,) = (
        node.value
        for node in ast.walk(listed)
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "OTHER_TESTS"
    )
    modules = {path.stem for path in (PACKAGE / "engine").glob("*.py")} - {"__init__"}
    for path in PACKAGE.glob("schemes/*/engine*.py"):
        modules.add(path.parent.name + path.stem.removeprefix("engine"))
    others = ast.literal_eval(table)
    assert others.keys() <= modules
    tests = {f"test_{name}.py" for one in modules for name in others.get(one, (one,))}
    assert tests <= {path.name for path in (ROOT / "tests").glob("*.py")}
