"""NVFP4 and MX quantizers that no one here wrote: each has the bits of its profile or rule.

Known differences are left out by name, and `KNOWN` pins down each such difference. The sign of
a scale is dropped: only a NaN has one, by accident of the processor.
"""

import fnmatch
from itertools import starmap
from typing import NamedTuple

import ml_dtypes
import numpy as np
import pytest
from extras import imported, needs
from find_witnesses import KINDS, MX_FORMATS, tensors
from numpy import inf, nan
from records import canonical

import mor_ref
from mor_ref import formats
from mor_ref.verify.candidates.peers import compressed_tensors as adapter
from mor_ref.verify.candidates.peers import peer_named
from mor_ref.verify.candidates.peers.peer import as_torch


class Stored(NamedTuple):
    """The results of a quantizer for a tensor; None for a field that it does not say."""

    codes: np.ndarray | None
    scale: np.ndarray | None
    overall: np.ndarray | None
    y: np.ndarray | None


def differing(ours, theirs, left_out):
    """Return the records that differ, with a few places each; `left_out` has masks by name."""
    found = {}
    for name, pair in zip(Stored._fields, zip(ours, theirs, strict=True), strict=True):
        if pair[1] is not None:
            own, other = (canonical(np.atleast_1d(a)) if a.itemsize == 4 else a for a in pair)
            wrong = np.argwhere((own != other) & ~left_out.get(name, np.False_))[:3]
            found |= {name: [(*at, own[*at], other[*at]) for at in wrong]} if wrong.size else {}
    return found


def by_profile(x, profile):
    found = mor_ref.quantize_nvfp4(x, profile=profile)
    encodes = profile == "compressed_tensors"
    overall = found.global_encode_scale if encodes else found.global_decode_scale
    return Stored(unpacked(found.packed), found.block_scale, overall, found.dequantize())


def by_rule(x, fmt, rule):
    found = mor_ref.quantize_mx(x, fmt, scale_rule=rule)
    return Stored(found.codes, found.scale, None, found.dequantize())


def answer_of(peer, operation, x, **parameters):
    """Return the fields of the adapter that comes with the package, for a tensor."""
    source = "bf16" if x.dtype == ml_dtypes.bfloat16 else "f32"
    inputs = {"x": x.view(f"u{x.itemsize}")}
    return peer_named(peer).answer(operation, {**parameters, "source": source}, inputs)


def unpacked(packed):
    return np.stack([packed & 15, packed >> 4], -1).reshape(len(packed), -1)


# ---------------------------------------------------------------------- NVFP4


def stored(found, overall="global_decode_scale"):
    g = found[overall].view(np.float32)
    return Stored(found["code"], found["block_scale"] & 0x7F, g, found["y"].view(np.float32))


def torchao(x):
    return stored(answer_of("torchao", "nvfp4", x, profile="torchao", tile=[1, 16]))


def modelopt(x):
    """Quantize by Model Optimizer, and turn the sign of code 8, which it decodes as +0."""
    found = stored(answer_of("modelopt", "nvfp4", x, profile="modelopt", tile=[1, 16]))
    return found._replace(y=np.where(found.codes == 8, -found.y, found.y))


def compressed_tensors(x):
    asked = {"profile": "compressed_tensors", "tile": [1, 16]}
    found = answer_of("compressed-tensors", "nvfp4", x, **asked)
    return stored(found, "global_encode_scale")


def verifloat(x, own_format=None):
    """Return None for infinities, which it refuses, and for a global scale that underflows."""
    v = imported("verifloat")
    if not np.isfinite(x).all() or not (own_format or np.abs(x).max() > 2e-42):
        return None
    found = v.BlockTensor.quantize(x.astype(float).tolist(), own_format or v.NVFP4_MODELOPT)
    codes, scale = (np.vectorize(int, otypes="B")(a) for a in (found.elem_raw, found.scale_raw))
    return Stored(codes, scale, None if own_format else np.float32(found.tensor_scale), None)


def needing(peer, *others):
    """Return a case that needs the library of its quantizer."""
    library = peer.__name__.removeprefix("mx_")
    torch = ("torch",) if library in ("torchao", "modelopt", "compressed_tensors") else ()
    return pytest.param(peer, *others, marks=needs(*torch, library))


PROFILES = {peer: peer.__name__ for peer in (torchao, modelopt, compressed_tensors)}
PROFILES[verifloat] = "modelopt"
by_name = {"ids": lambda peer: getattr(peer, "__name__", None)}


def left_out_of_nvfp4(peer, x, theirs):
    """Mask NaNs to encode: two libraries have other codes than 7 for them."""
    x, g = x.astype(np.float32), theirs.overall
    s = theirs.scale.view(ml_dtypes.float8_e4m3fn).astype(np.float32).repeat(16, 1)
    with np.errstate(all="ignore"):
        z = {torchao: x * ((1 / g) / s), compressed_tensors: x / (s / g)}.get(peer, 0)
    return dict.fromkeys(("codes", "y"), np.isnan(z))


@pytest.mark.tier("full", one_in=3, but=["[torchao-ties]", "[compressed_tensors-ties]"])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("peer", [*map(needing, PROFILES)], **by_name)
def test_nvfp4(peer, kind):
    """NVF-007, NVF-008, NVF-009, NVF-010: codes, scales, the global scale and y."""
    for x in tensors(kind):
        theirs = peer(x)
        if theirs:
            ours = by_profile(x, PROFILES[peer])
            assert differing(ours, theirs, left_out_of_nvfp4(peer, x, theirs)) == {}


# ---------------------------------------------------------------------- MX


def mx_stored(peer, x, fmt, rule):
    found = answer_of(peer, "mx", x, format=fmt, scale_rule=rule, block=32)
    return Stored(found.get("code"), found["scale"], None, found["y"].view(np.float32))


def mx_torchao(x, fmt, rule):
    return mx_stored("torchao", x, fmt, rule)


def mx_modelopt(x, fmt, rule):
    return mx_stored("modelopt", x, fmt, rule)


def mx_compressed_tensors(x, fmt, rule):
    return mx_stored("compressed-tensors", x, fmt, rule)


def mx_gfloat(x, fmt, _rule):
    """Quantize in binary64, or return None for infinities, which it refuses."""
    gfloat, names = imported("gfloat.block"), imported("gfloat.formats")
    own = "mxint8" if fmt == "int8_mx" else f"mxfp{formats[fmt].bits}_{fmt}"
    info = getattr(names, f"format_info_{own}")
    if not np.isfinite(x).all():
        return None
    blocks = x.astype(float).reshape(-1, 32)
    y = [gfloat.quantize_block(info, block, gfloat.compute_scale_amax) for block in blocks]
    return Stored(None, None, None, np.array(y, np.float32).reshape(x.shape))


def mx_verifloat(x, fmt, _rule):
    v = imported("verifloat")
    element = v.IntFormat(8, frac_bits=6) if fmt == "int8_mx" else getattr(v, fmt.upper())
    return verifloat(x, v.BlockFormat(element, 32, v.E8M0))


_OF_TORCHAO = ("floor", "ceil", "even", "rceil")
RULES = [(mx_torchao, fmt, rule) for fmt in MX_FORMATS[:5] for rule in _OF_TORCHAO]
RULES += [(mx_modelopt, "e4m3", "rceil")]
RULES += [(mx_compressed_tensors, fmt, "even") for fmt in ("e2m1", "e2m3")]
RULES += [(peer, fmt, "floor") for peer in (mx_gfloat, mx_verifloat) for fmt in MX_FORMATS]


def left_out_of_mx(peer, fmt, rule, x, ours, theirs):
    """Mask the blocks and elements in which a library is known to differ."""
    scale, codes, y = (np.zeros(a.shape, bool) for a in (ours.scale, ours.codes, ours.y))
    amax = np.abs(x.astype(np.float32)).reshape(len(x), -1, 32).max(-1)
    if rule == "rceil":  # by the ceiling of a binary32 logarithm just above 2^k
        mantissa, _ = np.frexp(amax / np.float32(formats[fmt].largest))
        scale |= (mantissa > 0.5) & (mantissa <= 0.5 + 22 * 2.0**-24)
    if peer is mx_compressed_tensors:
        scale |= ours.scale == 253  # rounding the amax overflows
        y |= (ours.y == 0) & (theirs.y == 0)  # it has no -0
    if peer is mx_verifloat:
        codes |= (x == 0) & np.signbit(x)
    if fmt == "int8_mx":
        codes |= ours.codes == 0x81  # or -128
    misapplied = (ours.scale == 0) & (amax > 0) & (peer is mx_torchao)
    elements = (scale | misapplied).repeat(32, 1)
    return {"scale": scale, "codes": codes | elements, "y": codes | y | elements}


# Of the formats, one of each kind.
QUICK = [f"[{peer.__name__}-{fmt}-{rule}-ties]" for peer, fmt, rule in RULES
         if fmt == "e2m1"]  # fmt: skip


@pytest.mark.tier("full", one_in=4, but=QUICK)
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("peer", "fmt", "rule"), [*starmap(needing, RULES)], **by_name)
def test_mx(peer, fmt, rule, kind):
    """MXS-003, MXS-004, MXS-005, MXS-006, MXS-007, MXS-008: codes, scales and y."""
    for whole in tensors(kind):
        x = whole[::11] if peer is mx_gfloat else whole  # it is slow
        theirs = peer(x, fmt, rule)
        if theirs:
            ours = by_rule(x, fmt, rule)
            assert differing(ours, theirs, left_out_of_mx(peer, fmt, rule, x, ours, theirs)) == {}


@needs("torch", "compressed_tensors")
def test_compressed_tensors_rounds_the_statistics_of_bfloat16():
    """NVF-009: which we do not."""
    x = next(x for x in tensors("ordinary") if x.dtype == ml_dtypes.bfloat16)
    theirs = stored(adapter.packed(as_torch(x)), "global_encode_scale")
    assert theirs.overall.view(np.uint32) & 0xFFFF == 0
    assert differing(by_profile(x, "compressed_tensors"), theirs, {}).keys() > {"scale", "codes"}


@needs("verifloat")
def test_what_verifloat_refuses():
    """NVF-008: and for a tensor of zeros it stores numbers, not NaN."""
    v = imported("verifloat")
    for refused in (inf, nan, 1e-42):
        with pytest.raises(ValueError, match="."):
            v.BlockTensor.quantize([[refused] * 16], v.NVFP4_MODELOPT)
    assert v.BlockTensor.quantize([[0.0] * 16], v.NVFP4_MODELOPT).to_float() == [[0.0] * 16]


# A quantizer, the element and rule of MX, the first numbers of a row of 32 with zeros after them;
# and the first code, scale code, global scale and y of theirs and of ours. A code that depends on
# the processor is ??, what a library does not say is a hyphen.
KNOWN = [
    # A NaN spreads from its block to the tensor, or sets the global scale to 1.
    (torchao, "", [1, nan], "?? 7f nan nan", "07 7e 0.000372024 1"),
    (modelopt, "", [1, nan], "07 7f nan nan", "07 7e 0.000372024 1"),
    (compressed_tensors, "", [1, nan], "00 7f 1 nan", "07 7e 2688 1"),
    # What NaN is encoded as; and whether all of a block is NaN under the scale NaN.
    (torchao, "", [0], "?? 7f 0 nan", "07 7f 0 nan"),
    (torchao, "", [0, 1e-37], "?? 7e 3.72031e-41 *2.50005e-38", "07 7e 3.72031e-41 1.00002e-37"),
    (compressed_tensors, "", [inf], "00 7f 0 nan", "07 7f 0 nan"),
    (mx_torchao, "e4m3 floor", [1, nan], "00 ff - nan", "7f ff - nan"),
    (mx_torchao, "e2m1 floor", [nan], "?? ff - nan", "07 ff - nan"),
    (mx_modelopt, "e4m3 rceil", [1, nan], "7e 00 - 2.63311e-36", "7f ff - nan"),
    # The scale code 0, applied as 2^-126 or as 1.
    (mx_torchao, "e4m3 floor", [448 * 2.0**-127], "76 00 - 1.31655e-36", "7e 00 - 2.63311e-36"),
    (mx_torchao, "e4m3 rceil", [448 * 2.0**-127], "00 00 - 0", "7e 00 - 2.63311e-36"),
    # Just above 448 * 2^10: a logarithm rounded to 10 before its ceiling is taken.
    (mx_torchao, "e4m3 rceil", [458752.03125], "7e 89 - 458752", "76 8a - 458752"),
    (mx_modelopt, "e4m3 rceil", [458752.03125], "7e 89 - 458752", "76 8a - 458752"),
    # An amax that rounds to infinity; -0; and -128 as an int8.
    (mx_compressed_tensors, "e2m1 even", [1.75 * 2.0**127], "- 7f - nan", "06 fd - inf"),
    (mx_compressed_tensors, "e2m1 even", [1, nan], "- 7f - nan", "07 ff - nan"),
    (mx_compressed_tensors, "e2m1 even", [-0.0, 1], "- 7d - 0", "08 7d - -0"),
    (mx_verifloat, "e2m1 floor", [-0.0, 1], "00 7d - -", "08 7d - -0"),
    (mx_verifloat, "int8_mx floor", [-1.999], "80 7f - -", "81 7f - -1.98438"),
    (mx_gfloat, "int8_mx floor", [-1.999], "- - - -2", "81 7f - -1.98438"),
]


def first(stored):
    values = (None if a is None else np.ravel(a)[0].item() for a in stored)
    forms = {int: "{:02x}", float: "{:.6g}", type(None): "-"}
    return " ".join(forms[type(value)].format(value) for value in values)


@pytest.mark.tier("full", but_one_in=3)
@pytest.mark.parametrize(
    ("peer", "recipe", "numbers", "theirs", "ours"), [*starmap(needing, KNOWN)], **by_name
)
def test_known_difference(peer, recipe, numbers, theirs, ours):
    """NVF-007, NVF-008, NVF-009, NVF-010, MXS-002, MXS-006, MXS-008."""
    x = np.array([numbers + [0] * (32 - len(numbers))], np.float32)
    own = by_rule(x, *recipe.split()) if recipe else by_profile(x, PROFILES[peer])
    found = peer(x, *recipe.split())
    assert first(own) == ours
    assert fnmatch.fnmatch(first(found), theirs)
    assert first(found) != first(own)
