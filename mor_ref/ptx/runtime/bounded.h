// Instructions whose error PTX bounds, and whose bits it leaves open: correctly rounded, or at an end of the bound.
#pragma once

#include "floats.h"

namespace ptx {

// A unit in the last place of binary32, at a number.
inline double ulp32(double x) {
  if (x == 0) return double_of(u64(1023 - 149) << 52);
  const s32 exponent = s32(bits_of(x) >> 52 & 0x7FF) - 1023;
  return double_of(u64((exponent > -126 ? exponent : -126) - 23 + 1023) << 52);
}

struct Bounded {
  End end;

  // The least and the largest number in a distance.
  template <u32 FLAGS> u32 near(double x, double bound) const {
    const bool is_exact = x - x != 0 || end == End::nearest;
    const double at = is_exact ? x : end == End::below ? x - bound : x + bound;
    const Mode inwards = is_exact ? Mode::even : end == End::below ? Mode::up : Mode::down;
    return out32<FLAGS>(float_of(u32(encoded(at, F32, inwards))));
  }
  // The same, with the sign of x; 0 is exact.
  template <u32 FLAGS> u32 within(double x, double bound) const {
    const bool crosses = end == (x < 0 ? End::above : End::below) && bound > __builtin_fabs(x);
    return crosses || x == 0 ? out32<FLAGS>(__builtin_copysignf(0, float(x))) : near<FLAGS>(x, bound);
  }

  template <u32 FLAGS> u32 div_full(u32 a, u32 b) const {
    const double found = double(in32<FLAGS>(a)) / double(in32<FLAGS>(b));
    return within<FLAGS>(found, 2 * ulp32(found));
  }

  // It is a * (1 / b), where 1 / b may be 0 or infinite. For a subnormal b, PTX bounds nothing.
  template <u32 FLAGS> u32 div_approx(u32 a, u32 b) const {
    const float x = in32<FLAGS>(a), y = in32<FLAGS>(b);
    const u32 magnitude = bits_of(y) & 0x7FFFFFFF;
    if (magnitude > 0x7E800000 && magnitude < F32.infinity) return out32<FLAGS>(x * __builtin_copysignf(0, y));
    if (magnitude && magnitude < 0x00800000 && end != End::nearest && x - x == 0)
      return out32<FLAGS>(x * __builtin_copysignf(end == End::above ? __builtin_inff() : 0, y));
    return div_full<FLAGS>(a, b);
  }

  template <u32 FLAGS> u32 rcp_approx(u32 a) const {
    const double found = 1 / double(in32<FLAGS>(a));
    return within<FLAGS>(found, ulp32(found));
  }
  template <u32 FLAGS> u32 sqrt_approx(u32 a) const {
    const double found = __builtin_sqrt(double(in32<FLAGS>(a)));
    return within<FLAGS>(found, found * 0x1p-23);
  }
  template <u32 FLAGS> u32 rsqrt_approx(u32 a) const {
    const double found = 1 / __builtin_sqrt(double(in32<FLAGS>(a)));
    return within<FLAGS>(found, found * 0x1.125FBEE250664p-23);  // 2^-22.9
  }
  template <u32 FLAGS> u32 ex2_approx(u32 a) const {
    const double found = __builtin_exp2(double(in32<FLAGS>(a)));
    const float nearest = float_of(u32(encoded(found, F32, Mode::even)));
    return a << 1 ? within<FLAGS>(nearest, 2 * ulp32(nearest)) : out32<FLAGS>(nearest);
  }
  // The result of a library of this machine is not rounded correctly, but far within the bound.
  template <u32 FLAGS> u32 tanh_approx(u32 a) const {
    const double found = __builtin_tanh(double(in32<FLAGS>(a)));
    return within<FLAGS>(found, __builtin_fabs(found) * 0x1p-11);
  }
  template <u32 FLAGS> u32 of_angle(double x, double found) const {
    constexpr double pi = 0x1.921FB54442D18p+1;
    const double size = __builtin_fabs(x), least = 0x1.6A09E667F3BCDp-21, less = 0x1.3B2C47BFF832Cp-15;
    return x == 0 ? out32<FLAGS>(float(found)) : near<FLAGS>(found, size <= 2 * pi ? least : size <= 100 * pi ? less : 2);
  }
  template <u32 FLAGS> u32 sin_approx(u32 a) const { const double x = in32<FLAGS>(a); return of_angle<FLAGS>(x, __builtin_sin(x)); }
  template <u32 FLAGS> u32 cos_approx(u32 a) const { const double x = in32<FLAGS>(a); return of_angle<FLAGS>(x, __builtin_cos(x)); }
  template <u32 FLAGS> u32 lg2_approx(u32 a) const {
    const double x = in32<FLAGS>(a), found = __builtin_log2(x);
    return near<FLAGS>(found, x > 0.5 && x < 2 ? 0x1p-22 : __builtin_fabs(found) * 0x1p-22);
  }
};

}  // namespace ptx
