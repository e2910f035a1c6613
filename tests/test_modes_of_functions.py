"""Every public function in every mode of the processor: the usual bits, or a refusal.

A library can leave a thread in another direction of rounding, or one that flushes subnormal
numbers. No public function may return another number then without a word.
"""

import dataclasses
import decimal
import inspect
import struct
import tempfile
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
from modes import MODES, has_modes, modes

import mor_ref
from mor_ref import analysis, exact, formats, fp8lm, golden, layouts
from mor_ref.metrics import FitsRange, MeanRelativeError, NotWorseThan
from mor_ref.recipes import as_block_format
from mor_ref.records import Record

pytestmark = has_modes
REFUSAL = "this thread flushes subnormal numbers or rounds in another direction"

# Numbers next to ties and thresholds, subnormal numbers, and quotients that are not exact.
ROW = [0.3, -1.1, 1 / 3, 1e-40, -3e-39, 2.0**-149, 1.1754944e-38, 464.0]
X = np.array([ROW, [17.0 * v for v in ROW], [v / 7 for v in ROW]], np.float32)
X64 = np.array([[*ROW, 0.1, 1e-45, 7e-46, 3.4028235677973366e38]])
CODES = mor_ref.encode(X, "e4m3")
ADAM = fp8lm.begin_adam(X[0])
CUT = {"block": (1, 4)}
SCALES = layouts.transposed(np.arange(6, dtype=np.uint8).reshape(2, 3))
SETTINGS = analysis.settings_for("two_way", block="1x4")
REPORT = analysis.analyze(X, SETTINGS).report


def engine(*asked):
    """Return the answer of the engine, as a candidate does."""
    from mor_ref.operations import OPERATIONS

    return OPERATIONS[asked[0]].engine(*asked[1:])


def before(step):
    """Return the fields of numbers with a step before their blocks."""
    scale = mor_ref.BlockScale("s", (1, 4), "amax / 448 or 1")
    own = mor_ref.BlockFormat("own", "e4m3", (scale,), decode="s", before=[step])
    record = mor_ref.quantize(X, own)
    return record.codes, record.dequantize()


# By name, as a user writes it. A class has a call here, or an instance among the records.
CALLS = {
    "mor_ref.encode": lambda: (mor_ref.encode(X, "e4m3"), mor_ref.encode(X64, "bf16")),
    "mor_ref.philox4x32": lambda: mor_ref.philox4x32([7, 0, 1, 0], [3, 2**31]),
    "mor_ref.te_random_words": lambda: mor_ref.te_random_words((32, 32), 5),
    "mor_ref.explain": lambda: [str(mor_ref.explain(v, "bf16")) for v in (*ROW, 5e-324)],
    "mor_ref.neighbours": lambda: [mor_ref.neighbours(v, "f32") for v in (*ROW, 5e-324)],
    "mor_ref.decode": lambda: mor_ref.decode(np.arange(256, dtype=np.uint8), "e8m0"),
    "mor_ref.quantize": lambda: mor_ref.quantize(X64, "e4m3", **CUT),
    "mor_ref.quantize_mx": lambda: mor_ref.quantize_mx(X, "e2m1", scale_rule="rceil"),
    "mor_ref.quantize_nvfp4": lambda: mor_ref.quantize_nvfp4(X),
    "mor_ref.quantize_affine": lambda: mor_ref.quantize_affine(X, "uint8", symmetric=False),
    "mor_ref.quantize_levels": lambda: mor_ref.quantize_levels(X, "seq2", alpha=[0.3, 5.1, 0.1]),
    "mor_ref.quantize_shared": lambda: mor_ref.quantize_shared(X, "mx9"),
    "mor_ref.mix_formats": lambda: mor_ref.mix_formats(X, ["int8", "e4m3"], block=(1, 4)),
    "mor_ref.mix_layer": lambda: mor_ref.mix_layer([X, X64], ["int8", "e4m3"]),
    "mor_ref.mor": lambda: mor_ref.mor(X64, "three_way", block=(1, 4)),
    "mor_ref.select": lambda: (mor_ref.select(X64, limit=0.3), mor_ref.select(X, "rank", 0.3)),
    "mor_ref.dot": lambda: mor_ref.dot(CODES, CODES, X[:, 0]),
    "mor_ref.dot_chunks": lambda: mor_ref.dot_chunks(CODES, CODES, profile="hopper_fp8"),
    "mor_ref.matmul": lambda: mor_ref.matmul(
        RECORDS["quantize"], mor_ref.transposed(RECORDS["quantize"]), profile="hopper_fp8"
    ),
    "mor_ref.transposed": lambda: mor_ref.transposed(RECORDS["quantize"]).shape,
    "mor_ref.BlockFormat": lambda: [
        mor_ref.quantize(X, text).codes for text in ("mxfp8:rceil", "nvfp4:te")
    ],
    "mor_ref.Hadamard": lambda: before(mor_ref.Hadamard(4, signs=0b101, stored="bf16")),
    "mor_ref.KeptColumns": lambda: before(mor_ref.KeptColumns(0.3, "f16")),
    "mor_ref.FormulaFunction": lambda: mor_ref.FormulaFunction(lambda t: t / 3, "f").number(0.3),
    "mor_ref.TableFormat": lambda: mor_ref.TableFormat("t", (-1, 1e-40, 0.3, 0.7)).exact_limits,
    "mor_ref.BlockScale": lambda: [facts_of(one) for one in as_block_format("nvfp4").scales],
    "mor_ref.load": lambda: saved_and_loaded(fp8lm.AutoScale(0.3), RECORDS["quantize_mx"]),
    "mor_ref.Format": lambda: facts_of(
        mor_ref.Format("low", exponent_bits=4, mantissa_bits=3, bias=127, specials="fn")
    ),
    "mor_ref.MeanRelativeError": lambda: facts_of(mor_ref.MeanRelativeError(0.045)),
    "mor_ref.NotWorseThan": lambda: facts_of(mor_ref.NotWorseThan("e5m2")),
    "mor_ref.FitsRange": lambda: facts_of(mor_ref.FitsRange("e5m2")),
    "mor_ref.Rung": lambda: mor_ref.Rung("e4m3", MeanRelativeError("0.1")).name,
    "mor_ref.Policy": lambda: mor_ref.Policy(
        "mine", (mor_ref.Rung("e4m3", MeanRelativeError("0.3")),)
    ).with_threshold(0.14285714).ladder[0].metric.limit,
    "mor_ref.ScaledFormat": lambda: mor_ref.ScaledFormat(formats["e4m3"]).bits,
    "mor_ref.MxBlocks": lambda: mor_ref.MxBlocks("e4m3").bits,
    "mor_ref.Nvfp4Tiles": lambda: mor_ref.Nvfp4Tiles("te").bits,
    "mor_ref.verify": lambda: mor_ref.verify(engine, inputs={"x": X}, recipe="mxfp8").verdict,
    "mor_ref.golden": lambda: golden.load("decode")[0].arrays,
    "fp8lm.scale": lambda: (
        fp8lm.scale(X64[abs(X64) < 1e38]**2),
        fp8lm.scale(abs(X), profile="exact", fmt="f16"),
    ),
    "fp8lm.cast": lambda: fp8lm.cast(X64, 2.9387359e-39),
    "fp8lm.codes_and_y": lambda: fp8lm.codes_and_y(X, np.float32(3.0), formats["e4m3"]),
    "fp8lm.history": lambda: fp8lm.history(fp8lm.History((0.1, 1e-40)), 0.1),
    "fp8lm.auto_scale": lambda: [
        fp8lm.auto_scale(fp8lm.AutoScale(1.2e-38), [0x7E] * 7),
        fp8lm.auto_scale(fp8lm.AutoScale(0.3), [0x7E] + [0x30] * 6, threshold=0.14285714),
        fp8lm.auto_scale(fp8lm.AutoScale(0.3), [0x30] * 7),
    ],
    "fp8lm.next_mu": lambda: [
        fp8lm.next_mu(mu, 1, 7, profile, 0.14285714, 1000)
        for mu in (1.2e-38, 0.3)
        for profile in ("msamp", "paper")
    ],
    "fp8lm.partition": lambda: fp8lm.partition([10, 40, 30, 10], 2),
    "fp8lm.shared_scale": lambda: [
        fp8lm.shared_scale([X, X / 3, X * 5], profile=profile)
        for profile in ("paper", "msamp_max", "msamp_0_4_max")
    ],
    "fp8lm.shared_scales": lambda: fp8lm.shared_scales(
        abs(X[0]), "e4m3", "msamp_max", "msamp"
    ),
    "fp8lm.stored_scales": lambda: fp8lm.stored_scales([0.3, 1e-40, 1 / 3], 64.0),
    "fp8lm.sums_of": lambda: fp8lm.sums_of(CODES, formats["e4m3"], "by_rank"),
    "fp8lm.begin_adam": lambda: fp8lm.begin_adam(X64),
    "fp8lm.adam": lambda: fp8lm.adam(ADAM, X[1], lr=0.1, weight_decay=0.3),
    "analysis.analyze": lambda: analysis.analyze(X, SETTINGS),
    "analysis.compare": lambda: [
        analysis.compare(X, ["mxfp8", "mor:two_way:1x4"]),
        analysis.compare(X, ["mxfp4"], inputs=X[:, ::-1]),
    ],
    "analysis.compare_files": lambda: analysis.compare_files([]),
    "analysis.settings_for": lambda: facts_of(analysis.settings_for(threshold=0.14285714)),
    "analysis.settings_under": lambda: facts_of(analysis.settings_under("mor:tensor:0.14285714")),
    "analysis.to_records": lambda: analysis.to_records([REPORT]),
    "analysis.totals_of": lambda: facts_of(analysis.totals_of([REPORT], SETTINGS)),
    **{
        f"layouts.{name}": partial(getattr(layouts, name), SCALES)
        for name in ("padded_4", "mn_major", "mn_major_packed", "shuffled_32x8", "shuffled_16x32")
    },
    "layouts.packed": lambda: layouts.packed(np.array([[1, 2, 3]], np.uint8)),
    "layouts.plain": lambda: layouts.plain(SCALES, "transposed", (2, 3)),
    "layouts.reciprocal": lambda: layouts.reciprocal(X),
    "layouts.replicated": lambda: layouts.replicated(SCALES, 2),
    "layouts.swizzled_128x4": lambda: layouts.swizzled_128x4(SCALES),
    "layouts.transposed": lambda: layouts.transposed(SCALES),
    "exact.encode": lambda: [exact.encode(v, formats["e4m3"]) for v in ROW],
    "exact.decode": lambda: [exact.decode(code, formats["e5m2"]) for code in range(256)],
    "exact.floor_log2": lambda: [exact.floor_log2(v) for v in (5e-324, 1e-310, 0.3)],
    "exact.in_units_of": lambda: [exact.in_units_of(-1074, v) for v in (5e-324, 1e-310, 0.3)],
    "exact.goes_up": lambda: exact.goes_up("rne", 1, 2, odd=True, negative=False),
    "exact.goes_up_at_random": lambda: exact.goes_up_at_random(1, 2, 3, 2),
}  # fmt: skip
WITHOUT_NUMBERS = {
    "mor_ref.finfo", "mor_ref.Finfo",  # of the rows of formats
    "mor_ref.ExplainedEncoding", "mor_ref.Neighbours",  # of the two functions
    "mor_ref.formats", "mor_ref.formula_functions", "mor_ref.Metric",
    "mor_ref.fp4_with_reciprocals",  # a block format
    "mor_ref.FormatError", "mor_ref.UnknownNameError", "mor_ref.BlockFormatError",
    # What `mor` asks, inside of its own check.
    "mor_ref.Cosine", "mor_ref.LargestByRow", "mor_ref.RelativeFrobenius", "mor_ref.Role",
    "mor_ref.Sqnr", "mor_ref.Unit",
    "fp8lm.History", "fp8lm.AutoScale",  # given by users
    "analysis.Analysis", "analysis.BlockMap", "analysis.NamedRecipe", "analysis.TensorComparison",
}  # fmt: skip

RECORDS = {
    "quantize": mor_ref.quantize(X, "e4m3", **CUT),
    "block format": mor_ref.quantize(X, "mxfp8"),
    "quantize_mx": mor_ref.quantize_mx(X, "e2m1"),
    "quantize_nvfp4": mor_ref.quantize_nvfp4(X),
    "quantize_affine": mor_ref.quantize_affine(X, "uint8", symmetric=False),
    "quantize_levels": mor_ref.quantize_levels(X, "seq2"),
    "quantize_shared": mor_ref.quantize_shared(X, "mx9"),
    "mix_formats": mor_ref.mix_formats(X, ["int8", "e4m3"], block=(1, 4)),
    "mor": mor_ref.mor(X, "three_way", block=(1, 4)),
    "dot_chunks": mor_ref.dot_chunks(CODES, CODES, profile="hopper_fp8"),
    "error": mor_ref.quantize(X, "e4m3", **CUT).error,
    "scale": fp8lm.scale(abs(X)),
    "cast": fp8lm.cast(X, 3.0),
    "shared_scale": fp8lm.shared_scale([X, X]),
    "adam": ADAM,
    "measures": analysis.compare(X, ["mxfp4"])["mxfp4"].measures,
    "compared": analysis.compare(X, ["mxfp4"])["mxfp4"],
    "comparison": analysis.Comparison((), ()),
    "on inputs": analysis.compare(X, ["mxfp4"], inputs=X)["mxfp4"].on_inputs,
    "report": REPORT,
    "settings": SETTINGS,
    "totals": analysis.totals_of([REPORT], SETTINGS),
}
ALSO = {  # methods with arguments
    "alpha_sums": lambda one: one.alpha_sums(np.full(one.y.shape, 1e-310)),
    "dequantize to bfloat16": lambda one: one.dequantize("bfloat16"),
}


def saved_and_loaded(*records):
    """Return records by way of files; a float of JSON must not be rounded otherwise."""
    with tempfile.TemporaryDirectory() as directory:
        for number, record in enumerate(records):
            record.save(f"{directory}/{number}.npz")
        return [mor_ref.load(f"{directory}/{number}.npz") for number in range(len(records))]


def facts_of(one):
    """Return what all properties of an object say."""
    names = [name for name in dir(type(one)) if not name.startswith("_")]
    return {
        name: getattr(one, name)
        for name in names
        if not inspect.isroutine(getattr(type(one), name, None))
    }


def bits_of(value):
    """Return a value as one that is equal for equal bits alone."""
    if isinstance(value, np.ndarray | np.generic):
        return value.dtype.str, value.shape, np.asarray(value).tolist().__repr__()
    if isinstance(value, float):
        return struct.pack("<d", value)
    if isinstance(value, dict):
        return {key: bits_of(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [bits_of(one) for one in value]
    if isinstance(value, Fraction | int | str | bool | type(None)):
        return value
    if dataclasses.is_dataclass(value):
        found = {f.name: bits_of(getattr(value, f.name)) for f in dataclasses.fields(value)}
        return type(value).__name__, found
    return repr(value)


def check(call):
    """Call in all modes, and expect the bits of the usual mode or a refusal."""
    right = bits_of(call())
    for name, bits in MODES.items():
        try:
            with modes(bits):
                found = call()
        except RuntimeError as error:
            assert REFUSAL in str(error), name  # noqa: PT017  (or there is none)
            continue
        assert bits_of(found) == right, name


def test_every_public_name_is_called():
    public = {
        f"{short}.{name}"
        for short, module in (
            ("mor_ref", mor_ref),
            ("fp8lm", fp8lm),
            ("analysis", analysis),
            ("layouts", layouts),
            ("exact", exact),
        )
        for name in module.__all__
    }
    kinds = {type(one).__name__ for one in RECORDS.values()}
    left = {name for name in public if name.rpartition(".")[2] not in kinds}
    assert left - CALLS.keys() - WITHOUT_NUMBERS == set()
    assert CALLS.keys() - public == {"mor_ref.verify", "mor_ref.golden"}


@pytest.mark.parametrize("name", CALLS)
def test_a_function_has_the_usual_bits_or_refuses(name):
    if name == "analysis.compare_files":
        with modes(MODES["up"]), pytest.raises(RuntimeError, match=REFUSAL):
            CALLS[name]()
        return
    check(CALLS[name])


@pytest.mark.parametrize("name", [name for name in CALLS if name != "analysis.compare_files"])
def test_a_function_computes_in_a_decimal_context_of_its_own(name):
    """A caller's may have few digits, another rounding, and the signals of earlier operations."""
    right = bits_of(CALLS[name]())
    with decimal.localcontext(decimal.Context(prec=2, rounding=decimal.ROUND_UP)) as context:
        context.flags[decimal.Inexact] = True
        assert bits_of(CALLS[name]()) == right


def test_thresholds_are_read_in_a_decimal_context_of_their_own():
    with decimal.localcontext(decimal.Context(prec=2, rounding=decimal.ROUND_UP)):
        limits = mor_ref.Sqnr("20.125").limit_of_ratio, MeanRelativeError("0.0456789").limit
    assert limits == (mor_ref.Sqnr("20.125").limit_of_ratio, MeanRelativeError("0.0456789").limit)
    assert limits[0] == round(2**23 * 10**2.0125)


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_has_the_usual_bits_or_refuses(name):
    """Each of its properties, and each method that needs no argument."""
    record = RECORDS[name]
    for member in dir(type(record)):
        attribute = inspect.getattr_static(type(record), member)
        if member.startswith("_") or isinstance(attribute, type):
            continue
        if isinstance(attribute, property):
            check(lambda member=member: getattr(record, member))
        elif inspect.isfunction(attribute):
            needed = list(inspect.signature(attribute).parameters.values())[1:]
            if all(one.default is not one.empty for one in needed):
                check(lambda member=member: getattr(record, member)())
    if isinstance(record, Record):
        check(lambda: repr(record))


@pytest.mark.parametrize(
    ("name", "method"), [("quantize_levels", "alpha_sums"), ("quantize", "dequantize to bfloat16")]
)
def test_a_method_with_arguments(name, method):
    check(lambda: ALSO[method](RECORDS[name]))


@pytest.mark.parametrize(
    "metric", [MeanRelativeError(0.045), NotWorseThan("e5m2"), FitsRange("e5m2")]
)
def test_a_metric_has_the_usual_numbers_or_refuses(metric):
    check(
        lambda: facts_of(
            type(metric)(*[getattr(metric, f.name) for f in dataclasses.fields(metric)])
        )
    )


def test_what_was_another_number_before():
    """Under each mode by itself, as it was found."""
    found = []
    for name, call in (
        ("FTZ", CALLS["fp8lm.auto_scale"]),
        ("up", CALLS["fp8lm.auto_scale"]),
        ("DAZ", lambda: ALSO["alpha_sums"](RECORDS["quantize_levels"])),
        ("down", lambda: RECORDS["quantize_levels"].gradient_scale),
        ("down", lambda: RECORDS["error"].mean_relative_error),
        ("up", lambda: RECORDS["error"].overall),
        ("up", lambda: MeanRelativeError("1/3").value),
        ("down", lambda: layouts.reciprocal(X)),
        ("DAZ", lambda: exact.floor_log2(1e-310)),
    ):
        with modes(MODES[name]), pytest.raises(RuntimeError, match=REFUSAL):
            found.append(call())
    assert found == []
