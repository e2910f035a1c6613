"""Kernels of FP8 that quantize with a scale of an earlier call: the diagnosis names the call.

They answer the cases of a suite, which have many formats, kinds of scales and blocks.
"""

from functools import cache

import numpy as np
import pytest
from structural_faults import MANIFEST

from mor_ref import golden
from mor_ref.operations import OPERATIONS
from mor_ref.verify.comparing.evidence import Evidence
from mor_ref.verify.comparing.names_given import fields_of
from mor_ref.verify.diagnosing.sample import samples_of
from mor_ref.verify.diagnosing.structure import structures_of
from mor_ref.verify.reporting.structure_text import structure_lines

QUANTIZE = OPERATIONS["quantize"]
cases = cache(golden.load)


def of_tensors(asked):
    return asked["block"] == "tensor"


def of_one_recipe(asked):
    return of_tensors(asked) and (asked["format"], asked["scaling"]) == ("e4m3", "fp32")


def of_any(_):
    return True


def one_variable(_):
    return "last"


def by_recipe(asked):
    return asked["format"], asked["scaling"]


def with_scale(asked, x, scale):
    """Return the codes of a tensor with one scale."""
    numbers = {"x": x.reshape(-1, 1), "scale": np.repeat(scale.reshape(1, 1), x.size, axis=0)}
    return QUANTIZE.way_back.coded(asked | {"block": [1, 1]}, numbers).reshape(x.shape)


def stale_scale(asked, x, kept):
    """Use the scale that was kept, which is stored for the next call."""
    return {"scale": kept["scale"], "code": with_scale(asked, x, kept["scale"])}


def stale_code(asked, x, kept):
    return {"code": with_scale(asked, x, kept["scale"])}


def stale_amax(asked, x, kept):
    """Compute the scale from the amax that was kept."""
    of_amax = QUANTIZE.engine(asked | {"source": "f32"}, {"x": kept["amax"].reshape(1, 1)})
    code = with_scale(asked, x, of_amax["scale"])
    return {"amax": kept["amax"], "scale": of_amax["scale"], "code": code}


def answers_of(answers, keeps, wrong):
    """Return what a kernel answers, case by case; `keeps` returns the name of its variable.

    If it answers blocks that are smaller than a tensor, these answers are right.
    """
    found, kept = {}, {}
    for case in cases("quantize"):
        asked, x = case.parameters, case.arrays["x"]
        if not answers(asked):
            continue
        right = QUANTIZE.engine(asked, case.arrays)
        found[case.name] = {"scale": right["scale"], "code": right["code"]}
        if of_tensors(asked):
            last = kept.get(keeps(asked), right)
            kept[keeps(asked)] = right
            found[case.name] = wrong(asked, x, last)
    return found


def said_of(answers):
    suite = "quantize"
    fields = fields_of(MANIFEST[suite])
    evidence = Evidence(suite, suite, fields, cases(suite), answers)
    return list(structure_lines(structures_of(list(samples_of(evidence)))))


CALL_BEFORE = "the same place in the preceding case"
OF_RECIPE = f"{CALL_BEFORE} with the same format and scaling"
OF_TENSOR = "the tensor before it with the same format, scaling, block and group"
KERNELS = {
    "one recipe": (
        (of_one_recipe, one_variable, stale_scale),
        "scale: each entry is that of the amax of the tensor before it, in all",
    ),
    "one recipe, of codes": (
        (of_one_recipe, one_variable, stale_code),
        f"code: each entry is that of x with the expected scale of {CALL_BEFORE}, in all",
    ),
    "all tensors, one variable": (
        (of_tensors, one_variable, stale_scale),
        f"scale: each entry has the expected value of {CALL_BEFORE}, in all",
    ),
    "all tensors, one amax": (
        (of_tensors, one_variable, stale_amax),
        f"amax: each entry has the expected value of {CALL_BEFORE}, in all",
        "scale: each entry is that of the amax of the tensor before it, in all",
    ),
    "all tensors, by recipe": (
        (of_tensors, by_recipe, stale_scale),
        f"scale: each entry has the expected value of {OF_RECIPE}, in all",
    ),
    "all tensors, amax by recipe": (
        (of_tensors, by_recipe, stale_amax),
        f"amax and scale: each entry has the expected value of {OF_RECIPE}, in all",
    ),
    "the whole suite, one variable": (
        (of_any, one_variable, stale_scale),
        f"scale: each entry has the expected value of {CALL_BEFORE} with the same block, in all",
        "scale: an entry that it would change differs only if block is tensor: all ",
    ),
    "the whole suite, by recipe": (
        (of_any, by_recipe, stale_scale),
        f"scale: each entry is that of the amax of {OF_TENSOR}, in all",
    ),
}
QUICK = ["[one recipe]", "[one recipe, of codes]", "[all tensors, by recipe]"]


@pytest.mark.tier("full", but=QUICK)
@pytest.mark.parametrize("name", KERNELS)
def test_a_scale_of_an_earlier_call_is_named(name):
    """SCL-001: tensors come in several formats, and recipes one after the other."""
    kernel, *says = KERNELS[name]
    lines = said_of(answers_of(*kernel))
    for words in says:
        assert any(line.startswith(words) for line in lines), lines
    code = [line for line in lines if line.startswith("code: ")]
    assert ["that of x with the " in line for line in code] == [True], lines
