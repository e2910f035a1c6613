"""Tensors that the tests of analyzing read, and the command on them."""

import math
import sys

import ml_dtypes
import numpy as np
import pytest
from safetensors.numpy import save_file

import mor_ref
from mor_ref import cli

BF16 = ml_dtypes.bfloat16
POLICIES = ("tensor", "two_way", "three_way", "nvfp4")


def running(monkeypatch, capsys, *command, columns):
    """Return a function that runs a command in this process, and returns its output or error."""

    def run_it(*arguments, status=0, columns=columns):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr(sys, "argv", ["mor-ref", *command, *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            cli.main()
        printed = capsys.readouterr()
        assert (ended.value.code or 0) == status, printed.err + printed.out
        return printed.out if status == 0 else printed.err

    return run_it


@pytest.fixture
def run(monkeypatch, capsys, tmp_path):
    """Return a function that runs the command in its own directory and returns its output."""
    monkeypatch.chdir(tmp_path)
    return running(monkeypatch, capsys, "analyze", columns=80)


def heavy(shape, spread, seed=0):
    """Return numbers whose magnitudes spread over many binades, with zeros of both signs."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(shape) * np.exp(random.standard_normal(shape) * spread)
    x[random.random(shape) < 0.05] = 0.0
    x[random.random(shape) < 0.02] = -0.0
    return x


def with_specials(x):
    """Return x with numbers that are not finite, and a subnormal of all formats but binary64."""
    x = x.copy()
    x.flat[[1, 5, 11]] = np.nan, np.inf, -np.inf
    x.flat[2] = 6e-8
    return x


def write(path, tensors):
    """Write a file of the kind that the path names; a .npy file takes the only tensor."""
    if path.suffix == ".npy":
        np.save(path, *tensors.values())
    elif path.suffix == ".npz":
        np.savez_compressed(path, **tensors)
    else:
        save_file(tensors, path)
    return path


def taken(x, found):
    """Return how many numbers took each representation, from the block of each number."""
    rows, columns = (x.size // x.shape[-1] if x.size else 0, x.shape[-1]) if x.shape else (1, 1)
    height, width = found.units.block
    of_each = np.repeat(np.repeat(found.choice, height, axis=0), width, axis=1)[:rows, :columns]
    return {name: int((of_each == rung).sum()) for rung, name in enumerate(found.ladder)}


def expected(x, policy, **arguments):
    """Return the facts about a tensor, from mor itself and from NumPy."""
    result = mor_ref.mor(x, policy, **arguments)
    first = result.policy.names[0]
    wide = x.astype(np.float32).astype(np.float64)
    finite = np.abs(wide[np.isfinite(wide) & (wide != 0)])
    amax, amin = (float(finite.max()), float(finite.min())) if finite.size else (None, None)
    has_one = policy == "tensor" and x.size
    return {
        "shape": list(x.shape),
        "decision": result.ladder[int(result.choice[0, 0])] if has_one else None,
        "taken": taken(x, result),
        "shares": {name: n / max(x.size, 1) for name, n in taken(x, result).items()},
        "unit_shares": result.shares,
        "error": result.error[first].overall,
        "zeros": int((wide == 0).sum()),
        "nonfinite": int((~np.isfinite(wide)).sum()),
        "amax": amax,
        "amin": amin,
        "dynamic_range": amax / amin if finite.size else None,
        "log2_dynamic_range": math.log2(amax / amin) if finite.size else None,
    }


def three_kinds_of_blocks():
    """Return four rows of four blocks of 2x4: twelve for e4m3, one for e5m2, three for bf16."""
    x = np.ones((8, 16), np.float32)
    for row, column in ((0, 0), (4, 4), (6, 12)):
        x[row, column] = np.nan
    x[2, 8:12] = 2.0 ** np.arange(0, -28, -7)
    return x


def sentence(text):
    """Return the last line that is printed, after the progress bar."""
    assert "Traceback" not in text
    return text.strip().splitlines()[-1]
