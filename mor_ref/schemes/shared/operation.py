"""shared, shared_block and shared_packed: blocks of 16 numbers that share an exponent.

A row of `shared_block` and of `shared_packed` is a block; the second makes bytes of its codes.
"""

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

import mor_ref
from mor_ref.definitions.format import Format
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
from mor_ref.operations.parameters import RECIPE, kinds, number, row_of
from mor_ref.operations.random_blocks import amaxes_at, filled, fraction_of, with_a_special
from mor_ref.operations.random_numbers import ANY_NUMBER, Draws, any_row, bits_at
from mor_ref.operations.results import each
from mor_ref.schemes.shared import exact as shared
from mor_ref.schemes.shared import exact_columns as shared_columns
from mor_ref.schemes.shared.definition import (
    BLOCK,
    NAN_BLOCK,
    PAIR,
    SHARED_KINDS,
    SHARED_PROFILES,
    shared_kind,
    shared_profile,
)

if TYPE_CHECKING:
    from mor_ref import Shared

_HIDDEN = np.uint64(1 << 23)
_SIGN = np.uint64(1 << 31)


def exact(call: Call) -> Results:
    """Quantize with the exact model."""
    kind, profile = shared_kind(call["kind"]), shared_profile(call["profile"])
    tensor = shared.shared(call.numbers(), kind, profile)
    exponents = {"shared_exponent": tensor.exponent, "tau": tensor.tau}
    return {**exponents, **each(tensor.elements, *_ELEMENTS)}


def columns(call: Call) -> Results:
    """Quantize with the exact model, many numbers at a time."""
    kind, profile = shared_kind(call["kind"]), shared_profile(call["profile"])
    tensor = shared_columns.shared(call.flat(), call.shape, kind, profile)
    exponents = {"shared_exponent": tensor.exponent, "tau": tensor.tau}
    return {**exponents, **{name: getattr(tensor.elements, name) for name in _ELEMENTS}}


def engine(call: Call) -> Results:
    """Quantize with the public function; rows of single blocks are a tensor."""
    record = mor_ref.quantize_shared(call.tensor(), call["kind"], profile=call["profile"])
    return SHARED.stored(record)


def cuda(call: DeviceCall) -> DeviceArrays:
    """Quantize on a device; rows of single blocks are a tensor."""
    from mor_ref.schemes.shared.cuda import quantize_shared

    kind, profile = shared_kind(call["kind"]), shared_profile(call["profile"])
    return quantize_shared(call.device, call.bits(), kind, profile)._asdict()


def restore(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint32]:
    """Return y of codes (SHX-006).

    Codes do not hold an infinity or a NaN that passed, nor the sign of zeros in two's complement.
    """
    kind, code = shared_kind(parameters["kind"]), arrays["code"].astype(np.int64)
    columns, half = code.shape[1], 1 << kind.magnitude_bits
    exponent = np.repeat(arrays["shared_exponent"].astype(np.int32), BLOCK, axis=1)[:, :columns]
    tau = np.repeat(arrays["tau"].astype(np.int32), PAIR, axis=1)[:, :columns]
    is_negative = code >= half
    size = np.where(is_negative, 2 * half - code if kind.carries else code - half, code)
    y = np.ldexp(size.astype(np.float64), exponent - 127 - tau + 1 - kind.magnitude_bits)
    signed = np.where(is_negative, -y, y)
    return bits32(np.where(exponent == NAN_BLOCK, np.nan, signed).astype(np.float32))


def codes(parameters: Parameters) -> tuple[int, int]:
    """Return the lowest and the highest code (SHX-005)."""
    return 0, (2 << shared_kind(parameters["kind"]).magnitude_bits) - 1


def coded(parameters: Parameters, arrays: Arrays) -> NDArray[np.uint8]:
    """Return the codes of numbers that have a shared exponent and a shift each (SHX-005)."""
    from mor_ref.arrays import numbers_from
    from mor_ref.schemes.shared.engine import quantize_with

    kind, profile = shared_kind(parameters["kind"]), shared_profile(parameters["profile"])
    numbers = numbers_from(tensor_of(arrays["x"], parameters["source"]), "x")
    exponent, tau = (
        np.ascontiguousarray(arrays[name], np.uint8).reshape(-1)
        for name in ("shared_exponent", "tau")
    )
    return quantize_with(numbers, exponent, tau, kind, profile).code.reshape(arrays["x"].shape)


def parameters_of(record: "Shared") -> Parameters:
    """Return the parameters that made a record."""
    return {"kind": record.representation, "profile": record.profile, "block": BLOCK}


def exact_block(call: Call) -> Results:
    """Quantize with the exact model."""
    kind, profile = shared_kind(call["kind"]), shared_profile(call["profile"])
    blocks = [shared.shared_block(row, kind, profile) for row in call.numbers()]
    return {
        "shared_exponent": [block.exponent for block in blocks],
        "tau": [block.tau for block in blocks],
        **each((block.elements for block in blocks), *_ELEMENTS),
    }


def random_block(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw blocks next to where exponents turn, and pairs with ties at either unit."""
    bits = shared_kind(parameters["kind"]).magnitude_bits
    # Magnitudes in units; the last of them rounds up to 2^bits from half a unit below it on.
    units = Format(
        "magnitudes", exponent_bits=0, mantissa_bits=bits, bias=1 - bits, specials="none",
        sign="twos-complement",
    )  # fmt: skip
    turn = fraction_of((1 << bits) - 0.5)
    amaxes = amaxes_at(draws, 0, (turn, turn, 1 << 22), units.largest)
    exponent = (amaxes >> np.uint64(23)).astype(np.int64)
    unit = np.ldexp(1.0, np.maximum(exponent, 1) - 127 + 1 - bits)
    x = filled(draws, 3, units, amaxes, unit)
    halves = bits_at(draws.per_number().words(6), 0, 1).reshape(x.shape)
    halves = np.repeat(halves[:, ::2], 2, axis=1)[:, : draws.width]  # both numbers of a pair
    is_normal = (x & ~_SIGN) >= _HIDDEN * np.uint64(2)
    x = np.where((halves != 0) & is_normal, x - _HIDDEN, x)
    return {"x": with_a_special(draws, 7, x, amaxes)}


def exact_packed(call: Call) -> Results:
    """Pack blocks with the exact model."""
    kind, blocks = shared_kind(call["kind"]), []
    for codes, tau, exponent in call.together("code", "tau", "shared_exponent"):
        elements = [shared.SharedElement(0, 0, code, 0.0) for code in codes]
        blocks.append(shared.packed(shared.SharedBlock(exponent, tau, elements), kind))
    return {"packed": [list(block) for block in blocks]}


def engine_packed(call: Call) -> Results:
    """Pack blocks as records do."""
    code = call.arrays["code"].astype(np.uint8)
    exponent, tau = call.arrays["shared_exponent"].reshape(-1, 1), call.arrays["tau"]
    y = np.zeros(code.shape, np.float32)
    record = mor_ref.Shared(call["kind"], "quark_torch", exponent, tau, code, code, code, y)
    return {"packed": record.packed}


def cuda_packed(call: DeviceCall) -> DeviceArrays:
    """Pack blocks on a device."""
    from mor_ref.schemes.shared.cuda import packed_blocks

    code, tau, exponent = (call.arrays[name] for name in ("code", "tau", "shared_exponent"))
    return {"packed": packed_blocks(call.device, code, tau, exponent, shared_kind(call["kind"]))}


def random_packed(parameters: Parameters, draws: Draws) -> Arrays:
    """Draw exponents, shifts and codes."""
    kind, per_number = shared_kind(parameters["kind"]), draws.per_number()
    shape = (draws.count, draws.width)
    codes = bits_at(per_number.words(0), 0, kind.code_bits).reshape(shape)
    tau = bits_at(per_number.words(1), 0, 1).reshape(shape)[:, ::PAIR] * np.uint64(kind.shifts)
    return {"code": codes, "tau": tau, "shared_exponent": bits_at(draws.words(2), 0, 8)}


_ELEMENTS = ("sign", "magnitude", "code", "y")
RESULTS = (
    expected("shared_exponent u8 grid", "E of each block", "SHX-002 SHX-004", views="transposed"),
    expected("tau u8 pair", "the shift of each pair", "SHX-003"),
    expected("sign u8 rc", "1 for a negative number", "SHX-005"),
    expected("magnitude u8 rc", "M, in units of its pair", "SHX-005"),
    expected("code u8 rc", "the code", "SHX-007"),
    expected("y f32 rc", "what it stands for", "SHX-006"),
)
_KINDS = {"kind": row_of(SHARED_KINDS), "profile": row_of(SHARED_PROFILES)}
SHARED = Operation(
    "shared",
    kinds("kind profile block source", **_KINDS, block=number(BLOCK, BLOCK)),
    (
        given("x source rc", "the tensor"),
        *RESULTS,
    ),
    model=exact,
    function=engine,
    kernels=cuda,
    columns=columns,
    optional=kinds(RECIPE),
    way_back=WayBack(
        lambda _: (("code",), ("tau",), ("shared_exponent",)),
        restore,
        coded,
        {"tau": 0, "shared_exponent": 127},
    ),
    record=PublicRecord(instance_test("Shared"), parameters_of, renamed(code="codes")),
    codes=codes,
)
SHARED_BLOCK = Operation(
    "shared_block",
    kinds("kind profile source:f32", **_KINDS),
    (
        given("x f32 nk", "the numbers of each block"),
        *along({"grid": "n", "rc": "nk"}, RESULTS),
    ),
    model=exact_block,
    function=engine,
    kernels=cuda,
    random=RandomInputs(
        random_block, any_row, ANY_NUMBER, answers=("shared_exponent", "tau", "code")
    ),
    widths=(1, BLOCK),
    codes=codes,
)
SHARED_PACKED = Operation(
    "shared_packed",
    kinds("kind", kind=_KINDS["kind"]),
    (
        given("code u8 nk", "the codes of each block"),
        given("tau u8 pair", "the shift of each pair"),
        given("shared_exponent u8 n", "E of each block"),
        expected("packed u8 bytes", "the bytes of each block", "SHX-007"),
    ),
    model=exact_packed,
    function=engine_packed,
    kernels=cuda_packed,
    random=RandomInputs(random_packed, any_row, "a code has the bits of its kind"),
    widths=(1, BLOCK),
)
