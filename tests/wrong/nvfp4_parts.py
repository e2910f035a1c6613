"""The common part of implementations of NVFP4: bits, casts, tiles and packing."""

import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Any

import ml_dtypes
import numpy as np

from wrong.kernel import Arrays, Kernel, Run

F32 = np.float32
FLT_MAX = F32(np.finfo(F32).max)
E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6], F32)
E4M3 = np.arange(256, dtype=np.uint8).view(ml_dtypes.float8_e4m3fn).astype(F32)
SOURCES = {"f32": F32, "bf16": ml_dtypes.bfloat16, "f16": np.float16}
PER_TENSOR = ("global_encode_scale", "global_decode_scale")
OF_ELEMENTS = ("xs", "code", "y", "six.code", "four.code")
TE = ("te", "te_2_13", "te_row")
FOUR_OVER_SIX = tuple(f"te_4over6_{m}{q}" for m in ("mae", "mse") for q in ("", "_448"))
ALL = (*TE, *FOUR_OVER_SIX, "torchao", "modelopt", "compressed_tensors")

SQUARE = ("te", "te_2_13", *FOUR_OVER_SIX)  # profiles with tiles of sixteen rows as well
TILES = ((1, 16), (16, 16))

Program = Callable[[str, np.ndarray, np.ndarray], Mapping[str, np.ndarray]]


def bits(a: np.ndarray) -> np.ndarray:
    """Return the bits of numbers in binary32, with one NaN; codes are returned as they are."""
    if a.dtype != F32:
        return a.astype(np.uint8)
    return np.where(np.isnan(a), np.uint32(0x7FFFFFFF), np.ascontiguousarray(a).view(np.uint32))


def load(a: np.ndarray, source: str) -> np.ndarray:
    """Return the numbers of a tensor in binary32, which holds them all."""
    return a.view(SOURCES[source]).astype(F32)


def e4m3(a: np.ndarray) -> np.ndarray:
    """Return the codes in e4m3 of numbers that are not negative, with saturation."""
    codes = np.minimum(a, F32(448)).astype(ml_dtypes.float8_e4m3fn).view(np.uint8)
    return codes & 0x7F  # a NaN has no sign


def e2m1(a: np.ndarray) -> np.ndarray:
    """Return codes of e2m1, to nearest with ties to even and saturation; NaN has the code 7."""
    m = np.abs(a)
    code = sum((m > t).astype(np.uint8) for t in (0.25, 1.25, 2.5, 5.0))
    code = code + sum((m >= t).astype(np.uint8) for t in (0.75, 1.75, 3.5))
    return np.where(np.isnan(a), 7, code | np.signbit(a) << 3).astype(np.uint8)


def largest(a: np.ndarray, axis: Any = None) -> np.ndarray:
    """Return the largest magnitudes, without NaN (fmax returns a NaN if it is signalling)."""
    return np.max(np.where(np.isnan(a), F32(0), np.abs(a)), axis=axis, keepdims=True)


def to_tiles(x: np.ndarray, rows: int, columns: int = 16) -> np.ndarray:
    """Return tiles of a tensor, (tiles, rows, columns), padded with zeros."""
    down, right = -(-x.shape[0] // rows), -(-x.shape[1] // columns)
    padded = np.zeros((down * rows, right * columns), x.dtype)
    padded[: x.shape[0], : x.shape[1]] = x
    grid = padded.reshape(down, rows, right, columns).swapaxes(1, 2)
    return np.ascontiguousarray(grid.reshape(-1, rows, columns))


def from_tiles(tiles: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    """Return the tensor of a shape that has these tiles."""
    _, rows, columns = tiles.shape
    down, right = -(-shape[0] // rows), -(-shape[1] // columns)
    grid = tiles.reshape(down, right, rows, columns).swapaxes(1, 2)
    return grid.reshape(down * rows, right * columns)[: shape[0], : shape[1]]


def pack(code: np.ndarray) -> np.ndarray:
    """Return bytes of two codes each, the even code in the low nibble."""
    even = np.zeros((code.shape[0], code.shape[1] + 1 & ~1), np.uint8)
    even[:, : code.shape[1]] = code
    return even[:, ::2] | even[:, 1::2] << 4


def fma(a: np.ndarray, b: np.ndarray, c: np.ndarray) -> np.ndarray:
    """Return a * b + c, rounded once: the sum in binary64 is first rounded to odd."""
    product = np.asarray(a, np.float64) * np.asarray(b, np.float64)
    product, c = np.broadcast_arrays(product, np.asarray(c, np.float64))
    total = product + c
    back = total - product
    rest = (product - (total - back)) + (c - back)
    odd = np.nextafter(total, np.where(rest > 0, np.inf, -np.inf))
    even = (total.view(np.int64) & 1) == 0
    inexact = np.isfinite(total) & np.isfinite(rest) & (rest != 0)
    return np.where(even & inexact, odd, total).astype(F32)


def record(
    b: np.ndarray,
    s_enc: np.ndarray,
    s_dec: np.ndarray,
    s: np.ndarray,
    decode: np.ndarray,
    xs: np.ndarray,
    code: np.ndarray,
    y: np.ndarray,
    encode: np.ndarray | None = None,
) -> dict[str, np.ndarray]:
    """Return the fields under the names of the suites."""
    fields = {"block_amax": b, "global_encode_scale": s_enc, "global_decode_scale": s_dec}
    fields |= {"block_scale": s, "decode_scale": decode, "xs": xs, "code": code, "y": y}
    return fields if encode is None else fields | {"encode_scale": encode}


def registrar(kernels: list[Kernel]) -> Callable[..., Callable[[Program], Program]]:
    """Return a decorator that adds a program to a list, once for each profile and tile.

    The two tiles have separate kernels because they do in libraries. `square` says that only tiles
    of sixteen rows can show the mistake, and `large` why `nvfp4_large` cannot show it there.
    """

    def wrong(
        mistake: str, *profiles: str, square: bool = False, large: str = ""
    ) -> Callable[[Program], Program]:
        def register(program: Program) -> Program:
            for profile, tile in itertools.product(profiles, TILES):
                if (tile == (16, 16) and profile not in SQUARE) or (tile == (1, 16) and square):
                    continue
                unseen = {"nvfp4_large": large} if large and tile == (16, 16) else {}
                name = f"nvfp4.{program.__name__}.{profile}.{tile[0]}x{tile[1]}"
                run = launch(program, profile, tiles=(tile,))
                kernels.append(Kernel(name, run, mistake, unseen))
            return program

        return register

    return wrong


def launch(program: Program, *profiles: str, tiles: Collection[tuple[int, int]] = TILES) -> Run:
    """Return an implementation that runs a program on all tiles of some shapes at once.

    The program takes the profile, the tiles in an array (tiles, rows, columns), and the amax of the
    tensor for each tile in an array (tiles, 1, 1). It returns fields of these shapes.
    """

    def run(operation: str, parameters: Mapping[str, Any], inputs: Arrays) -> Arrays | None:
        profile = parameters.get("profile", "")
        if operation not in {"nvfp4", "nvfp4_block"} or profile not in profiles:
            return None
        rows, columns = parameters.get("tile", (1, 16))
        if (rows, columns) not in tiles:
            return None
        x = load(inputs["x"], parameters["source"])
        with np.errstate(all="ignore"):
            if operation == "nvfp4_block":
                amax = inputs["amax"].view(F32)
                found = program(profile, x[:, None, :], amax[:, None, None])
                return single(found)
            parts = to_tiles(x, rows, columns)
            across = -(-x.shape[1] // columns)
            of_rows = np.repeat(largest(x, 1).ravel(), across) if profile == "te_row" else None
            amax = np.broadcast_to(largest(x), (len(parts), 1, 1)) if of_rows is None else of_rows
            found = program(profile, parts, amax.reshape(-1, 1, 1))
        return whole(found, x.shape, across, profile)

    return run


def single(found: Mapping[str, np.ndarray]) -> Arrays:
    """Return the fields of single tiles of one row."""
    return {
        name: bits(a)[:, 0, :] if name in OF_ELEMENTS else bits(a).ravel()
        for name, a in found.items()
    }


def whole(
    found: Mapping[str, np.ndarray], shape: tuple[int, ...], across: int, profile: str
) -> Arrays:
    """Return the fields of a tensor."""
    of_rows = slice(None, None, across) if profile == "te_row" else slice(1)
    fields = {name: bits(found[name]).ravel()[of_rows] for name in PER_TENSOR if name in found}
    fields["block_scale"] = bits(found["block_scale"]).reshape(-1, across)
    fields |= {name: from_tiles(bits(found[name]), shape) for name in ("xs", "code", "y")}
    return fields | {"packed": pack(fields["code"])}
