// Floating-point instructions. All NaNs that they make are canonical, but for those of binary64, which keep payloads.
#pragma once

#include <cfenv>
#include <initializer_list>

#include "formats.h"

namespace ptx {

inline u32 flushed(u32 a) { return a & 0x7F800000 ? a : a & 0x80000000; }
template <u32 FLAGS> inline float in32(u32 a) { return float_of(FLAGS & FTZ ? flushed(a) : a); }
template <u32 FLAGS> inline u32 out32(float x) {
  if (x != x) return FLAGS & SAT ? 0 : u32(F32.nan);
  u32 bits = bits_of(x);
  if (FLAGS & FTZ) bits = flushed(bits);
  if (FLAGS & SAT) bits = bits >> 31 ? 0 : bits > 0x3F800000 ? 0x3F800000 : bits;
  return bits;
}
inline bool is_nan64(u64 a) { return (a & ~(u64(1) << 63)) > F64.infinity; }
constexpr u64 QUIET = u64(1) << 51;
constexpr u64 NO_NUMBER = u64(1) << 63 | F64.nan;  // CUDART_NAN of CUDA's math_constants.h

// A NaN has the bits of the first operand that is NaN.
template <class... Codes> inline u64 out64(double x, Codes... operands) {
  if (x == x) return bits_of(x);
  for (const u64 each : {operands...})
    if (is_nan64(each)) return each | QUIET;
  return NO_NUMBER;
}

// ---------------------------------------------------------------------- rounded to odd
// From a binary64 result and the sign of its error: a number that rounds to 51 bits or fewer as the
// exact result does.

inline double to_odd(double found, double lost) {
  if (lost == 0 || found - found != 0) return found;
  u64 bits = bits_of(found);
  if ((lost < 0) != (found < 0)) bits--;
  return double_of(bits | 1);
}
inline double add_odd(double a, double b) {
  const double sum = a + b, part = sum - a;
  return to_odd(sum, (a - (sum - part)) + (b - part));
}
inline double div_odd(double a, double b) {
  const double found = a / b;
  if (found - found != 0 || b - b != 0) return found;
  const double rest = __builtin_fma(-found, b, a);
  return to_odd(found, b < 0 ? -rest : rest);
}

// PTX: an exact zero is negative under .rm, but for equal signs.
template <Mode MODE> inline float narrowed(double x, bool zero_of_two) {
  if (x == 0 && zero_of_two) return MODE == Mode::down ? -0.0f : 0.0f;
  return float_of(u32(encoded(x, F32, MODE)));
}
// With .ftz, a result becomes 0 if it is below the least normal number when it is rounded to 24 bits, however small it is. So of two
// results that round to that number, one can be 0. `exact` may be rounded to odd.
template <Mode MODE, u32 FLAGS> inline bool is_flushed(double exact) {
  if (!(FLAGS & FTZ) || exact == 0 || !(__builtin_fabs(exact) < 0x1p-126)) return false;
  return __builtin_fabsf(narrowed<MODE>(exact * 0x1p64, false)) < 0x1p-62f;
}
template <Mode MODE, u32 FLAGS> inline u32 out32_of(float x, double exact) {
  return out32<FLAGS>(is_flushed<MODE, FLAGS>(exact) ? float(__builtin_copysign(0, exact)) : x);
}
inline bool cancels(double a, double b) { return a == -b && a != 0; }
inline bool opposite_zeros(double a, double b) { return a == 0 && b == 0 && bits_of(a) != bits_of(b); }
template <Mode MODE> inline float sum32(double a, double b) {
  return narrowed<MODE>(add_odd(a, b), cancels(a, b) || opposite_zeros(a, b));
}

template <Mode MODE, u32 FLAGS> inline u32 add_f32(u32 a, u32 b) {
  const float x = in32<FLAGS>(a), y = in32<FLAGS>(b);
  return out32<FLAGS>(MODE == Mode::even ? x + y : sum32<MODE>(x, y));
}
// Of an atomic operation.
struct sum_f32 {
  bool keeps_subnormals;
  u32 operator()(u32 a, u32 b) const { return keeps_subnormals ? add_f32<Mode::even, 0>(a, b) : add_f32<Mode::even, FTZ>(a, b); }
};
template <Mode MODE, u32 FLAGS> inline u32 sub_f32(u32 a, u32 b) { return add_f32<MODE, FLAGS>(a, b ^ 0x80000000); }
template <Mode MODE, u32 FLAGS> inline u32 mul_f32(u32 a, u32 b) {
  const float x = in32<FLAGS>(a), y = in32<FLAGS>(b);
  const double exact = double(x) * double(y);
  return out32_of<MODE, FLAGS>(MODE == Mode::even ? x * y : narrowed<MODE>(exact, false), exact);
}
template <Mode MODE, u32 FLAGS> inline u32 fma_f32(u32 a, u32 b, u32 c) {
  const float x = in32<FLAGS>(a), y = in32<FLAGS>(b), z = in32<FLAGS>(c);
  const double product = double(x) * double(y), exact = FLAGS & FTZ ? add_odd(product, z) : 1;
  return out32_of<MODE, FLAGS>(MODE == Mode::even ? __builtin_fmaf(x, y, z) : sum32<MODE>(product, z), exact);
}
template <Mode MODE, u32 FLAGS> inline u32 div_f32(u32 a, u32 b) {
  const float x = in32<FLAGS>(a), y = in32<FLAGS>(b);
  const double exact = MODE == Mode::even && !(FLAGS & FTZ) ? 1 : div_odd(x, y);
  return out32_of<MODE, FLAGS>(MODE == Mode::even ? x / y : narrowed<MODE>(exact, false), exact);
}
template <Mode MODE, u32 FLAGS> inline u32 rcp_f32(u32 a) { return div_f32<MODE, FLAGS>(0x3F800000, a); }
template <u32 FLAGS> inline u32 sqrt_f32(u32 a) { return out32<FLAGS>(__builtin_sqrtf(in32<FLAGS>(a))); }

inline u32 neg_f32(u32 a) { return a ^ 0x80000000; }
inline u32 abs_f32(u32 a) { return a & 0x7FFFFFFF; }
inline u32 flushed_neg_f32(u32 a) { return flushed(a) ^ 0x80000000; }
inline u32 flushed_abs_f32(u32 a) { return flushed(a) & 0x7FFFFFFF; }
inline u32 copysign_f32(u32 a, u32 b) { return (a & 0x80000000) | (b & 0x7FFFFFFF); }
inline u64 neg_f64(u64 a) { return a ^ u64(1) << 63; }
inline u64 abs_f64(u64 a) { return a & ~(u64(1) << 63); }
inline u64 copysign_f64(u64 a, u64 b) { return (a & u64(1) << 63) | (b & ~(u64(1) << 63)); }

// PTX leaves the bits of a NaN open if only its sign should change.
template <const Layout& OF, u32 LANES, auto OPERATION> struct OfNan {
  Machine& m;
  u32 line;
  template <class T> T operator()(T a) const {
    const T usual = T(OPERATION(a));
    constexpr u64 sign = u64(1) << (OF.bits - 1);
    u64 found = u64(usual);
    for (u32 by = 0; by < LANES * OF.bits; by += OF.bits) {
      if ((u64(a) >> by & (sign - 1)) <= OF.infinity) continue;
      note(m, line, Noted::nan);
      const End end = end_at(m, line, a, by);
      if (end != End::nearest) found = (found & ~((sign | (sign - 1)) << by)) | (OF.nan | (end == End::above ? 0 : sign)) << by;
    }
    return T(found);
  }
};

// By the rounding of the processor: a volatile number is computed between the two changes of it.
template <Mode MODE, class Number, class Operation> inline Number directed(Number a, Number b, Number c, Operation operation) {
  constexpr int modes[] = {FE_TONEAREST, FE_TOWARDZERO, FE_DOWNWARD, FE_UPWARD};
  volatile Number x = a, y = b, z = c;
  fesetround(modes[u32(MODE)]);
  volatile Number found = operation(x, y, z);
  fesetround(FE_TONEAREST);
  return found;
}
template <Mode MODE, u32 FLAGS> inline u32 sqrt_directed_f32(u32 a) {
  const float x = in32<FLAGS>(a);
  return out32<FLAGS>(directed<MODE>(x, x, x, [](float p, float, float) { return __builtin_sqrtf(p); }));
}
template <Mode MODE, class Operation> inline u64 directed_f64(u64 a, u64 b, u64 c, Operation operation) {
  return out64(directed<MODE>(double_of(a), double_of(b), double_of(c), operation), a, b, c);
}
template <Mode MODE> inline u64 add_directed(u64 a, u64 b) { return directed_f64<MODE>(a, b, b, [](double p, double q, double) { return p + q; }); }
template <Mode MODE> inline u64 sub_directed(u64 a, u64 b) { return directed_f64<MODE>(a, b, b, [](double p, double q, double) { return p - q; }); }
template <Mode MODE> inline u64 mul_directed(u64 a, u64 b) { return directed_f64<MODE>(a, b, b, [](double p, double q, double) { return p * q; }); }
template <Mode MODE> inline u64 div_directed(u64 a, u64 b) { return directed_f64<MODE>(a, b, b, [](double p, double q, double) { return p / q; }); }
template <Mode MODE> inline u64 rcp_directed(u64 a) { return div_directed<MODE>(bits_of(1.0), a); }
template <Mode MODE> inline u64 sqrt_directed(u64 a) { return directed_f64<MODE>(a, a, a, [](double p, double, double) { return __builtin_sqrt(p); }); }
template <Mode MODE> inline u64 fma_directed(u64 a, u64 b, u64 c) {
  return directed_f64<MODE>(a, b, c, [](double p, double q, double r) { return __builtin_fma(p, q, r); });
}

// ---------------------------------------------------------------------- the least and the largest

enum Extremes : u32 { NAN_WINS = 4, XOR_SIGN = 8 };

// Of two codes of a format; -0 is below +0.
template <u32 FLAGS, bool LARGEST> inline u64 extreme(u64 a, u64 b, const Layout& of) {
  const u64 sign = u64(1) << (of.bits - 1), x = a & ~sign, y = b & ~sign;
  const bool no_a = x > of.infinity, no_b = y > of.infinity;
  if ((no_a && no_b) || ((FLAGS & NAN_WINS) && (no_a || no_b))) return of.nan;
  if (FLAGS & XOR_SIGN) {
    const u64 magnitude = no_a ? y : no_b ? x : (x < y) == LARGEST ? y : x;
    return magnitude | ((a ^ b) & sign);
  }
  if (no_a) return b;
  if (no_b) return a;
  const s64 left = a & sign ? -s64(x) - 1 : s64(x), right = b & sign ? -s64(y) - 1 : s64(y);
  return (left < right) == LARGEST ? b : a;
}
template <u32 FLAGS> inline u32 min_f32(u32 a, u32 b) {
  if (FLAGS & FTZ) a = flushed(a), b = flushed(b);
  return u32(extreme<FLAGS, false>(a, b, F32));
}
template <u32 FLAGS> inline u32 max_f32(u32 a, u32 b) {
  if (FLAGS & FTZ) a = flushed(a), b = flushed(b);
  return u32(extreme<FLAGS, true>(a, b, F32));
}

// ptxas leaves out what returns its operand, so that a NaN keeps its bits. Where it does, it depends on the code around.
inline u32 kept(Machine& m, u32 line, u32 usual, u32 nan) {
  note(m, line, Noted::nan);
  return end_at(m, line, usual) == End::nearest ? usual : nan;
}
template <const Layout& OF> inline bool is_nan_of(u32 a) { return (a & ((u64(1) << (OF.bits - 1)) - 1)) > OF.infinity; }
struct Converted {
  Machine& m;
  u32 line;
  u32 operator()(u32 a) const { return is_nan_of<F32>(a) ? kept(m, line, a, F32.nan) : a; }
};
struct Multiplied {
  Machine& m;
  u32 line;
  u32 operator()(u32 a, u32 b) const {
    constexpr u32 one = 0x3F800000;
    const u32 usual = mul_f32<Mode::even, 0>(a, b);
    return is_nan_of<F32>(usual) && (a == one || b == one) ? kept(m, line, usual, a == one ? b : a) : usual;
  }
};
template <const Layout& OF, auto OPERATION> struct OfEqual {
  Machine& m;
  u32 line;
  u32 operator()(u32 a, u32 b) const { return a == b && is_nan_of<OF>(a) ? kept(m, line, OPERATION(a, b), a) : OPERATION(a, b); }
};

template <u32 FLAGS, bool MAGNITUDES, auto OPERATION> inline u32 of_three(u32 a, u32 b, u32 c) {
  if (MAGNITUDES) a = abs_f32(a), b = abs_f32(b), c = abs_f32(c);
  return OPERATION(OPERATION(a, b), c);
}

// ---------------------------------------------------------------------- binary64

inline u64 add_f64(u64 a, u64 b) { return out64(double_of(a) + double_of(b), a, b); }
inline u64 sub_f64(u64 a, u64 b) { return out64(double_of(a) - double_of(b), a, b); }
inline u64 mul_f64(u64 a, u64 b) { return out64(double_of(a) * double_of(b), a, b); }
inline u64 fma_f64(u64 a, u64 b, u64 c) { return out64(__builtin_fma(double_of(a), double_of(b), double_of(c)), a, b, c); }
inline u64 div_f64(u64 a, u64 b) { return out64(double_of(a) / double_of(b), a, b); }
inline u64 rcp_f64(u64 a) { return out64(1 / double_of(a), a); }
inline u64 sqrt_f64(u64 a) { return out64(__builtin_sqrt(double_of(a)), a); }
inline u64 min_f64(u64 a, u64 b) { return is_nan64(a) && is_nan64(b) ? a | QUIET : extreme<0, false>(a, b, F64); }
inline u64 max_f64(u64 a, u64 b) { return is_nan64(a) && is_nan64(b) ? a | QUIET : extreme<0, true>(a, b, F64); }

// PTX leaves open which of two different NaNs a result is, and the bits of a NaN if no operand is one. ptxas negates operands
// of all but sums, so that their NaN has either sign.
template <auto OPERATION, bool SIGN_IS_OPEN = false> struct ToNan {
  Machine& m;
  u32 line;
  template <class... Codes> u64 operator()(Codes... operands) const {
    const u64 found = OPERATION(operands...);
    return __builtin_expect(is_nan64(found), 0) ? opened(found, {operands...}) : found;
  }
  __attribute__((noinline, cold)) u64 opened(u64 found, std::initializer_list<u64> operands) const {
    u64 other = found;  // GPUs return the last one of several, and ptxas any one of constants
    u32 same = 0;
    for (const u64 each : operands) {
      if (!is_nan64(each)) continue;
      if ((each | QUIET) == found) same++;
      else other = each | QUIET;
    }
    const bool is_known = same && other == found;
    if (is_known && !SIGN_IS_OPEN) return found;
    note(m, line, is_known ? Noted::signed_nan : Noted::made_nan);
    const End end = end_at(m, line, found, other);
    if (end == End::nearest) return found;
    if (end == End::below && other != found) return other;
    const u64 bits = is_known ? abs_f64(found) : F64.nan;
    return end == End::below ? neg_f64(bits) : bits;
  }
};

// ---------------------------------------------------------------------- kinds of numbers

enum class Kind { finite, infinite, number, notanumber, normal, subnormal };
// A zero counts as normal.
template <Kind KIND> inline bool testp(u64 code, const Layout& of) {
  const u64 magnitude = code & ((u64(1) << (of.bits - 1)) - 1);
  const bool is_subnormal = magnitude && !(magnitude >> of.mantissa);
  switch (KIND) {
    case Kind::finite: return magnitude < of.infinity;
    case Kind::infinite: return magnitude == of.infinity;
    case Kind::number: return magnitude <= of.infinity;
    case Kind::notanumber: return magnitude > of.infinity;
    case Kind::normal: return magnitude < of.infinity && !is_subnormal;
    case Kind::subnormal: return is_subnormal;
  }
  return false;
}
template <Kind KIND> inline bool testp_f32(u32 a) { return testp<KIND>(a, F32); }
template <Kind KIND> inline bool testp_f64(u64 a) { return testp<KIND>(a, F64); }
template <u32 FLAGS, class T> inline T slct_f32(T a, T b, u32 c) { return in32<FLAGS>(c) >= 0 ? a : b; }

// ---------------------------------------------------------------------- comparisons

enum class Compare { eq, ne, lt, le, gt, ge, equ, neu, ltu, leu, gtu, geu, num, nan };
template <Compare HOW> inline bool compared(double x, double y) {
  const bool ordered = x == x && y == y;
  switch (HOW) {
    case Compare::eq: return x == y;
    case Compare::ne: return ordered && x != y;
    case Compare::lt: return x < y;
    case Compare::le: return x <= y;
    case Compare::gt: return x > y;
    case Compare::ge: return x >= y;
    case Compare::equ: return !ordered || x == y;
    case Compare::neu: return !ordered || x != y;
    case Compare::ltu: return !ordered || x < y;
    case Compare::leu: return !ordered || x <= y;
    case Compare::gtu: return !ordered || x > y;
    case Compare::geu: return !ordered || x >= y;
    case Compare::num: return ordered;
    case Compare::nan: return !ordered;
  }
  return false;
}
template <Compare HOW, u32 FLAGS> inline bool compared_f32(u32 a, u32 b) { return compared<HOW>(in32<FLAGS>(a), in32<FLAGS>(b)); }
template <Compare HOW, u32 FLAGS> inline bool compared_f64(u64 a, u64 b) { return compared<HOW>(double_of(a), double_of(b)); }

template <class T> inline T selp(T a, T b, bool first) { return first ? a : b; }

}  // namespace ptx
