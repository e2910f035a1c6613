"""Speed of encoding and decoding, as ratios to named peers measured in the same run.

One thread, unless a row says otherwise.
"""

import argparse
import importlib.util

import ml_dtypes
import numpy as np
from measuring import Ratios, best_times

import mor_ref
from mor_ref import formats
from mor_ref.arrays import code_dtype
from mor_ref.conventions import DETERMINISTIC_ROUNDINGS, POWER_OF_TWO_ROUNDINGS
from mor_ref.engine.parallel import available_threads

SHOWN = 12


def encoding_row(table, title, x):
    """f32 to e4m3 beside a memory copy, ml_dtypes and torch."""
    out, copy = np.empty(x.shape, np.uint8), np.empty_like(x)
    contenders = {
        "mor_ref": lambda: mor_ref.encode(x, "e4m3", out=out, threads=1),
        "numpy.copyto": lambda: np.copyto(copy, x),
        "ml_dtypes": lambda: x.astype(ml_dtypes.float8_e4m3fn),
    }
    if importlib.util.find_spec("torch"):
        import torch

        torch.set_num_threads(1)
        tensor = torch.from_numpy(x)
        contenders["torch"] = lambda: tensor.to(torch.float8_e4m3fn)
    times = best_times(contenders)
    for peer, wanted in (("numpy.copyto", 0.9), ("ml_dtypes", 20), ("torch", 2.5)):
        if peer in times:
            ratio = times[peer] / times["mor_ref"]
            table.add(f"f32 to e4m3, {title}", x.size, times["mor_ref"], peer, ratio, wanted)
    return times["mor_ref"]


def other_formats_and_roundings(table, x):
    """Every format under every rounding, compared with e4m3 under rne; the slowest are shown."""
    rooms = {dtype: np.empty(x.shape, dtype) for dtype in ("uint8", "uint16", "uint32")}

    def encoder(fmt, rounding, **more):
        out = rooms[str(code_dtype(fmt))]
        return lambda: mor_ref.encode(x, fmt, rounding=rounding, out=out, threads=1, **more)

    contenders = {"e4m3 rne": encoder(formats["e4m3"], "rne")}
    for fmt in formats.values():
        for mode in POWER_OF_TWO_ROUNDINGS if fmt.is_power_of_two else DETERMINISTIC_ROUNDINGS:
            contenders[f"{fmt.name} {mode}"] = encoder(fmt, mode)
    words = np.random.default_rng(2).integers(0, 1 << 16, x.size, dtype=np.uint32)
    contenders["e4m3 sr"] = encoder(formats["e4m3"], "sr", random_bits=words, n_random_bits=16)
    times = best_times(contenders, rounds=4)
    base = times.pop("e4m3 rne")
    for name, seconds in sorted(times.items(), key=lambda item: -item[1])[:SHOWN]:
        table.add(f"f32 to {name}", x.size, seconds, "e4m3 rne", seconds / base, 1.5, at_most=True)


def other_sources(table, x):
    """The rate of each source; there is no target for it but that of float32."""
    out = np.empty(x.shape, np.uint8)
    for dtype in (ml_dtypes.bfloat16, np.float16, np.float64):
        source = x.astype(dtype)
        peer = {
            "mor_ref": lambda source=source: mor_ref.encode(source, "e4m3", out=out, threads=1),
            "ml_dtypes": lambda source=source: source.astype(ml_dtypes.float8_e4m3fn),
        }
        times = best_times(peer, rounds=3)
        ratio = times["ml_dtypes"] / times["mor_ref"]
        name = np.dtype(dtype).name
        table.add(f"{name} to e4m3", x.size, times["mor_ref"], "ml_dtypes", ratio, 1)


def decoding_rows(table, size):
    """Codes of 8 and 16 bits to float32."""
    codes = np.random.default_rng(1).integers(0, 256, size, dtype=np.uint8)
    theirs = codes.view(ml_dtypes.float8_e4m3fn)
    times = best_times(
        {
            "mor_ref": lambda: mor_ref.decode(codes, "e4m3"),
            "ml_dtypes": lambda: theirs.astype(np.float32),
        }
    )
    ratio = times["ml_dtypes"] / times["mor_ref"]
    table.add("e4m3 to f32", size, times["mor_ref"], "ml_dtypes", ratio, 5)


def threads_row(table, x):
    """As many threads as there are, up to two, against one."""
    if available_threads() < 2:
        return
    out = np.empty(x.shape, np.uint8)
    times = best_times(
        {n: lambda n=n: mor_ref.encode(x, "e4m3", out=out, threads=n) for n in (1, 2)}
    )
    table.add("f32 to e4m3, 2 threads", x.size, times[2], "1 thread", times[1] / times[2], 1.7)


def main():
    """Measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--log2-size", type=int, default=26)
    size = 1 << parser.parse_args().log2_size
    table = Ratios()
    random = np.random.default_rng(0)
    normal = random.standard_normal(size, dtype=np.float32)
    encoding_row(table, "normal", normal)
    patterns = random.integers(0, 1 << 32, size, dtype=np.uint32).view(np.float32)
    encoding_row(table, "random bits", np.nan_to_num(patterns))
    other_formats_and_roundings(table, normal)
    other_sources(table, normal)
    decoding_rows(table, size)
    threads_row(table, normal)
    table.show()


if __name__ == "__main__":
    main()
