// Results that an option of the compiler decides: contraction (--fmad) and flushing (--ftz).
#pragma once

#include "halves.h"

namespace ptx {

// Notes a line whose result is another one without an option.
template <Option OPTION, class T> inline T by_option(Machine& m, u32 line, T found, T without) {
  u8* options = &m.options[line];
  if (found != without && !(__atomic_load_n(options, __ATOMIC_RELAXED) & u8(OPTION)))
    __atomic_fetch_or(options, u8(OPTION), __ATOMIC_RELAXED);
  return found;
}

// The same of numbers with NaN, whose bits may be drawn for each of the two: NaN is equal to NaN.
template <Option OPTION, const Layout& OF, u32 LANES, class T> inline T by_option_of(Machine& m, u32 line, T found, T without) {
  constexpr u64 magnitude = (u64(1) << (OF.bits - 1)) - 1, ones = magnitude << 1 | 1;
  for (u32 by = 0; by < LANES * OF.bits; by += OF.bits)
    if ((u64(found) >> by & magnitude) > OF.infinity && (u64(without) >> by & magnitude) > OF.infinity)
      without = T((u64(without) & ~(ones << by)) | (u64(found) & ones << by));
  return by_option<OPTION>(m, line, found, without);
}

// A product and a sum that are rounded apart.
template <Mode MODE, u32 FLAGS> inline u32 apart_f32(u32 a, u32 b, u32 c) {
  return add_f32<MODE, FLAGS>(mul_f32<MODE, FLAGS & FTZ>(a, b), c);
}
inline u64 apart_f64(u64 a, u64 b, u64 c) { return add_f64(mul_f64(a, b), c); }
template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 apart_half(u32 a, u32 b, u32 c) {
  return add_half<OF, MODE, FLAGS>(mul_half<OF, MODE, FLAGS & FTZ>(a, b), c);
}

}  // namespace ptx
