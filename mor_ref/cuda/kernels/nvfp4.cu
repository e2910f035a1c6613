// Tensors in NVFP4.
#include "kernels.cuh"
#include "blocks.cuh"
#include "nvfp4.cuh"

// The global scales from the amax of the tensor, or of each row.
MOR_KERNEL nvfp4_global_scales(const float* amax, u64 count, Profile profile, float* encode, float* decode) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    const GlobalScale found = global_scale(profile, amax[i]);
    encode[i] = found.encode;
    decode[i] = number(bits_of(found.decode));
  }
}
MOR_EXPORT(nvfp4_global_scales)

struct Tiles {
  u64 rows, columns, down, across;  // of the tensor, and how many tiles
  u64 scales_per_row;               // 1 where each row has a global scale, else 0
};

// The row of a tile that a thread has: its numbers, in order.
template <class Source> struct TileRow {
  u32 numbers[TILE];
  u32 count;
  MOR_MEMBER TileRow(const typename Source::Stored* x, const Tiles& tiles, u64 row, u64 left, bool is_there) {
    count = is_there && row < tiles.rows ? u32(least(u64(TILE), tiles.columns - left)) : 0;
    for (u32 k = 0; k < TILE; k++) numbers[k] = k < count ? Source::binary32(x[row * tiles.columns + left + k]) : 0;
  }
  // The largest magnitude but NaN (NVF-002).
  MOR_MEMBER u32 amax() const {
    u32 found = 0;
    for (u32 k = 0; k < count; k++)
      if (!is_nan(numbers[k])) found = most(found, magnitude_of(numbers[k]));
    return found;
  }
  MOR_MEMBER float error(const TileScale& candidate, float whole, const Profile& profile) const {
    float sum = 0.0f;
    for (u32 k = 0; k < count; k++) sum = __fadd_rn(sum, error_of(numbers[k], candidate, whole, profile));
    return sum;
  }
};

// The scale of each tile; ROWS threads beside one another have the rows of a tile.
template <u32 ROWS, class Source>
MOR_DEVICE void tile_scales(const typename Source::Stored* x, const Tiles& tiles, const Profile& profile,
                            const float* amax, const float* encode, const float* decode, u8* codes,
                            float* tile_encode, float* tile_decode) {
  const u64 count = tiles.down * tiles.across, at_once = threads_of_grid() / ROWS;
  // All threads of a warp go through the loop as often: they meet in it.
  for (u64 first = 0; first < count; first += at_once) {
    const u64 tile = first + first_of_thread() / ROWS, row_of_tile = first_of_thread() % ROWS;
    const u64 top = tile / tiles.across * ROWS, left = tile % tiles.across * TILE;
    const TileRow<Source> row(x, tiles, top + row_of_tile, left, tile < count);
    const u64 scale = tile < count ? top * tiles.scales_per_row : 0;
    u32 bits = row.amax();
    for (u32 distance = ROWS / 2; distance; distance /= 2)
      bits = most(bits, __shfl_xor_sync(MOR_ALL_LANES, bits, i32(distance)));
    const GlobalScale global = {encode[scale], decode[scale]};
    TileScale found = tile_scale(profile, number(bits), global);
    if (profile.rule == FOUR_OVER_SIX_MAE || profile.rule == FOUR_OVER_SIX_MSE) {
      const TileScale four = four_scale(profile, number(bits), global);
      float errors[2] = {row.error(found, amax[scale], profile), row.error(four, amax[scale], profile)};
      // r[i] + r[i + h] is the same sum on both sides of an exchange.
      for (u32 distance = ROWS / 2; distance; distance /= 2)
        for (float& error : errors)
          error = __fadd_rn(error, __shfl_xor_sync(MOR_ALL_LANES, error, i32(distance)));
      if (errors[1] < errors[0]) found = four;
    }
    if (tile < count && row_of_tile == 0) {
      codes[tile] = u8(found.code);
      tile_encode[tile] = found.encode;
      tile_decode[tile] = found.decode;
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
#define ELEMENTS(name, Source)                                                                                   \
  TILE_SCALES(name, Source, 1)                                                                                   \
  TILE_SCALES(name, Source, 16)                                                                                  \
  MOR_KERNEL nvfp4_elements_##name(const Source::Stored* x, Tiles tiles, ByTile quantized, u8* codes,            \
                                   u8* bytes) {                                                                  \
    const u64 pairs = (tiles.columns + 1) / 2;                                                                   \
    for (u64 i = first_of_thread(); i < tiles.rows * pairs; i += threads_of_grid()) {                            \
      const u64 row = i / pairs, column = i % pairs * 2, at = row * tiles.columns + column;                      \
      u32 pair[2] = {0, 0};                                                                                      \
      for (u32 k = 0; k < 2 && column + k < tiles.columns; k++) {                                                \
        const Element element = quantized(0, at + k, Source::binary32(x[at + k]));                               \
        pair[k] = element.code;                                                                                  \
        codes[at + k] = u8(element.code);                                                                        \
      }                                                                                                          \
      bytes[i] = packed(pair[0], pair[1]);                                                                       \
    }                                                                                                            \
  }                                                                                                              \
  MOR_EXPORT(nvfp4_elements_##name)
MOR_FOR_SOURCES(ELEMENTS)

// NVF-010: binary32 numbers.
MOR_KERNEL nvfp4_dequantize(const u8* codes, Tiles tiles, ByTile tile_of, u32* y) {
  for (u64 at = first_of_thread(); at < tiles.rows * tiles.columns; at += threads_of_grid()) {
    const float v = number(decoded(codes[at], tile_of.profile.element_values));
    y[at] = bits_of(__fmul_rn(v, tile_of.decodes[tile_of.tile(at)]));
  }
}
MOR_EXPORT(nvfp4_dequantize)
