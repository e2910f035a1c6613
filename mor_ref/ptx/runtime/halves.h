// Arithmetic in half precision: f16 and bf16, one number or two in a register. Each result is rounded once.
#pragma once

#include "conversions.h"

namespace ptx {

template <const Layout& OF, u32 FLAGS> inline double in_half(u32 code) {
  return decoded(FLAGS & FTZ ? flushed_to_zero<OF>(Code<OF>(code)) : code, OF);
}

// Of a number that rounds as the exact result does. FTZ is of f16 alone.
template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 out_half(double x) {
  const Code<OF> code = after_rounding<OF, FLAGS>(Code<OF>(encoded(x, OF, MODE)));
  return FLAGS & FTZ ? flushed_to_zero<OF>(code) : code;
}

template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 add_half(u32 a, u32 b) {
  return out_half<OF, MODE, FLAGS>(add_odd(in_half<OF, FLAGS>(a), in_half<OF, FLAGS>(b)));
}
template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 sub_half(u32 a, u32 b) {
  return out_half<OF, MODE, FLAGS>(add_odd(in_half<OF, FLAGS>(a), -in_half<OF, FLAGS>(b)));
}
template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 mul_half(u32 a, u32 b) {
  return out_half<OF, MODE, FLAGS>(in_half<OF, FLAGS>(a) * in_half<OF, FLAGS>(b));
}
template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 fma_half(u32 a, u32 b, u32 c) {
  return out_half<OF, MODE, FLAGS>(add_odd(in_half<OF, FLAGS>(a) * in_half<OF, FLAGS>(b), in_half<OF, FLAGS>(c)));
}

template <const Layout& OF, Mode, u32 FLAGS> inline u32 min_half(u32 a, u32 b) {
  if (FLAGS & FTZ) a = flushed_to_zero<OF>(Code<OF>(a)), b = flushed_to_zero<OF>(Code<OF>(b));
  return u32(extreme<FLAGS, false>(a, b, OF));
}
template <const Layout& OF, Mode, u32 FLAGS> inline u32 max_half(u32 a, u32 b) {
  if (FLAGS & FTZ) a = flushed_to_zero<OF>(Code<OF>(a)), b = flushed_to_zero<OF>(Code<OF>(b));
  return u32(extreme<FLAGS, true>(a, b, OF));
}
template <const Layout& OF, Mode, u32 FLAGS> inline u32 neg_half(u32 a) {
  return (FLAGS & FTZ ? flushed_to_zero<OF>(Code<OF>(a)) : a) ^ 0x8000;
}
template <const Layout& OF, Mode, u32 FLAGS> inline u32 abs_half(u32 a) {
  return (FLAGS & FTZ ? flushed_to_zero<OF>(Code<OF>(a)) : a) & 0x7FFF;
}

template <Compare HOW, const Layout& OF, u32 FLAGS> inline bool compared_half(u32 a, u32 b) {
  return compared<HOW>(in_half<OF, FLAGS>(a), in_half<OF, FLAGS>(b));
}

// Sums in binary32, in which all operands but the last are of half precision.
template <const Layout& OF> inline u32 wide_of(u32 a) { return bits_of(float(decoded(a, OF))); }
template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 add_wide(u32 a, u32 c) { return add_f32<MODE, FLAGS>(wide_of<OF>(a), c); }
template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 sub_wide(u32 a, u32 c) { return sub_f32<MODE, FLAGS>(wide_of<OF>(a), c); }
template <const Layout& OF, Mode MODE, u32 FLAGS> inline u32 fma_wide(u32 a, u32 b, u32 c) {
  return fma_f32<MODE, FLAGS>(wide_of<OF>(a), wide_of<OF>(b), c);
}

// Both numbers of a register, with a function of single ones.
template <auto OPERATION, class... Registers> inline u32 in_halves(Registers... all) {
  return u16(OPERATION((all & 0xFFFF)...)) | u32(u16(OPERATION((all >> 16)...))) << 16;
}
template <auto OPERATION, class... Registers> inline u64 in_words(Registers... all) {
  return OPERATION(u32(all)...) | u64(OPERATION(u32(all >> 32)...)) << 32;
}

// An operation on one number or two, after which the line is noted if one of them is NaN.
template <const Layout& OF, auto OPERATION, bool IS_PAIR> struct NotedNan {
  Machine& m;
  u32 line;
  u32 operator()(u32 a, u32 b) const {
    for (u32 shift = 0; shift < (IS_PAIR ? 32 : 16); shift += 16)
      if ((a >> shift & 0x7FFF) > OF.infinity || (b >> shift & 0x7FFF) > OF.infinity) note(m, line, Noted::atomic_nan);
    return IS_PAIR ? in_halves<OPERATION>(a, b) : OPERATION(a, b);
  }
};

}  // namespace ptx
