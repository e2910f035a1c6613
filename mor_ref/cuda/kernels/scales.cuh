// The chapter on amax and scales.
#pragma once
#include "blocks.cuh"

enum Scaling : u32 { GAM, E8M0, OWN };

constexpr u32 FRACTION = Binary<u32>::hidden - 1, ONE = 0x3F800000u;

struct Ideal {
  u32 mantissa;
  i32 exponent;
};

// A number above zero, subnormal or not, as 1.mantissa * 2^exponent.
MOR_DEVICE Ideal normalised(u32 bits) {
  const i32 field = i32(bits >> 23);
  if (field) return {bits & FRACTION, field - 127};
  const i32 up = __clz(i32(bits)) - 8;
  return {bits << up & FRACTION, 1 - 127 - up};
}

// SCL-002: the quotient of the significands is in (1/2, 2), and divided as binary32 numbers.
MOR_DEVICE Ideal ideal_scale(u32 amax, u32 largest) {
  const Ideal a = normalised(amax), q = normalised(largest);
  const u32 quotient = __float_as_uint(__fdiv_rn(number(ONE | q.mantissa), number(ONE | a.mantissa)));
  const i32 exponent = i32(quotient >> 23) - 127 + q.exponent - a.exponent;
  if (exponent < -126) return {0, -126};
  return {quotient & FRACTION, exponent};
}

struct Scale {
  u32 bits;
  u32 stored;  // the exponent plus 127; 0 under fp32
};

// SCL-004, SCL-005, GAM-002, GAM-003, GAM-004 and GAM-005.
MOR_DEVICE Scale scale_of(u32 scaling, u32 amax, u32 largest, u32 shared_mantissa) {
  if (scaling == OWN) {
    if (amax == 0) return {ONE, 0};
    const Ideal own = ideal_scale(amax, largest);
    return {own.exponent > 127 ? LARGEST_BINARY32 : u32(own.exponent + 127) << 23 | own.mantissa, 0};
  }
  const u32 mantissa = scaling == GAM ? shared_mantissa : 0;
  i32 exponent = 0;
  if (amax) {
    const Ideal own = ideal_scale(amax, largest);
    exponent = own.exponent - (mantissa > own.mantissa);
    exponent = least(exponent, 127);
  }
  const u32 stored = u32(exponent + 127);
  return {stored << 23 | mantissa, stored};
}

// GAM-001.
MOR_DEVICE u32 shared_mantissa_of(u32 group_amax, u32 largest) {
  return group_amax ? ideal_scale(group_amax, largest).mantissa : 0;
}
