"""Wrong chunks of K, and wrong numbers of profiles."""

import functools
import math
from dataclasses import replace
from fractions import Fraction
from unittest import mock

from wrong_sums import changed_sum, lost, rounded_by, to_nearest

from mor_ref import formats
from mor_ref.definitions.dot import DOT_PROFILES
from mor_ref.exact import dot, dot_amd, dot_nvidia, matmul
from mor_ref.exact.dot_binary32 import fused, product, total
from mor_ref.exact.dot_terms import Chunk, rounded
from wrong_products.kernel import (
    F32,
    has_chunks,
    wrong,
)
from wrong_products.pieces import (
    ORDERS,
    clamped,
)


def _around(profile):
    """Yield changed rows of a profile."""
    if profile.chunk:
        for chunk in (profile.chunk // 2, profile.chunk * 2):
            yield f"chunk {chunk}", {"chunk": chunk}
    if profile.is_cut or profile.family == "promoted":
        for more in (-1, 1):
            yield f"F {more:+}", {"fraction_bits": profile.fraction_bits + more}
    if profile.family in ("t_fdpa", "st_fdpa", "gst_fdpa", "promoted") and profile.result == "f32":
        for more in (-1, 1):
            if profile.kept_bits + more <= 23:
                yield f"kept {more:+}", {"kept_bits": profile.kept_bits + more}


def _numbers():
    for name in NAMES:
        profile = DOT_PROFILES[name]
        for words, fields in _around(profile):
            try:
                changed = replace(profile, **fields)
            except ValueError:
                continue
            yield (
                f"profile {name}: {words}",
                lambda kind, name=name: kind.profile.name == name and has_chunks(kind),
                lambda changed=changed: mock.patch(
                    "mor_ref.operations.matmul.profile_of", return_value=changed
                ),
            )


NAMES = (
    "hopper_fp8",
    "hopper_fp8_promoted",
    "hopper_fp8_f16",
    "ada_fp8",
    "blackwell_fp8",
    "rtx_blackwell_fp8",
    "hopper_bf16",
    "blackwell_mxfp8",
    "blackwell_mxfp4",
    "blackwell_nvfp4",
    "cdna1_bf16",
    "cdna3_bf16",
)
for _name, _applies, _patch in _numbers():
    wrong(_name, _applies, patches=(_patch,))
for _profile in ("ada_bf16", "hopper_bf16", "blackwell_bf16", "rtx_blackwell_bf16", "cdna3_bf16"):
    for _words, _fields in _around(DOT_PROFILES[_profile]):
        try:
            _row = replace(DOT_PROFILES[_profile], **_fields)
        except ValueError:
            continue
        wrong(
            f"wide {_profile}: {_words}",
            lambda kind, name=_profile: (
                kind.upcasts and kind.profile.name != kind.profile.wide == name
            ),
            (matmul.wide, lambda *_, row=_row: row),
        )


def _of_chunks(order):
    def in_chunks(reference, products, profile):
        return order(reference(products, profile))

    return (dot.in_chunks, in_chunks)


for _name, _order in ORDERS.items():
    wrong(f"chunks: {_name}", has_chunks, _of_chunks(_order))


def _filled(fill):
    def in_chunks(reference, products, profile):
        found, length = reference(products, profile), dot.chunk_length(profile)
        rest = len(products) % length if length else 0
        return [*found[:-1], fill(found[-1][:rest], length)] if rest else found

    return (dot.in_chunks, in_chunks)


def _no_tail(reference, products, profile):
    found, length = reference(products, profile), dot.chunk_length(profile)
    return found[:-1] if length and len(products) % length and len(found) > 1 else found


def _no_short(reference, products, profile):
    found, length = reference(products, profile), dot.chunk_length(profile)
    return found[:-1] if length and len(products) % length else found


wrong("chunks: the last short one is dropped", has_chunks, (dot.in_chunks, _no_short))
wrong("chunks: a short one behind others is dropped", has_chunks, (dot.in_chunks, _no_tail))
wrong(
    "chunks: filled with the last product",
    has_chunks,
    _filled(lambda part, length: part + part[-1:] * (length - len(part))),
)


def _halves(reference, a, b, c, profile, of, scales):
    """Add two halves of K, each from 0 on."""
    length = dot.chunk_length(profile)
    middle = length * (-(-len(a) // length) // 2) if length else 0
    if not middle or (scales is not None and middle % scales.block):
        return reference(a, b, c, profile, of, scales)
    two = []
    for part in (slice(0, middle), slice(middle, None)):
        own = scales and replace(
            scales,
            a=scales.a[part.start // scales.block : part.stop and part.stop // scales.block],
            b=scales.b[part.start // scales.block : part.stop and part.stop // scales.block],
        )
        two.append(reference(a[part], b[part], 0.0, profile, of, own)[-1].c)
    return [Chunk(None, None, total(c, total(*two)))]


def _apart(reference, a, b, c, profile, of, scales):
    """Add chunks, each from 0 on, in binary32."""
    length = dot.chunk_length(profile)
    for k in range(0, len(a), length):
        part = slice(k, k + length)
        own = scales and replace(
            scales, a=scales.a[k // scales.block :], b=scales.b[k // scales.block :]
        )
        c = total(c, reference(a[part], b[part], 0.0, profile, of, own)[-1].c)
    return [Chunk(None, None, c)]


wrong("chunks: two halves of K", has_chunks, (dot.dot_chunks, _halves))
wrong(
    "chunks: binary32 adds them",
    lambda kind: has_chunks(kind) and kind.profile.family != "promoted",
    (dot.dot_chunks, _apart),
)


def _floored(_, value, profile):
    """Return a sum in the format of the result, rounded down."""
    found = rounded_by("rtz", value, profile)
    if math.isinf(found) or Fraction(found) <= value:
        return found
    unit = Fraction(2) ** (math.frexp(found)[1] - 1 - profile.result_bits if found else -149)
    return float(Fraction(found) - unit)


def _is_cut(kind):
    cut = ("t_fdpa", "st_fdpa", "gst_fdpa", "promoted")
    return has_chunks(kind) and kind.profile.family in cut


WRONG_SUMS = {
    "terms to nearest": changed_sum(lambda terms, _: sum(lost(x, round) for x in terms)),
    "terms rounded down": changed_sum(lambda terms, _: sum(lost(x, math.floor) for x in terms)),
    "c is not cut": changed_sum(lambda _, c: c - math.trunc(c)),
    "c rounded down": changed_sum(lambda _, c: lost(c, math.floor)),
    "c to nearest": changed_sum(lambda _, c: lost(c, round)),
    "terms are not cut": changed_sum(lambda terms, _: sum(x - math.trunc(x) for x in terms)),
}
for _name, _sum in WRONG_SUMS.items():
    wrong(f"chunks: {_name}", _is_cut, (dot_nvidia.cut_chunk, _sum))
wrong("chunks: results to nearest", _is_cut, (dot_nvidia.result, to_nearest))
wrong("chunks: results rounded down", _is_cut, (dot_nvidia.result, _floored))
wrong(
    "chunks: overflow is the largest",
    lambda kind: (
        _is_cut(kind)
        and (
            "bf16" in kind.takes
            or kind.upcasts
            or kind.profile.result == "f16"
            or kind.profile.name == "blackwell_mxfp8"
        )
    ),
    (
        dot_nvidia.result,
        lambda reference, value, profile: clamped_in(reference(value, profile), profile),
    ),
)


def clamped_in(x, profile):
    return math.copysign(formats[profile.result].largest, x) if math.isinf(x) else x


def _is_tr(kind):
    return (kind.widest or kind.profile).family == "tr_fdpa"


def _is_e(kind):
    return (kind.widest or kind.profile).family == "e_fdpa"


wrong(
    "cdna3: c toward zero",
    _is_tr,
    (
        dot_amd.cut_c,
        lambda _, c, largest, profile: math.trunc(
            Fraction(c) / Fraction(2) ** (largest - profile.fraction_bits)
        ),
    ),
)
wrong(
    "cdna3: sums toward zero",
    _is_tr,
    (dot_amd.floored, lambda _, value, unit: math.trunc(value / Fraction(2) ** unit)),
)
wrong(
    "cdna3: nearest once",
    _is_tr,
    (dot_amd.nearest, lambda _, value: rounded(value, 23, F32, "rne")),
)
wrong("cdna3: no overflow of products", _is_tr, (dot_amd.overflowed, lambda _, value: value))
wrong(
    "cdna3: clamped", _is_tr, (dot_amd.nearest, lambda reference, value: clamped(reference(value)))
)
wrong(
    "cdna1: products in binary32",
    _is_e,
    (
        dot_amd.e_fdpa,
        lambda _, part, c, *__: Chunk(
            None,
            None,
            functools.reduce(total, [product(one.a.value, one.b.value) for one in part], c),
        ),
    ),
)
wrong(
    "cdna1: two products first",
    _is_e,
    (
        dot_amd.e_fdpa,
        lambda reference, part, c, profile: Chunk(
            None, None, total(reference(part, 0.0, profile).c, c)
        ),
    ),
)
wrong(
    "cdna1: fused, one by one",
    _is_e,
    (
        dot_amd.e_fdpa,
        lambda _, part, c, *__: Chunk(
            None, None, functools.reduce(lambda c, one: fused(one.a.value, one.b.value, c), part, c)
        ),
    ),
)
wrong(
    "cdna1: clamped",
    _is_e,
    (
        dot_amd.e_fdpa,
        lambda reference, part, c, profile: Chunk(
            None, None, clamped(reference(part, c, profile).c)
        ),
    ),
)
for _period in (64, 256):
    wrong(
        f"promoted: {_period}",
        lambda kind: kind.profile.family == "promoted",
        (
            dot.chunk_length,
            lambda reference, profile, period=_period: (
                period if profile.family == "promoted" else reference(profile)
            ),
        ),
    )


def _goes_on(_, part, c, profile):
    """Add the sums of an instruction to c in the instruction."""
    for k in range(0, len(part), profile.chunk):
        c = dot_nvidia.t_fdpa(part[k : k + profile.chunk], c, profile).c
    return Chunk(None, None, c)


wrong(
    "promoted: the sum goes on",
    lambda kind: kind.profile.family == "promoted",
    (dot_nvidia.promoted, _goes_on),
)
