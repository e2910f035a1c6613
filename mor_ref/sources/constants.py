"""Packages of constants for hardware: the numbers of the catalogues."""

import math
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from mor_ref.definitions.format import Format
from mor_ref.definitions.formats import formats
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.metrics import MeanRelativeError
from mor_ref.metrics.thresholds import is_by_tensor
from mor_ref.policies import POLICIES

_HEADING = (
    "The numbers of the formats and policies of mor_ref; mor-ref sources has written this file.",
    "Of a format: the widths of its fields, its bias, and the exponent P of its largest number.",
    "Codes are of the largest finite number, of the smallest normal number, of infinity and of the",
    "canonical NaN, where the format has them. LARGEST_F32 is the largest number in binary32.",
)


@dataclass(frozen=True)
class Constant:
    """A constant: an integer, or bits if a width is given."""

    name: str
    value: int
    width: int | None = None


def constants_of(fmt: Format) -> Iterator[Constant]:
    """Yield the constants of a format."""
    prefix = _upper(fmt.name)
    yield Constant(f"{prefix}_BITS", fmt.bits)
    yield Constant(f"{prefix}_EXPONENT_BITS", fmt.exponent_bits)
    yield Constant(f"{prefix}_MANTISSA_BITS", fmt.mantissa_bits)
    yield Constant(f"{prefix}_BIAS", fmt.bias)
    yield Constant(f"{prefix}_LARGEST_EXPONENT", math.frexp(fmt.largest)[1] - 1)
    codes = {"LARGEST": fmt.largest_code, "INFINITY": fmt.infinity_code}
    codes["CANONICAL_NAN"] = fmt.canonical_nan_code
    if fmt.exponent_bits:
        codes["SMALLEST_NORMAL"] = 0 if fmt.is_power_of_two else 1 << fmt.mantissa_bits
    for name, code in codes.items():
        if code is not None:
            yield Constant(f"{prefix}_{name}", code, fmt.bits)
    yield Constant(f"{prefix}_LARGEST_F32", _binary32(fmt.largest), 32)


def _upper(name: str) -> str:
    """Return the name of a row as part of an identifier."""
    return name.upper().replace("-", "_")


def _binary32(number: float) -> int:
    return int.from_bytes(struct.pack(">f", number), "big")


def constants() -> Iterator[Constant]:
    """Yield all constants: of formats, of profiles, and the limits T of policies (MOR-002)."""
    for fmt in formats.values():
        yield from constants_of(fmt)
    for name, profile in PROFILES.items():
        yield Constant(f"NVFP4_{_upper(name)}_Q", _binary32(profile.range), 32)
    for name, policy in POLICIES.items():
        for rung in policy.ladder:
            if isinstance(rung.metric, MeanRelativeError) and not is_by_tensor(rung.metric):
                yield Constant(f"{_upper(name)}_{_upper(rung.name)}_LIMIT", rung.metric.limit, 32)


def systemverilog() -> str:
    """Return the package of constants in SystemVerilog, with a struct for the fields of a code."""
    lines = [f"// {line}" for line in _HEADING]
    lines += ["package mor_ref_constants;"]
    for constant in constants():
        lines.append(f"  localparam {_in_systemverilog(constant)};")
    for fmt in formats.values():
        fields = "".join(f" {field};" for field in _fields(fmt))
        lines.append(f"  typedef struct packed {{{fields} }} {_upper(fmt.name).lower()}_t;")
    return "\n".join([*lines, "endpackage", ""])


def _in_systemverilog(constant: Constant) -> str:
    if constant.width is None:
        return f"int {constant.name} = {constant.value}"
    kind, digits = f"logic [{constant.width - 1}:0]", f"{constant.value:X}"
    return f"{kind} {constant.name} = {constant.width}'h{digits}"


def _fields(fmt: Format) -> Iterator[str]:
    """Yield the fields of a code from the top bit; in two's complement it is one."""
    if fmt.sign == "twos-complement":
        yield f"logic signed [{fmt.bits - 1}:0] integer_value"
        return
    if fmt.sign_bit:
        yield "logic sign"
    for name, width in (("exponent", fmt.exponent_bits), ("mantissa", fmt.mantissa_bits)):
        if width:
            yield f"logic [{width - 1}:0] {name}"


def vhdl() -> str:
    """Return the package of constants in VHDL."""
    lines = [f"-- {line}" for line in _HEADING]
    lines += ["library ieee;", "use ieee.std_logic_1164.all;", "", "package mor_ref_constants is"]
    lines += [f"  constant {_in_vhdl(constant)};" for constant in constants()]
    return "\n".join([*lines, "end package mor_ref_constants;", ""])


def _in_vhdl(constant: Constant) -> str:
    if constant.width is None:
        return f"{constant.name} : integer := {constant.value}"
    bits = f"{constant.value:0{constant.width}b}"
    return f'{constant.name} : std_logic_vector({constant.width - 1} downto 0) := "{bits}"'
