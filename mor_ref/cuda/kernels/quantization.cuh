// The chapter on quantization and dequantization.
#pragma once
#include "decoding.cuh"
#include "encoding.cuh"

struct Element {
  u32 xs, code, y;  // the scaled number, its code, and what that stands for; bits
};

// A format that numbers are scaled to.
struct Scaled {
  Encoding encoding;
  Decoding decoding;
  u32 largest;  // binary32 bits
};

// QNT-001 and QNT-002.
MOR_DEVICE Element quantized(u32 x, u32 scale, const Scaled& to) {
  const u32 xs = bits_of(__fmul_rn(number(x), number(scale)));
  const u32 code = encoded(xs, to.encoding);
  return {xs, code, bits_of(__fdiv_rn(number(decoded(code, to.decoding)), number(scale)))};
}

// What the scale of its block makes of an element.
struct ByScale {
  const u32* scales;
  Scaled to;
  MOR_MEMBER Element operator()(u64 block, u64, u32 x) const { return quantized(x, scales[block], to); }
};
