// Tensors in NVFP4 (NVF-001).
#include "kernels.cuh"
#include "blocks.cuh"
#include "encoding.cuh"
#include "nvfp4.cuh"

// The global scales from the amax of the tensor, or of each row (NVF-012).
MOR_KERNEL nvfp4_global_scales(const float* amax, u64 count, Profile profile, float* encode, float* decode) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    const GlobalScale global = global_scale(profile, amax[i]);
    encode[i] = global.encode;
    decode[i] = number(bits_of(global.decode));
  }
}
MOR_EXPORT(nvfp4_global_scales)

// The global scales from one that is given for the tensor, or for each row (NVF-014).
MOR_KERNEL nvfp4_given_scales(const float* given, u64 count, Profile profile, float* encode, float* decode) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    const GlobalScale global = given_global_scale(profile, given[i]);
    encode[i] = global.encode;
    decode[i] = global.decode;
  }
}
MOR_EXPORT(nvfp4_given_scales)

struct Tiles {
  u64 rows, columns, down, across;  // of the tensor, and how many tiles
  u64 scales_per_row;               // 1 where each row has a global scale, else 0
};

// 16 numbers side by side, or fewer at the right edge, with nothing in the place of the others: by
// loads of 16 bytes where rows begin with one.
template <class Stored> struct Strip {
  Stored numbers[TILE];
  u32 count;
  MOR_MEMBER Strip(const Stored* x, u64 columns, u64 row, u64 left, bool is_there) : numbers{}, count(0) {
    if (!is_there) return;
    count = u32(least(u64(TILE), columns - left));
    const u64 first = row * columns + left;
    if (columns % TILE || !is_aligned(x)) {
      for (u32 k = 0; k < TILE; k++)
        if (k < count) numbers[k] = x[first + k];
      return;
    }
    Run<Stored, VECTOR<Stored>> run;
    for (u32 k = 0; k < TILE; k += run.count) {
      run.at = first + k;
      load(run, x);
      for (u32 i = 0; i < run.count; i++) numbers[k + i] = run.numbers[i];
    }
  }
};

// COUNT numbers to a row of a tensor, from a column on, as far as it goes.
template <class Stored, u32 COUNT>
MOR_DEVICE void store_strip(const Stored (&numbers)[COUNT], Stored* to, u64 columns, u64 row, u64 left) {
  Run<Stored, COUNT> run;
  run.at = row * columns + left;
  for (u32 k = 0; k < COUNT; k++) run.numbers[k] = numbers[k];
  if (columns % COUNT == 0 && is_aligned(to)) return store(run, to);
  for (u32 k = 0; k < COUNT; k++)
    if (left + k < columns) to[run.at + k] = numbers[k];
}

// The row of a tile that a thread has: its numbers, in order.
template <class Source> struct TileRow {
  u32 numbers[TILE];
  u32 count;
  MOR_MEMBER TileRow(const typename Source::Stored* x, const Tiles& tiles, u64 row, u64 left, bool is_there) {
    const Strip<typename Source::Stored> strip(x, tiles.columns, row, left, is_there && row < tiles.rows);
    count = strip.count;
    for (u32 k = 0; k < TILE; k++) numbers[k] = Source::binary32(strip.numbers[k]);
  }
  // The largest magnitude but NaN (NVF-002).
  MOR_MEMBER u32 amax() const {
    u32 largest_magnitude = 0;
    for (u32 number : numbers)
      if (!is_nan(number)) largest_magnitude = most(largest_magnitude, magnitude_of(number));
    return largest_magnitude;
  }
  MOR_MEMBER float error(const TileScale& candidate, float whole, const Profile& profile) const {
    Elements<TILE> tile_elements;
    float values[TILE], sum = 0.0f;
    encode_elements(numbers, candidate, profile, tile_elements, values);
    const float scale = scale_value(profile, candidate.code);
    MOR_UNROLL
    for (u32 k = 0; k < TILE; k++) {
      const float more = __fadd_rn(sum, error_of(numbers[k], values[k], scale, whole, profile));
      sum = k < count ? more : sum;
    }
    return sum;
  }
};

// The scale of each tile; ROWS neighbouring threads have the rows of a tile.
template <u32 ROWS, class Source>
MOR_DEVICE void tile_scales(const typename Source::Stored* x, const Tiles& tiles, const Profile& profile,
                            const float* amax, const float* encode, const float* decode, u8* codes,
                            float* tile_encode, float* tile_decode) {
  const u64 count = tiles.down * tiles.across, at_once = threads_of_grid() / ROWS;
  // All threads of a warp go through the loop as often: they meet in it.
  for (u64 first = 0; first < count; first += at_once) {
    const u64 tile = first + first_of_thread() / ROWS, row_of_tile = first_of_thread() % ROWS;
    const Division place = divided(tile, tiles.across);
    const u64 top = place.quotient * ROWS, left = place.rest * TILE;
    const TileRow<Source> row(x, tiles, top + row_of_tile, left, tile < count);
    const u64 scale = tile < count ? top * tiles.scales_per_row : 0;
    u32 bits = row.amax();
    for (u32 distance = ROWS / 2; distance; distance /= 2)
      bits = most(bits, __shfl_xor_sync(MOR_ALL_LANES, bits, i32(distance)));
    const GlobalScale global = {encode[scale], decode[scale]};
    TileScale best = tile_scale(profile, number(bits), global);
    if (profile.rule == FOUR_OVER_SIX_MAE || profile.rule == FOUR_OVER_SIX_MSE) {
      const TileScale four = four_scale(profile, number(bits), global);
      float errors[2] = {row.error(best, amax[scale], profile), row.error(four, amax[scale], profile)};
      // r[i] + r[i + h] is the same sum on both sides of an exchange.
      for (u32 distance = ROWS / 2; distance; distance /= 2)
        for (float& error : errors)
          error = __fadd_rn(error, __shfl_xor_sync(MOR_ALL_LANES, error, i32(distance)));
      if (errors[1] < errors[0]) best = four;
    }
    if (tile < count && row_of_tile == 0) {
      codes[tile] = u8(best.code);
      tile_encode[tile] = best.encode;
      tile_decode[tile] = best.decode;
    }
  }
}

#define TILE_SCALES(name, Source, ROWS)                                                                          \
  MOR_KERNEL nvfp4_tile_scales_##name##_##ROWS(const Source::Stored* x, Tiles tiles, Profile profile,            \
                                               const float* amax, const float* encode, const float* decode,      \
                                               u8* codes, float* tile_encode, float* tile_decode) {              \
    tile_scales<ROWS, Source>(x, tiles, profile, amax, encode, decode, codes, tile_encode, tile_decode);         \
  }                                                                                                              \
  MOR_EXPORT(nvfp4_tile_scales_##name##_##ROWS)

// The codes of a row of a tile for each thread, and the same codes in pairs.
template <class Source>
MOR_DEVICE void elements(const typename Source::Stored* x, const Tiles& tiles, const ByTile& rule, u8* codes, u8* bytes) {
  for (u64 i = first_of_thread(); i < tiles.rows * tiles.across; i += threads_of_grid()) {
    const Division place = divided(i, tiles.across);
    const u64 row = place.quotient, left = place.rest * TILE;
    const TileRow<Source> numbers(x, tiles, row, left, true);
    const UnderTile& quantized = rule.in_run(row, left);
    Elements<TILE> elements;
    quantized(numbers.numbers, elements);
    u8 row_codes[TILE], pairs[TILE / 2];
    MOR_UNROLL
    for (u32 k = 0; k < TILE; k++) row_codes[k] = k < numbers.count ? elements.codes.number(k) : 0;
    for (u32 k = 0; k < TILE / 2; k++) pairs[k] = packed(row_codes[2 * k], row_codes[2 * k + 1]);
    store_strip(row_codes, codes, tiles.columns, row, left);
    store_strip(pairs, bytes, (tiles.columns + 1) / 2, row, left / 2);
  }
}

// TRN-008: y of codes under sr, with a word of 32 bits for each number.
template <class Source>
MOR_DEVICE void at_random(const typename Source::Stored* x, const Tiles& tiles, const ByTile& rule, const Encoding& to,
                          const u32* words, u32* y) {
  for (u64 i = first_of_thread(); i < tiles.rows * tiles.across; i += threads_of_grid()) {
    const Division place = divided(i, tiles.across);
    const u64 row = place.quotient, left = place.rest * TILE, tile = rule.tile(row, left);
    const TileRow<Source> numbers(x, tiles, row, left, true);
    const Strip<u32> random(words, tiles.columns, row, left, true);
    u8 codes[TILE];
    u32 values[TILE];
    for (u32 k = 0; k < TILE; k++) {
      const u32 scaled = bits_of(__fmul_rn(number(numbers.numbers[k]), rule.encodes[tile]));
      codes[k] = u8(encoded(scaled, to, random.numbers[k], 32));
    }
    decode_run(codes, rule.profile.element_values, values);
    for (u32& value : values) value = bits_of(__fmul_rn(number(value), rule.decodes[tile]));
    store_strip(values, y, tiles.columns, row, left);
  }
}

#define ELEMENTS(name, Source)                                                                                   \
  TILE_SCALES(name, Source, 1)                                                                                   \
  TILE_SCALES(name, Source, 16)                                                                                  \
  MOR_KERNEL nvfp4_elements_##name(const Source::Stored* x, Tiles tiles, ByTile rule, u8* codes, u8* bytes) {    \
    elements<Source>(x, tiles, rule, codes, bytes);                                                              \
  }                                                                                                              \
  MOR_EXPORT(nvfp4_elements_##name)                                                                              \
  MOR_KERNEL nvfp4_at_random_##name(const Source::Stored* x, Tiles tiles, ByTile rule, Encoding to,              \
                                    const u32* words, u32* y) {                                                  \
    at_random<Source>(x, tiles, rule, to, words, y);                                                             \
  }                                                                                                              \
  MOR_EXPORT(nvfp4_at_random_##name)
MOR_FOR_SOURCES(ELEMENTS)

// NVF-010: numbers of a target.
template <class Target>
MOR_DEVICE void dequantize(const u8* codes, const Tiles& tiles, const ByTile& rule, typename Target::Stored* y) {
  for (u64 i = first_of_thread(); i < tiles.rows * tiles.across; i += threads_of_grid()) {
    const Division place = divided(i, tiles.across);
    const u64 row = place.quotient, left = place.rest * TILE;
    const Strip<u8> strip(codes, tiles.columns, row, left, true);
    const float scale = rule.decodes[rule.tile(row, left)];
    typename Target::Stored values[TILE];
    u32 unscaled[TILE];
    decode_run(strip.numbers, rule.profile.element_values, unscaled);
    for (u32 k = 0; k < TILE; k++) values[k] = Target::stored(bits_of(__fmul_rn(number(unscaled[k]), scale)));
    store_strip(values, y, tiles.columns, row, left);
  }
}

#define DEQUANTIZE(name, Target)                                                                                 \
  MOR_KERNEL nvfp4_dequantize_##name(const u8* codes, Tiles tiles, ByTile rule, Target::Stored* y) {             \
    dequantize<Target>(codes, tiles, rule, y);                                                                   \
  }                                                                                                              \
  MOR_EXPORT(nvfp4_dequantize_##name)
DEQUANTIZE(f32, F32)
DEQUANTIZE(bf16, Bf16)
