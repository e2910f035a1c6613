// Tensors in MX (MXS-001).
#include "kernels.cuh"
#include "measuring.cuh"
#include "mx.cuh"

// The scale of each block, from its largest magnitude, NaN included.
MOR_KERNEL mx_scales(const u32* amax, u64 blocks, MxFormat format, u8* scales) {
  for (u64 i = first_of_thread(); i < blocks; i += threads_of_grid()) scales[i] = u8(mx_scale(amax[i], format));
}
MOR_EXPORT(mx_scales)

// The codes, and the error sums of the tensor.
#define ELEMENTS(name, Source, TEAM)                                                                             \
  MOR_KERNEL mx_elements_##name##_##TEAM(const Source::Stored* x, Cut cut, const u8* scales, MxFormat format,    \
                                         u8* codes, u64* sum, u64* nonzero, u64* nonfinite) {                    \
    measure<TEAM, Source>(x, cut, ByBlockScale{scales, format}, 0, ErrorSums{sum, nonzero, nonfinite},           \
                          [&](const auto& run) { store(run, codes); });                                           \
  }                                                                                                              \
  MOR_EXPORT(mx_elements_##name##_##TEAM)
MOR_FOR_SOURCES_AND_TEAMS(ELEMENTS)

#define DEQUANTIZE(name, Target, TEAM)                                                                           \
  MOR_KERNEL mx_dequantize_##name##_codes_##TEAM(const u8* codes, Cut cut, const u8* scales, Decoding from,      \
                                                 Target::Stored* y) {                                            \
    for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {                           \
      const Piece piece = piece_of(cut, n);                                                                      \
      const float scale = decode_scale(scales[piece.block]);                                                     \
      visit_piece<TEAM, 1, Target::Stored>(codes, cut, piece, [&](const auto& run, u64, u64) {                   \
        auto values = beside<Target::Stored>(run);                                                               \
        auto unscaled = beside<u32>(run);                                                                        \
        decode_run(run.numbers, from, unscaled.numbers);                                                         \
        for (u32 k = 0; k < run.count; k++)                                                                      \
          values.numbers[k] = Target::stored(bits_of(__fmul_rn(number(unscaled.numbers[k]), scale)));            \
        store(values, y);                                                                                        \
      });                                                                                                        \
    }                                                                                                            \
  }                                                                                                              \
  MOR_EXPORT(mx_dequantize_##name##_codes_##TEAM)
MOR_FOR_TEAMS(DEQUANTIZE, f32, F32)
MOR_FOR_TEAMS(DEQUANTIZE, bf16, Bf16)
