// The records of dot products, and the numbers of their operands.
#pragma once
#include "decoding.cuh"

// Codes of 1, 2 or 4 bytes; scales that are not there have no codes.
struct DotCodes {
  u64 codes;  // an address
  Decoding from;
  u32 bytes, mask;  // the bits that are read (DOT-005, DOT-006)
  i32 smallest_exponent;
};

// A sum's format, and how it is rounded to it.
struct DotResult {
  i32 kept_bits, smallest_exponent, largest_exponent;
  u32 is_nearest;
};

struct DotRule {
  u32 chunk, flushed_every;
  i32 fraction_bits, zero_exponent, first_exponent;
  float unscale;
  DotResult result;
};

// Rows of a and of b, of so many columns, and blocks of their scales.
struct DotOperands {
  DotCodes a, b, scale_a, scale_b;
  u64 columns, block, blocks;
};

// Binary32 bits of the factors of a product.
struct DotProduct {
  u32 a, b, scale_a, scale_b;
};

// whole * 2^unit; `special` counts instead if a factor is infinite or NaN.
struct DotTerm {
  i64 whole;
  i32 unit, exponent;
  float special;
  bool is_special;
};

struct DotChunk {
  i32 exponent;
  i64 cut_sum;
  u32 c;
};

static constexpr u32 ONE_AS_BITS = 0x3F800000u;
static constexpr DotResult BINARY32_RESULT = {23, -126, 127, 1};

MOR_DEVICE u32 dot_number(const DotCodes& of, u64 at) {
  u32 code = 0;
  if (of.bytes == 1) code = ((const u8*)of.codes)[at];
  else if (of.bytes == 2) code = ((const u16*)of.codes)[at];
  else code = ((const u32*)of.codes)[at];
  return decoded(code & of.mask, of.from);
}

// DOT-003 and DOT-006: product k of a row; zeros fill the last chunk.
MOR_DEVICE DotProduct product_at(const DotOperands& of, u64 row, u64 k) {
  DotProduct product = {0, 0, ONE_AS_BITS, ONE_AS_BITS};
  if (k >= of.columns) return product;
  product.a = dot_number(of.a, row * of.columns + k);
  product.b = dot_number(of.b, row * of.columns + k);
  if (of.scale_a.codes == 0) return product;
  const u64 at = row * of.blocks + k / of.block;
  product.scale_a = dot_number(of.scale_a, at);
  product.scale_b = dot_number(of.scale_b, at);
  return product;
}
