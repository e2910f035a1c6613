// Conversions between types: integers, and formats of floating-point numbers.
#pragma once
#include <type_traits>

#include "floats.h"
#include "integers.h"

namespace ptx {

template <const Layout& OF>
using Code = std::conditional_t<(OF.bits > 32), u64, std::conditional_t<(OF.bits > 16), u32, std::conditional_t<(OF.bits > 8), u16, u8>>>;

// A NaN of binary32 keeps its payload, and one of half precision is the canonical one of binary32: ptxas folds them so.
template <const Layout& FROM> inline double number(Code<FROM> code) {
  if constexpr (FROM.bits == 64) return double_of(code);
  else if constexpr (FROM.bits == 32) return double(float_of(code));
  else {
    const double found = decoded(code, FROM);
    return found == found ? found : double(float_of(u32(F32.nan)));
  }
}

template <const Layout& TO> inline Code<TO> flushed_to_zero(Code<TO> code) {
  return code & TO.infinity ? code : Code<TO>(code & (u64(1) << (TO.bits - 1)));
}
template <const Layout& TO> inline Code<TO> saturated(Code<TO> code) {
  constexpr Code<TO> one = Code<TO>(u64(TO.bias) << TO.mantissa);
  const u64 sign = u64(1) << (TO.bits - 1);
  if ((code & ~sign) > TO.infinity || code & sign) return 0;
  return code > one ? one : code;
}

// PTX does not say what .relu makes of -0; here it is 0.
template <const Layout& TO, u32 FLAGS> inline Code<TO> after_rounding(Code<TO> code) {
  const Code<TO> sign = Code<TO>(u64(1) << (TO.bits - 1)), magnitude = code & Code<TO>(~sign);
  if ((FLAGS & SATFINITE) && magnitude == TO.infinity) code = Code<TO>((code & sign) | TO.largest);
  if ((FLAGS & RELU) && (code & sign)) code = 0;
  if ((FLAGS & FTZ) && TO.bits == 32) code = flushed_to_zero<TO>(code);
  return FLAGS & SAT ? saturated<TO>(code) : code;
}

template <const Layout& TO, Mode MODE, u32 FLAGS> inline Code<TO> code_of(double x) {
  if (TO.bits == 32 && TO.mantissa == F32.mantissa && is_flushed<MODE, FLAGS>(x)) x = __builtin_copysign(0, x);
  return after_rounding<TO, FLAGS>(Code<TO>(TO.bits == 64 ? bits_of(x) : encoded(x, TO, MODE)));
}

// PTX flushes operands of a conversion to f16, too; GPUs do not.
template <const Layout& TO, const Layout& FROM, Mode MODE, u32 FLAGS> inline Code<TO> cvt_float(Code<FROM> code) {
  if ((FLAGS & FTZ) && FROM.bits == 32 && TO.mantissa != F16.mantissa) code = flushed_to_zero<FROM>(code);
  return code_of<TO, MODE, FLAGS>(number<FROM>(code));
}

// With .ftz, ptxas multiplies by 1 to flush, and a NaN becomes the canonical one.
template <u32 FLAGS> inline u64 cvt_product_of_one(u32 a) {
  return cvt_float<F64, F32, Mode::even, FLAGS>(abs_f32(a) > F32.infinity ? u32(F32.nan) : a);
}

// A register is shifted, so that a NaN has all its bits, and a constant that is NaN becomes the canonical one.
struct ShiftedBf16 {
  Machine& m;
  u32 line;
  u32 operator()(u16 a) const {
    const u32 shifted = u32(a) << 16;
    if (abs_f32(shifted) <= F32.infinity) return shifted;
    note(m, line, Noted::wide_nan);
    return end_at(m, line, a) == End::nearest ? shifted : u32(F32.nan);
  }
};

// The NaN of a GPU, which keeps the highest bits of the payload.
template <const Layout& TO, const Layout& FROM, bool QUIETS> inline Code<TO> same_nan(Code<FROM> a) {
  constexpr s32 up = TO.mantissa - FROM.mantissa;
  const u64 payload = u64(a) & ((u64(1) << FROM.mantissa) - 1), sign = u64(a) >> (FROM.bits - 1) & 1;
  const u64 quiet = QUIETS ? u64(1) << (TO.mantissa - 1) : 0;
  return Code<TO>(sign << (TO.bits - 1) | TO.infinity | quiet | (up < 0 ? payload >> (-up & 63) : payload << (up & 63)));
}
// PTX leaves the bits of the NaN of a conversion open: the usual ones, or those of a GPU.
template <const Layout& FROM, auto USUAL, auto OTHER> struct OpenNan {
  Machine& m;
  u32 line;
  template <class T> auto operator()(T a) const {
    const auto usual = USUAL(a);
    if (__builtin_expect((u64(a) & ((u64(1) << (FROM.bits - 1)) - 1)) <= FROM.infinity, 1)) return usual;
    note(m, line, Noted::nan);
    return end_at(m, line, a) == End::nearest ? usual : OTHER(a);
  }
};
inline u64 quieted(u64 a) { return a | QUIET; }

// The sign of zero stays.
template <Mode MODE> inline double integral(double x) {
  switch (MODE) {
    case Mode::even: return __builtin_copysign(__builtin_rint(x), x);
    case Mode::zero: return __builtin_trunc(x);
    case Mode::down: return __builtin_floor(x);
    default: return __builtin_ceil(x);
  }
}

template <const Layout& OF, Mode MODE, u32 FLAGS> inline Code<OF> cvt_integral(Code<OF> code) {
  if ((FLAGS & FTZ) && OF.bits == 32) code = flushed_to_zero<OF>(code);
  return code_of<OF, Mode::even, FLAGS>(integral<MODE>(number<OF>(code)));
}

template <class T, const Layout& FROM, Mode MODE, u32 FLAGS> inline T cvt_to_integer(Code<FROM> code) {
  if ((FLAGS & FTZ) && FROM.bits == 32) code = flushed_to_zero<FROM>(code);
  const double x = integral<MODE>(number<FROM>(code));
  if (x != x) return FROM.bits == 64 || sizeof(T) == 8 ? T(Word<T>(1) << (BITS<T> - 1)) : T(0);
  const double beyond = __builtin_ldexp(1.0, BITS<T> - IS_SIGNED<T>);
  if (x >= beyond) return MOST<T>;
  if (x < (IS_SIGNED<T> ? -beyond : 0.0)) return LEAST<T>;
  return T(x);
}

template <const Layout& TO, class F, Mode MODE, u32 FLAGS> inline Code<TO> cvt_from_integer(Word<F> a) {
  const bool negative = F(a) < 0;
  const u64 magnitude = negative ? u64(0) - u64(s64(F(a))) : u64(F(a));
  if (!magnitude) return 0;
  const Exact exact = {negative, magnitude, 0};
  const Code<TO> code = Code<TO>(after(negative, rounded(exact, TO, MODE), TO, MODE));
  return FLAGS & SAT ? saturated<TO>(code) : code;
}

template <class T, class F> inline T cvt(Word<F> a) { return T(F(a)); }
template <class T, class F> inline T cvt_sat(Word<F> a) {
  const s128 x = F(a);
  return x < s128(LEAST<T>) ? LEAST<T> : x > s128(MOST<T>) ? MOST<T> : T(x);
}

// Two integers of WIDTH bits, clamped, below the bits of c.
template <class T, u32 WIDTH> inline u32 pack(u32 a, u32 b, u32 c = 0) {
  constexpr s32 most = (1 << (WIDTH - IS_SIGNED<T>)) - 1, least = IS_SIGNED<T> ? -most - 1 : 0;
  constexpr u32 mask = (1u << WIDTH) - 1;
  const auto clamp = [](u32 x) { return u32(s32(x) < least ? least : s32(x) > most ? most : s32(x)) & mask; };
  return (WIDTH < 16 ? c << 2 * WIDTH % 32 : 0) | clamp(a) << WIDTH | clamp(b);
}

// ---------------------------------------------------------------------- several numbers at once
// The first operand is in the upper bits. Codes of six bits have a byte each.

template <const Layout& OF> constexpr u32 SIDE = OF.bits == 6 ? 8 : OF.bits;

template <const Layout& TO, const Layout& FROM, Mode MODE, u32 FLAGS> inline u32 cvt_pair(Code<FROM> a, Code<FROM> b) {
  return u32(cvt_float<TO, FROM, MODE, FLAGS>(a)) << SIDE<TO> | cvt_float<TO, FROM, MODE, FLAGS>(b);
}

template <const Layout& TO, const Layout& FROM, Mode MODE, u32 FLAGS> inline u32 cvt_packed(u32 a) {
  constexpr u32 mask = (1u << FROM.bits) - 1;
  return cvt_pair<TO, FROM, MODE, FLAGS>(Code<FROM>(a >> SIDE<FROM> & mask), Code<FROM>(a & mask));
}

// ---------------------------------------------------------------------- rounded at random

template <const Layout& TO, u32 FLAGS, s32 COUNT> inline Code<TO> cvt_rs(End end, u32 a, u32 random) {
  const Parts parts = parts_of(double(float_of(a)));
  if (parts.kind != Parts::finite) return after_rounding<TO, FLAGS>(Code<TO>(special(parts, TO)));
  const bool negative = parts.value.negative;
  const Mode away = negative ? Mode::down : Mode::up;
  const u64 magnitude = end == End::nearest ? rounded_at_random(parts.value, TO, random, COUNT)
                                            : rounded(parts.value, TO, end == End::below ? Mode::zero : away);
  return after_rounding<TO, FLAGS>(Code<TO>(after(negative, magnitude, TO, Mode::even)));
}
inline u32 reversed16(u32 random) { return brev<u32>(random) >> 16; }

template <const Layout& TO, u32 FLAGS, s32 COUNT> struct PairAtRandom {
  End end;
  u32 operator()(u32 a, u32 b, u32 random) const {
    constexpr u32 mask = (1u << COUNT) - 1;
    return u32(cvt_rs<TO, FLAGS, COUNT>(end, a, random >> 16 & mask)) << 16 | cvt_rs<TO, FLAGS, COUNT>(end, b, random & mask);
  }
};

// The manual shows in a figure that two numbers share sixteen bits, the first one in reverse order.
template <const Layout& TO, u32 FLAGS> struct FourAtRandom {
  End end;
  u32 operator()(u32 a, u32 b, u32 e, u32 f, u32 random) const {
    const bool bytes = TO.bits == 4;
    const u32 upper = bytes ? (random >> 16 & 0xFF00) | (random >> 8 & 0xFF) : random >> 16;
    const u32 lower = bytes ? (random >> 8 & 0xFF00) | (random & 0xFF) : random & 0xFFFF;
    const u32 codes[4] = {cvt_rs<TO, FLAGS, 16>(end, a, reversed16(upper)), cvt_rs<TO, FLAGS, 16>(end, b, upper),
                          cvt_rs<TO, FLAGS, 16>(end, e, reversed16(lower)), cvt_rs<TO, FLAGS, 16>(end, f, lower)};
    return codes[0] << 3 * SIDE<TO> | codes[1] << 2 * SIDE<TO> | codes[2] << SIDE<TO> | codes[3];
  }
};

// ---------------------------------------------------------------------- powers of two, without a sign

template <bool UP, u32 FLAGS> inline u32 ue8m0(u32 a) {
  const u32 magnitude = a & 0x7FFFFFFF, field = magnitude >> 23, smallest = 0x400000;
  if (magnitude > F32.infinity) return 0xFF;
  const bool is_above = field ? (magnitude & 0x7FFFFF) != 0 : magnitude > smallest;
  const u32 code = field + (UP && is_above);
  return (FLAGS & SATFINITE) && code > 0xFE ? 0xFE : code;
}
template <bool UP, u32 FLAGS> inline u32 ue8m0_pair(u32 a, u32 b) { return ue8m0<UP, FLAGS>(a) << 8 | ue8m0<UP, FLAGS>(b); }
template <bool UP, u32 FLAGS> inline u32 ue8m0_packed(u32 a) { return ue8m0_pair<UP, FLAGS>(a & 0xFFFF0000, a << 16); }
inline u32 of_ue8m0(u32 code) { return code == 0xFF ? u32(BF16.nan) : code ? code << 7 : 0x40; }
inline u32 of_ue8m0_packed(u32 a) { return of_ue8m0(a >> 8 & 0xFF) << 16 | of_ue8m0(a & 0xFF); }

// ---------------------------------------------------------------------- tf32
// A binary32 number with 10 bits of mantissa. The ties of .rna go away from 0.

template <u32 FLAGS> inline u32 cut_tf32(u32 a, u32 added) {
  const u32 sign = a & 0x80000000;
  u32 magnitude = a & 0x7FFFFFFF;
  if (magnitude > F32.infinity) return u32(F32.nan);
  if (magnitude < F32.infinity) magnitude = (magnitude + added) & 0xFFFFE000;
  if ((FLAGS & SATFINITE) && magnitude == F32.infinity) magnitude = 0x7F7FE000;
  return (FLAGS & RELU) && sign ? 0 : magnitude | sign;
}
template <u32 FLAGS> inline u32 tf32_rna(u32 a) { return cut_tf32<FLAGS>(a, 0x1000); }
template <u32 FLAGS> inline u32 tf32_rz(u32 a) { return cut_tf32<FLAGS>(a, 0); }
template <u32 FLAGS> inline u32 tf32_rn(u32 a) { return cut_tf32<FLAGS>(a, 0xFFF + (a >> 13 & 1)); }
// Of NaN, as an H200 has them: .rna cuts the payload, and .satfinite subtracts from it.
inline u32 nan_tf32(u32) { return 0x7FFFE000; }
template <u32 FLAGS> inline u32 nan_tf32_rna(u32 a) { return (a & 0xFFFFE000) - (FLAGS & SATFINITE ? 0x2000 : 0); }

}  // namespace ptx
