// Dot products of matrix instructions, after the chapter on them: the products of a chunk, and c.
#pragma once
#include "conversions.h"

namespace ptx {

// A profile that cuts terms (DOT-007, DOT-010): the numbers of its row, and whether results are f16.
struct CutRule {
  s32 chunk, fraction_bits, zero_exponent, kept_bits;
  bool is_half;
};

// DOT-004: significand * 2^unit, and the exponent of the number; `special` is an infinity or NaN.
struct Factor {
  bool is_zero, is_special, negative;
  u64 significand;
  s32 unit, exponent;
  double special;
};
constexpr Factor ONE = {false, false, false, 1, 0, 0, 0};

inline Factor factor_of(u64 code, const Layout& from) {
  const u64 magnitude = code & ((u64(1) << (from.bits - 1)) - 1);
  const bool negative = code >> (from.bits - 1) & 1;
  Factor found = {magnitude == 0, false, negative, 0, 0, 1 - from.bias, 0};
  if (magnitude > from.largest) {
    found.is_special = true;
    found.special = magnitude == from.infinity ? (negative ? -__builtin_inf() : __builtin_inf()) : __builtin_nan("");
    return found;
  }
  const s32 field = s32(magnitude >> from.mantissa);
  const u64 hidden = u64(1) << from.mantissa, fraction = magnitude & (hidden - 1);
  found.significand = field ? fraction | hidden : fraction;
  found.exponent = (field ? field : 1) - from.bias;
  found.unit = found.exponent - from.mantissa;
  return found;
}

// Element k of a word. In a byte, six bits are the lowest, and four are in the middle.
template <const Layout& OF, u32 WIDTH> inline Factor element_of(u32 word, u32 k) {
  if (&OF == &TF32) return factor_of(word & 0xFFFFE000, OF);
  const u64 held = word >> k * WIDTH >> (WIDTH == 8 && OF.bits == 4 ? 2 : 0);
  return factor_of(held & ((u64(1) << OF.bits) - 1), OF);
}

// DOT-006: a power of two, or e4m3 without its sign.
enum class Scale : u32 { ue8m0, ue4m3 };
inline Factor scale_of(u32 code, Scale kind) {
  if (kind == Scale::ue4m3) return factor_of(code & 0x7F, E4M3);
  if (code == 0xFF) return {false, true, false, 0, 0, -127, __builtin_nan("")};
  return {false, false, false, 1, s32(code) - 127, s32(code) - 127, 0};
}

struct CutTerm {
  bool negative;
  u64 significand;
  s32 unit, exponent;
};

// The terms of a chunk, their largest exponent, and the sum of those that are infinite or NaN.
struct Chunk {
  CutTerm terms[33];
  u32 count;
  s32 exponent;
  bool is_special;
  double special;
};

inline void add_term(Chunk& chunk, const CutTerm& term) {
  if (!chunk.count || term.exponent > chunk.exponent) chunk.exponent = term.exponent;
  chunk.terms[chunk.count++] = term;
}
inline void add_special(Chunk& chunk, double special) {
  chunk.is_special = true;
  chunk.special += special;
}
inline double as_special(const Factor& x) { return x.is_special ? x.special : x.is_zero ? 0.0 : x.negative ? -1.0 : 1.0; }

inline Chunk chunk_of(u32 c, const CutRule& rule) {
  Chunk chunk = {};
  const Factor last = factor_of(c, rule.is_half ? F16 : F32);
  if (last.is_special) add_special(chunk, last.special);
  add_term(chunk, {last.negative, last.significand, last.unit, last.is_zero ? rule.zero_exponent : last.exponent});
  return chunk;
}

// DOT-007, and DOT-008: NaN if a factor is, or for an infinity times zero.
inline void add_product(Chunk& chunk, const Factor& a, const Factor& b, const Factor& s, const Factor& t, const CutRule& rule) {
  if (a.is_special || b.is_special || s.is_special || t.is_special)
    add_special(chunk, as_special(a) * as_special(b) * as_special(s) * as_special(t));
  const bool is_zero = a.is_zero || b.is_zero || s.is_zero || t.is_zero;
  add_term(chunk, {a.negative != b.negative, a.significand * b.significand * s.significand * t.significand,
                   a.unit + b.unit + s.unit + t.unit,
                   is_zero ? rule.zero_exponent : a.exponent + b.exponent + s.exponent + t.exponent});
}

// DOT-009: sixteen products of e2m1, which are multiples of a fourth.
inline void add_group(Chunk& chunk, const Factor* a, const Factor* b, const Factor& s, const Factor& t, const CutRule& rule) {
  s64 sum = 0;
  bool is_zero = true;
  for (u32 k = 0; k < 16; k++) {
    const s64 size = s64(a[k].significand * b[k].significand << (a[k].unit + b[k].unit + 2));
    sum += a[k].negative != b[k].negative ? -size : size;
    is_zero = is_zero && (a[k].is_zero || b[k].is_zero);
  }
  if (s.is_special || t.is_special) add_special(chunk, __builtin_nan(""));
  is_zero = is_zero || s.is_zero || t.is_zero;
  add_term(chunk, {sum < 0, u64(sum < 0 ? -sum : sum) * s.significand * t.significand, s.unit + t.unit - 2,
                   is_zero ? rule.zero_exponent : s.exponent + t.exponent});
}

// DOT-010, without a negative zero.
inline u32 result_of_chunk(s64 whole, s32 unit, const CutRule& rule) {
  const Layout f32 = {rule.kept_bits, 127, 0, 0, 0, 32};
  if (whole == 0) return 0;
  const Exact exact = {whole < 0, u64(whole < 0 ? -whole : whole), unit};
  const u64 code = rule.is_half ? rounded(exact, F16, Mode::even) : rounded(exact, f32, Mode::zero) << (23 - rule.kept_bits);
  const Layout& to = rule.is_half ? F16 : F32;
  const u64 magnitude = code > to.largest ? to.infinity : code;
  return magnitude ? u32(with_sign(exact.negative, magnitude, to)) : 0;
}

// DOT-007 and DOT-008: the code of the next c.
inline u32 sum_of_chunk(const Chunk& chunk, const CutRule& rule) {
  const Layout& of_c = rule.is_half ? F16 : F32;
  const double special = chunk.special;
  if (chunk.is_special) return u32(special != special ? of_c.nan : with_sign(special < 0, of_c.infinity, of_c));
  const s32 unit = chunk.exponent - rule.fraction_bits;
  s64 whole = 0;
  for (u32 k = 0; k < chunk.count; k++) {
    const CutTerm& term = chunk.terms[k];
    const s32 up = term.unit - unit;
    const u64 size = up >= 0 ? term.significand << up : -up < 64 ? term.significand >> -up : 0;
    whole += term.negative ? -s64(size) : s64(size);
  }
  return result_of_chunk(whole, unit, rule);
}

// All chunks of a row of a and a column of b.
template <u32 K> inline u32 dot_of(const Factor (&a)[K], const Factor (&b)[K], u32 c, const CutRule& rule) {
  for (u32 start = 0; start < K; start += u32(rule.chunk)) {
    Chunk chunk = chunk_of(c, rule);
    for (u32 k = start; k < start + u32(rule.chunk); k++) add_product(chunk, a[k], b[k], ONE, ONE, rule);
    c = sum_of_chunk(chunk, rule);
  }
  return c;
}

// The same with COUNT scales of each, in the bytes of a word from the lowest on. e2m1 of 4 bits has groups.
template <u32 K, u32 COUNT> inline u32 scaled_dot_of(const Factor (&a)[K], const Factor (&b)[K], u32 c, const CutRule& rule,
                                                     u32 of_a, u32 of_b, Scale kind) {
  Chunk chunk = chunk_of(c, rule);
  for (u32 k = 0; k < K; k += 16) {
    const u32 at = k * COUNT / K * 8;
    const Factor s = scale_of(of_a >> at & 0xFF, kind), t = scale_of(of_b >> at & 0xFF, kind);
    if (K == 64) add_group(chunk, a + k, b + k, s, t, rule);
    else for (u32 j = k; j < k + 16; j++) add_product(chunk, a[j], b[j], s, t, rule);
  }
  return sum_of_chunk(chunk, rule);
}

// Integers in words of WIDTH bits each; the sum is exact, then wraps, or is clamped.
struct IntegerRule {
  bool signed_a, signed_b, is_clamped;
};
template <u32 WIDTH> inline s64 integer_of(u32 word, u32 k, bool is_signed) {
  const u32 held = word >> k * WIDTH & ((1u << WIDTH) - 1);
  return is_signed && held >> (WIDTH - 1) ? s64(held) - (s64(1) << WIDTH) : s64(held);
}
template <u32 WIDTH, u32 WORDS> inline u32 integer_dot_of(const u32 (&a)[WORDS], const u32 (&b)[WORDS], u32 c, const IntegerRule& rule) {
  s64 sum = s32(c);
  for (u32 k = 0; k < WORDS; k++)
    for (u32 j = 0; j < 32 / WIDTH; j++) sum += integer_of<WIDTH>(a[k], j, rule.signed_a) * integer_of<WIDTH>(b[k], j, rule.signed_b);
  if (!rule.is_clamped) return u32(sum);
  return u32(sum > INT32_MAX ? INT32_MAX : sum < INT32_MIN ? INT32_MIN : sum);
}

}  // namespace ptx
