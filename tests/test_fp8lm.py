"""FP8-LM: the engine against the exact model, torch, two processes, and the rules by hand."""

import itertools
import math
import subprocess
import sys

import ml_dtypes
import numpy as np
import pytest
from extras import imported, is_there, needs

from mor_ref import decode, encode, formats, fp8lm, golden
from mor_ref.deviations import DEVIATIONS, applied
from mor_ref.golden.suites import SUITES
from mor_ref.operations import OPERATIONS
from mor_ref.schemes.fp8lm import exact, exact_adam
from mor_ref.schemes.fp8lm import functions_steps as fp8lm_steps
from mor_ref.schemes.fp8lm.definition import FP8LM_FORMATS, REDUCTIONS, SCALE_PROFILES, SUMS, Adam
from mor_ref.schemes.fp8lm.engine import growth, rate_and_root
from mor_ref.schemes.fp8lm.engine_adam import after_step

torch = imported("torch") if is_there("torch") else None
SPECIAL = [0.0, math.inf, math.nan, 1e-40, 1.4e-45, 3.4028234663852886e38]


def same(found, wanted):
    """Return whether numbers have the bits of binary32 numbers, NaN apart."""
    a, b = (np.asarray(one, np.float32).reshape(-1) for one in (found, wanted))
    return np.array_equal(np.isnan(a), np.isnan(b)) and np.array_equal(
        a[~np.isnan(a)].view(np.uint32), b[~np.isnan(b)].view(np.uint32)
    )


def amaxes_of(fmt):
    """Return amaxes next to where the exponent turns, and 60 steps further."""
    turns = formats[fmt].largest * np.exp2(np.arange(-126.0, 127))
    turns = turns[(turns < 2.0**127) & (turns > 2.0**-125)].astype(np.float32)
    steps = np.arange(-8, 61)
    return (turns.view(np.uint32)[:, None] + steps).astype(np.uint32).view(np.float32).reshape(-1)


@pytest.mark.tier("full", but=["[exact-f16]"])
@pytest.mark.parametrize("fmt", FP8LM_FORMATS)
@pytest.mark.parametrize("profile", SCALE_PROFILES)
def test_scales_are_those_of_the_exact_model(fmt, profile):
    """FLM-001, FLM-002."""
    amax = np.array([*amaxes_of(fmt)[::7], *SPECIAL], np.float32)
    for margin, previous in ((0, 0.25), (3, 1.0), (-40, 8.0)):
        found = fp8lm.scale(amax, previous, fmt=fmt, margin=margin, profile=profile)
        right = [exact.scale_of(float(a), previous, formats[fmt], margin, profile) for a in amax]
        for name in exact.Scale._fields:
            assert same(getattr(found, name), [getattr(one, name) for one in right]), name


@needs("torch")
@pytest.mark.parametrize("fmt", FP8LM_FORMATS)
def test_scales_are_those_of_torch(fmt):
    """FLM-003: the formula of the code, by torch's logarithm."""
    amax = torch.tensor(np.array([*amaxes_of(fmt), *SPECIAL], np.float32))
    exponent = (formats[fmt].largest / amax).log2().floor()
    power = torch.tensor(2.0).pow(exponent.abs())
    is_used = (amax > 0) & amax.isfinite()
    power = torch.where(is_used, power, torch.tensor(0.25))
    wanted = torch.where(exponent < 0, 1 / power, power)
    assert same(fp8lm.scale(amax.numpy(), 0.25, fmt=fmt).scale, wanted.numpy())


def test_scales_by_hand():
    """FLM-003, FLM-004: infinities, and the first amax above a power of two."""
    assert fp8lm.scale(math.inf, 0.25).scale == 4
    assert fp8lm.scale(math.inf, 0.25, profile="exact").scale == 0.25
    assert fp8lm.scale(1e-40).scale == math.inf
    assert fp8lm.scale(1e-40, profile="exact").scale == 2.0**127
    assert fp8lm.scale(0.0, 8.0).scale == fp8lm.scale(math.nan, 8.0).scale == 8
    above = np.nextafter(np.float32(3.5), np.float32(4))
    assert (fp8lm.scale(above).scale, fp8lm.scale(above, profile="exact").scale) == (128, 64)
    with pytest.raises(ValueError, match=r"amax is -1.0; give the largest"):
        fp8lm.scale(-1.0)
    with pytest.raises(ValueError, match="fmt is 'bf16', which is not known"):
        fp8lm.scale(1.0, fmt="bf16")


def test_a_ratio_in_one_division_changes_the_scale():
    """FLM-002: Q / a is 2^-7, two steps above 57344, and Q by a rounded reciprocal below it."""
    amax, e4m3 = 57344.0078125, formats["e4m3"]
    assert exact.scale_of(amax, 1.0, e4m3, 0, "msamp").scale == 2.0**-8
    with applied(DEVIATIONS["fp8lm_ratio_in_one_division"]):
        assert exact.scale_of(amax, 1.0, e4m3, 0, "msamp").scale == 2.0**-7


def numbers(count, seed, spread=6):
    """Return numbers of many magnitudes, with zeros."""
    random = np.random.default_rng(seed)
    x = random.standard_normal(count) * np.exp2(random.integers(-spread, spread, count))
    x[::17] = 0
    return x.astype(np.float32)


@pytest.mark.parametrize("fmt", FP8LM_FORMATS)
def test_casts(fmt):
    """FLM-005."""
    x = np.array([*numbers(200, 1), math.inf, -math.inf, math.nan, -0.0], np.float32)
    for scale in (0.25, 64.0, 2.0**-130, math.inf):
        found = fp8lm.cast(x, scale, fmt=fmt)
        right = [exact.cast(float(one), scale, formats[fmt]) for one in x]
        assert found.codes.tolist() == [one.code for one in right], scale
        assert same(found.dequantize(), [one.y for one in right])


def test_history():
    """FLM-006: the oldest is dropped, and an infinite amax is 0."""
    state = fp8lm.History((0.0,) * 3, 2.0)
    seen = []
    for amax in (0.0, 3.5, math.inf, 7.0, 1.0, math.nan, 1.0, 0.5):
        window = exact.history(state.window, amax)
        state = fp8lm.history(state, amax)
        assert state.window == window
        seen.append(state.scale)
    assert seen == [2.0, 128, 128, 64, 64, 64, 256, 256]
    with pytest.raises(ValueError, match="window is empty"):
        fp8lm.history(fp8lm.History(()), 1.0)


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize("fmt", ["e4m3", "e5m2"])
@pytest.mark.parametrize("sums", SUMS)
@pytest.mark.parametrize("profile", REDUCTIONS)
def test_all_reduce_is_that_of_the_exact_model(profile, sums, fmt):
    """FLM-007, FLM-008, FLM-009."""
    ranks = [numbers(60, seed) * np.float32(4.0**seed) for seed in range(5)]
    ranks[1][3], ranks[2][4] = math.nan, 3e30
    for x in (ranks, ranks[3:], [one[20:] for one in ranks]):
        found = fp8lm.shared_scale(x, fmt=fmt, profile=profile, sums=sums)
        lists = [one.tolist() for one in x]
        right = exact.shared_scale(lists, formats[fmt], profile, sums, "msamp")
        assert same(found.rank_scale, right.rank_scale)
        assert same([found.scale, found.scale_inv], [right.scale, right.scale_inv])
        assert found.requantized.tolist() == right.requantized
        assert found.rank_codes.tolist() == right.rank_codes
        assert found.codes.tolist() == [one.code for one in right.elements]
        assert same(found.y, [one.y for one in right.elements])


def test_the_two_sums_differ():
    """FLM-009: 16 ranks that add half a unit each are lost one by one."""
    ranks = [[16.0, 448.0 / 16], *([[1.0, 0.0]] * 15)]
    one, other = (fp8lm.shared_scale(ranks, sums=sums) for sums in SUMS)
    assert one.codes.tolist() != other.codes.tolist()


PROGRAM = """
import os, sys
import numpy as np, torch, torch.distributed as dist
from mor_ref import decode, encode, fp8lm
meeting, out, ranks = sys.argv[1], sys.argv[2], 3
children, rank = [], 0
for one in range(1, ranks):
    if rank == 0 and not (pid := os.fork()):
        rank = one
        break
    children.append(pid)
dist.init_process_group("gloo", init_method=f"file://{meeting}", rank=rank, world_size=ranks)
x = np.load(f"{out}.npy")[rank]
def reduced(number, operation):
    whole = torch.tensor(float(number))
    dist.all_reduce(whole, operation)
    return whole.item()
amax = np.abs(x).max()
own, root = float(fp8lm.scale(amax).scale), np.float32(1 / np.sqrt(ranks))
least = reduced(own, dist.ReduceOp.MIN)
of_all = fp8lm.scale(reduced(amax, dist.ReduceOp.MAX)).scale * root
first = fp8lm.cast(x, own)
again = fp8lm.cast(first.y, least).codes
for profile, codes in (
    ("paper", again),
    ("msamp_min", first.codes if own == least else again),
    ("msamp_0_4_max", fp8lm.cast(x, of_all).codes),
):
    numbers = decode(codes, "e4m3").astype(np.float64)
    values = torch.tensor(numbers)
    dist.all_reduce(values)  # exact in binary64, in any order
    if rank == 0:
        np.save(f"{out}.{profile}.exact.npy", encode(values.numpy(), "e4m3"))
    added = torch.zeros(codes.shape, dtype=torch.uint8)
    if rank > 0:
        dist.recv(added, rank - 1)
    added = torch.tensor(encode(decode(added.numpy(), "e4m3").astype(np.float64) + numbers, "e4m3"))
    if rank < ranks - 1:
        dist.send(added, rank + 1)
    else:
        np.save(f"{out}.{profile}.by_rank.npy", added.numpy())
dist.barrier()
statuses = [] if rank else [os.waitpid(pid, 0)[1] for pid in children]
os._exit(max(map(os.waitstatus_to_exitcode, statuses), default=0))
"""


@pytest.mark.tier("full")
@needs("torch")
def test_three_processes_have_the_bits_of_one(tmp_path):
    """FLM-007 to FLM-009: over gloo, scales by MIN, amaxes by MAX, numbers by SUM and in turn."""
    ranks = np.stack([numbers(300, seed) * np.float32(8.0**seed) for seed in range(3)])
    np.save(tmp_path / "x.npy", ranks)
    command = [sys.executable, "-c", PROGRAM, tmp_path / "meeting", tmp_path / "x"]
    subprocess.run(command, check=True)
    for profile, sums in itertools.product(("paper", "msamp_min", "msamp_0_4_max"), SUMS):
        codes = np.load(tmp_path / f"x.{profile}.{sums}.npy")
        wanted = fp8lm.shared_scale(ranks, profile=profile, sums=sums).codes
        assert codes.tolist() == wanted.tolist(), (profile, sums)


@pytest.mark.parametrize("profile", ["paper", "msamp"])
def test_automatic_scaling(profile):
    """FLM-010."""
    state = fp8lm.AutoScale(1.0)
    for saturated in (0, 1, 0, 3, 0):
        codes = np.full(200_000, 0x30, np.uint8)
        codes[:saturated] = 0xFE
        count, mu = exact.auto_scale(state.mu, codes.tolist(), profile, 1e-5, 1000)
        state = fp8lm.auto_scale(state, codes, profile=profile)
        assert (state.saturated, state.mu) == (count, mu) == (saturated, mu)
    for window in (1, 2, 3, 7, 100, 999, 1000, 4096):
        assert growth(window) == exact.growth(window), window
    edge = [0x7E, *[0] * 99_999]  # a share of exactly one in 100,000 is not above it
    assert fp8lm.auto_scale(fp8lm.AutoScale(2.0), edge, profile="paper").mu > 2
    codes = np.array([448.0, 1.0]).astype(ml_dtypes.float8_e4m3fn)
    assert fp8lm.auto_scale(fp8lm.AutoScale(2.0), codes).saturated == 1
    assert fp8lm.auto_scale(fp8lm.AutoScale(2.0), []).mu > 2


def moments_of(state):
    """Return a state as the exact model has it."""
    parts = (state.first, state.second, state.master)
    codes = [part.codes.reshape(-1).tolist() for part in parts]
    return exact_adam.Moments(state.step, *codes, tuple(float(part.scale) for part in parts))


@pytest.mark.parametrize("weight_decay", [0.0, 0.01])
def test_sequences_of_adam_are_those_of_the_exact_model(weight_decay):
    """FLM-011, FLM-012, FLM-013, FLM-014."""
    state = fp8lm.begin_adam(numbers(40, 7).reshape(5, 8))
    rates = {"lr": 0.01, "beta1": 0.9, "beta2": 0.99, "eps": 1e-8, "weight_decay": weight_decay}
    rounded = Adam(*(float(np.float32(value)) for value in rates.values()))
    right = moments_of(state)
    for step in range(12):
        gradient = numbers(40, 100 + step) * np.float32(2.0**-step)
        right = exact_adam.adam(right, gradient.tolist(), rounded)
        state = fp8lm.adam(state, gradient.reshape(5, 8), **rates)
        assert moments_of(state) == right, step


def test_numbers_of_adam():
    """FLM-011: corrections of many steps."""
    for beta in (0.9, 0.999, 0.95, 0.0):
        one = float(np.float32(beta))
        for steps in (1, 2, 3, 10, 100, 1000):
            correction = exact_adam.correction(one, steps)
            rate, root = rate_and_root(1.0, one, one, steps)
            assert rate == exact.quotient(1.0, correction)
            assert root == exact.square_root(correction)


@pytest.mark.parametrize("exponent", [0, -140])
def test_single_steps_of_adam(exponent):
    """FLM-012, FLM-013: in binary32, before their formats hide how they were rounded."""
    random = np.random.default_rng(9)
    g, *state = (random.standard_normal(400).astype(np.float32) for _ in range(4))
    g *= np.float32(2.0**exponent)
    state[1] **= 2
    kinds = ("e4m3", "f16", "f16")
    codes = [encode(one, kind) for one, kind in zip(state, kinds, strict=True)]
    numbers = [decode(one, kind).tolist() for one, kind in zip(codes, kinds, strict=True)]
    rest = Adam(*(np.float32(n) for n in (0.7, 0.9, 0.99, 1e-8, 0.3)))
    rate, root, inverse = np.float32(0.07), np.float32(0.3), np.float32(2.0**exponent)
    right = []
    for old in zip(*numbers, g.tolist(), strict=True):
        first = exact_adam.moment(old[0], float(inverse), float(rest.beta1), old[3])
        square = exact_adam.product(old[3], old[3])
        second = exact_adam.moment(old[1], float(inverse), float(rest.beta2), square)
        weight = exact_adam.decayed(old[2], float(rest.lr), float(rest.weight_decay))
        last = exact_adam.updated(weight, first, second, float(rate), float(root), float(rest.eps))
        right.append((first, second, last))
    inverses = np.array([inverse, inverse, 1], np.float32)
    found, amaxes = after_step(g, codes, inverses, rest, rate, root)
    for one, amax, wanted in zip(found, amaxes, zip(*right, strict=True), strict=True):
        assert same(one, wanted)
        assert amax == np.abs(one).max()


def test_the_scale_of_weights_that_are_zero_stays():
    """FLM-014: the scale before it is that of the weights, and 1 for the moments."""
    zeros = np.zeros(3, np.float32)
    parts = [fp8lm.cast(zeros, 4.0, fmt=fmt) for fmt in ("e4m3", "f16", "f16")]
    after = fp8lm.adam(fp8lm.AdamState(1, *parts), zeros)
    assert [part.scale for part in (after.first, after.second, after.master)] == [1, 1, 4]


def test_a_nan_does_not_count_in_the_scales_of_moments():
    """FLM-014: as fmaxf of CUDA, which skips it; the scale of the weights stays."""
    state = fp8lm.begin_adam([1.0, 2.0])
    after = fp8lm.adam(state, [math.nan, 0.5])
    assert after.first.codes.tolist() == [0x7F, fp8lm.adam(state, [0.0, 0.5]).first.codes[1]]
    right = exact_adam.adam(
        moments_of(state),
        [math.nan, 0.5],
        Adam(*map(float, np.float32([1e-3, 0.9, 0.999, 1e-8, 0]))),
    )
    assert moments_of(after) == right
    assert [part.scale for part in (after.first, after.second)] == [8192, 2.0**27]


def test_what_msamp_computes_in_binary64():
    """FLM-008, FLM-013: a profile has its bits, and a deviation if binary32 has lr and decay."""
    for count in range(1, 65):
        found = fp8lm.shared_scale([[3.5]] * count, profile="msamp_0_4_max").scale
        assert found == np.float32(128) * np.float32(1.0 / math.sqrt(count)), count
    with applied(DEVIATIONS["fp8lm_decay_in_binary64"]):
        for lr, decay in np.float32(np.random.default_rng(1).random((2000, 2))).tolist():
            assert exact_adam.decay_factor(lr, decay) == np.float32(1 - lr * decay)
        rounded = np.float32([0.05, 0.6]).tolist()
        assert exact_adam.decay_factor(*rounded) != np.float32(1 - 0.05 * 0.6)


@needs("torch")
def test_adam_is_near_that_of_torch():
    """FLM-013: the first steps, up to what the formats lose."""
    w = numbers(64, 3, spread=1)
    parameter = torch.nn.Parameter(torch.tensor(w))
    optimizer = torch.optim.AdamW([parameter], lr=0.01, weight_decay=0.1)
    state = fp8lm.begin_adam(w)
    for step in range(5):
        gradient = numbers(64, 50 + step, spread=1)
        parameter.grad = torch.tensor(gradient)
        optimizer.step()
        state = fp8lm.adam(state, gradient, lr=0.01, weight_decay=0.1)
    assert np.abs(state.master.y - parameter.detach().numpy()).max() < 0.01


def test_arguments():
    """FLM-001, FLM-006, FLM-010: each is refused in a sentence that says what to give."""
    window, one = fp8lm.History((1.0, 2.0)), fp8lm.AutoScale(1.0)
    for call, message in (
        (
            lambda: fp8lm.scale([1.0, 2.0], [1.0] * 3),
            r"previous has the shape \(3,\), but amax has \(2",
        ),
        (lambda: fp8lm.cast([1.0], [1.0, 2.0]), r"scale has the shape \(2,\); give one number"),
        (lambda: fp8lm.history(window, [1.0, 2.0]), r"amax has the shape \(2,\); give one number"),
        (lambda: fp8lm.history(window, -5.0), r"amax is -5.0; give the largest"),
        (lambda: fp8lm.scale([math.nan, -1.0, -2.0]), r"amax is -2.0; give the largest"),
        (lambda: fp8lm.history(fp8lm.History((math.nan,)), 1.0), r"window holds nan; give finite"),
        (lambda: fp8lm.history(fp8lm.History((0.0, 1e39)), 1.0), r"holds 1e\+39; give finite"),
        (lambda: fp8lm.shared_scale([[1.0, 2.0], [1.0]]), r"ranks\[1\] has the shape \(1,\), but"),
        (lambda: fp8lm.auto_scale(one, np.uint16([0x17E])), "codes holds 382, which does not fit"),
        (lambda: fp8lm.auto_scale(one, np.float32([1.5])), "codes has dtype float32, which is not"),
        (lambda: fp8lm.auto_scale(fp8lm.AutoScale(math.nan), []), "mu is nan; give a finite numb"),
        (lambda: fp8lm.auto_scale(fp8lm.AutoScale(-1.0), []), "mu is -1.0; give a finite numb"),
        (lambda: fp8lm.auto_scale(fp8lm.AutoScale(1e39), []), r"mu is 1e\+39; give .* in binary32"),
        (lambda: fp8lm.auto_scale(one, [], threshold=math.nan), "threshold is nan; give a share"),
        (lambda: fp8lm.auto_scale(one, [], threshold=-1e-9), "threshold is -1e-09; give a share"),
        (lambda: fp8lm.auto_scale(one, [], threshold=2), "threshold is 2.0; give a share from 0"),
    ):
        with pytest.raises(ValueError, match=message):
            call()

    for call in (
        lambda: fp8lm.auto_scale(fp8lm.AutoScale("1e"), []),
        lambda: fp8lm.auto_scale(one, [], threshold=None),
    ):
        with pytest.raises(TypeError, match="give a number"):
            call()


def test_arguments_of_adam():
    state = fp8lm.begin_adam([1.0, 2.0])
    with pytest.raises(ValueError, match=r"beta1 is 1.0; give a finite number from 0 on and below"):
        fp8lm.adam(state, [0.0, 0.0], beta1=1.0)
    with pytest.raises(ValueError, match=r"beta2 is 0.999999999; give .* also in binary32"):
        fp8lm.adam(state, [0.0, 0.0], beta2=0.999999999)
    with pytest.raises(ValueError, match=r"lr is -1e-50; give a finite number from 0 on"):
        fp8lm.adam(state, [0.0, 0.0], lr=-1e-50)
    with pytest.raises(ValueError, match=r"gradient has shape \(3,\), but the state has \(2,\)"):
        fp8lm.adam(state, [0.0, 0.0, 0.0])


def test_partition():
    """FLM-015: the largest first; equal ones by their index modulo the ranks."""
    assert fp8lm.partition([10, 40, 30, 10], 2) == (1, 0, 1, 0)
    assert fp8lm.partition([5, 5, 5, 5], 3) == (0, 2, 0, 1)
    random = np.random.default_rng(5)
    for ranks in (1, 2, 3, 8):
        numels = random.integers(0, 6, 40).tolist()
        assert list(fp8lm.partition(numels, ranks)) == exact.partition(numels, ranks)


@pytest.mark.parametrize("dtype", [ml_dtypes.bfloat16, np.float16, np.float64, np.float32])
def test_numbers_of_every_source(dtype):
    """QNT-004: each function takes the same numbers, and rounds those of binary64 alone."""
    x = np.array([[0.3, -3.5], [1.25, 0.007]]).astype(dtype)
    wide = x.astype(np.float32)
    for ours, theirs in (
        (fp8lm.cast(x, 64.0).y, fp8lm.cast(wide, 64.0).y),
        (fp8lm.scale(np.abs(x)).scale, fp8lm.scale(np.abs(wide)).scale),
        (fp8lm.shared_scale(list(x)).y, fp8lm.shared_scale(list(wide)).y),
        (fp8lm.begin_adam(x).master.codes, fp8lm.begin_adam(wide).master.codes),
    ):
        np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(TypeError, match=r"amax holds 16777217, which float32 does not have"):
        fp8lm.scale(np.array([3, (1 << 24) + 1]))
    assert fp8lm.scale(np.array([3, 4])).scale.tolist() == fp8lm.scale([3.0, 4.0]).scale.tolist()


@needs("torch")
def test_bfloat16_of_torch():
    x = torch.tensor([0.3, -3.5], dtype=torch.bfloat16)
    np.testing.assert_array_equal(fp8lm.cast(x, 64.0).codes, fp8lm.cast(x.float(), 64.0).codes)
    assert fp8lm.scale(x.abs()).scale.tolist() == fp8lm.scale(x.float().abs()).scale.tolist()


def test_an_infinity_of_a_rank_is_a_nan_of_the_sum():
    """FLM-009: e5m2 has codes of infinities, which casts never make."""
    codes = np.array([[0x7C], [0x3C]], np.uint8)
    assert fp8lm_steps.sums_of(codes, formats["e5m2"], "exact").tolist() == [0x7F]
    assert fp8lm_steps.sums_of(codes, formats["e5m2"], "by_rank").tolist() == [0x7F]


def test_a_sum_is_rounded_once():
    """FLM-009: with the smallest number, a sum is above the tie, also if binary32 has no room."""
    codes = encode([[32768.0], [4096.0], [2.0**-16], [0.0]], "e5m2")
    for sums in SUMS:
        found = fp8lm_steps.sums_of(codes[::-1], formats["e5m2"], sums)
        wanted = {"exact": 40960, "by_rank": 32768}[sums]
        assert decode(found, "e5m2").tolist() == [wanted]
    assert decode(fp8lm_steps.sums_of(codes[:2], formats["e5m2"], "exact"), "e5m2") == [32768]


def test_strips_and_tiles_change_nothing():
    """FLM-005, FLM-009 and FLM-012: a number has the bits that it has anywhere else."""
    count, few = 300, [numbers(257, seed) for seed in range(3)]
    many = [np.tile(one, count) for one in few]
    found, wanted = (fp8lm.shared_scale(x, sums="by_rank") for x in (many, few))
    np.testing.assert_array_equal(found.rank_codes, np.tile(wanted.rank_codes, count))
    np.testing.assert_array_equal(found.codes, np.tile(wanted.codes, count))
    np.testing.assert_array_equal(found.y, np.tile(wanted.y, count))
    found, wanted = (fp8lm.adam(fp8lm.begin_adam(x[0]), x[1]) for x in (many, few))
    for kind in ("first", "second", "master"):
        one, other = getattr(found, kind), getattr(wanted, kind)
        assert one.scale == other.scale
        np.testing.assert_array_equal(one.codes, np.tile(other.codes, count))
        np.testing.assert_array_equal(one.y, np.tile(other.y, count))


def test_a_correction_that_is_a_tie_goes_to_even():
    """FLM-011: 1 - (1 - 2^-24)^2 is halfway between two numbers of binary32."""
    beta = float(np.uint32(0x3F7FFFFF).view(np.float32))
    rate, _ = rate_and_root(1.0, beta, 0.5, 2)
    assert rate == 2.0**23
    assert exact_adam.correction(beta, 2) == 2.0**-23


@pytest.mark.tier("full", but=["[fp8lm_partition]"])
@pytest.mark.parametrize(
    "name", ["fp8lm_windows", "fp8lm_mu", "fp8lm_rates", "fp8lm_partition", "fp8lm_steps"]
)
def test_states_are_those_of_the_suites(name):
    """FLM-006, FLM-010, FLM-011, FLM-014 and FLM-015, after each step."""
    operation = OPERATIONS[SUITES[name].operation]
    for case in golden.load(name):
        found = operation.engine(case.parameters, case.arrays)
        for field, array in found.items():
            np.testing.assert_array_equal(array, case.arrays[field], case.name)
