// What numbers arrive as: binary64, binary32, binary16 and bfloat16, and their bits.
#pragma once
#include "prelude.cuh"

template <class Word> struct Binary;
template <> struct Binary<u32> {
  static constexpr i32 fraction_bits = 23, bias = 127;
  static constexpr u32 sign = 0x80000000u, infinity = 0x7F800000u, hidden = 1u << 23;
};
template <> struct Binary<u64> {
  static constexpr i32 fraction_bits = 52, bias = 1023;
  static constexpr u64 sign = 1ull << 63, infinity = 0x7FFull << 52, hidden = 1ull << 52;
};

static constexpr u32 CANONICAL_NAN = 0x7FFFFFFFu, LARGEST_BINARY32 = 0x7F7FFFFFu;

MOR_DEVICE u32 magnitude_of(u32 bits) { return bits & ~Binary<u32>::sign; }
MOR_DEVICE bool is_nan(u32 bits) { return magnitude_of(bits) > Binary<u32>::infinity; }
MOR_DEVICE bool is_finite(u32 bits) { return magnitude_of(bits) < Binary<u32>::infinity; }
MOR_DEVICE float number(u32 bits) { return __uint_as_float(bits); }
MOR_DEVICE float magnitude_of(float x) { return fabsf(x); }
// The bits of a result: there is one NaN (ART-003, DEC-002).
MOR_DEVICE u32 bits_of(float result) {
  const u32 bits = __float_as_uint(result);
  return is_nan(bits) ? CANONICAL_NAN : bits;
}

// The bfloat16 code of a number under rne, ieee and canonical: the upper half, rounded.
MOR_DEVICE u32 as_bf16(u32 bits) {
  return is_nan(bits) ? 0x7FFFu : (bits + 0x7FFFu + (bits >> 16 & 1)) >> 16;
}

// a / b of a number that is not NaN by another that is not zero. GPUs divide zero slowly.
MOR_DEVICE float quotient(float a, float b) {
  const bool is_zero = a == 0.0f;
  const float ratio = __fdiv_rn(is_zero ? 1.0f : a, is_zero ? 1.0f : b);
  return is_zero ? a : ratio;
}

// A bit of an integer of so many words; beyond them it is 0.
MOR_DEVICE u32 bit_at(const u32* words, u32 count, u32 bit) {
  return bit / 32 < count ? words[bit / 32] >> bit % 32 & 1 : 0;
}

// The bits of significand * 2^unit, which is a binary32 number; the significand has 24 bits at most.
MOR_DEVICE u32 binary32_of(u32 significand, i32 unit) {
  if (significand == 0) return 0;
  const i32 up = __clz(i32(significand)) - 8;  // to where the leading bit of binary32 is
  const i32 field = unit - up + 23 + 127;
  if (field < 1) return significand << (unit + 149);
  return (u32(field) << 23) + ((significand << up) & (Binary<u32>::hidden - 1));
}

// How a source is stored, as which word it is encoded, and its binary32 bits; and how binary32
// bits are stored as numbers of it, where anything is.
struct F32 {
  typedef u32 Stored;
  typedef u32 Word;
  static MOR_MEMBER Word word(Stored bits) { return bits; }
  static MOR_MEMBER u32 binary32(Stored bits) { return bits; }
  static MOR_MEMBER Stored stored(u32 bits) { return bits; }
};
struct Bf16 {
  typedef u16 Stored;
  typedef u32 Word;
  static MOR_MEMBER Word word(Stored bits) { return u32(bits) << 16; }
  static MOR_MEMBER u32 binary32(Stored bits) { return word(bits); }
  static MOR_MEMBER Stored stored(u32 bits) { return Stored(as_bf16(bits)); }
};
struct F16 {
  typedef u16 Stored;
  typedef u32 Word;
  static MOR_MEMBER Word word(Stored bits) {
    const u32 sign = u32(bits & 0x8000u) << 16, field = bits >> 10 & 31u, fraction = bits & 1023u;
    if (field == 31) return sign | Binary<u32>::infinity | fraction << 13;
    const u32 significand = field ? 1024u | fraction : fraction;
    return sign | binary32_of(significand, i32(most(field, 1u)) - 15 - 10);
  }
  static MOR_MEMBER u32 binary32(Stored bits) { return word(bits); }
};
// Codes of at most 8 bits, which are stored as they are.
struct Codes {
  typedef u8 Stored;
};
// QNT-004: the only source that binary32 rounds.
struct F64 {
  typedef u64 Stored;
  typedef u64 Word;
  static MOR_MEMBER Word word(Stored bits) { return bits; }
  static MOR_MEMBER u32 binary32(Stored bits) {
    return __float_as_uint(__double2float_rn(__longlong_as_double(i64(bits))));
  }
};
