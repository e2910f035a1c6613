"""Speed and memory of MoR and NVFP4 on bfloat16, as ratios to eager torch, NumPy and a copy.

One thread. The peers compute the same thing in the way of a careful user: whole-tensor operations,
float32 in between, sums in floating point.
"""

import argparse
import importlib.util
import tracemalloc

import ml_dtypes
import numpy as np
from measuring import Ratios, best_times
from rich.console import Console

import mor_ref

BF16 = ml_dtypes.bfloat16
SIDE = 128
E2M1_MIDPOINTS = (0.25, 0.75, 1.25, 1.75, 2.5, 3.5, 5.0)
E2M1_TIE_GOES_UP = (False, True, False, True, False, True, False)


def numpy_mor(x):
    """The policy `tensor` with GAM scales, in NumPy and ml_dtypes."""
    rows, columns = x.shape
    tiles = x.astype(np.float32).reshape(rows // SIDE, SIDE, columns // SIDE, SIDE)
    magnitudes = np.abs(tiles)
    ideal = (np.float32(448) / magnitudes.max(axis=(1, 3))).view(np.uint32)
    shared = (np.float32(448) / magnitudes.max()).view(np.uint32) & 0x7FFFFF
    exponent = (ideal >> 23) - (shared > (ideal & 0x7FFFFF))
    scale = ((exponent << 23) | shared).astype(np.uint32).view(np.float32)[:, None, :, None]
    codes = (tiles * scale).astype(ml_dtypes.float8_e4m3fn)
    y = codes.astype(np.float32) / scale
    counts = magnitudes > 0
    errors = np.where(counts, np.abs(tiles - y) / np.where(counts, magnitudes, 1), 0)
    mean = errors.sum(dtype=np.float64) / counts.sum()
    return y.reshape(x.shape).astype(BF16) if mean < 0.045 else x.copy(), codes


def torch_mor(x):
    """The same in eager torch."""
    import torch

    rows, columns = x.shape
    tiles = x.float().view(rows // SIDE, SIDE, columns // SIDE, SIDE)
    magnitudes = tiles.abs()
    ideal = (448.0 / magnitudes.amax(dim=(1, 3))).view(torch.int32)
    shared = (448.0 / magnitudes.max()).view(torch.int32) & 0x7FFFFF
    exponent = (ideal >> 23) - (shared > (ideal & 0x7FFFFF)).int()
    scale = ((exponent << 23) | shared).view(torch.float32)[:, None, :, None]
    codes = (tiles * scale).to(torch.float8_e4m3fn)
    y = codes.float() / scale
    counts = magnitudes > 0
    errors = torch.where(counts, (tiles - y).abs() / magnitudes, 0)
    mean = errors.sum() / counts.sum()
    return y.view(x.shape).bfloat16() if mean < 0.045 else x.clone(), codes


def torch_nvfp4(x):
    """NVFP4 with profile te, tiles of 1x16, in eager torch."""
    import torch

    tiles = x.float().view(-1, 16)
    s_enc = 2688.0 / tiles.abs().max()
    s = (tiles.abs().amax(dim=1) * (s_enc * (1.0 / 6.0))).to(torch.float8_e4m3fn)
    decode = s.float() * (1.0 / s_enc)
    scaled = tiles * (1.0 / decode)[:, None]
    magnitude = scaled.abs()
    codes = torch.signbit(scaled).to(torch.uint8) << 3
    for midpoint, up in zip(E2M1_MIDPOINTS, E2M1_TIE_GOES_UP, strict=True):
        codes += magnitude >= midpoint if up else magnitude > midpoint
    return codes, s


def peers_of(x, numpy_peer, torch_peer):
    """The peers that are installed, each as a call."""
    peers = {} if numpy_peer is None else {"NumPy with ml_dtypes": lambda: numpy_peer(x)}
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        tensor = torch.from_numpy(x.view(np.int16)).view(torch.bfloat16)
        peers["eager torch"] = lambda: torch_peer(tensor)
    return peers


def mor_rows(ratios, x):
    """The policy `tensor` beside its peers and a copy; `three_way` beside `tensor`."""
    copy = np.empty_like(x)
    ours = {
        "tensor": lambda: mor_ref.mor(x, threads=1),
        "three_way": lambda: mor_ref.mor(x, "three_way", threads=1),
        "numpy.copyto": lambda: np.copyto(copy, x),
    }
    times = best_times(ours)
    slow = best_times(peers_of(x, numpy_mor, torch_mor), rounds=2)
    ratio = times["tensor"] / times["numpy.copyto"]
    name = "mor, tensor"
    ratios.add(name, x.size, times["tensor"], "numpy.copyto", ratio, 6, at_most=True)
    for peer, wanted in (("NumPy with ml_dtypes", 40), ("eager torch", 16)):
        if peer in slow:
            ratio = slow[peer] / times["tensor"]
            ratios.add(name, x.size, times["tensor"], peer, ratio, wanted)
    ratio = times["three_way"] / times["tensor"]
    ratios.add("mor, three_way", x.size, times["three_way"], "tensor", ratio, 2, at_most=True)


def nvfp4_row(ratios, x):
    """NVFP4 beside eager torch."""
    ours = best_times({"te": lambda: mor_ref.quantize_nvfp4(x, threads=1)}, rounds=4)["te"]
    for peer, seconds in best_times(peers_of(x, None, torch_nvfp4), rounds=2).items():
        ratios.add("NVFP4, te", x.size, ours, peer, seconds / ours, 10)


def memory_row(x):
    """How much memory a call takes beyond its input and what it returns."""
    mor_ref.mor(x, threads=1)
    tracemalloc.start()
    found = mor_ref.mor(x, threads=1)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    beyond = peak - found.output.nbytes - found.quantized["e4m3"].codes.nbytes
    where = "beyond input and output (wanted: under 64)"
    Console().print(f"mor, tensor: {beyond / 2**20:.1f} MiB {where}")


def linear_rows(logs):
    """The time for each element, for sizes far apart."""
    for log in logs:
        x = np.random.default_rng(0).standard_normal(1 << log, dtype=np.float32).astype(BF16)
        x = x.reshape(-1, 1 << (log // 2))
        rounds = 2 if log > 26 else 5
        seconds = best_times({"mor": lambda x=x: mor_ref.mor(x, threads=1)}, rounds)["mor"]
        Console().print(f"mor, tensor, 2^{log} elements: {seconds / x.size * 1e9:.3f} ns for each")


def main():
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--side", type=int, default=8192)
    parser.add_argument("--linear", type=int, nargs="*", default=[20, 22, 24, 26, 28])
    arguments = parser.parse_args()
    random = np.random.default_rng(0)
    x = random.standard_normal((arguments.side, arguments.side), dtype=np.float32).astype(BF16)
    ratios = Ratios()
    mor_rows(ratios, x)
    nvfp4_row(ratios, x)
    ratios.show()
    memory_row(x)
    del x
    linear_rows(arguments.linear)


if __name__ == "__main__":
    main()
