// The chapter on NVFP4.
#pragma once
#include "quantization.cuh"

constexpr u32 TILE = 16;

enum TileRule : u32 { TE, TE_2_13, FOUR_OVER_SIX_MAE, FOUR_OVER_SIX_MSE, TORCHAO, MODELOPT, COMPRESSED_TENSORS };

struct Profile {
  u32 rule;
  float range;  // Q
  u32 divides;  // whether elements are divided by the scale, and lose the sign of zero
  Nearest element_codes, scale_codes;
  Decoding element_values, scale_values;
};

struct GlobalScale {
  float encode, decode;
};

struct TileScale {
  u32 code;
  float encode, decode;  // where elements are divided, `encode` is not used
};

MOR_DEVICE float at_most_largest(float x) { return x > number(LARGEST_BINARY32) ? number(LARGEST_BINARY32) : x; }
MOR_DEVICE float clamped(float x, float low, float high) { return x < low ? low : x > high ? high : x; }
MOR_DEVICE u32 scale_code(const Profile& profile, float s) { return nearest_code(s, profile.scale_codes); }
MOR_DEVICE float scale_value(const Profile& profile, u32 code) { return number(decoded(code, profile.scale_values)); }

// NVF-003, and its counterparts in NVF-007 to NVF-009.
MOR_DEVICE GlobalScale global_scale(const Profile& profile, float amax) {
  if (profile.rule == TORCHAO || profile.rule == MODELOPT) {
    const float g = __fdiv_rn(amax, profile.range);
    return {__fdiv_rn(1.0f, g), g};
  }
  if (profile.rule == COMPRESSED_TENSORS) {
    const float smallest_normal = number(Binary<u32>::hidden);
    const float g = __fmul_rn(__fdiv_rn(1.0f, most(amax, smallest_normal)), profile.range);
    const float encode = is_finite(bits_of(g)) ? g : 1.0f;
    return {encode, __fdiv_rn(1.0f, encode)};
  }
  const float s = at_most_largest(__fdiv_rn(profile.range, amax));
  const float encode = amax == 0.0f || s == 0.0f ? 1.0f : s;
  return {encode, __fdiv_rn(1.0f, encode)};
}

// NVF-014.
MOR_DEVICE GlobalScale given_global_scale(const Profile& profile, float scale) {
  const float other = __fdiv_rn(1.0f, scale);
  return profile.rule == TORCHAO || profile.rule == MODELOPT ? GlobalScale{other, scale} : GlobalScale{scale, other};
}

// NVF-004.
MOR_DEVICE TileScale te_scale(const Profile& profile, float s, const GlobalScale& global) {
  const u32 code = scale_code(profile, s);
  const float decode = __fmul_rn(scale_value(profile, code), global.decode);
  return {code, at_most_largest(__fdiv_rn(1.0f, decode)), decode};
}

// NVF-004, NVF-005 and NVF-007 to NVF-009. Under NVF-006 it is the candidate that makes bamax 6.
MOR_DEVICE TileScale tile_scale(const Profile& profile, float bamax, const GlobalScale& global) {
  if (profile.rule == TE)
    return te_scale(profile, __fmul_rn(bamax, __fmul_rn(global.encode, __fdiv_rn(1.0f, 6.0f))), global);
  if (profile.rule == TORCHAO) {
    const float s = __fdiv_rn(__fdiv_rn(bamax, 6.0f), global.decode);
    const u32 code = scale_code(profile, clamped(s, 0.015625f, 448.0f));
    const float v = scale_value(profile, code);
    return {code, __fdiv_rn(global.encode, v), __fmul_rn(global.decode, v)};
  }
  if (profile.rule == MODELOPT) {
    const float t = __fdiv_rn(bamax, __fmul_rn(6.0f, global.decode));
    const u32 code = scale_code(profile, clamped(t == 0.0f ? 1.0f : t, 0.001953125f, 448.0f));
    return {code, 0.0f, __fmul_rn(scale_value(profile, code), global.decode)};
  }
  const float sixth = __fdiv_rn(bamax, 6.0f);
  if (profile.rule == COMPRESSED_TENSORS) {
    const u32 rounded_code = scale_code(profile, __fmul_rn(global.encode, sixth));
    const u32 code = rounded_code ? rounded_code : scale_code(profile, 0.125f);
    return {code, 0.0f, __fdiv_rn(scale_value(profile, code), global.encode)};
  }
  return te_scale(profile, __fmul_rn(sixth, global.encode), global);
}

// The candidate that makes bamax 4, NVF-006.
MOR_DEVICE TileScale four_scale(const Profile& profile, float bamax, const GlobalScale& global) {
  return te_scale(profile, __fmul_rn(1.5f, __fmul_rn(__fdiv_rn(bamax, 6.0f), global.encode)), global);
}

// The codes of NVF-010, and their numbers in `unscaled`.
template <u32 COUNT>
MOR_DEVICE void encode_elements(const u32 (&x)[COUNT], const TileScale& scale, const Profile& profile,
                                Elements<COUNT>& run_elements, float (&unscaled)[COUNT]) {
  if (profile.divides) {
    MOR_UNROLL
    for (u32 k = 0; k < COUNT; k++) {
      const float xs = __fdiv_rn(number(x[k]), scale.decode);
      run_elements.xs[k] = xs == 0.0f ? 0.0f : xs;
    }
    nearest(run_elements.xs, profile.element_codes, run_elements.codes, unscaled);
  } else {
    scale_elements(x, scale.encode, profile.element_codes, run_elements, unscaled);
  }
}

// NVF-010.
template <u32 COUNT>
MOR_DEVICE void quantized(const u32 (&x)[COUNT], const TileScale& scale, const Profile& profile, Elements<COUNT>& run_elements) {
  float unscaled[COUNT];
  encode_elements(x, scale, profile, run_elements, unscaled);
  MOR_UNROLL
  for (u32 k = 0; k < COUNT; k++) run_elements.y[k] = bits_of(__fmul_rn(unscaled[k], scale.decode));
}

// The error of an element under a candidate (NVF-006), from the numbers of its code and of the scale.
MOR_DEVICE float error_of(u32 x, float value, float scale, float amax, const Profile& profile) {
  const float stored = __fmul_rn(value, scale);
  const float e = __fsub_rn(__fdiv_rn(__fmul_rn(stored, amax), profile.range), number(x));
  return profile.rule == FOUR_OVER_SIX_MAE ? number(magnitude_of(__float_as_uint(e))) : __fmul_rn(e, e);
}

// The codes of a pair, NVF-011.
MOR_DEVICE u8 packed(u32 even, u32 odd) { return u8(even | odd << 4); }

// What the scale of its tile makes of elements side by side.
struct UnderTile {
  TileScale scale;
  const Profile& profile;
  MOR_MEMBER u32 largest() const { return __float_as_uint(__fmul_rn(6.0f, scale.decode)); }
  template <u32 COUNT> MOR_MEMBER void operator()(const u32 (&x)[COUNT], Elements<COUNT>& run_elements) const {
    quantized(x, scale, profile, run_elements);
  }
};

// A rule, as ByScale is. No run goes from one tile to the next: runs begin where as many begin that a
// tile has of them.
struct ByTile {
  const float *encodes, *decodes;
  u64 tile_rows, tiles_across;
  Profile profile;
  template <u32 TEAM> MOR_MEMBER const ByTile& in_block(u64) const { return *this; }
  MOR_MEMBER u64 tile(u64 row, u64 column) const {
    return (tile_rows == 1 ? row : row / TILE) * tiles_across + column / TILE;
  }
  MOR_MEMBER UnderTile in_run(u64 row, u64 column) const {
    const u64 at = tile(row, column);
    return {TileScale{0, encodes[at], decodes[at]}, profile};
  }
};
