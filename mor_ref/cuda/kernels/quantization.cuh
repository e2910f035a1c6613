// The chapter on quantization and dequantization.
#pragma once
#include "blocks.cuh"
#include "decoding.cuh"
#include "nearest.cuh"

// Elements side by side.
template <u32 COUNT> struct Elements {
  float xs[COUNT];         // the scaled numbers
  Words<u8, COUNT> codes;  // their codes
  u32 y[COUNT];            // the bits of the numbers of the codes
};

// A format that numbers are scaled to.
struct Scaled {
  Nearest nearest;
  Decoding decoding;
  u32 largest;  // binary32 bits
};

// QNT-001: numbers are scaled and rounded; `values` are what the codes stand for.
template <u32 COUNT>
MOR_DEVICE void scale_elements(const u32 (&x)[COUNT], float scale, const Nearest& to, Elements<COUNT>& run_elements,
                               float (&values)[COUNT]) {
  MOR_UNROLL
  for (u32 k = 0; k < COUNT; k++) run_elements.xs[k] = __fmul_rn(number(x[k]), scale);
  nearest(run_elements.xs, to, run_elements.codes, values);
}

// QNT-002.
MOR_DEVICE u32 dequantized(u32 code, float scale, const Decoding& from) {
  const u8 codes[1] = {u8(code)};
  u32 value[1];
  decode_run(codes, from, value);
  return bits_of(quotient(number(value[0]), scale));
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

// What the scale of its block makes of elements side by side (QNT-002).
template <u32 TEAM> struct UnderScale {
  float scale, most;  // the largest y
  const Scaled& to;
  Values<TEAM> values;
  MOR_MEMBER UnderScale(u32 bits, const Scaled& to)
      : scale(number(bits)), most(__fdiv_rn(number(to.largest), scale)), to(to), values(scale, to.decoding) {}
  MOR_MEMBER const UnderScale& in_run(u64, u64) const { return *this; }
  MOR_MEMBER u32 largest() const { return __float_as_uint(most); }
  template <u32 COUNT> MOR_MEMBER void operator()(const u32 (&x)[COUNT], Elements<COUNT>& run_elements) const {
    float unscaled[COUNT];
    scale_elements(x, scale, to.nearest, run_elements, unscaled);
    MOR_UNROLL
    for (u32 k = 0; k < COUNT; k++)
      run_elements.y[k] = TEAM < THREADS ? bits_of(quotient(unscaled[k], scale)) : values(run_elements.codes.number(k));
  }
};

// A rule: what it makes of the elements of a block, and of a run in it from a row and a column on.
struct ByScale {
  const u32* scales;
  Scaled to;
  template <u32 TEAM> MOR_MEMBER UnderScale<TEAM> in_block(u64 block) const { return {scales[block], to}; }
};
