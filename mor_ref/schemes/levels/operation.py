"""levels, levels_element and levels_packed: weights as few levels, with an alpha for each row.

The weights of `levels_element` have one each, which is given. `levels_packed` makes bytes of the
codes of a row.
"""

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.operations.bits import bits32, tensor_of
from mor_ref.operations.call import Arrays, Call, DeviceArrays, DeviceCall, Parameters, Results
from mor_ref.operations.fields import along, expected, given
from mor_ref.operations.operation import (
    Operation,
    PublicRecord,
    RandomInputs,
    WayBack,
    instance_test,
    renamed,
)
from mor_ref.operations.parameters import RECIPE, kinds, one_of, row_of
from mor_ref.operations.random_blocks import bits_of, values_of
from mor_ref.operations.random_numbers import (
    ANY_NUMBER,
    LAYOUTS,
    Draws,
    any_row,
    bits_at,
    edge_fractions,
    magnitudes_of,
    moved,
    share,
)
from mor_ref.operations.results import each
from mor_ref.schemes.levels.definition import ARITHMETICS, CLIP, LEVEL_KINDS, LevelKind, level_kind
from mor_ref.schemes.levels.exact import LevelRow, level_row, packed_row

if TYPE_CHECKING:
    from mor_ref import Levels

_U = np.uint64
_F32 = LAYOUTS["f32"]
_SPECIALS = np.array(
    [0, 1, 0x007FFFFF, 0x00800000, 0x7F7FFFFF, 0x7F800000, 0x7FC00000, 0x7F800001], _U
)
_SMALLEST = int(np.float32(1e-5).view(np.uint32))
_TERNARY = 3  # codes of a kind without a width in bits


def exact(call: Call) -> Results:
    """Quantize with the exact model."""
    kind, arithmetic = level_kind(call["kind"]), call["arithmetic"]
    rows = [level_row(row, kind, None, arithmetic) for row in call.numbers()]
    return {**each(rows, "alpha"), **_weight_results(rows)}


def _weight_results(rows: list[LevelRow]) -> dict[str, Any]:
    names = (field.name for field in OF_WEIGHTS)
    return each((row.elements for row in rows), *names)


def engine(call: Call) -> Results:
    """Quantize with the public function."""
    return mor_ref.quantize_levels(call.tensor(), call["kind"], **call.arguments("arithmetic"))


def cuda(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device."""
    from mor_ref.schemes.levels.cuda import first_alphas, quantize_levels

    device, x = call.device, call.bits()
    kind, arithmetic = level_kind(call["kind"]), call["arithmetic"]
    alpha = first_alphas(device, x, kind, arithmetic)
    return quantize_levels(device, x, alpha, kind, arithmetic)._asdict()


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of codes (LVL-008); NaN and the sign of zeros are lost."""
    kind, code = level_kind(parameters["kind"]), arrays["code"].astype(np.float32)
    if kind.grid == "integers":
        level = np.where(code > kind.highest, code - (1 << kind.bits), code)
    else:
        level = code - 1.5 if kind.grid == "quarters" else code - 1
    alpha, steps = arrays["alpha"].view(np.float32), np.float32(kind.steps)
    is_narrow = parameters["arithmetic"] == "bf16"

    def rounded(x: NDArray[np.float32]) -> NDArray[np.float32]:
        if not is_narrow:
            return x
        codes = mor_ref.encode(x, "bf16", overflow="ieee").astype(np.uint32)
        return (codes << np.uint32(16)).view(np.float32)

    with np.errstate(all="ignore"):
        ratio = rounded((level.astype(np.float32) / steps).astype(np.float32))
        return bits32(rounded(ratio * alpha))


def codes(parameters: Parameters) -> tuple[int, int]:
    """Return the lowest and the highest code (LVL-008)."""
    bits = level_kind(parameters["kind"]).bits
    return 0, (1 << bits if bits else _TERNARY) - 1


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of weights that have an alpha each (LVL-004 to LVL-008)."""
    from mor_ref.arrays import numbers_from
    from mor_ref.schemes.levels import engine as levels
    from mor_ref.schemes.levels.engine_alphas import words_of

    kind, arithmetic = level_kind(parameters["kind"]), parameters["arithmetic"]
    numbers = numbers_from(tensor_of(arrays["x"], parameters["source"]), "x")
    words, shape = words_of(numbers, arithmetic), arrays["x"].shape
    alpha = np.ascontiguousarray(arrays["alpha"], np.uint32).reshape(-1)
    _, quantized = levels.quantize_levels(words, shape, kind, alpha, arithmetic, 1)
    return quantized.code.reshape(shape)


def parameters_of(record: "Levels") -> Parameters:
    """Return the parameters that made a record."""
    return {"kind": record.representation, "arithmetic": record.arithmetic, "block": "row"}


def exact_element(call: Call) -> Results:
    """Quantize with the exact model."""
    kind, arithmetic = level_kind(call["kind"]), call["arithmetic"]
    rows = [level_row([x], kind, a, arithmetic) for x, a in call.together("x", "alpha")]
    return {"used_alpha": [row.alpha for row in rows], **_weight_results(rows)}


def engine_element(call: Call) -> Results:
    """Quantize a matrix of one column."""
    w, alpha = call.tensor().reshape(-1, 1), call.tensor("alpha")
    record = mor_ref.quantize_levels(w, call["kind"], alpha=alpha, arithmetic=call["arithmetic"])
    results = dict(LEVELS.stored(record))
    return {"used_alpha": results.pop("alpha"), **results}


def cuda_element(call: DeviceCall) -> DeviceArrays:
    """Quantize a matrix of one column."""
    from mor_ref.cuda.launching import Bits
    from mor_ref.schemes.levels.cuda import quantize_levels

    x, alpha = Bits(call.arrays["x"].reshape(-1, 1), "f32"), call.arrays["alpha"]
    kind, arithmetic = level_kind(call["kind"]), call["arithmetic"]
    results = quantize_levels(call.device, x, alpha, kind, arithmetic)._asdict()
    return {"used_alpha": results.pop("alpha"), **results}


def points_of(kind: LevelKind) -> list[float]:
    """Return ratios at which levels or gradients turn: ties and limits."""
    if kind.grid == "integers":
        whole = range(int(kind.lowest) - 2, int(kind.highest) + 3)
        return [ratio for n in whole for ratio in (n, n + 0.5)]
    return [0.0, 1 / 3, 0.5, 2 / 3, CLIP, 1.0, 1 / 4, 3 / 4, -1 / 3, -0.5, -2 / 3, -CLIP, -1.0]


def random_element(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw alphas of many binades, and weights next to where levels turn."""
    kind, narrow = level_kind(parameters["kind"]), parameters["arithmetic"] == "bf16"
    choices, words = draws.words(0), draws.words(1)
    field = share(bits_at(choices, 0, 16), 16, 48).astype(np.int64) + 100
    anywhere = share(bits_at(choices, 0, 16), 16, 276).astype(np.int64) - 22
    field = np.where(bits_at(choices, 16, 3) == 0, anywhere, field)
    alpha = magnitudes_of(field, edge_fractions(draws, 2, 1.0), _F32)
    near_smallest = moved(
        np.full(draws.count, _SMALLEST, _U), share(bits_at(choices, 20, 8), 8, 5), _F32.largest
    )
    kind_of_alpha = bits_at(choices, 32, 5)
    alpha = np.where(kind_of_alpha == 0, near_smallest, alpha)
    special = _SPECIALS[share(bits_at(choices, 40, 8), 8, _SPECIALS.size)]
    alpha = np.where(kind_of_alpha == 1, special, alpha)
    alpha = np.where(kind_of_alpha == 2, alpha | _U(1 << 31), alpha)
    points = np.array(points_of(kind))[share(bits_at(words, 0, 16), 16, len(points_of(kind)))]
    with np.errstate(all="ignore"):
        at = np.nan_to_num(np.abs(points * values_of(alpha)), nan=1.0, posinf=1.0)
    step = _U(1 << 16) if narrow else _U(1)
    steps = share(bits_at(words, 16, 16), 16, 5)
    x = moved(bits_of(at) // step, steps, _F32.largest // int(step)) * step
    x = np.where(bits_at(words, 48, 3) == 0, bits_at(words, 16, 31) % _U(_F32.infinity), x)
    lost = _SPECIALS[share(bits_at(words, 36, 8), 8, _SPECIALS.size)]
    x = np.where(bits_at(words, 44, 4) == 0, lost, x)
    signs = np.where(points < 0, _U(1), _U(0)) ^ (bits_at(words, 52, 2) == 0)
    return {"x": x | signs.astype(_U) << _U(31), "alpha": alpha}


def exact_packed(call: Call) -> Results:
    """Pack rows of levels with the exact model."""
    kind = level_kind(call["kind"])
    return {"packed": [list(packed_row(codes, kind)) for codes in call.numbers("code")]}


def engine_packed(call: Call) -> Results:
    """Pack rows of levels as records do."""
    code = call.arrays["code"].astype(np.uint8)
    record = mor_ref.quantize_levels(np.zeros(code.shape, np.float32), call["kind"])
    return {"packed": replace(record, codes=code).packed}


def cuda_packed(call: DeviceCall) -> DeviceArrays:
    """Pack rows of levels on a device."""
    from mor_ref.schemes.levels.cuda import packed_rows

    return {"packed": packed_rows(call.device, call.arrays["code"], level_kind(call["kind"]))}


def random_packed(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw codes."""
    kind, per_number = level_kind(parameters["kind"]), draws.per_number()
    count = 1 << kind.bits if kind.bits else 3
    return {"code": share(per_number.words(0) >> _U(32), 32, count).reshape(-1, draws.width)}


OF_WEIGHTS = (
    expected("ratio f32 rc", "w / alpha", "LVL-001 LVL-004 LVL-005"),
    expected("clipped f32 rc", "the ratio within its limits", "LVL-004 LVL-005 LVL-006"),
    expected("level f32 rc", "the level", "LVL-004 LVL-005 LVL-006"),
    expected("code u8 rc", "the code of the level", "LVL-008"),
    expected("y f32 rc", "what the level stands for", "LVL-004 LVL-005 LVL-006"),
    expected("alpha_term f32 rc", "the factor in the gradient of alpha", "LVL-007"),
    expected("inside u8 rc", "the factor in the gradient of the weight", "LVL-007"),
)
_KINDS = {"kind": row_of(LEVEL_KINDS), "arithmetic": one_of(ARITHMETICS)}
LEVELS = Operation(
    "levels",
    kinds("kind arithmetic block source", **_KINDS, block=one_of(("row",))),
    (
        given("x source rc", "the weights"),
        expected("alpha f32 grid", "the alpha of each row", "LVL-002 LVL-003"),
        *OF_WEIGHTS,
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    optional=kinds(RECIPE),
    way_back=WayBack(lambda _: (("code",), ("alpha",)), restore, coded),
    record=PublicRecord(instance_test("Levels"), parameters_of, renamed(code="codes")),
    codes=codes,
)
LEVELS_ELEMENT = Operation(
    "levels_element",
    kinds("kind arithmetic source:f32", **_KINDS),
    (
        given("x f32 n", "the weights"),
        given("alpha f32 n", "an alpha for each"),
        expected("used_alpha f32 n", "alpha, or the smallest one", "LVL-003"),
        *along({"rc": "n"}, OF_WEIGHTS),
    ),
    model=exact_element,
    function=engine_element,
    kernels=cuda_element,
    random=RandomInputs(
        random_element, any_row, ANY_NUMBER, answers=("level", "code", "y", "alpha_term")
    ),
    codes=codes,
)
LEVELS_PACKED = Operation(
    "levels_packed",
    kinds("kind", kind=_KINDS["kind"]),
    (
        given("code u8 nk", "the codes of each row"),
        expected("packed u8 bytes", "the bytes of each row", "LVL-008"),
    ),
    model=exact_packed,
    function=engine_packed,
    kernels=cuda_packed,
    random=RandomInputs(random_packed, any_row, "a code has the values of its kind"),
)
