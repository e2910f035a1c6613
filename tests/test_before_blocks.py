"""Steps before the blocks of a block format: Hadamard matrices, and columns kept aside."""

import dataclasses
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file
from test_block_formats import tensor
from test_own_suites import Here

import mor_ref
from mor_ref import BlockFormat, BlockFormatError, BlockScale, Format, Hadamard, KeptColumns
from mor_ref.analysis import compare
from mor_ref.analysis.listing import Selection
from mor_ref.cli import dequantize as back
from mor_ref.cli import quantize as there
from mor_ref.definitions.before_blocks import step_of
from mor_ref.definitions.block_formats import parameters_of_blocks
from mor_ref.engine.before_blocks import transformed as turned_by_the_engine
from mor_ref.engine.before_blocks import transformed_back as turned_back_by_the_engine
from mor_ref.exact.arithmetic import rn32
from mor_ref.exact.before_blocks import stepped, transformed, transformed_back
from mor_ref.golden.generation.vectors import make
from mor_ref.golden.model.suite import Size
from mor_ref.operations import OPERATIONS
from mor_ref.recipes import as_tensor_recipe
from mor_ref.recipes.own_recipes import own_recipe
from mor_ref.sources import write_sources
from mor_ref.verify.candidates.python_function import PythonFunction
from mor_ref.verify.running.run import Verification, verify
from mor_ref.verify.running.suites import suites_in

F = np.float32
SCALE = BlockScale("s", (1, 32), "amax / 6 or 1", "bf16")


def with_steps(*before: Any, **changes: Any) -> BlockFormat:
    """Return a block format with these steps."""
    return BlockFormat("mine", "e2m1", (SCALE,), decode="s", before=before, **changes)


def policy_of(record: Any) -> mor_ref.Policy:
    """Return a policy that takes a representation wherever its mean error is at most 1."""
    return mor_ref.Policy("mine", (mor_ref.Rung(record, mor_ref.MeanRelativeError(1.0)),))


KEPT, TURNED = KeptColumns(6.0, "bf16"), Hadamard(16, 0xACE1)
MANY = {
    "turned": with_steps(TURNED),
    "turned in bf16": with_steps(Hadamard(32, 5, "bf16")),
    "pairs": with_steps(Hadamard(2, 1)),
    "long runs": with_steps(Hadamard(128)),
    "kept": with_steps(KEPT),
    "kept as they are": with_steps(KeptColumns(6.0)),
    "kept, then turned": with_steps(KEPT, TURNED),
    "turned, then kept": with_steps(TURNED, KeptColumns(40.0, "e4m3")),
    "three": with_steps(Hadamard(8), KeptColumns(20.0, "f16"), Hadamard(4, 3)),
}


def activations(rows: int, columns: int) -> Any:
    """Return numbers of which some columns are large, with special numbers."""
    x = np.random.default_rng(7).standard_normal((rows, columns)).astype(F)
    x[:, 2::23] *= 30
    x.flat[5], x.flat[40], x.flat[-1] = np.nan, np.inf, -0.0
    return x


# ---------------------------------------------------------------------- the rules, by fractions


def turned(numbers: list[Fraction], signs: int) -> list[Fraction]:
    """Return a run as BLF-012 has it: each operation exactly, and rounded once."""
    a, size, h = [-x if signs >> i & 1 else x for i, x in enumerate(numbers)], len(numbers), 1
    while h < size:
        a = [
            exactly(a[i] + a[i + h]) if not i & h else exactly(a[i - h] - a[i]) for i in range(size)
        ]
        h *= 2
    factor = nearest_root(size)
    return [exactly(x * factor) for x in a]


def exactly(number: Fraction) -> Fraction:
    return Fraction(rn32(number))


def nearest_root(size: int) -> Fraction:
    """Return the number of binary32 that is nearest to 1 / sqrt(n): the one of two below it."""
    low, high = Fraction(F(1 / math.sqrt(size) * (1 - 1e-6)).item()), Fraction(1)
    while True:
        high = Fraction(np.nextafter(F(float(low)), F(2)).item())
        if low * low * size <= 1 < high * high * size:
            middle = (low + high) / 2
            return low if middle * middle * size > 1 else high
        low = high


@pytest.mark.parametrize("size", [2, 4, 16, 32, 128])
def test_runs_are_sums_and_differences_of_fractions(size: int) -> None:
    """BLF-012: numbers behind the last whole run stay as they are."""
    rng, columns = np.random.default_rng(size), 2 * size + 3
    x = (rng.standard_normal((2, columns)) * np.exp2(rng.integers(-9, 9, (2, columns)))).astype(F)
    signs = int(rng.integers(0, 1 << min(size, 60)))
    expected = x.copy()
    runs = [(row, start) for row in range(2) for start in range(0, columns - size + 1, size)]
    for row, start in runs:
        run = [Fraction(number.item()) for number in x[row, start : start + size]]
        expected[row, start : start + size] = [float(n) for n in turned(run, signs)]
    step = Hadamard(size, signs)
    np.testing.assert_array_equal(transformed(x.ravel().tolist(), columns, step), expected.ravel())
    back = expected.copy()
    for row, start in runs:
        run = [Fraction(number.item()) for number in expected[row, start : start + size]]
        numbers = turned(run, 0)
        back[row, start : start + size] = [
            float(-n if signs >> i & 1 else n) for i, n in enumerate(numbers)
        ]
    own = transformed_back(expected.ravel().tolist(), columns, step)
    np.testing.assert_array_equal(own, back.ravel())
    np.testing.assert_allclose(back, x, rtol=0, atol=2e-6 * np.abs(x).max())


@pytest.mark.parametrize("columns", [5, 16, 21])
def test_the_rest_of_a_row_is_not_rounded(columns: int) -> None:
    """BLF-012: numbers of runs are rounded to bfloat16, and those behind them stay as they are."""
    third = F(1 / 3)
    whole = columns // 16 * 16
    expected = [*[4 / 3, *[0.0] * 15][:whole], *[third] * (columns - whole)]
    expected[:1] = [float(ml_dtypes.bfloat16(F(4) * third))] if whole else expected[:1]
    step, x = Hadamard(16, stored="bf16"), np.full((2, columns), third)
    np.testing.assert_array_equal(transformed(x.ravel().tolist(), columns, step), expected * 2)
    np.testing.assert_array_equal(turned_by_the_engine(x, step), [expected] * 2)


def test_a_nan_of_the_rest_is_canonical_behind_the_way_back() -> None:
    """BLF-012, BLF-013: also one that a kept column of binary32 has as it was."""
    y = np.array([[1, 1, 0]], F)
    y.view(np.uint32)[0, 2] = 0xFFC00001
    back = turned_back_by_the_engine(y, Hadamard(2))
    assert back.view(np.uint32)[0, 2] == 0x7FFFFFFF


def test_a_column_is_kept_from_the_limit_on() -> None:
    """BLF-013: an infinity keeps a column, and a NaN does not; 0 takes the place of its numbers."""
    below, above = np.nextafter(F([6, 6]), F([0, 9])).tolist()
    row = [6.0, -6.0, below, above, math.inf, math.nan, 0.0, 3e38]
    x = [*row, *[1.0] * len(row)]
    found = stepped(x, len(row), (KeptColumns(6.0, "f16"),))
    is_kept = [True, True, False, True, True, False, False, True]
    assert found.selected == is_kept * 2
    z = [*[0.0 if kept else n for n, kept in zip(row, is_kept, strict=True)],
         *[0.0 if kept else 1.0 for kept in is_kept]]  # fmt: skip
    np.testing.assert_array_equal(found.z, z)
    with np.errstate(over="ignore"):
        codes = np.array(x, F).astype(np.float16).view(np.uint16)  # as a cast
    np.testing.assert_array_equal(found.kept, np.where(is_kept * 2, codes, 0))


@pytest.mark.parametrize("name", MANY)
def test_a_block_format_after_steps_is_that_of_the_numbers_that_come_out(name: str) -> None:
    """BLF-011: codes and scales are those of the same formulas without steps."""
    record, x = MANY[name], activations(5, 300)
    z = np.array(stepped(x.ravel().tolist(), 300, record.before).z, F).reshape(x.shape)
    with_them = mor_ref.quantize(x, record)
    without = mor_ref.quantize(z, dataclasses.replace(record, before=()))
    np.testing.assert_array_equal(with_them.codes, without.codes)
    np.testing.assert_array_equal(with_them.factor, without.factor)
    assert np.all(with_them.scales["s"] == without.scales["s"])


# ---------------------------------------------------------------------- the engine


@pytest.mark.parametrize("name", MANY)
@pytest.mark.parametrize("dtype", [F, ml_dtypes.bfloat16, np.float16])
def test_the_engine_has_the_bits_of_the_exact_model(name: str, dtype: Any) -> None:
    """BLF-011 to BLF-013, with special numbers and of both ends of binary32."""
    record = MANY[name]
    with np.errstate(all="ignore"):
        several = [x.astype(dtype) for x in (activations(4, 133), tensor(3, 260), tensor(70, 1))]
    for x in several:
        word = {2: np.uint16, 4: np.uint32}[x.dtype.itemsize]
        source = {"float32": "f32", "float16": "f16"}.get(x.dtype.name, "bf16")
        parameters = {**parameters_of_blocks(record), "source": source}
        arrays = {"x": x.view(word)}
        exact = OPERATIONS["blocks"].exact(parameters, arrays)
        engine = OPERATIONS["blocks"].engine(parameters, arrays)
        assert exact.keys() == engine.keys()
        assert {"selected", "kept"} <= exact.keys() or "kept" not in name
        for field, bits in exact.items():
            np.testing.assert_array_equal(engine[field], bits, field)


def test_large_tensors_have_the_bits_of_small_ones() -> None:
    """BLF-012: in parts of any size, rows that end in a run and rows that do not."""
    x = np.random.default_rng(1).standard_normal((300, 1040)).astype(F)
    for columns in (1024, 1040, 1031):
        record, own = with_steps(Hadamard(64, 77)), np.ascontiguousarray(x[:, :columns])
        whole = mor_ref.quantize(own, record)
        rows = [mor_ref.quantize(row[None], record) for row in own]
        np.testing.assert_array_equal(whole.codes, np.concatenate([one.codes for one in rows]))
        y = np.concatenate([one.dequantize() for one in rows])
        np.testing.assert_array_equal(whole.dequantize(), y)


@pytest.mark.parametrize("name", MANY)
def test_threads_change_no_bit_of_steps(name: str) -> None:
    x = np.random.default_rng(2).standard_normal((600, 1031)).astype(F)
    x[5, 5:40], x[599, -1], x[300, 1024:] = np.inf, np.nan, -np.nan
    one, two = (mor_ref.quantize(x, MANY[name], threads=threads) for threads in (1, 2))
    assert one == two
    y, same = (record.dequantize(threads=threads) for record, threads in ((one, 1), (two, 2)))
    np.testing.assert_array_equal(y.view(np.uint32), same.view(np.uint32))


@pytest.mark.parametrize("shape", [(), (0,), (3, 0), (7,), (16,), (64,), (2, 3, 32), (0, 16)])
def test_tensors_of_any_shape(shape: tuple[int, ...]) -> None:
    x = np.full(shape, 9, F)
    for record in MANY.values():
        y = mor_ref.quantize(x, record).dequantize()
        assert y.shape == shape
        assert (x == 9).all()
        if record.before == (KEPT,):
            np.testing.assert_array_equal(y, x)


def test_errors_are_those_of_x_and_of_what_came_back() -> None:
    """BLF-011: each sum is that of a function of x that returns y."""
    x = activations(40, 130)
    for record in MANY.values():
        own = mor_ref.quantize(x, record)
        mixed, y = mor_ref.mor(x, policy_of(record)), own.dequantize()

        def values(x: Any, y: Any = y) -> Any:
            del x
            return y

        by_function = mor_ref.mor(x, policy_of(values)).quantized["values"]
        assert by_function.error == mixed.quantized["mine"].error
        for field in ("sum", "nonzero", "nonfinite"):
            of_units = getattr(by_function.error, field).sum()
            assert getattr(own.error, field).item() == of_units, field
        expected = mor_ref.decode(mor_ref.encode(y, "bf16", overflow="ieee"), "bf16")
        if mixed.choice.max() == 0:
            np.testing.assert_array_equal(mor_ref.decode(mixed.output, "bf16"), expected)


def test_given_amaxes_scales_and_random_words_are_of_the_numbers_after_the_steps() -> None:
    """BLF-011: as without steps, of these numbers."""
    x, record = activations(4, 64), with_steps(TURNED)
    z = np.array(stepped(x.ravel().tolist(), 64, record.before).z, F).reshape(x.shape)
    plain = dataclasses.replace(record, before=())
    words = np.arange(x.size).reshape(x.shape) % 256
    for options in (
        {"amax": {"s": 5.0}},
        {"scale": {"s": 0.5}},
        {"random_bits": words, "n_random_bits": 8},
    ):
        codes = mor_ref.quantize(x, record, **options).codes
        np.testing.assert_array_equal(codes, mor_ref.quantize(z, plain, **options).codes)


def test_out_takes_codes_and_y() -> None:
    x, record = activations(4, 64), MANY["kept, then turned"]
    codes, y = np.empty(x.shape, np.uint8), np.empty(x.shape, ml_dtypes.bfloat16)
    own = mor_ref.quantize(x, record, out=codes)
    np.testing.assert_array_equal(codes, own.codes)
    assert own.dequantize(ml_dtypes.bfloat16, out=y) is y
    expected = mor_ref.encode(own.dequantize(), "bf16", overflow="ieee")
    np.testing.assert_array_equal(y.view(np.uint16), expected)


# ---------------------------------------------------------------------- texts and files


@pytest.mark.parametrize("name", MANY)
def test_equal_steps_have_equal_texts(name: str) -> None:
    """BLF-006, BLF-011: the text is read as the same record, with its digest."""
    record = MANY[name]
    x = activations(3, 64)
    again = mor_ref.quantize(x, record.text).block_format
    assert again == record
    assert again.digest == record.digest != with_steps().digest
    assert as_tensor_recipe(as_tensor_recipe(record).text) == as_tensor_recipe(record)
    assert own_recipe(str(own_recipe(record))) == own_recipe(record)


def test_a_text_says_what_differs_from_the_usual() -> None:
    text = with_steps(KeptColumns(), Hadamard(16), Hadamard(16, "0x8001", "bf16")).text
    assert (
        'before = [{ step = "kept_columns", limit = 6.0 }, { step = "hadamard", size = 16 }, '
        '{ step = "hadamard", size = 16, signs = "0x8001", stored = "bf16" }]'
    ) in text
    own = Format("e6m9", exponent_bits=6, mantissa_bits=9, bias=31, specials="ieee")
    record = with_steps(KeptColumns(2.5, own))
    assert mor_ref.quantize(F([[1, 3]]), record.text).block_format == record
    assert "before" not in with_steps().text


@pytest.mark.parametrize("ending", ["npz", "safetensors"])
@pytest.mark.parametrize("name", MANY)
def test_records_are_saved_and_loaded(name: str, ending: str, tmp_path: Path) -> None:
    record = mor_ref.quantize(activations(5, 70), MANY[name])
    record.save(tmp_path / f"x.{ending}")
    loaded = mor_ref.load(tmp_path / f"x.{ending}")
    assert loaded == record
    np.testing.assert_array_equal(loaded.dequantize(), record.dequantize())


@pytest.mark.parametrize(
    "kept",
    [
        {},
        {"columns": np.uint32([2, 2]), "codes": np.zeros((5, 2), np.uint16)},
        {"columns": np.uint32([2, 70]), "codes": np.zeros((5, 2), np.uint16)},
        {"columns": np.uint32([2]), "codes": np.zeros((5, 2), np.uint16)},
    ],
)
def test_a_file_whose_kept_columns_do_not_fit_is_refused(kept: Any, tmp_path: Path) -> None:
    record = mor_ref.quantize(activations(5, 70), with_steps(KEPT))
    dataclasses.replace(record, kept=kept).save(tmp_path / "x.npz")
    with pytest.raises(ValueError, match="has no record that can be read"):
        mor_ref.load(tmp_path / "x.npz")


# ---------------------------------------------------------------------- refusals


@pytest.mark.parametrize(
    ("make_it", "said"),
    [
        (lambda: Hadamard(12), "size is 12, which is no power of two; give one, such as 16"),
        (lambda: Hadamard(1), "size is 1; give an int from 2 to 16384"),
        (lambda: Hadamard(4, 16), "signs is 16; give a bit for each of 4 numbers"),
        (lambda: Hadamard(4, "0xg"), "signs is '0xg'; give a bit for each of 4 numbers"),
        (lambda: Hadamard(4, stored="f16"), "stored is f16; give one of f32, bf16"),
        (lambda: KeptColumns(-1), "limit has to be positive and finite by column: got -1; give"),
        (lambda: KeptColumns(1, "e8m0"), "stored is e8m0, which has no sign; give a format with"),
        (lambda: with_steps(KEPT, KEPT), "it keeps columns twice; give one step kept_columns"),
        (lambda: with_steps("hadamard"), "a step of before is 'hadamard'; give steps such as"),
        (lambda: step_of({"step": "hadamart"}), "step of before is 'hadamart', which is not known"),
        (lambda: step_of({"step": "hadamard"}), "step hadamard has no size; give a power of two"),
        (lambda: step_of({"step": "hadamard", "sise": 4}), "a key of step hadamard is 'sise'"),
        (lambda: step_of("hadamard 16"), "a step of before is 'hadamard 16'; give a table such as"),
    ],
)
def test_steps_that_cannot_exist_are_refused(make_it: Any, said: str) -> None:
    """BLF-012, BLF-013."""
    with pytest.raises((ValueError, BlockFormatError)) as caught:
        make_it()
    assert said in str(caught.value)


def test_headers_and_other_products_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="has hadamard 16 with signs 0xace1 before its blocks, wh"):
        write_sources(tmp_path, [with_steps(TURNED)])
    x = np.random.default_rng(0).standard_normal((32, 64)).astype(F)
    plain, own, other, kept = (
        mor_ref.quantize(x, with_steps(*before))
        for before in ((), (TURNED,), (Hadamard(16),), (KeptColumns(2.0),))
    )
    with pytest.raises(TypeError, match="so its codes lack the kept columns; give dequantize"):
        kept.in_blocks()
    mixed = mor_ref.mor(x, policy_of(with_steps(TURNED)))
    for a, b, said in (
        (own, plain.T, "A has hadamard 16 with signs 0xace1 before its blocks, and the other one"),
        (plain, own.T, "B has hadamard 16 with signs 0xace1 before its blocks, and the other one"),
        (own, other.T, "and the other one has hadamard 16; give two records with the same"),
        (kept, kept.T, "A has kept_columns 2 in f32 before its blocks, so its codes lack kept"),
        (own.T, own, "A has hadamard 16 with signs 0xace1 before its blocks, and not along K"),
        (mixed, own.T, "A is a record of mor that has hadamard 16 with signs 0xace1 before"),
    ):
        with pytest.raises(ValueError, match=said):
            mor_ref.matmul(a, b, profile="exact")
        y = mor_ref.matmul(a, b, profile="f32_fma")
        values = [np.asarray(one.dequantize(), float) for one in (a, b)]
        np.testing.assert_allclose(y, values[0] @ values[1], rtol=1e-4, atol=1e-4)


def test_equal_matrices_cancel_in_a_product() -> None:
    """BLF-012: of codes as they are, which need not go back."""
    x = np.random.default_rng(0).standard_normal((32, 70)).astype(F)
    own = mor_ref.quantize(x, with_steps(TURNED))
    v = mor_ref.decode(own.codes, "e2m1").astype(float) * own.factor.repeat(32, axis=1)[:, :70]
    y = mor_ref.matmul(own, own.T, profile="exact")
    np.testing.assert_allclose(y, v @ v.T, rtol=1e-6)
    np.testing.assert_allclose(y, own.dequantize() @ own.dequantize().T, rtol=1e-4, atol=1e-4)


# ---------------------------------------------------------------------- recipes


def test_compare_counts_the_bits_of_kept_columns() -> None:
    """BLF-013: kept numbers in the bits of their format, and a bit for each column."""
    x = np.random.default_rng(0).standard_normal((40, 64)).astype(F)
    x[:, [3, 50]] *= 100
    plain = with_steps()
    kept = dataclasses.replace(with_steps(KEPT), name="kept")
    turned = dataclasses.replace(with_steps(TURNED), name="turned")
    results = compare(x, [plain, kept, turned])
    scales = 16 * 40 * 2
    assert results["mine"].bits == results["turned"].bits == 4 * x.size + scales
    assert results["kept"].bits == 4 * 40 * 62 + 16 * 40 * 2 + 64 + scales
    own = mor_ref.quantize(x, kept).dequantize().astype(float)
    sqnr = 10 * math.log10((x.astype(float) ** 2).sum() / ((own - x) ** 2).sum())
    assert results["kept"].measures.sqnr == pytest.approx(sqnr, abs=0.01)


def test_files_have_the_kept_columns_and_go_back(tmp_path: Path) -> None:
    x, record = activations(6, 70), MANY["kept, then turned"]
    save_file({"w": x}, tmp_path / "x.safetensors")
    paths = [str(tmp_path / f"{name}.safetensors") for name in ("x", "codes", "y")]
    there.run(paths[:1], record.text, paths[1], Selection(), complete=True)
    back.run(paths[1], None, paths[2])
    np.testing.assert_array_equal(
        load_file(paths[2])["w"], mor_ref.quantize(x, record).dequantize()
    )


# ---------------------------------------------------------------------- own vectors


def kernel(wrong: str = "") -> Any:
    """Return a kernel of NumPy of the format that keeps columns and turns the others."""

    def along(x: Any, before: Any, after: Any) -> Any:
        z, whole = x.copy(), x.shape[1] // 16 * 16
        if wrong == "zeros fill the last run":
            z = np.pad(z, ((0, 0), (0, -x.shape[1] % 16)))
            whole = z.shape[1]
        a = z[:, :whole].reshape(len(z), -1, 16) * before
        if wrong == "sums of binary64":
            a = a.astype(float)
        for h in (8, 4, 2, 1) if wrong == "other order" else (1, 2, 4, 8):
            halves = a.reshape(len(z), -1, 8 // h, 2, h)
            u, v = halves[:, :, :, 0], halves[:, :, :, 1]
            a = np.stack([u + v, u - v], 3).reshape(len(z), -1, 16)
        z[:, :whole] = (a * F(0.25) * after).reshape(len(z), -1).astype(F)
        return z[:, : x.shape[1]]

    def run(_: str, parameters: Any, inputs: Any) -> dict[str, Any]:
        kind = {"f32": F, "f16": np.float16, "bf16": ml_dtypes.bfloat16}[parameters["source"]]
        with np.errstate(all="ignore"):
            x = inputs["x"].view(kind).astype(F)
            large = np.abs(x) > 6 if wrong == "above the limit" else np.abs(x) >= 6
            kept = np.broadcast_to(large.any(axis=0), x.shape)
            z = np.where(large if wrong == "single numbers" else kept, F(0), x)
            signs = F([-1 if 0xACE1 >> i & 1 else 1 for i in range(16)])
            there = signs[::-1] if wrong == "signs from the other end" else signs
            ones = np.ones(16, F)
            z = along(z, ones, there) if wrong == "signs at the end" else along(z, there, ones)
            blocks = np.pad(z, ((0, 0), (0, -x.shape[1] % 32))).reshape(len(x), -1, 32)
            amax = np.fmax.reduce(np.abs(blocks), axis=2, initial=F(0))
            t = amax / F(6)
            t = np.where(t == 0, F(1), t)
            s = mor_ref.encode(t, "bf16")
            factor = np.repeat(mor_ref.decode(s, "bf16"), 32, axis=1)[:, : x.shape[1]]
            code = mor_ref.encode(z / factor, "e2m1")
            v = mor_ref.decode(code, "e2m1") * factor
            y = v if wrong == "no way back" else along(v, ones, signs)
            codes = mor_ref.encode(x, "bf16", overflow="ieee")
            y = np.where(kept, mor_ref.decode(codes, "bf16"), y).astype(F)
        y.view(np.uint32)[np.isnan(y)] = 0x7FFFFFFF
        return {"scale": s, "code": code, "y": y.view(np.uint32), "selected": kept.astype(np.uint8),
                "kept": np.where(kept, codes, 0)}  # fmt: skip

    return run


@pytest.fixture(scope="module")
def given_away(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("vectors")
    make([MANY["kept, then turned"]], folder, Size(), workers=Here())
    return folder


def verified(vectors: Path, wrong: str = "") -> Verification:
    return verify(PythonFunction("kernel", kernel(wrong)), suites_in(vectors))


def test_a_kernel_of_numpy_matches(given_away: Path) -> None:
    assert verified(given_away).verdict == "match"


@pytest.mark.tier("full", but=["[zeros fill", "[sums of", "[above the"])
@pytest.mark.parametrize(
    "wrong",
    [
        "signs from the other end", "signs at the end", "zeros fill the last run", "no way back",
        "sums of binary64", "other order", "above the limit", "single numbers",
    ],
)  # fmt: skip
def test_a_wrong_kernel_is_a_mismatch(wrong: str, given_away: Path) -> None:
    assert verified(given_away, wrong).verdict == "mismatch"


def test_the_page_names_the_steps_with_their_rules(given_away: Path) -> None:
    text = " ".join((given_away / "mine.txt").read_text().split())
    for words in (
        "goes through kept_columns and then hadamard (BLF-011)",
        "kept_columns (BLF-013): a column is kept if it has a number whose magnitude is at least 6",
        "hadamard (BLF-012): from the left of each row on, 16 numbers a[0] to a[15] are a run",
        "Where bit i of 0xACE1 is 1, a[i] is negated first",
        "multiplied by 0.25, whose bits are 0x3E800000",
        "The way back",
        '{ step = "hadamard", size = 16, signs = "0xace1" }',
    ):
        assert words in text


def test_inputs_are_next_to_limits_and_in_runs(given_away: Path) -> None:
    arrays = load_file(given_away / "mine.safetensors")
    limit = int(F(6).view(np.uint32))
    amaxes = np.abs(arrays["kept_0.f32/x"].view(F)).max(axis=0).view(np.uint32)
    assert {limit - 1, limit, limit + 1} <= set(amaxes.tolist())
    selected = [bits for name, bits in arrays.items() if name.endswith("/selected")]
    assert 0.02 < np.mean(np.concatenate([bits.ravel() for bits in selected])) < 0.9
    assert arrays["runs_of_16_0.f32/x"].shape[1] == 32
