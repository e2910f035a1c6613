"""The exact model of many numbers at a time is the exact model of one."""

import itertools

import numpy as np
import pytest
from records import adversarial

from mor_ref import golden
from mor_ref.exact.arithmetic import FLT_MAX
from mor_ref.exact.columns import are_finite, rounded
from mor_ref.golden.generation.expected import with_deviation
from mor_ref.golden.generation.witnesses import Entries
from mor_ref.golden.inputs.edges import in_source
from mor_ref.golden.model.suite import Case
from mor_ref.golden.model.views import DIGEST
from mor_ref.golden.suites import SUITES
from mor_ref.mistakes.catalogue import CAUSES
from mor_ref.operations import OPERATIONS
from mor_ref.operations.bits import f32_array
from mor_ref.schemes.affine.definition import AFFINE_PROFILES
from mor_ref.schemes.shared.definition import SHARED_KINDS, SHARED_PROFILES

SHAPES = [(5, 37), (1, 70), (33, 1), (1, 1)]
BLOCKS = ["tensor", "row", "column", [2, 8], [1, 5]]
GRIDS = ["int8", "uint8", "int4", "uint4", "int16", "uint16", "uint2"]


def check_columns(operation, parameters, x):
    """Check that the columns of an operation have every field of its model."""
    declared, bits = OPERATIONS[operation], in_source(x.ravel().tolist(), parameters["source"])
    arrays = {"x": bits.reshape(x.shape)}
    expected = declared.exact(parameters, arrays)
    actual = declared.exact_of_many(parameters, arrays)
    assert actual.keys() == expected.keys()
    for name, field in expected.items():
        np.testing.assert_array_equal(actual[name], field, f"{name} of {parameters}")


@pytest.mark.parametrize("source", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("profile", AFFINE_PROFILES)
def test_columns_of_integers_with_zero_points(profile, source):
    row = AFFINE_PROFILES[profile]
    ways = itertools.product([True] if row.stores_amax else [True, False], GRIDS)
    for number, (symmetric, grid) in enumerate(ways):
        if row.stores_amax and grid != "int8":
            continue
        for count, shape in enumerate(SHAPES):
            block = BLOCKS[(number + count) % len(BLOCKS)]
            parameters = {"grid": grid, "profile": profile, "symmetric": symmetric}
            x = adversarial(shape, seed=31 * number + count)
            check_columns("affine", {**parameters, "block": block, "source": source}, x)


@pytest.mark.parametrize("source", ["f32", "bf16", "f16"])
@pytest.mark.parametrize("profile", SHARED_PROFILES)
@pytest.mark.parametrize("kind", SHARED_KINDS)
def test_columns_of_shared_exponents(kind, profile, source):
    parameters = {"kind": kind, "profile": profile, "block": 16, "source": source}
    for seed, shape in enumerate([*SHAPES, (40, 33)]):
        check_columns("shared", parameters, adversarial(shape, seed=seed))
        check_columns("shared", parameters, np.abs(adversarial(shape, seed=seed + 50)))


def test_numbers_beyond_binary32_are_rounded_to_infinities():
    tie = FLT_MAX + 2.0**103
    numbers = [1e300, -1e300, tie, -tie, np.nextafter(tie, 0), FLT_MAX, -0.0, 2.0**-150]
    with np.errstate(over="ignore"):
        expected = np.array(numbers, np.float32)
    assert f32_array(rounded(numbers)).tolist() == expected.view(np.uint32).tolist()


@pytest.mark.parametrize("special", [np.inf, -np.inf, np.nan])
def test_numbers_are_finite_if_no_number_is_special(special):
    assert are_finite([FLT_MAX] * 1000)
    assert are_finite([])
    for place in range(3):
        numbers = [FLT_MAX, -FLT_MAX, 1.0]
        numbers[place] = special
        assert not are_finite(numbers)
    assert not are_finite([np.inf, -np.inf])


NAMES = ("tail_not_masked", "edge_blocks_dropped", "edge_blocks_repeat_the_last",
         "blocks_down_columns", "read_by_columns", "ENC-003/ties-away", "shared_infinity_saturates",
         "NVF-002+MXS-002/amax-infinities-left-out",
         "SCL-001+NVF-002+MXS-002/amax-infinities-largest")  # fmt: skip
DIGESTED = [
    ("shared_large", "wide.mx9.quark_torch", "magnitude", NAMES),
    ("shared_large", "wide.bfp16_carry.quark_onnx", "shared_exponent", NAMES),
    ("nvfp4_large", "wide.te.1x16", "code", NAMES),
    ("nvfp4_large", "wide.te.1x16", "block_scale", NAMES),
    ("mx_large", "wide.e2m1.ceil", "code", NAMES),
    # The mantissa of a group follows from blocks of other digests.
    ("quantize_large", "groups.e4m3.gam.f16", "scale", ("edge_blocks_dropped",)),
]


@pytest.mark.parametrize(("name", "case", "of", "deviations"), DIGESTED)
def test_a_digest_differs_if_it_does_in_the_whole_tensor(name, case, of, deviations):
    suite, field = SUITES[name], f"{of}@{DIGEST}"
    (whole,) = [found for found in golden.load(name) if found.name == case]
    assert whole.arrays[field].shape[1] > 1
    entries = Entries(suite, [Case(whole.name, whole.parameters, whole.arrays)])
    differing = 0
    for deviation in map(CAUSES.__getitem__, deviations):
        other = with_deviation(deviation, suite, whole).arrays[field]
        rows, columns, _ = whole.arrays[field].shape
        for place in {(0, 0), (rows - 1, columns - 2), (rows - 1, columns - 1)}:
            at = {"case": case, "field": field, "index": [*place, 0]}
            expected = other[*place, 0] != whole.arrays[field][*place, 0]
            assert entries.differs(deviation, at) == expected, (deviation.name, at)
            differing += expected
    assert differing
