// Conversions between types: integers, and formats of floating-point numbers.
#pragma once
#include <type_traits>

#include "floats.h"
#include "integers.h"

namespace ptx {

template <const Layout& OF>
using Code = std::conditional_t<(OF.bits > 32), u64, std::conditional_t<(OF.bits > 16), u32, std::conditional_t<(OF.bits > 8), u16, u8>>>;

template <const Layout& FROM> inline double number(Code<FROM> code) {
  if constexpr (FROM.bits == 64) return double_of(code);
  else if constexpr (FROM.bits == 32) return double(float_of(code));
  else return decoded(code, FROM);
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

template <const Layout& TO, Mode MODE, u32 FLAGS> inline Code<TO> code_of(double x) {
  Code<TO> code = Code<TO>(TO.bits == 64 ? out64(x) : encoded(x, TO, MODE));
  if ((FLAGS & FTZ) && TO.bits == 32) code = flushed_to_zero<TO>(code);
  return FLAGS & SAT ? saturated<TO>(code) : code;
}

template <const Layout& TO, const Layout& FROM, Mode MODE, u32 FLAGS> inline Code<TO> cvt_float(Code<FROM> code) {
  if ((FLAGS & FTZ) && FROM.bits == 32) code = flushed_to_zero<FROM>(code);
  return code_of<TO, MODE, FLAGS>(number<FROM>(code));
}

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

}  // namespace ptx
