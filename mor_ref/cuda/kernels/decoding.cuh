// The chapters on formats (FMT-001 to FMT-008) and on decoding.
#pragma once
#include "conversions.cuh"

struct Decoding {
  i32 mantissa_bits, bias;
  u32 negative;    // the sign bit; 0 if codes have none
  u32 first_field; // the exponent field of the smallest normal number
  u32 infinity;    // the magnitude that is infinite, or one that none has
  u32 first_nan;   // the first magnitude that is NaN, or one that none has
  u32 nan;         // a code that is NaN, or one that none has
  u32 complement;  // how many codes two's complement has; 0 for another sign
  u32 conversion;  // the instruction that does the same
};

// DEC-001 to DEC-003: binary32 bits.
MOR_DEVICE u32 decoded(u32 code, const Decoding& from) {
  const bool negative = (code & from.negative) != 0;
  const u32 sign = negative ? Binary<u32>::sign : 0;
  u32 magnitude = code & ~from.negative;
  if (code == from.nan || magnitude >= from.first_nan) return CANONICAL_NAN;
  if (magnitude == from.infinity) return sign | Binary<u32>::infinity;
  if (negative && from.complement) magnitude = from.complement - code;
  const u32 field = magnitude >> from.mantissa_bits, hidden = 1u << from.mantissa_bits;
  const u32 fraction = magnitude & (hidden - 1);
  const u32 significand = field >= from.first_field ? fraction | hidden : fraction;
  const i32 unit = i32(most(field, from.first_field)) - from.bias - from.mantissa_bits;
  return sign | binary32_of(significand, unit);
}

// Numbers of codes side by side. PTX leaves the bits of a NaN to the GPU.
template <class Code, u32 COUNT>
MOR_DEVICE void decode_run(const Code (&codes)[COUNT], const Decoding& from, u32 (&bits)[COUNT]) {
  const auto use = [&](auto instruction) {
    Words<u8, COUNT> words;
    float numbers[COUNT];
    for (u32 k = 0; k < COUNT; k++) words.put(k, u8(codes[k]));
    convert_from(instruction, words, numbers);
    for (u32 k = 0; k < COUNT; k++) bits[k] = numbers[k] == numbers[k] ? __float_as_uint(numbers[k]) : CANONICAL_NAN;
  };
  convert_by(from.conversion, use, [&] {
    for (u32 k = 0; k < COUNT; k++) bits[k] = decoded(codes[k], from);
  });
}
