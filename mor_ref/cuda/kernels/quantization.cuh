// The chapter on quantization and dequantization.
#pragma once
#include "blocks.cuh"
#include "decoding.cuh"
#include "nearest.cuh"

struct Element {
  u32 xs, code, y;  // the scaled number, its code, and the code's number; bits
};

// A format that numbers are scaled to.
struct Scaled {
  Nearest nearest;
  Decoding decoding;
  u32 largest;  // binary32 bits
};

// QNT-001 and QNT-002.
MOR_DEVICE Element quantized(u32 x, float scale, const Scaled& to) {
  const float xs = __fmul_rn(number(x), scale);
  const Rounded found = nearest(xs, to.nearest);
  return {bits_of(xs), found.code, bits_of(quotient(found.value, scale))};
}

// QNT-002.
MOR_DEVICE u32 dequantized(u32 code, float scale, const Decoding& from) {
  return bits_of(quotient(number(decoded(code, from)), scale));
}

// What the codes of a block stand for. A team of all threads makes a table of them, as one division
// for a code takes less than one for an element; all its threads have to come here.
template <u32 TEAM> struct Values {
  float scale;
  const Decoding& from;
  const u32* table;
  MOR_MEMBER Values(float scale, const Decoding& from) : scale(scale), from(from), table(nullptr) {
    if (TEAM < THREADS) return;
    MOR_SHARED(u32, of_codes, 256);
    __syncthreads();  // the table of another block is not needed any more
    for (u32 code = threadIdx.x; code < 256; code += THREADS) of_codes[code] = dequantized(code, scale, from);
    __syncthreads();
    table = of_codes;
  }
  MOR_MEMBER u32 operator()(u32 code) const {
    return TEAM < THREADS ? dequantized(code, scale, from) : table[code];
  }
};

// What the scale of its block makes of an element.
template <u32 TEAM> struct UnderScale {
  float scale;
  const Scaled& to;
  Values<TEAM> values;
  MOR_MEMBER UnderScale(u32 bits, const Scaled& to) : scale(number(bits)), to(to), values(scale, to.decoding) {}
  MOR_MEMBER const UnderScale& in_run(u64, u64) const { return *this; }
  MOR_MEMBER Element operator()(u32 x, u32) const {
    if (TEAM < THREADS) return quantized(x, scale, to);
    const float xs = __fmul_rn(number(x), scale);
    const u32 code = nearest(xs, to.nearest).code;
    return {bits_of(xs), code, values(code)};
  }
};

// A rule: what it makes of the elements of a block, and of a run in it from a row and a column on:
// of a number, and of its place in the run.
struct ByScale {
  const u32* scales;
  Scaled to;
  template <u32 TEAM> MOR_MEMBER UnderScale<TEAM> in_block(u64 block) const { return {scales[block], to}; }
};
