// Formats of floating-point numbers, and the one rounding from exact values to any of them.
#pragma once
#include "machine.h"

namespace ptx {

enum class Mode : u32 { even, zero, down, up };

constexpr u64 NONE = ~u64(0);

// `largest`, `infinity` and `nan` are codes without a sign; a format may have no infinity and no NaN.
struct Layout {
  s32 mantissa, bias;
  u64 largest, infinity, nan;
  u32 bits;
};
constexpr Layout F64 = {52, 1023, 0x7FEFFFFFFFFFFFFFu, 0x7FF0000000000000u, 0x7FF8000000000000u, 64};
constexpr Layout F32 = {23, 127, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF, 32};
constexpr Layout TF32 = {23, 127, 0x7F7FFFFF, 0x7F800000, 0x7FFFFFFF, 32};  // the lowest 13 bits are not read
constexpr Layout F16 = {10, 15, 0x7BFF, 0x7C00, 0x7FFF, 16};
constexpr Layout BF16 = {7, 127, 0x7F7F, 0x7F80, 0x7FFF, 16};
constexpr Layout E4M3 = {3, 7, 0x7E, NONE, 0x7F, 8};
constexpr Layout E5M2 = {2, 15, 0x7B, 0x7C, 0x7F, 8};
constexpr Layout E3M2 = {2, 3, 0x1F, NONE, NONE, 6};
constexpr Layout E2M3 = {3, 1, 0x1F, NONE, NONE, 6};
constexpr Layout E2M1 = {1, 1, 0x7, NONE, NONE, 4};

inline u64 bits_of(double x) { u64 bits; memcpy(&bits, &x, 8); return bits; }
inline double double_of(u64 bits) { double x; memcpy(&x, &bits, 8); return x; }
inline u32 bits_of(float x) { u32 bits; memcpy(&bits, &x, 4); return bits; }
inline float float_of(u32 bits) { float x; memcpy(&x, &bits, 4); return x; }

// significand * 2^exponent; the significand is not 0.
struct Exact {
  bool negative;
  u64 significand;
  s32 exponent;
};

// The code of a magnitude that was cut, as if codes went on beyond the largest, and the bits cut off: `drop` of them.
struct Cut {
  u64 code;
  u128 rest;
  s32 drop;
};

inline Cut cut(const Exact& x, const Layout& to) {
  const s32 up = __builtin_clzll(x.significand);
  const u64 significand = x.significand << up;
  const s32 leading = x.exponent + 63 - up, smallest = 1 - to.bias;
  const s32 place = leading > smallest ? leading : smallest;
  const s32 drop = 63 - to.mantissa + place - leading;  // at least 11
  const u64 field = u64(place - smallest) << to.mantissa;
  if (drop > 64) return {field, significand, drop};
  return {field + (drop == 64 ? 0 : significand >> drop), significand & ((u128(1) << drop) - 1), drop};
}

// The magnitude's code under a rounding.
inline u64 rounded(const Exact& x, const Layout& to, Mode mode) {
  const Cut found = cut(x, to);
  const u128 rest = found.rest, half = u128(1) << ((found.drop < 66 ? found.drop : 66) - 1);
  bool goes_up = false;
  switch (mode) {
    case Mode::even: goes_up = rest > half || (rest == half && (found.code & 1)); break;
    case Mode::zero: break;
    case Mode::down: goes_up = rest && x.negative; break;
    case Mode::up: goes_up = rest && !x.negative; break;
  }
  return found.code + goes_up;
}

// With random bits, which are added to as many of the bits cut off.
inline u64 rounded_at_random(const Exact& x, const Layout& to, u32 random, s32 count) {
  const Cut found = cut(x, to);
  const s32 down = found.drop - count;
  const u64 top = down > 64 ? 0 : u64(down < 0 ? found.rest << -down : found.rest >> down);
  return found.code + ((top + random) >> count);
}

inline u64 with_sign(bool negative, u64 magnitude, const Layout& to) {
  return magnitude | u64(negative) << (to.bits - 1);
}

// What a magnitude beyond the largest becomes.
inline u64 overflowed(bool negative, const Layout& to, Mode mode) {
  const bool stays = to.infinity == NONE || mode == Mode::zero || mode == (negative ? Mode::up : Mode::down);
  return stays ? to.largest : to.infinity;
}

struct Parts {
  enum { zero, finite, infinite, nan } kind;
  Exact value;
};

inline Parts parts_of(double x) {
  const u64 bits = bits_of(x), magnitude = bits & ~(u64(1) << 63);
  const bool negative = bits >> 63;
  if (!magnitude) return {Parts::zero, {negative, 0, 0}};
  if (magnitude >= F64.infinity) return {magnitude > F64.infinity ? Parts::nan : Parts::infinite, {negative, 0, 0}};
  const u64 field = magnitude >> 52, fraction = magnitude & ((u64(1) << 52) - 1);
  return {Parts::finite, {negative, field ? fraction | u64(1) << 52 : fraction, s32(field ? field : 1) - 1075}};
}

enum Flags : u32 { FTZ = 1, SAT = 2, RELU = 16, SATFINITE = 32 };

// NaN is positive. Without NaN and infinity, a format has its largest number in their place.
inline u64 special(const Parts& x, const Layout& to) {
  if (x.kind == Parts::nan) return to.nan == NONE ? to.largest : to.nan;
  const u64 beyond = to.infinity == NONE ? to.largest : to.infinity;
  return with_sign(x.value.negative, x.kind == Parts::zero ? 0 : beyond, to);
}

inline u64 after(bool negative, u64 magnitude, const Layout& to, Mode mode) {
  if (magnitude > to.largest) magnitude = overflowed(negative, to, mode);
  return with_sign(negative, magnitude, to);
}

inline u64 encoded(double x, const Layout& to, Mode mode) {
  const Parts parts = parts_of(x);
  if (parts.kind != Parts::finite) return special(parts, to);
  return after(parts.value.negative, rounded(parts.value, to, mode), to, mode);
}

// Exactly, of any format but F64; NaN is NaN.
inline double decoded(u64 code, const Layout& from) {
  const u64 sign = code >> (from.bits - 1) & 1, magnitude = code & ((u64(1) << (from.bits - 1)) - 1);
  if (magnitude > from.infinity || magnitude == from.nan) return double_of(F64.nan);
  if (magnitude == from.infinity) return double_of(sign << 63 | F64.infinity);
  const s32 field = s32(magnitude >> from.mantissa);
  const u64 fraction = magnitude & ((u64(1) << from.mantissa) - 1), hidden = u64(1) << from.mantissa;
  const s32 unit = (field ? field : 1) - from.bias - from.mantissa;
  const double power = double_of(u64(unit + 1023) << 52), found = double(field ? fraction | hidden : fraction) * power;
  return sign ? -found : found;
}

}  // namespace ptx
