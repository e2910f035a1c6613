"""The names and the parameters of `mor_ref.cuda` are those of the package."""

import inspect
import operator
import re
from importlib.resources import files

import pytest
from test_cuda_functions import CALLS

import mor_ref
import mor_ref.cuda
from mor_ref.definitions.nvfp4 import BLOCK_SCALE_RULES

OF_BLOCK_FORMATS = {
    *("BlockFormat", "BlockFormatError", "BlockQuantized", "BlockScale"),
    *("FormulaFunction", "Hadamard", "KeptColumns", "TableFormat", "formula_functions"),
}
OF_UNITS = {"Cosine", "LargestByRow", "RelativeFrobenius", "Role", "Sqnr", "Unit"}
OF_ONE_NUMBER = {"ExplainedEncoding", "Neighbours", "explain", "neighbours"}
OF_MIXTURES = {"Mixed", "mix_formats", "mix_layer"}
OF_RANDOM_WORDS = {"philox4x32", "te_random_words"}
WITHOUT_KERNELS = (
    {"load", "fp4_with_reciprocals"}
    | OF_RANDOM_WORDS
    | OF_MIXTURES
    | OF_BLOCK_FORMATS
    | OF_UNITS
    | OF_ONE_NUMBER
)
# Of fractions, and for matmul of the host.
ON_THE_HOST = {
    "Levels.alpha_sums",
    *(f"{record}.in_blocks" for record in ("Mx", "Nvfp4", "Quantized")),
}


def test_the_names_are_those_of_the_package():
    """But for functions that no kernel computes: they never run on a CPU instead."""
    names = [name for name in mor_ref.__all__ if name not in WITHOUT_KERNELS]
    assert mor_ref.cuda.__all__ == names == dir(mor_ref.cuda)
    functions = {*RESULT_NAMES, "DotChunks", "ErrorSums", *CALLS, *OF_CODES}
    for name in names:
        is_same = getattr(mor_ref.cuda, name) is getattr(mor_ref, name)
        assert is_same == (name not in functions), name


OF_CODES = ("decode", "dot", "dot_chunks", "matmul", "transposed")
RESULT_NAMES = ("Affine", "Levels", "MorResult", "Mx", "Nvfp4", "Quantized", "Shared")
METHODS = [
    f"{result}.{method}"
    for result in RESULT_NAMES
    for method, _ in inspect.getmembers(getattr(mor_ref, result), inspect.isfunction)
    if not method.startswith("_")
]


@pytest.mark.parametrize("name", [*CALLS, *OF_CODES, *(m for m in METHODS if m not in ON_THE_HOST)])
def test_the_parameters_are_those_of_the_package(name):
    """But for arguments that a GPU has no use for, and random words of tensors (QNT-005)."""
    ours, theirs = (
        {parameter.name: (parameter.default, parameter.kind) for parameter in parameters}
        for parameters in (
            inspect.signature(operator.attrgetter(name)(module)).parameters.values()
            for module in (mor_ref.cuda, mor_ref)
        )
    )
    words = {"random_bits", "n_random_bits"} if name.startswith("quantize") else set()
    assert theirs.keys() - ours.keys() <= {"out", "threads"} | words
    for parameter, (default, kind) in ours.items():
        assert theirs[parameter][1] == kind
        if parameter not in ("overflow", "nan"):
            assert theirs[parameter][0] == default


def test_kernels_enumerate_the_rules_of_tiles_in_the_order_of_their_definition():
    source = files("mor_ref.cuda") / "kernels" / "nvfp4.cuh"
    (names,) = re.findall(r"enum TileRule : u32 \{ (.*) \};", source.read_text())
    right = [name.upper().replace("4OVER6", "FOUR_OVER_SIX") for name in BLOCK_SCALE_RULES]
    assert names.split(", ") == right
