"""Mistakes of NVFP4: they follow from the source of the exact model."""

import functools
import hashlib

import numpy as np
import pytest
from bits_of_mistakes import equals
from put_aside import put_aside
from wrong import REGISTERED
from wrong.causes import OF_NVFP4

from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.deviations import applied
from mor_ref.golden import load
from mor_ref.golden.generation.mistakes_shown import derived_tiles, kind_of, mistakes_of_tiles
from mor_ref.golden.model.suite import Case, question
from mor_ref.golden.suites import SUITES
from mor_ref.mistakes.catalogue import CAUSES, FORMER_IDS, MODELLED
from mor_ref.mistakes.nvfp4 import (
    NO_MISTAKES,
    OF_TENSORS,
    mistakes_of_nvfp4,
    pairs_of_sites_and_operators,
)
from mor_ref.mistakes.rows import Kind, matrix
from mor_ref.operations import OPERATIONS

SUITE = "nvfp4_blocks"
F, U = np.float32, np.uint32
# They are wrong in something else as well, where amax is infinite, x is NaN or xs is infinite.
PARTLY = ("divided_by_decode", "decode_scale_from_amax", "zeros_have_the_largest_scale",
          "largest_error")  # fmt: skip


@functools.cache
def every_kind():
    """Return the derived tiles under each profile."""
    return {case.name: case for case in derived_tiles()}


@functools.cache
def shown(kind):
    """Return what becomes of each pair of a site and an operator under a profile."""
    pairs = [one for one in pairs_of_sites_and_operators() if one.name not in OF_TENSORS]
    return matrix(pairs, kind_of(SUITE, every_kind()[kind]))


@pytest.mark.tier("exhaustive")
def test_every_mistake_is_shown_by_derived_tiles():
    """From an empty suite; those that are no mistakes differ nowhere."""
    found = {}
    for kind in every_kind():
        for verdict in shown(kind):
            found.setdefault(verdict.mistake.name, []).append(verdict)
    unseen = {name for name, each in found.items() if not any(one.shown for one in each)}
    assert unseen == {name for name, why in NO_MISTAKES.items() if not why.startswith("It is NVF")}


def tensors_of(suite):
    """Return the tensors of a suite in tiles of 16 rows, as a kind of call: a row is a tensor."""
    cases = [question(SUITES[suite].fields, case) for case in load(suite)]
    cases = [case for case in cases if case.parameters["tile"] == [16, 16]]

    def compute(rows):
        answers = [OPERATIONS["nvfp4"].exact(cases[k].parameters, cases[k].arrays) for k in rows]
        fields = (b"".join(array.tobytes() for array in one.values()) for one in answers)
        return {"digest": np.array([[*hashlib.sha256(one).digest()] for one in fields], np.uint8)}

    return Kind(suite, len(cases), compute)


@pytest.mark.tier("exhaustive")
def test_mistakes_have_bits_of_their_own():
    """In derived tiles, and, for sums of rows and bytes, in tensors of a suite."""
    cases = sorted(every_kind().items(), key=lambda one: bool(PROFILES[one[0]].scales.error))
    kinds = [kind_of(SUITE, case) for _, case in cases]  # those that cost least are first
    assert equals(mistakes_of_nvfp4(), [*kinds, tensors_of("nvfp4_te_4over6_mae")]) == []


@pytest.mark.tier("full")
def test_pairs_that_are_another_mistake_have_its_bits():
    """Of the first derived tiles under a profile of the rule."""
    kinds = {"NVF-006": "te_4over6_mae", "NVF-007": "torchao", "NVF-009": "compressed_tensors"}
    pairs = {one.name: one for one in pairs_of_sites_and_operators()}
    others = [one for one in NO_MISTAKES.items() if one[1].startswith("It is NVF")]
    for name, other in ((name, why.split()[2].rstrip(".,:")) for name, why in others):
        case = every_kind()[kinds[name[:7]]]
        arrays = {key: array[402:] for key, array in case.arrays.items()}
        kind = kind_of(SUITE, Case(case.name, case.parameters, arrays))
        assert equals([pairs[name], pairs[other]], [kind]) == [{name, other}]


# Of the trial that found them: no suite of golden/v1 shows them, but derived tiles do.
HOLES = {
    "NVF-002/amax-nan-of-first": "te",
    "NVF-007/g-quotient-ties-away": "torchao",
    "NVF-005/sixth-quotient-ties-away": "te_2_13",
    "NVF-007/sixth-quotient-ties-away": "torchao",
    "NVF-004/number-product-ties-away": "te",
    "NVF-010/xs-quotient-ties-away": "modelopt",
    "NVF-006/of-tensor-product-saturated": "te_4over6_mae",
    "NVF-006/square-product-saturated": "te_4over6_mse",
    "NVF-007/decode-product-saturated": "torchao",
    "NVF-008/decode-product-saturated": "modelopt",
}


@pytest.mark.parametrize("name", HOLES)
def test_derived_tiles_show_what_the_first_suites_do_not(name):
    mistake = next(one for one in mistakes_of_tiles() if one.name == name)
    case = next(one for one in derived_tiles() if one.name == HOLES[name])
    special = {key: array[402:] for key, array in case.arrays.items()}  # the tiles that are written
    (verdict,) = matrix([mistake], kind_of(SUITE, Case(case.name, case.parameters, special)))
    assert verdict.shown


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("name", [name for name in OF_NVFP4 if name.split(".")[1] not in PARTLY])
def test_a_whole_wrong_kernel_has_the_bits_of_its_mistake(name):
    """A kernel that was written before the model, on derived tiles."""
    kernels = (one for one in REGISTERED if one.name.startswith(f"{name}."))
    kernel = next((one for one in kernels if one.name.endswith("1x16")), None)
    if kernel is None or kernel.name in put_aside() or "over_decode_scale.te_2" in kernel.name:
        pytest.skip("it is of tensors, or put aside")
    case = next(one for one in derived_tiles() if one.name == kernel.name.split(".")[2])
    arrays = {key: array[::5] for key, array in case.arrays.items()}
    found = kernel.run("nvfp4_block", case.parameters, arrays)
    with applied(CAUSES[OF_NVFP4[name]]), np.errstate(all="ignore"):
        expected = OPERATIONS["nvfp4_block"].exact(case.parameters, arrays)
    for field in found.keys() & expected.keys():
        assert np.array_equal(found[field].reshape(expected[field].shape), expected[field]), field


def test_ids_are_a_rule_and_an_operator():
    mistakes = mistakes_of_nvfp4()
    names = [one.name for one in mistakes]
    assert len({*names}) == len(names)
    assert {*names} <= MODELLED.keys()
    pairs = {one.name for one in pairs_of_sites_and_operators()}
    assert NO_MISTAKES.keys() <= pairs
    assert {*OF_TENSORS} <= {*names}
    for one in mistakes:
        assert one.summary.endswith(".")
    assert CAUSES[FORMER_IDS["nibbles_swapped"]].summary.endswith("golden/v1: nibbles_swapped.")
