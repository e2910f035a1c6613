"""NVFP4: every profile's records are those of the exact model, and its rules by hand."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from records import SOURCES, adversarial, differing, engine_nvfp4, exact_nvfp4, shapes
from test_trace import ROOT, table_after

import mor_ref
from mor_ref.definitions.nvfp4 import PROFILES, TILES
from mor_ref.definitions.scales import NOTHING_GIVEN, AmaxOrScale
from mor_ref.exact import arithmetic, nvfp4

PAIRS = [(name, tile) for name, profile in PROFILES.items() for tile in profile.tiles]
SHAPES = [(5, 37), (1, 50), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 9, 17)]
FLT_MAX = np.finfo(np.float32).max
F = np.float32


@pytest.mark.tier("full", but_one_in=2)
@pytest.mark.parametrize(("profile", "tile"), PAIRS, ids=str)
def test_every_record_is_that_of_the_exact_model(profile, tile):
    for seed, shape in enumerate(
        [(5, 37), (1, 50), (33, 1), (1, 1), (), (0, 4), (3, 0), (2, 9, 17)]
    ):
        x = adversarial(shape, seed, SOURCES[seed % 4])
        assert (
            differing(engine_nvfp4(x, profile=profile, tile=tile), exact_nvfp4(x, profile, tile))
            == {}
        )


@pytest.mark.tier("full")
@given(shapes, st.integers(0, 1 << 30), st.sampled_from(SOURCES), st.sampled_from(PAIRS))
def test_any_tensor(shape, seed, dtype, pair):
    x = adversarial(shape, seed, dtype)
    found = engine_nvfp4(x, profile=pair[0], tile=pair[1])
    assert differing(found, exact_nvfp4(x, *pair)) == {}


@pytest.mark.tier("full", but_one_in=4)
@pytest.mark.parametrize(("profile", "tile"), PAIRS, ids=str)
@pytest.mark.parametrize("value", [0.0, -0.0, 2.0**-149, 1e-38, 3.4e38, np.inf, 1e-36])
def test_tensors_of_one_value(profile, tile, value):
    x = np.full((3, 20), value, np.float32)
    x[0, :3] = 0.0
    assert (
        differing(engine_nvfp4(x, profile=profile, tile=tile), exact_nvfp4(x, profile, tile)) == {}
    )


def test_the_printed_profiles_are_those_of_the_catalogue():
    """NVF-002."""
    printed = [
        (name, float(q), rule, tiles)
        for name, q, rule, tiles in table_after(":id: NVF-002", ROOT / "spec/nvfp4.md")
    ]
    assert printed == [
        (p.name, p.range, p.scales.id, ", ".join(map(str, p.tiles))) for p in PROFILES.values()
    ]
    assert [p.name for p in PROFILES.values() if p.per_row] == ["te_row"]


def test_tiles():
    """NVF-001: sixteen to a scale, the last of a row shorter; a tile of 16x16 has one."""
    x = np.ones((20, 40), np.float32)
    assert mor_ref.quantize_nvfp4(x).block_scale.shape == (20, 3)
    assert mor_ref.quantize_nvfp4(x, tile=(16, 16)).block_scale.shape == (2, 3)
    assert mor_ref.quantize_nvfp4(1.0).codes.shape == ()
    with pytest.raises(ValueError, match=r"tile is \(16, 16\); profile 'te_row' takes \(1, 16\)"):
        mor_ref.quantize_nvfp4(x, profile="te_row", tile=(16, 16))
    with pytest.raises(ValueError, match=r"tile is \(4, 4\); profile 'te' takes \(1, 16\) or \(16"):
        mor_ref.quantize_nvfp4(x, tile=(4, 4))
    with pytest.raises(ValueError, match="tile is 16; profile 'te' takes"):
        mor_ref.quantize_nvfp4(x, tile=16)
    with pytest.raises(ValueError, match="profile is 'TE', which is not known; did you mean 'te'"):
        mor_ref.quantize_nvfp4(x, profile="TE")


@pytest.mark.parametrize(
    ("amax", "s_enc"),
    [(0.0, 1.0), (np.inf, 1.0), (2688.0, 1.0), (1e-38, FLT_MAX), (3.0, F(2688) / F(3))],
)
def test_the_global_scale(amax, s_enc):
    """NVF-003."""
    found = mor_ref.quantize_nvfp4(np.array([amax, 0, np.nan], np.float32))
    assert found.global_encode_scale == s_enc
    assert found.global_decode_scale == F(1) / F(s_enc)
    assert found.global_encode_scale.shape == ()


def by_hand(x, order):
    """Compute te in NumPy's binary32, operation by operation."""
    s_enc = F(2688) / np.abs(x).max()
    s_dec = F(1) / s_enc
    bamax = np.abs(x.reshape(-1, 16)).max(axis=1)
    s = mor_ref.encode(order(bamax, s_enc), "e4m3")
    decode = mor_ref.decode(s, "e4m3") * s_dec
    encode = np.minimum(F(1) / decode, FLT_MAX)
    codes = mor_ref.encode(x.reshape(-1, 16) * encode[:, None], "e2m1")
    return s, codes, mor_ref.decode(codes, "e2m1") * decode[:, None]


@pytest.mark.parametrize(
    ("profile", "order"),
    [
        ("te", lambda bamax, s_enc: bamax * (s_enc * (F(1) / F(6)))),
        ("te_2_13", lambda bamax, s_enc: (bamax / F(6)) * s_enc),
    ],
)
def test_te_in_numpy(profile, order):
    """NVF-004, NVF-005, NVF-010."""
    x = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    found = mor_ref.quantize_nvfp4(x, profile=profile)
    s, codes, y = by_hand(x, order)
    assert np.array_equal(found.block_scale.ravel(), s)
    assert np.array_equal(found.codes.reshape(-1, 16), codes)
    assert np.array_equal(found.dequantize().reshape(-1, 16).view(np.uint32), y.view(np.uint32))


def test_a_scale_that_underflows():
    """NVF-004: stored is 6 or -6 above 5 / FLT_MAX, under scale 0."""
    x = np.zeros((2, 16), np.float32)
    x[0, 0] = 1.0
    limit = np.float32(5) / FLT_MAX
    x[1, :4] = [1e-30, -1e-30, limit, np.nextafter(limit, F(1))]
    found = mor_ref.quantize_nvfp4(x)
    assert found.block_scale.tolist() == [[0x7E], [0]]
    assert found.codes[1, :4].tolist() == [0x7, 0xF, 0x6, 0x7]
    assert found.dequantize()[1, 0] == 0


def test_four_over_six_takes_the_better():
    """NVF-006: a block whose numbers lie on the grid of 4 takes it, one on that of 6 does not."""
    on_four = np.array([4, 3, 2, 1.5, 1, 0.5, 0, 4] * 2, np.float32) * 100
    on_six = np.array([6, 4, 3, 2, 1.5, 1, 0.5, 0] * 2, np.float32) * 100
    for name in ("te_4over6_mae", "te_4over6_mse", "te_4over6_mae_448", "te_4over6_mse_448"):
        x = np.stack([on_four, on_six])
        found = mor_ref.quantize_nvfp4(x, profile=name)
        assert found.codes[0, 0] == 0x6, name
        assert found.codes[1, 0] == 0x7, name
    te = mor_ref.quantize_nvfp4(np.stack([on_four, on_six]))
    assert te.codes[:, 0].tolist() == [0x7, 0x7]


def scales_near_ties(amax):
    """Return tiles whose scale under te is within some steps of a middle of e4m3 codes."""
    s_enc = F(2688) / F(amax)
    factor = s_enc * (F(1) / F(6))
    values = mor_ref.decode(np.arange(0x7F, dtype=np.uint8), "e4m3")
    middles = (values[1:] + values[:-1]) / F(2) / factor
    steps = np.arange(-3, 4, dtype=np.int32)
    bamax = (middles.view(np.int32)[:, None] + steps).ravel().view(np.float32)
    return bamax[(bamax > 0) & (bamax <= amax)]


@pytest.mark.tier("full", but=["-1.1]"])
@pytest.mark.parametrize("amax", [3.0, 1.1, 0.7, 1e-30, 2.9e38])
@pytest.mark.parametrize("profile", PROFILES)
def test_scales_next_to_a_middle_of_two_codes(profile, amax):
    """NVF-004 to NVF-009: where orders of operations differ."""
    x = np.concatenate([[F(amax)], scales_near_ties(amax)])[:, None]
    assert differing(engine_nvfp4(x, profile=profile), exact_nvfp4(x, profile)) == {}


@pytest.mark.parametrize(
    ("seed", "column", "bits"), [(4133, 8, 0x4050366F), (5456, 15, 0xC054BBD2)]
)
def test_the_rows_of_a_tile_are_added_in_halves(seed, column, bits):
    """NVF-006: these tiles' candidates err alike; added one by one, the other would be chosen."""
    x = np.random.default_rng(seed).standard_normal((16, 16)).astype(np.float32)
    x[0, 0], x[0, column] = 4.0, np.uint32(bits).view(np.float32)
    name, tile = "te_4over6_mse", (16, 16)
    assert differing(engine_nvfp4(x, profile=name, tile=tile), exact_nvfp4(x, name, tile)) == {}
    candidates = []
    profile, rows = PROFILES[name], [[float(v) for v in row] for row in x]
    scale = nvfp4.global_scale(profile, 4.0)
    base = arithmetic.product(arithmetic.quotient(4.0, 6.0), scale.encode)
    for s in (base, arithmetic.product(1.5, base)):
        candidate = nvfp4.factors(s, scale)
        in_halves = nvfp4.candidate_error(profile, rows, candidate, 4.0)
        one_by_one = 0.0
        for row in rows:
            one_by_one = arithmetic.total(
                one_by_one, nvfp4.candidate_error(profile, [row], candidate, 4.0)
            )
        candidates.append((in_halves, one_by_one))
    (six, six_one_by_one), (four, four_one_by_one) = candidates
    assert (four < six) != (four_one_by_one < six_one_by_one)


def test_a_tie_of_four_and_six_takes_six():
    """NVF-006: a tile of zeros errs by nothing under either, and 1.5 times 0 is 0 as well."""
    x = np.zeros((2, 16), np.float32)
    x[0] = 6.0
    found = mor_ref.quantize_nvfp4(x, profile="te_4over6_mae")
    tile = [x[0].tolist()]
    profile = PROFILES["te_4over6_mae"]
    scale = nvfp4.global_scale(profile, 6.0)
    six = mor_ref.encode(np.float32(1) * np.float32(scale.encode), "e4m3")
    assert nvfp4.tile_scale(profile, tile, 6.0, scale).code == six
    assert found.block_scale.tolist() == [[int(six)], [0]]


def test_foreign_scales_of_a_tensor_of_zeros():
    """NVF-007, NVF-008, NVF-009: 0 / 0 is NaN, but compressed_tensors has a floor."""
    x = np.zeros((1, 16), np.float32)
    scales = {p: mor_ref.quantize_nvfp4(x, profile=p) for p in ("torchao", "modelopt")}
    assert {p: found.block_scale.tolist() for p, found in scales.items()} == {
        "torchao": [[0x7F]],
        "modelopt": [[0x7F]],
    }
    assert {int(found.codes[0, 0]) for found in scales.values()} == {7}
    found = mor_ref.quantize_nvfp4(x, profile="compressed_tensors")
    assert found.block_scale.tolist() == [[0x20]]
    assert set(found.codes[0].tolist()) == {0}


def test_negative_zero_and_nan():
    """NVF-010."""
    x = np.array([[-0.0, np.nan, -1e-9, 1.0, 6.0] + [0.0] * 11], np.float32)
    codes = {p: mor_ref.quantize_nvfp4(x, profile=p).codes[0, :3].tolist() for p in PROFILES}
    assert codes["te"] == [0x8, 0x7, 0x8]
    assert codes["modelopt"] == [0x0, 0x7, 0x8]
    assert codes["compressed_tensors"] == [0x0, 0x7, 0x8]
    assert codes["torchao"] == [0x8, 0x7, 0x8]


@pytest.mark.parametrize("shape", [(4,), (3, 5), (2, 2, 7), (0, 4), (3, 1), ()])
def test_packing(shape):
    """NVF-011."""
    x = np.random.default_rng(3).standard_normal(shape).astype(np.float32)
    found = mor_ref.quantize_nvfp4(x)
    columns = shape[-1] if shape else 1
    rows = found.codes.reshape(-1, columns)
    packed = found.packed.reshape(rows.shape[0], -(-columns // 2))
    for codes, row in zip(rows.tolist(), packed.tolist(), strict=True):
        padded = [*codes, 0]
        expected = [padded[i] + 16 * padded[i + 1] for i in range(0, columns, 2)]
        assert row == expected


def test_each_row_has_its_global_scale():
    """NVF-012."""
    x = np.array([[1.0] * 20, [8.0] * 20], np.float32)
    found = mor_ref.quantize_nvfp4(x, profile="te_row")
    assert found.global_encode_scale.tolist() == [2688.0, 336.0]
    assert mor_ref.quantize_nvfp4(x[:1]).global_encode_scale == 2688.0
    for i in range(2):
        alone = mor_ref.quantize_nvfp4(x[i : i + 1])
        assert np.array_equal(found.codes[i], alone.codes[0])
        assert np.array_equal(found.block_scale[i], alone.block_scale[0])


def of_exact_model(x, name, tile, given=NOTHING_GIVEN):
    """Return the codes, and the scales of tiles, of a matrix."""
    found = nvfp4.nvfp4(x.tolist(), PROFILES[name], tile, given)
    scales = np.zeros(np.max([*found.scale], axis=0) + 1, int)
    for place, scale in found.scale.items():
        scales[place] = scale.code
    return np.array([[one.code for one in row] for row in found.elements]), scales


def test_the_transpose_by_rows_has_the_amaxes_of_columns():
    """NVF-012: each column is quantized as a tensor of its own is, by the exact model."""
    x = adversarial((48, 21), 31).reshape(48, 21)
    found = mor_ref.quantize_nvfp4(x.T, profile="te_row")
    for j in range(21):
        codes, scales = of_exact_model(x[:, j : j + 1].T, "te", TILES[0])
        assert np.array_equal(found.codes[j], codes[0])
        assert np.array_equal(found.block_scale[j], scales[0])


@pytest.mark.parametrize("name", ["te", "te_2_13"])
@pytest.mark.parametrize("shape", [(64, 48), (40, 23)])
def test_square_tiles_are_the_same_of_the_transpose(name, shape):
    """NVF-001: what a kernel writes for columns alone follows from the rows."""
    x = adversarial(shape, 32)
    codes, scales = of_exact_model(x, name, TILES[1])
    turned = of_exact_model(x.T, name, TILES[1])
    assert np.array_equal(turned[0], codes.T)
    assert np.array_equal(turned[1], scales.T)
    for y, right in ((x, codes), (x.T, codes.T)):
        found = mor_ref.quantize_nvfp4(y, profile=name, tile=TILES[1])
        assert np.array_equal(found.codes, right)


@pytest.mark.parametrize(
    ("name", "step", "seed", "tile", "scales"),
    [("te_4over6_mae", 2, 14, (29, 15), (115, 120)), ("te_4over6_mse", 4, 11, (5, 16), (116, 112))],
)
def test_4_over_6_can_choose_otherwise_for_the_transpose(name, step, seed, tile, scales):
    """NVF-001, NVF-006: errors that are nearly equal, whose sums have another order."""
    random = np.random.default_rng(seed)
    x = (np.round(random.standard_normal((512, 512)) * step) / step).astype(F)
    block = x[tile[0] * 16 :, tile[1] * 16 :][:16, :16]
    amax = float(np.abs(x).max())
    for y, scale in zip((block, block.T), scales, strict=True):
        assert of_exact_model(y, name, TILES[1], AmaxOrScale(amax=amax))[1] == scale
        found = mor_ref.quantize_nvfp4(y, profile=name, tile=TILES[1], amax=amax)
        assert found.block_scale == scale


def test_threads_and_parts_change_nothing():
    x = adversarial((300, 5000), 17)
    for name, tile in (("te", TILES[0]), ("te", TILES[1]), ("te_4over6_mse", TILES[1])):
        one = mor_ref.quantize_nvfp4(x, profile=name, tile=tile, threads=1)
        two = mor_ref.quantize_nvfp4(x, profile=name, tile=tile)
        assert np.array_equal(one.codes, two.codes)
        assert np.array_equal(one.block_scale, two.block_scale)
        assert np.array_equal(one.error.sum, two.error.sum)


def test_what_a_record_says():
    found = mor_ref.quantize_nvfp4(np.ones((2, 32), np.float32))
    assert repr(found) == (
        "<2x32 float32 as NVFP4 by te: 4 tiles of 1x16, mean relative error 0 %, 0 non-finite>"
    )
