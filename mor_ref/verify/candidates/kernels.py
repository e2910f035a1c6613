"""The CUDA kernels as candidates: each operation of the suites, on a GPU or on a CPU.

Of tensors and blocks they give what is stored, and y. The intermediates of every element (xs, d, r,
u, the candidates of 4over6) stay in registers: a kernel that wrote them would be another kernel,
compiled to other code, and would not show what the one that is used computes. The same functions of
the device give xs, d, r and u of single numbers, in `quantize_element` and `error_term`; and a
candidate of 4over6 that goes wrong shows in the scale or the codes of a case that turns on it.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from mor_ref.cuda import decoding, encoding, errors, policies, quantization, scales
from mor_ref.cuda import mx as on_mx
from mor_ref.cuda import nvfp4 as on_nvfp4
from mor_ref.cuda.device import Gpu
from mor_ref.cuda.encoding import RandomBits
from mor_ref.cuda.errors import ErrorSums
from mor_ref.cuda.failure import CudaError
from mor_ref.cuda.host import Host
from mor_ref.cuda.launching import Array, Bits, Device
from mor_ref.definitions.blocks import Partition, partition
from mor_ref.definitions.encoding import SpecialCases, rounding_for
from mor_ref.definitions.formats import as_format, presets
from mor_ref.definitions.nvfp4 import PROFILES
from mor_ref.definitions.policies import as_policy
from mor_ref.golden.model.suite import Case, Parameters, as_cut
from mor_ref.verify.candidates.candidate import Answer, CandidateError

Found = dict[str, Any]
DeviceArrays = Mapping[str, Array]
Operation = Callable[[Device, Parameters, DeviceArrays], Found]


@dataclass(frozen=True)
class Kernels:
    """The kernels on a device."""

    name: str
    device: Device

    def answer(self, suite: str, operation: str, case: Case) -> Answer | None:
        """What they make of a case."""
        del suite
        run = OPERATIONS.get(operation)
        if run is None:
            return None
        try:
            arrays = {
                name: self.device.upload(np.ascontiguousarray(array))
                for name, array in case.arrays.items()
            }
            found = run(self.device, case.parameters, arrays)
            return {name: self.device.download(array) for name, array in found.items()}
        except CudaError as error:
            raise CandidateError(str(error)) from error


def kernels_named(name: str) -> Kernels:
    """The kernels on the GPU, which is `cuda`, or on the CPU, which is `cuda-host`."""
    try:
        return Kernels(name, Gpu() if name == "cuda" else Host())
    except CudaError as error:
        raise CandidateError(str(error)) from error


def _numbers(parameters: Parameters, arrays: DeviceArrays) -> Bits:
    return Bits(arrays["x"], parameters["source"])


def encode(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """Numbers to codes."""
    fmt = as_format(parameters["format"])
    special = SpecialCases(overflow=parameters["overflow"], nan=parameters["nan"])
    x = _numbers(parameters, arrays)
    return {"code": encoding.encode(device, x, fmt, parameters["rounding"], special)}


def encode_preset(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """Numbers to codes as another library has them."""
    fmt = as_format(parameters["format"])
    special = presets[parameters["preset"]][fmt.name]
    rounding = rounding_for(fmt, None, special)
    return {"code": encoding.encode(device, _numbers(parameters, arrays), fmt, rounding, special)}


def encode_stochastic(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """Numbers to codes, with random bits."""
    fmt, special = as_format(parameters["format"]), SpecialCases(overflow=parameters["overflow"])
    random = RandomBits(arrays["random_word"], parameters["n_random_bits"])
    x = _numbers(parameters, arrays)
    return {"code": encoding.encode(device, x, fmt, "sr", special, random)}


def decode(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """Codes to numbers."""
    return {"value": decoding.decode(device, arrays["code"], as_format(parameters["format"]))}


def scale(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """The scale of a block from its amax and its group's."""
    return scales.scale_steps(
        device,
        parameters["scaling"],
        as_format(parameters["format"]),
        arrays["group_amax"],
        arrays["block_amax"],
    )


def quantize_element(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """One number and its scale."""
    fmt = as_format(parameters["format"])
    return quantization.quantize_steps(device, fmt, arrays["x"], arrays["scale"])


def error_term(device: Device, _: Parameters, arrays: DeviceArrays) -> Found:
    """The error of one number."""
    return errors.error_steps(device, arrays["x"], arrays["y"])


def _partition(parameters: Parameters, arrays: DeviceArrays) -> Partition:
    block, group = (as_cut(c) for c in (parameters["block"], parameters.get("group", "tensor")))
    return partition(arrays["x"].shape, block, group)


def _sums(error: ErrorSums, prefix: str = "") -> Found:
    return {f"{prefix}{name}": array for name, array in error._asdict().items()}


def quantize(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """A tensor with scales."""
    fmt, parts = as_format(parameters["format"]), _partition(parameters, arrays)
    x, kind = _numbers(parameters, arrays), parameters["scaling"]
    found = quantization.quantize(device, x, fmt, kind, parts)
    return {
        "amax": found.amax,
        **found.scales._asdict(),
        "code": found.codes,
        "y": quantization.dequantize(device, found, fmt, parts),
        **_sums(found.error),
    }


def mor(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """A tensor under a policy."""
    policy, parts = as_policy(parameters["policy"]), _partition(parameters, arrays)
    x = _numbers(parameters, arrays)
    found = policies.mor(device, x, policy, parameters["scaling"], parts)
    errors = [_sums(error, f"{name}.") for name, error in found.error.items()]
    return {
        "choice": found.choice,
        "output": found.output,
        **found.extremes._asdict(),
        **{name: array for sums in errors for name, array in sums.items()},
    }


def nvfp4(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """A tensor in NVFP4."""
    profile, tile = PROFILES[parameters["profile"]], tuple(parameters["tile"])
    found = on_nvfp4.nvfp4(device, _numbers(parameters, arrays), profile, tile)
    return {
        "code": found.codes,
        "packed": found.packed,
        "y": on_nvfp4.dequantize(device, found, profile, tile),
        "block_scale": found.tiles.codes,
        "global_encode_scale": found.whole.encode.reshape(-1),
        "global_decode_scale": found.whole.decode.reshape(-1),
    }


def mx(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """A tensor in an MX format."""
    fmt, x = as_format(parameters["format"]), _numbers(parameters, arrays)
    rule, block = parameters["scale_rule"], parameters["block"]
    found = on_mx.mx(device, x, fmt, rule, block)
    y = on_mx.dequantize(device, found, fmt, block)
    return {"code": found.codes, "scale": found.scale, "y": y}


def decide(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """Acceptance from sums."""
    fmt = as_format(parameters["format"]) if "format" in parameters else None
    accepted = policies.decision_steps(device, parameters["metric"], fmt, dict(arrays))
    return {"accepted": accepted}


def quantize_block(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """Blocks, each in a row beside one that holds the amax of their group alone."""
    width, is_gam = arrays["x"].shape[1], parameters["scaling"] == "gam"
    pairs = device.filled((len(arrays["x"]), 2 * width), np.uint32, 0)
    pairs[:, 0], pairs[:, width:] = arrays["group_amax"], arrays["x"]
    parts = partition(pairs.shape, (1, width), "row" if is_gam else "tensor")
    fmt = as_format(parameters["format"])
    found = quantization.quantize(device, Bits(pairs, "f32"), fmt, parameters["scaling"], parts)
    nothing = device.filled((len(pairs),), np.uint32, 0)
    return {
        "amax": found.amax[:, 1],
        "scale": found.scales.scale[:, 1],
        "exponent": found.scales.exponent[:, 1],
        "mantissa": found.scales.mantissa[:, 0] if is_gam else nothing,
        "code": found.codes[:, width:],
        "y": quantization.dequantize(device, found, fmt, parts)[:, width:],
        **{name: array[:, 1] for name, array in _sums(found.error).items()},
    }


def nvfp4_block(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """Tiles, each a row with a global scale of its own."""
    profile = PROFILES[parameters["profile"]]
    whole = on_nvfp4.scales_of_amaxes(device, arrays["amax"], profile)
    found = on_nvfp4.nvfp4(device, _numbers(parameters, arrays), profile, (1, 16), whole)
    return {
        "global_encode_scale": whole.encode,
        "global_decode_scale": whole.decode,
        "block_scale": found.tiles.codes[:, 0],
        "decode_scale": found.tiles.decode[:, 0],
        "code": found.codes,
        "y": on_nvfp4.dequantize(device, found, profile, (1, 16)),
    }


def mx_block(device: Device, parameters: Parameters, arrays: DeviceArrays) -> Found:
    """Blocks, each a row."""
    x = _numbers(parameters, arrays)
    found = mx(device, {**parameters, "block": x.array.shape[1]}, arrays)
    return found | {"scale": found["scale"][:, 0]}


OPERATIONS: dict[str, Operation] = {
    operation.__name__: operation
    for operation in (
        encode, encode_preset, encode_stochastic, decode, scale, quantize_element, error_term,
        decide, quantize, mor, nvfp4, mx, quantize_block, nvfp4_block, mx_block,
    )
}  # fmt: skip
