"""Each mistake of an encoder is found in the elements of each kind of call and source by itself.

A library has a kernel for each, and a mistake of an encoder may be in one of them alone.
"""

import functools
import json

import numpy as np
import pytest
from test_wrong_kernels import SUITES, cases_of
from wrong.conversions import opened
from wrong.each_encoder import MISTAKES, right
from wrong.microscaling import widened

from mor_ref.golden.inputs.edges import narrowed
from mor_ref.operations import OPERATIONS

KINDS = {"mx": ("format", "scale_rule", "source"), "quantize": ("format", "scaling", "source")}
# Mistakes that change fewer of the numbers tried may be missed: scales of binary32 have too many
# bits for one number next to a tie in each of them.
RARE = {"mx": 0, "quantize": 1e-3}
ASKED = {"rounding": "rne", "overflow": "satfinite", "nan": "canonical", "source": "f32"}
CUTS = {"mx": {"block": 64}, "quantize": {"block": [1, 64], "group": "tensor"}}


def kinds(operation):
    cases = SUITES[operation]["cases"].values()
    names = KINDS[operation]
    return list(dict.fromkeys(json.dumps({name: case[name] for name in names}) for case in cases))


@functools.cache
def numbers(source):
    """Return numbers in rows of many magnitudes, whose elements are small and large."""
    random = np.random.default_rng(5)
    x = random.standard_normal((128, 1024)) * np.exp2(random.integers(-3, 4, (128, 1)))
    x = (x * np.exp(random.standard_normal(x.shape))).astype(np.float32)
    return narrowed(x.view(np.uint32), source)


def scaled(operation, kind):
    """Return the numbers times the scales of the engine."""
    x = numbers(kind["source"])
    scale = OPERATIONS[operation].engine({**kind, **CUTS[operation]}, {"x": x})["scale"]
    if operation == "mx":
        scale = np.exp2(127.0 - scale).astype(np.float32).view(np.uint32)
    return widened(x, kind["source"]) * scale.view(np.float32).repeat(64, axis=1)


@pytest.mark.tier("full", but_one_in=77)
@pytest.mark.parametrize(("operation", "kind"), [(name, k) for name in KINDS for k in kinds(name)])
def test_the_elements_show_each_mistake(operation, kind):
    wanted = json.loads(kind)
    asked = ASKED | {"format": wanted["format"]}
    cases = [
        case
        for case, _ in cases_of(operation)  # larger ones have no xs
        if wanted.items() <= case.parameters.items() and "xs" in case.arrays
    ]
    x = opened(np.concatenate([case.arrays["xs"].ravel() for case in cases]), "f32")
    expected = np.concatenate([case.arrays["code"].ravel() for case in cases])
    np.testing.assert_array_equal(right(asked, x), expected)
    bits, counts = np.unique(scaled(operation, wanted).view(np.uint32), return_counts=True)
    more = opened(bits, "f32")
    codes, missed = right(asked, more), {}
    with np.errstate(all="ignore"):
        for mistake, encode in MISTAKES.items():
            if (encode(asked, x) == expected).all():
                share = counts[encode(asked, more) != codes].sum() / counts.sum()
                if share > RARE[operation]:
                    missed[mistake] = share
    assert missed == {}
