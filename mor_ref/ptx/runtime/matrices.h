// Matrix instructions of a warp, after the chapter on dot products: rows of a by columns of b, and c.
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
template <const Layout& OF> inline Factor element_of(u32 word, u32 k) {
  if (&OF == &TF32) return factor_of(word & 0xFFFFE000, OF);
  return factor_of(word >> k * OF.bits & ((u64(1) << OF.bits) - 1), OF);
}

struct CutTerm {
  bool negative;
  u64 significand;
  s32 unit, exponent;
};

// DOT-008: NaN if a factor is, or for an infinity times zero.
inline double special_product(const Factor& a, const Factor& b) {
  const double x = a.is_special ? a.special : a.is_zero ? 0.0 : a.negative ? -1.0 : 1.0;
  const double y = b.is_special ? b.special : b.is_zero ? 0.0 : b.negative ? -1.0 : 1.0;
  return x * y;
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

// DOT-007 and DOT-008: a chunk of products, and c, whose code is returned.
inline u32 add_chunk(const Factor* a, const Factor* b, u32 c, const CutRule& rule) {
  const Layout& of_c = rule.is_half ? F16 : F32;
  const Factor last = factor_of(c, of_c);
  double special = last.is_special ? last.special : 0;
  bool is_special = last.is_special;
  CutTerm terms[33];
  s32 exponent = last.is_zero ? rule.zero_exponent : last.exponent;
  terms[rule.chunk] = {last.negative, last.significand, last.unit, exponent};
  for (s32 k = 0; k < rule.chunk; k++) {
    const bool is_zero = a[k].is_zero || b[k].is_zero;
    terms[k] = {a[k].negative != b[k].negative, a[k].significand * b[k].significand, a[k].unit + b[k].unit,
                is_zero ? rule.zero_exponent : a[k].exponent + b[k].exponent};
    if (a[k].is_special || b[k].is_special) is_special = true, special += special_product(a[k], b[k]);
    if (terms[k].exponent > exponent) exponent = terms[k].exponent;
  }
  if (is_special) return u32(special != special ? of_c.nan : with_sign(special < 0, of_c.infinity, of_c));
  const s32 unit = exponent - rule.fraction_bits;
  s64 whole = 0;
  for (s32 k = 0; k <= rule.chunk; k++) {
    const s32 up = terms[k].unit - unit;
    const u64 size = up >= 0 ? terms[k].significand << up : -up < 64 ? terms[k].significand >> -up : 0;
    whole += terms[k].negative ? -s64(size) : s64(size);
  }
  return result_of_chunk(whole, unit, rule);
}

// The product of 16 x K by K x 8. Register r of a lane has neighbours in K: of row lane / 4, or eight below it, and of
// column lane / 4 of b. The lanes of a quad follow on one another.
template <const Layout& OF_A, const Layout& OF_B, s32 K>
inline void multiply(Machine& m, const CutRule& rule, const u32* a, const u32* b, const u32* c, u32* d, u32 line) {
  constexpr u32 each = 32 / OF_A.bits, of_a = K / (2 * each), of_b = K / (4 * each);
  u32 words[of_a + of_b];
  for (u32 k = 0; k < of_a; k++) words[k] = a[k];
  for (u32 k = 0; k < of_b; k++) words[of_a + k] = b[k];
  with_fragments(m, words, of_a + of_b, line, [&] {
    for (u32 n = 0; n < 4; n++) {
      const u32 row = m.lane / 4, column = m.lane % 4 * 2 + n % 2, upper = n / 2;
      Factor x[K], y[K];
      for (u32 k = 0; k < K; k++) {
        const u32 part = k / (4 * each), quad = k / each % 4;
        x[k] = element_of<OF_A>(m.fragments[row * 4 + quad][part * 2 + upper], k % each);
        y[k] = element_of<OF_B>(m.fragments[column * 4 + quad][of_a + part], k % each);
      }
      u32 sum = rule.is_half ? c[n / 2] >> n % 2 * 16 & 0xFFFF : c[n];
      for (s32 k = 0; k < K; k += rule.chunk) sum = add_chunk(x + k, y + k, sum, rule);
      if (!rule.is_half) d[n] = sum;
      else d[n / 2] = n % 2 ? d[n / 2] | sum << 16 : sum;
    }
  });
}

// Eight rows of eight numbers of 16 bits for each matrix, whose addresses eight lanes have.
template <u32 COUNT, bool TRANSPOSED> inline void load_matrices(Machine& m, u64 address, u32* d, u32 line) {
  const u32 words[2] = {u32(address), u32(address >> 32)};
  with_fragments(m, words, 2, line, [&] {
    for (u32 k = 0; k < COUNT; k++) {
      u32 pair = 0;
      for (u32 j = 0; j < 2; j++) {
        const u32 row = TRANSPOSED ? m.lane % 4 * 2 + j : m.lane / 4, column = TRANSPOSED ? m.lane / 4 : m.lane % 4 * 2 + j;
        const u32* of_row = m.fragments[8 * k + row];
        const u64 begin = of_row[0] | u64(of_row[1]) << 32;
        if (begin % 16) fail(m, line, "the address of a row is misaligned");
        pair |= u32(*shared<u16, 2>(m, begin + 2 * column, Touch::read, line)) << 16 * j;
      }
      d[k] = pair;
    }
  });
}

}  // namespace ptx
