"""Dot products are those of MMA-Sim 2.1.1, bit for bit, for all profiles that it has."""

import itertools

import numpy as np
import pytest
from extras import needs

from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.definitions.formats import formats
from mor_ref.golden.inputs.dot_rows import drawn
from mor_ref.golden.model.suite import Size
from mor_ref.operations import OPERATIONS
from mor_ref.verify.candidates.peers.mmasim_dots import (
    dot_of_mmasim,
    is_simulated,
    needs_compiler,
    operation,
    simulators,
)

ALL = [name for name in DOT_PROFILES.specified if is_simulated(DOT_PROFILES[name])]
FUSED = [name for name in ALL if needs_compiler(DOT_PROFILES[name])]
SIMULATED = [name for name in ALL if name not in FUSED]


def cases_of(profile):
    """Yield the parameters of every pair of formats, with every format of scales."""
    for pair in itertools.product(profile.formats, repeat=2):
        usual = dict(
            zip(("dot_profile", "format_a", "format_b"), (profile.name, *pair), strict=True)
        )
        for fmt, block in profile.scales:
            yield {**usual, "scale_format": fmt, "scale_block": block}
        if not profile.scales:
            yield usual


def rows_of(profile, parameters, count, seed):
    """Return random rows, of two chunks at least and of whole instructions, and their results.

    In families that flush, they are two instructions, and every other row ends in products of -0.
    In cdna3_fp8 a row is one chunk, and c is finite: MMA-Sim 2.1.1 loses any other c.
    """
    of = formats[parameters["format_a"]], formats[parameters["format_b"]]
    scale_format, block = (parameters.get(name) for name in ("scale_format", "scale_block"))
    _, length = operation(profile, of, scale_format, block)
    is_lossy = profile.family == "gtr_fdpa"
    width = profile.chunk if is_lossy else max(length, 2 * profile.chunk) // length * length
    if profile.flushed_every:
        width = 2 * length
    name = "dot_scaled" if profile.scales else "dot"
    rows = drawn(name, parameters, (count, width), Size(1, seed))
    if is_lossy:
        taken = np.isfinite(rows["c"].view(np.float32))
        rows = {key: array[taken] for key, array in rows.items()}
    if profile.flushed_every:
        end_in_negative_zeros(rows, of[0], profile)
    scales = (rows["scale_a"], rows["scale_b"]) if profile.scales else None
    fmt = formats[scale_format] if scale_format else None
    wanted = dot_of_mmasim(
        rows["a"], rows["b"], rows["c"].view(np.float32), profile, of, scales, fmt, block
    )
    return OPERATIONS[name], rows, wanted


def end_in_negative_zeros(rows, fmt, profile):
    """Give every other row a c that becomes -0 in its first chunk, and then products of -0."""
    normal, sign = np.array([1 << fmt.mantissa_bits]), fmt.sign_bit
    rows["c"][::2] = 0x80C00000  # -1.5 * 2^-126
    rows["a"][::2], rows["b"][::2] = normal | sign, normal
    rows["a"][::2, : profile.chunk] = 0
    if fmt.exponent_bits == 8:  # 2^-63 * 2^-63
        rows["a"][::2, 0] = rows["b"][::2, 0] = fmt.bias - 63 << fmt.mantissa_bits


@pytest.mark.tier("full", but_one_in=3)
@needs("torch", "mmasim")
@pytest.mark.parametrize("name", SIMULATED)
def test_the_exact_model_is_mmasim(name):
    """DOT-002, DOT-007, DOT-009, DOT-010, DOT-015 to DOT-018: on few rows of every profile."""
    profile = DOT_PROFILES[name]
    for parameters in itertools.islice(cases_of(profile), 3):
        declared, rows, wanted = rows_of(profile, parameters, 12, seed=3)
        assert declared.exact(parameters, rows)["result"].tolist() == wanted.tolist(), parameters


@pytest.mark.tier("full", but_one_in=3)
@needs("torch", "mmasim")
@pytest.mark.parametrize("name", SIMULATED)
def test_the_engine_is_mmasim(name):
    """DOT-002, DOT-007, DOT-009, DOT-010, DOT-015 to DOT-018: on every pair of formats."""
    profile = DOT_PROFILES[name]
    for parameters in cases_of(profile):
        declared, rows, wanted = rows_of(profile, parameters, 200, seed=4)
        assert (declared.engine(parameters, rows)["result"] == wanted).all(), parameters


@pytest.mark.tier("full")
@needs("torch", "mmasim", "g++", "ninja")
@pytest.mark.parametrize("name", FUSED)
def test_a_compiled_instruction_is_that_of_mmasim(name):
    """DOT-013: both implementations, on a sum of four products."""
    profile = DOT_PROFILES[name]
    (parameters,) = cases_of(profile)
    declared, rows, wanted = rows_of(profile, parameters, 400, seed=3)
    assert (declared.engine(parameters, rows)["result"] == wanted).all()
    some = {key: array[:40] for key, array in rows.items()}
    assert declared.exact(parameters, some)["result"].tolist() == wanted[:40].tolist()


def test_every_profile_of_matrix_cores_is_compared():
    """DOT-002: but sums that are ours, promotions, and integers."""
    ours = {"exact", "f32_fma", "f32_pairwise", "hopper_fp8_promoted", "int32", "switchback"}
    assert {*DOT_PROFILES.specified} - {*ALL} == ours
    assert len(FUSED) == 3


ROUNDINGS = {"RNE-FP16": ("f16", 23), "RZ-FP32": ("f32", 23), "RZ-E8M13": ("f32", 13)}
KINDS = {"tf32": "f32", "torch.float32": "f32", "torch.float16": "f16", "torch.bfloat16": "bf16",
         "torch.float8_e4m3fnuz": "e4m3fnuz", "torch.float8_e5m2fnuz": "e5m2fnuz"}  # fmt: skip
ARCHITECTURES = {"Ada Lovelace": "ada", "RTX Blackwell": "rtx_blackwell"}


def instructions_of_mmasim():
    """Yield the architecture, the text and the object of each instruction, of one shape each."""
    nvidia, amd = simulators()
    lists = {
        nvidia.MMA: nvidia.isa_mma.mma_shape_and_type,
        nvidia.MMABlockScale: nvidia.isa_mma.mma_block_scale_shape_and_type,
        nvidia.WGMMA: nvidia.isa_wgmma.wgmma_shape_and_type,
        nvidia.TCGen05MMA: nvidia.isa_tcgen05mma.tcgen05mma_shape_and_type,
        nvidia.TCGen05MMABlockScale: nvidia.isa_tcgen05mma.tcgen05mma_block_scale_shape_and_type,
        amd.MFMA: amd.isa_mfma.arch_mfma_suffix,
    }
    for kind, known in lists.items():
        for architecture, texts in known.items():
            for text in texts:
                is_usual = kind in (nvidia.MMA, nvidia.MMABlockScale, amd.MFMA)
                if "f64" not in text and (is_usual or text.startswith(("m64n8k", "m128n8k"))):
                    yield architecture, text, kind(architecture, text)


def numbers_of(found):
    """Return the numbers of MMA-Sim's object as a row of ours has them, and its formats."""
    op, name = found.arithmetic_op, type(found.arithmetic_op).__name__
    family = "f32_fma" if name in ("object", "MMA_FMA") else name.removeprefix("MMA_").lower()
    of = [getattr(found, f"{side}_type_ptx", str(getattr(found, f"{side}_type"))) for side in "ab"]
    of = {KINDS.get(fmt, fmt) for fmt in of}
    length = min(getattr(op, "L_max", getattr(op, "P", 0)), found.k)
    result, kept = ROUNDINGS.get(getattr(op, "rho", ""), ("f32", 23))
    start = "f16" if str(found.c_type) == "torch.float16" else "f32"
    every = found.k if family == "ftz_mul_add" and of == {"bf16"} else 0
    cuts = getattr(op, "F", 0), getattr(op, "e_zero", 0), kept
    return (family, length, *cuts, result, start, every), of


@needs("torch", "mmasim")
def test_every_instruction_of_mmasim_has_a_profile():
    """DOT-002: all but those of binary64; of a profile that flushes in f16, no length shows."""
    count, missing = 0, []
    rows = [DOT_PROFILES[name] for name in DOT_PROFILES.specified]
    for architecture, text, found in instructions_of_mmasim():
        wanted, of = numbers_of(found)
        prefix = ARCHITECTURES.get(architecture, architecture.lower()) + "_"
        count += 1
        if not any(
            row.name.startswith(prefix)
            and of <= set(row.formats)
            and wanted
            == (row.family, row.chunk, row.fraction_bits, row.zero_exponent, row.kept_bits,
                row.result, row.start, row.flushed_every * (row.formats == ("bf16",)))
            for row in rows
        ):  # fmt: skip
            missing.append((architecture, text, wanted, of))
    assert (count > 200, missing) == (True, [])
