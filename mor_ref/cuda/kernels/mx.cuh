// The chapter on MX.
#pragma once
#include "encoding.cuh"
#include "quantization.cuh"
#include "scales.cuh"

constexpr u32 NAN_SCALE = 0xFF;

struct MxFormat {
  u32 divides;  // as rceil does
  Scaled element;
  i32 largest_exponent;  // P
  u32 up_from;           // the least bits after the leading one of amax that count as the next exponent
  PowerEncoding scale_codes;
};

// The exponent that an amax above zero counts as, MXS-003, MXS-004 and MXS-005.
MOR_DEVICE i32 counted_exponent(u32 amax, const MxFormat& format) {
  if (!is_finite(amax)) return 128;
  const Ideal parts = normalised(amax);
  return parts.exponent + (parts.mantissa >= format.up_from);
}

// MXS-002 and MXS-006, of the largest magnitude; that of a NaN is above infinity.
MOR_DEVICE u32 mx_scale(u32 amax, const MxFormat& format) {
  if (is_nan(amax)) return NAN_SCALE;
  if (amax == 0) return 0;
  if (format.divides) {
    const float quotient = __fdiv_rn(number(amax), number(format.element.largest));
    return encoded_as_power_of_two(bits_of(quotient), format.scale_codes);
  }
  const i32 code = counted_exponent(amax, format) - format.largest_exponent + 127;
  return u32(least(most(code, 0), 254));
}

// 2^exponent, -127 to 127.
MOR_DEVICE float power_of_two(i32 exponent) {
  return number(exponent == -127 ? Binary<u32>::hidden / 2 : u32(exponent + 127) << 23);
}

// MXS-008 and MXS-009: what any codes under a stored scale are multiplied by. MXS-007: and numbers to come there.
MOR_DEVICE float decode_scale(u32 scale) { return scale == NAN_SCALE ? number(CANONICAL_NAN) : power_of_two(i32(scale) - 127); }
MOR_DEVICE float encode_scale(u32 scale) { return scale == NAN_SCALE ? number(CANONICAL_NAN) : power_of_two(127 - i32(scale)); }

// MXS-007 and MXS-008.
struct UnderPower {
  float encode, decode;
  const Scaled& to;
  MOR_MEMBER const UnderPower& in_run(u64, u64) const { return *this; }
  MOR_MEMBER u32 largest() const { return __float_as_uint(__fmul_rn(number(to.largest), decode)); }
  template <u32 COUNT> MOR_MEMBER void operator()(const u32 (&x)[COUNT], Elements<COUNT>& run_elements) const {
    float unscaled[COUNT];
    scale_elements(x, encode, to.nearest, run_elements, unscaled);
    MOR_UNROLL
    for (u32 k = 0; k < COUNT; k++) run_elements.y[k] = bits_of(__fmul_rn(unscaled[k], decode));
  }
};

// A rule, as ByScale is.
struct ByBlockScale {
  const u8* scales;
  MxFormat format;
  template <u32 TEAM> MOR_MEMBER UnderPower in_block(u64 block) const {
    return {encode_scale(scales[block]), decode_scale(scales[block]), format.element};
  }
};
