"""Products of matrices: the engine is the exact model, for records and arrays of every kind."""

import itertools
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import pairwise

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs
from records import bits32

import mor_ref
from mor_ref import formats, golden
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.exact import arithmetic
from mor_ref.exact import dot as exact_dot
from mor_ref.exact.dot_binary32 import fused
from mor_ref.exact.matmul import Block, entry
from mor_ref.operations import OPERATIONS
from mor_ref.operations.random_numbers import Draws

M, N = 3, 4


def numbers(seed, shape):
    """Return numbers of many sizes, some of them large enough to need bfloat16."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * 2.0 ** random.integers(-6, 6, (shape[0], 1))
    return (x * np.where(random.random(shape) < 0.02, 1e4, 1)).astype(np.float32)


def element(record, i, k):
    """Return the code of an element, its format, the exact factor, and the factor in binary32."""
    tile = record.tile
    place = i // tile[0], k // tile[1]
    if isinstance(record, mor_ref.Quantized):
        scale = float(record.scale[place])
        factor = arithmetic.quotient(1.0, scale)
        return int(record.codes[i, k]), record.fmt, Fraction(factor), factor
    if isinstance(record, mor_ref.Mx):
        factor = formats["e8m0"].value(int(record.scale[place]))
        return int(record.codes[i, k]), record.fmt, Fraction(factor), factor
    overall = float(np.broadcast_to(record.global_decode_scale.reshape(-1), len(record.codes))[i])
    block = formats["e4m3"].value(int(record.block_scale[place]))
    exact = Fraction(block) * Fraction(overall)
    return int(record.codes[i, k]), record.fmt, exact, arithmetic.rn32(exact)


def rung_of(x, i, k):
    """Return the element of a record or a result of mor, and the bfloat16 code of its y."""
    if isinstance(x, mor_ref.MorResult):
        rows, columns = x.units.block
        name = x.ladder[x.choice[i // rows, k // columns]]
        y = int(x.output[i, k])
        if name == "bf16":
            return (y, formats["bf16"], Fraction(1), 1.0), y
        return element(x.quantized[name], i, k), y
    y = mor_ref.encode(x.dequantize(), "bf16", overflow="ieee")
    return element(x, i, k), int(y[i, k])


def exact_sum(row, column):
    """GEM-003: the exact sum of elements times factors, rounded once."""
    terms = (
        Fraction(of.value(code)) * factor * Fraction(of_b.value(code_b)) * factor_b
        for ((code, of, factor, _), _), ((code_b, of_b, factor_b, _), _) in zip(
            row, column, strict=True
        )
    )
    return arithmetic.rn32(sum(terms, Fraction(0)))


def in_segments(row, column, places, profile, wide):
    """GEM-003 and GEM-004: each segment from 0 on, then a fused operation with both scales."""
    c = 0.0
    for start, end in pairwise(places):
        part = list(zip(row[start:end], column[start:end], strict=True))
        (first, _), (first_b, _) = part[0]
        if {first[1].name, first_b[1].name} <= set(profile.formats):
            of, scale = (first[1], first_b[1]), arithmetic.product(first[3], first_b[3])
            codes = [(x[0][0], y[0][0]) for x, y in part]
            by = profile
        else:
            of, scale, by = (formats["bf16"],) * 2, 1.0, wide
            codes = [(x[1], y[1]) for x, y in part]
        a, b = zip(*codes, strict=True)
        c = fused(scale, exact_dot.dot(a, b, 0.0, by, of), c)
    return c


def rows_of(x, transposed):
    """Return the elements of rows along K."""
    shape = x.output.shape if isinstance(x, mor_ref.MorResult) else x.codes.shape
    if transposed:
        return [[rung_of(x, k, n) for k in range(shape[0])] for n in range(shape[1])]
    return [[rung_of(x, m, k) for k in range(shape[1])] for m in range(shape[0])]


def bits(rows):
    return [[bits32(number) for number in row] for row in rows]


def check(a, b, profile, places=None, *, transposed=True, wide=None):
    """Compare with the exact model; B is of B.T if not `transposed`."""
    found = mor_ref.matmul(a, b if transposed else mor_ref.transposed(b), profile=profile)
    of_a, of_b = rows_of(a, False), rows_of(b, transposed)
    if profile == "exact":
        expected = [[exact_sum(row, column) for column in of_b] for row in of_a]
    else:
        by = DOT_PROFILES[profile], DOT_PROFILES[wide] if wide else None
        expected = [[in_segments(row, column, places, *by) for column in of_b] for row in of_a]
    assert found.view(np.uint32).tolist() == bits(expected)
    places = places or range(len(of_a[0]) + 1)
    of_a, of_b = ([blocks_of(row, places) for row in rows] for rows in (of_a, of_b))
    model = [[entry(row, column, DOT_PROFILES[profile]) for column in of_b] for row in of_a]
    assert bits(model) == bits(expected)


def blocks_of(row, places):
    """Return the elements of a row as the exact model takes them."""
    parts = [row[start:end] for start, end in pairwise(places)]
    return [
        Block(
            [x[0] for x, _ in part], part[0][0][1], float(part[0][0][2]), 1.0, [y for _, y in part]
        )
        for part in parts
    ]


@pytest.mark.tier("full", but=["[exact]"])
@pytest.mark.parametrize("profile", ["exact", "hopper_fp8", "ada_fp8", "hopper_fp8_promoted"])
def test_scaled_records(profile):
    """GEM-001, GEM-003: blocks of 1x32 in A and of 48x2 in B, which end at different places."""
    x, y = numbers(1, (M, 112)), numbers(2, (112, N))
    for scaling in ("gam", "fp32", "e8m0"):
        a = mor_ref.quantize(x, "e4m3", block=(1, 32), scaling=scaling)
        b = mor_ref.quantize(y, "e5m2", block=(48, 2), scaling=scaling)
        check(a, b, profile, [0, 32, 48, 64, 96, 112])
    whole = [mor_ref.quantize(z, "e4m3") for z in (x, y)]
    check(*whole, profile, [0, 112])


@pytest.mark.tier("full")
def test_records_of_mx_and_nvfp4_outside_of_their_instructions():
    """GEM-003."""
    x, y = numbers(3, (M, 80)), numbers(4, (N, 80))
    a, b = mor_ref.quantize_mx(x, "e4m3"), mor_ref.quantize_mx(y, "e2m1")
    check(a, b, "exact", transposed=False)
    check(a, b, "blackwell_fp8", [0, 32, 64, 80], transposed=False)
    for profile in ("te", "te_row", "modelopt"):
        a, b = (mor_ref.quantize_nvfp4(z, profile=profile) for z in (x, y))
        check(a, b, "exact", transposed=False)
        check(a, b, "blackwell_fp8", [0, 16, 32, 48, 64, 80], transposed=False)


def with_instruction(a, b, profile, scale_format, overall):
    """GEM-003: the dot products of codes under scales, then times the scales of all blocks."""
    side = a.tile[1]
    rows = []
    for m in range(M):
        row = []
        for n in range(N):
            codes = [
                (x.block_scale if overall else x.scale)[i // x.tile[0]].tolist()
                for x, i in ((a, m), (b, n))
            ]
            scales = exact_dot.Scales(*codes, formats[scale_format], side)
            two = a.codes[m].tolist(), b.codes[n].tolist()
            c = exact_dot.dot(*two, 0.0, DOT_PROFILES[profile], (a.fmt, b.fmt), scales)
            if overall:
                factors = (element(a, m, 0)[2], element(b, n, 0)[2])
                both = [
                    float(np.broadcast_to(x.global_decode_scale.reshape(-1), len(x.codes))[i])
                    for x, i in ((a, m), (b, n))
                ]
                del factors
                c = arithmetic.product(c, arithmetic.product(*both))
            row.append(c)
        rows.append(row)
    return bits(rows)


def test_records_of_mx_under_their_instructions():
    """GEM-003."""
    for seed, (fmt, other, profile, block) in enumerate([
        ("e4m3", "e5m2", "blackwell_mxfp8", 32),
        ("e2m1", "e3m2", "rtx_blackwell_mxfp8", 32),
        ("e2m1", "e2m1", "blackwell_mxfp4", 32),
        ("e2m1", "e2m1", "blackwell_mxfp4", 16),
    ]):  # fmt: skip
        x, y = numbers(seed, (M, 144)), numbers(seed + 50, (N, 144))
        a, b = (mor_ref.quantize_mx(z, f, block=block) for z, f in ((x, fmt), (y, other)))
        found = mor_ref.matmul(a, mor_ref.transposed(b), profile=profile)
        assert found.view(np.uint32).tolist() == with_instruction(a, b, profile, "e8m0", False)


@pytest.mark.parametrize("name", ["mxfp8:rceil", "nvfp4", "nvfp4:torchao", "nvfp4:te_row"])
def test_block_formats_are_mx_and_nvfp4(name):
    """GEM-003: whatever function quantized."""
    x, y = numbers(1, (M, 64)), numbers(2, (N, 64))
    instruction = "blackwell_mxfp8" if name.startswith("mx") else "blackwell_nvfp4"

    def quantized(z):
        _, _, of = name.partition(":")
        if name.startswith("mx"):
            return mor_ref.quantize_mx(z, "e4m3", scale_rule=of)
        return mor_ref.quantize_nvfp4(z, profile=of or "te")

    for profile in ("exact", "blackwell_fp8", instruction):
        a, b = mor_ref.quantize(x, name), mor_ref.quantize(y, name)
        by_name = mor_ref.matmul(a, mor_ref.transposed(b), profile=profile)
        a, b = quantized(x), quantized(y)
        assert bits(by_name) == bits(mor_ref.matmul(a, mor_ref.transposed(b), profile=profile))


@pytest.mark.parametrize(
    "changes",
    [
        {"decode": "s * S"},
        {"decode": "s * (S * 0.875)"},
        {"decode": None, "encode": "1 / (s * S)"},
        {"decode": "s + S"},
    ],
)
def test_block_formats_of_a_user(changes):
    """GEM-003: d is decode, or RN32(1 / encode)."""
    scales = (
        mor_ref.BlockScale("S", "tensor", "amax / 2688"),
        mor_ref.BlockScale("s", (2, 16), "amax / 6 / S or 1", "f16"),
    )
    own = mor_ref.BlockFormat("own", "e2m1", scales, **changes)
    x, y = numbers(1, (M, 40)), numbers(2, (N, 40))
    a, b = mor_ref.quantize(x, own), mor_ref.quantize(y, own)
    product = mor_ref.matmul(a, mor_ref.transposed(b))

    def row(record, i):
        for k, code in enumerate(record.codes[i].tolist()):
            factor = float(record.factor[i // 2, k // 16])
            d = factor if own.decode else arithmetic.quotient(1.0, factor)
            yield Fraction(formats["e2m1"].value(code)) * Fraction(arithmetic.rn32(Fraction(d)))

    for m in range(M):
        for n in range(N):
            total = sum(p * q for p, q in zip(row(a, m), row(b, n), strict=True))
            assert product[m, n] == np.float32(arithmetic.rn32(total))


@pytest.mark.parametrize("of", ["te", "te_row", "torchao"])
def test_records_of_nvfp4_under_their_instruction(of):
    """GEM-003: and blocks of 16x16."""
    tiles = [(1, 16), (16, 16)] if of == "te" else [(1, 16)]
    for tile in tiles:
        x, y = numbers(7, (M, 96)), numbers(8, (N, 96))
        a, b = (mor_ref.quantize_nvfp4(z, profile=of, tile=tile) for z in (x, y))
        found = mor_ref.matmul(a, mor_ref.transposed(b), profile="blackwell_nvfp4")
        expected = with_instruction(a, b, "blackwell_nvfp4", "e4m3", True)
        assert found.view(np.uint32).tolist() == expected


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(
    ("policy", "profile"),
    [
        *itertools.product(
            ["two_way", "three_way", "nvfp4"], ["exact", "hopper_fp8", "blackwell_fp8", "ada_fp8"]
        ),
        *zip(
            itertools.cycle(["two_way", "three_way", "nvfp4"]),
            ["hopper_fp8_f16", "hopper_bf16", "hopper_bf16_k8", "ampere_tf32", "cdna2_fp16",
             "cdna3_bf16_k4"],
            strict=False,
        ),
    ],
)  # fmt: skip
def test_mixed_blocks(policy, profile):
    """GEM-004: of two results of mor, and of one with a record."""
    wide = {
        "hopper_fp8": "hopper_bf16", "blackwell_fp8": "blackwell_bf16", "ada_fp8": "ada_bf16",
        "hopper_fp8_f16": "hopper_bf16", "hopper_bf16": "hopper_bf16",
        "hopper_bf16_k8": "hopper_bf16_k8", "ampere_tf32": "ampere_bf16",
        "cdna2_fp16": "cdna2_bf16_1k", "cdna3_bf16_k4": "cdna3_bf16_k4",
    }  # fmt: skip
    block = (2, 16) if policy == "nvfp4" else (2, 32)
    x, y = numbers(9, (M, 96)), numbers(10, (96, N))
    x[0, 5], y[40, 1] = 3e8, -2e-9
    a = mor_ref.mor(x, policy, block=block)
    b = mor_ref.mor(y, policy, block=block[::-1])
    if policy == "nvfp4":
        b = mor_ref.mor(y, "two_way", block=(16, 2))
    assert len({int(choice) for choice in a.choice.ravel()}) > 1
    places = list(range(0, 97, block[1]))
    check(a, b, profile, places, wide=wide.get(profile))
    record = mor_ref.quantize(y, "e4m3")
    check(a, record, profile, places, wide=wide.get(profile))


OF_FP8 = mor_ref.Policy(
    "of_fp8",
    (mor_ref.Rung("e4m3", mor_ref.MeanRelativeError("0.9")),),
    unit="block",
    block=(128, 128),
)


@pytest.mark.parametrize(
    "profile",
    ["hopper_fp8", "hopper_fp8_promoted", "blackwell_fp8", "hopper_bf16", "ampere_bf16", "exact"],
)
def test_only_blocks_that_units_took_cut_k(profile):
    """GEM-003, GEM-004: a rung of the ladder that no unit took changes no bit."""
    x, y = (np.random.default_rng(n).standard_normal((128, 256), np.float32) for n in (17, 18))
    never = {"nvfp4": "0.001", "e4m3": "0.9"}
    longer = [mor_ref.mor(z, "nvfp4", block=(128, 128), threshold=never) for z in (x, y)]
    shorter = [mor_ref.mor(z, OF_FP8) for z in (x, y)]
    for one, other in zip(longer, shorter, strict=True):
        assert set(one.shares) - set(other.shares) == {"nvfp4"}
        assert one.shares["e4m3"] == other.shares["e4m3"] == 1
        assert (one.output == other.output).all()
    found, expected = (
        mor_ref.matmul(a, mor_ref.transposed(b), profile=profile) for a, b in (longer, shorter)
    )
    assert (found.view(np.uint32) == expected.view(np.uint32)).all()
    of_columns = mor_ref.mor(y.T.copy(), "nvfp4", block=(128, 128), threshold=never)
    expected = mor_ref.matmul(shorter[0], mor_ref.mor(y.T.copy(), OF_FP8), profile=profile)
    found = mor_ref.matmul(longer[0], of_columns, profile=profile)
    assert (found.view(np.uint32) == expected.view(np.uint32)).all()


@pytest.mark.parametrize("profile", ["hopper_bf16", "ampere_bf16", "cdna3_bf16"])
def test_a_tensor_in_bfloat16_is_its_array(profile):
    """GEM-003, GEM-004: all of K is one block, whatever blocks the tensor was tried in."""
    x, y = (np.random.default_rng(n).standard_normal((4, 256), np.float32) for n in (19, 20))
    a, b = (mor_ref.mor(z, "tensor", block=(4, 32), threshold="0.001") for z in (x, y))
    assert a.shares["bf16"] == b.shares["bf16"] == 1
    found = mor_ref.matmul(a, mor_ref.transposed(b), profile=profile)
    one, other = (record.output.view(ml_dtypes.bfloat16) for record in (a, b))
    expected = mor_ref.matmul(one, other.T.copy(), profile=profile)
    assert (found.view(np.uint32) == expected.view(np.uint32)).all()


def test_a_scale_for_each_place_of_k():
    """GEM-003: exact and the families of binary32 take it; pieces refuse it, unless K is 1."""
    x, y = numbers(23, (M, 12)), numbers(24, (N, 12))
    for columns in (12, 1):
        a = mor_ref.quantize(x[:, :columns], "e4m3", block=(2, 1))
        b = mor_ref.transposed(mor_ref.quantize(y[:, :columns], "e4m3", block=(1, 3)))
        of_a = [blocks_of(row, range(columns + 1)) for row in rows_of(a, False)]
        of_b = [blocks_of(row, range(columns + 1)) for row in rows_of(b.of, False)]
        for profile in ("exact", "hopper_fp8")[: 2 if columns == 1 else 1]:
            of = DOT_PROFILES[profile]
            expected = [[entry(row, column, of) for column in of_b] for row in of_a]
            found = mor_ref.matmul(a, b, profile=profile)
            assert found.view(np.uint32).tolist() == bits(expected)
        plain = mor_ref.matmul(a.dequantize(), b.of.dequantize().T, profile="f32_fma")
        found = mor_ref.matmul(a, b, profile="f32_fma")
        assert (found.view(np.uint32) == plain.view(np.uint32)).all()


def test_units_of_one_element_in_bfloat16_have_no_scale():
    """GEM-003, GEM-004: only a block with a scale is refused if it has one element along K."""
    x, y = (np.random.default_rng(n).standard_normal((4, 12), np.float32) for n in (21, 22))
    never = mor_ref.Rung("e4m3", mor_ref.MeanRelativeError("0.000001"))
    policy = mor_ref.Policy("narrow", (never,), unit="block", block=(2, 1))
    a, b = (mor_ref.mor(z, policy) for z in (x, y))
    assert a.shares["bf16"] == b.shares["bf16"] == 1
    rows, columns = ([blocks_that_were_taken(z, n) for n in range(4)] for z in (a, b))
    assert {len(row) for row in rows} == {12}
    expected = [[entry(m, n, DOT_PROFILES["hopper_fp8"]) for n in columns] for m in rows]
    found = mor_ref.matmul(a, mor_ref.transposed(b), profile="hopper_fp8")
    assert found.view(np.uint32).tolist() == bits(expected)


def blocks_that_were_taken(x, row):
    """Return the blocks of a row of a result of mor as the exact model takes them (GEM-004)."""
    found, (rows, columns) = [], x.units.block
    for unit in range(0, x.output.shape[1], columns):
        name = x.ladder[x.choice[row // rows, unit // columns]]
        side = columns if name == "bf16" else x.quantized[name].tile[1]
        places = range(unit, min(unit + columns, x.output.shape[1]) + 1, side)
        elements = [rung_of(x, row, k) for k in range(x.output.shape[1])]
        found += blocks_of(elements, places)
    return found


@pytest.mark.tier("full", but=["[hopper_bf16]"])
@pytest.mark.parametrize("profile", ["exact", "hopper_fp8", "blackwell_fp8", "hopper_bf16"])
def test_each_entry_is_cut_where_its_own_blocks_end(profile):
    """GEM-003, GEM-004: rows of A and columns of B whose blocks have other lengths."""
    random = np.random.default_rng(21)
    x, y = (random.standard_normal((rows, 128), np.float32) for rows in (M, N))
    x[1:, 3:60:7], y[2:, 65::9] = 1e5, 3e-3
    a, b = (mor_ref.mor(z, "nvfp4", block=(1, 64), threshold="0.11") for z in (x, y))
    assert all(len(np.unique(record.choice)) > 1 for record in (a, b))
    assert (a.choice != a.choice[0]).any()
    found = mor_ref.matmul(a, mor_ref.transposed(b), profile=profile)
    of_a = [blocks_that_were_taken(a, m) for m in range(M)]
    of_b = [blocks_that_were_taken(b, n) for n in range(N)]
    expected = [[entry(row, column, DOT_PROFILES[profile]) for column in of_b] for row in of_a]
    assert found.view(np.uint32).tolist() == bits(expected)


# A case of each stream: other cases with the same parameters have other rows.
OF_STREAMS = {
    (*case.parameters.values(), case.arrays["a"].shape[1]): case
    for case in reversed(golden.load("matmul"))
}


@pytest.mark.tier("full", but_one_in=6)
@pytest.mark.parametrize("case", OF_STREAMS.values(), ids=lambda case: case.name)
def test_entries_of_a_stream(case):
    """GEM-001, GEM-003 and GEM-004: random rows, which are the same in any chunks."""
    operation, width = OPERATIONS["matmul"], case.arrays["a"].shape[1]
    rows, some = (
        {
            name: np.ascontiguousarray(array).astype(case.arrays[name].dtype)
            for name, array in operation.random.draw(case.parameters, draws).items()
        }
        for draws in (Draws(0, 24, 9, width), Draws(5, 7, 9, width))
    )
    assert all((some[name] == rows[name][5:12]).all() for name in operation.inputs)
    expected = operation.exact(case.parameters, rows)["result"]
    assert (operation.engine(case.parameters, rows)["result"] == expected).all()
    assert len(np.unique(expected)) > 12


@pytest.mark.parametrize("profile", ["volta_fp16", "turing_fp16_f16"])
def test_architectures_without_bfloat16_upcast_nothing(profile):
    """GEM-004: they refuse blocks of e4m3, e5m2, e2m1 and bfloat16."""
    parameters = {"dot_profile": profile, "record": "scaled", "scale_block": 32}
    with pytest.raises(ValueError, match=f"{profile} multiplies none of e4m3, e5m2, e2m1, bf16"):
        OPERATIONS["matmul"].admit(parameters)
    x = mor_ref.mor(numbers(1, (2, 32)), "two_way", block=(2, 32))
    with pytest.raises(ValueError, match=f"architecture of {profile} does not multiply"):
        mor_ref.matmul(x, mor_ref.transposed(x), profile=profile)


@pytest.mark.parametrize(
    ("wide", "said"),
    [
        ("hopper_bf61", "wide of profile 'mine' is 'hopper_bf61', which .* one of .*hopper_bf16"),
        ("hopper_fp8", "wide of profile 'mine' is 'hopper_fp8', which does not multiply bfloat16"),
    ],
)
def test_a_wide_profile_of_a_user_multiplies_bfloat16(wide, said, monkeypatch):
    """GEM-004."""
    mine = replace(DOT_PROFILES["hopper_fp8"], name="mine", wide=wide)
    monkeypatch.setitem(DOT_PROFILES, "mine", mine)
    x = mor_ref.mor(numbers(1, (2, 32)), "two_way", block=(2, 32))
    with pytest.raises(ValueError, match=said):
        mor_ref.matmul(x, mor_ref.transposed(x), profile="mine")


def test_every_profile_upcasts_to_the_one_of_its_architecture():
    """GEM-004: a profile that multiplies bfloat16 takes the upcast blocks itself."""
    rows = [DOT_PROFILES[name] for name in DOT_PROFILES.specified]
    of_bf16 = {row.name for row in rows if "bf16" in row.formats}
    for row in rows:
        architecture = row.name.removeprefix("rtx_").split("_")[0]
        near = {name for name in of_bf16 if name.removeprefix("rtx_").startswith(architecture)}
        same = {name for name in near if name.startswith("rtx_") == row.name.startswith("rtx_")}
        assert {row.wide} <= ({row.name} & of_bf16 or same or {""}), row.name


@dataclass(frozen=True)
class Own:
    """A record of a user, with codes and scales of its own."""

    of: mor_ref.Quantized

    def in_blocks(self):
        return self.of.in_blocks()

    def dequantize(self):
        return self.of.dequantize()


def test_a_record_that_says_its_blocks_is_multiplied():
    """GEM-003: whoever made it."""
    a, b = (mor_ref.quantize(numbers(n, s), "e4m3") for n, s in ((13, (M, 64)), (14, (64, N))))
    for profile in ("exact", "hopper_fp8", "f32_fma"):
        expected = mor_ref.matmul(a, b, profile=profile)
        assert np.array_equal(mor_ref.matmul(Own(a), b, profile=profile), expected)


OTHERS = (
    lambda x: mor_ref.quantize_affine(x, symmetric=False),
    lambda x: mor_ref.quantize_shared(x, "mx9"),
    lambda x: mor_ref.quantize_levels(x, "seq2"),
    lambda x: mor_ref.mix_formats(x, ("int8", "mxfp4")),
)


@pytest.mark.parametrize("record", OTHERS)
def test_y_of_other_records_is_multiplied_or_they_are_refused(record):
    """GEM-002 and GEM-003: never rounded to another format without a word."""
    a = record(numbers(15, (N, N)))
    y = a.dequantize()
    found = mor_ref.matmul(a, mor_ref.transposed(a), profile="f32_pairwise")
    assert np.array_equal(found, mor_ref.matmul(y, y.T.copy(), profile="f32_pairwise"))
    for profile in ("exact", "hopper_fp8", "hopper_bf16", "blackwell_nvfp4"):
        said = f"{type(a).__name__} has no codes and scales in blocks, which {profile} needs;"
        with pytest.raises(ValueError, match=said):
            mor_ref.matmul(y.T.copy() if profile == "exact" else a, a, profile=profile)


@pytest.mark.parametrize("dtype", [np.float32, np.int8, ml_dtypes.bfloat16])
def test_an_array_next_to_a_record_has_a_format_of_the_profile(dtype):
    """GEM-002: it is not rounded to bfloat16 without a word, next to a result of mor either."""
    x = numbers(22, (N, 64))
    array = np.ones((64, M), dtype)
    for record in (mor_ref.mor(x, "two_way", block=(1, 32)), mor_ref.quantize(x, "e4m3")):
        with pytest.raises(ValueError, match=r"an array is of .*, which hopper_fp8 does not take"):
            mor_ref.matmul(record, array, profile="hopper_fp8")
        mor_ref.matmul(record, array, profile="exact")
        mor_ref.matmul(record, array.astype(ml_dtypes.float8_e4m3fn), profile="hopper_fp8")


@pytest.mark.parametrize("profile", ["cdna1_fp32", "cdna2_fp32", "cdna3_fp32"])
def test_records_are_y_in_every_profile_of_binary32(profile):
    """GEM-002: decided by the family."""
    x, y = numbers(23, (M, 64)), numbers(24, (64, N))
    a = mor_ref.mor(x, "two_way", block=(1, 32))
    b = mor_ref.quantize(y, "e4m3", block=(32, 1))
    other = mor_ref.quantize_shared(x, "mx9")
    of_a = a.output.view(ml_dtypes.bfloat16).astype(np.float32)
    for one, number in ((a, of_a), (other, other.dequantize())):
        found = mor_ref.matmul(one, b, profile=profile)
        rows = [number[m].view(np.uint32).tolist() for m in range(M)]
        columns = b.dequantize().T.copy().view(np.uint32).tolist()
        rule, of = DOT_PROFILES[profile], (formats["f32"],) * 2
        expected = [[exact_dot.dot(i, j, 0.0, rule, of) for j in columns] for i in rows]
        assert found.view(np.uint32).tolist() == bits(expected)
    with pytest.raises(ValueError, match=f"an array is of bf16, which {profile} does not take"):
        mor_ref.matmul(a, np.ones((64, N), ml_dtypes.bfloat16), profile=profile)


@needs("torch")
def test_integers_of_torch_are_those_of_numpy():
    """GEM-002."""
    torch = imported("torch")
    a, b = (np.arange(-60, 60, dtype=np.int8).reshape(shape) for shape in ((2, 60), (60, 2)))
    found = mor_ref.matmul(torch.from_numpy(a), torch.from_numpy(b), profile="int32")
    assert (found == a.astype(np.int32) @ b.astype(np.int32)).all()


def test_arrays():
    """GEM-002: an array is one dot product after the other, from +0 on."""
    for dtype, profile in (
        (np.float32, "f32_fma"), (np.float32, "f32_pairwise"), (np.float32, "hopper_tf32"),
        (ml_dtypes.bfloat16, "hopper_bf16"), (np.float16, "ampere_fp16"),
        (ml_dtypes.float8_e4m3fn, "hopper_fp8"), (ml_dtypes.bfloat16, "exact"),
        (np.int8, "int32"),
    ):  # fmt: skip
        a, b = (numbers(seed, shape) for seed, shape in ((11, (M, 70)), (12, (70, N))))
        if dtype == np.int8:
            a, b = a * 10 % 128, b * 10 % 128
        a, b = np.nan_to_num(a).clip(-400, 400).astype(dtype), b.clip(-400, 400).astype(dtype)
        found = mor_ref.matmul(a, b, profile=profile)
        fmt = {4: "f32", 2: "bf16", 1: "e4m3"}[a.dtype.itemsize]
        fmt = {np.float16: "f16", np.int8: "int8"}.get(dtype, fmt)
        words = np.dtype(f"u{a.dtype.itemsize}")
        rows = np.repeat(a.view(words), N, axis=0), np.tile(b.T.copy().view(words), (M, 1))
        expected = mor_ref.dot(*rows, formats=(fmt, fmt), profile=profile)
        np.testing.assert_array_equal(found.ravel().view(np.uint32), expected.view(np.uint32))
        half = mor_ref.matmul(a, b, profile=profile, out="bf16")
        np.testing.assert_array_equal(half, mor_ref.encode(found, "bf16", overflow="ieee"))
