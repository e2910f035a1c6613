// Tensors in MX.
#include "kernels.cuh"
#include "blocks.cuh"
#include "mx.cuh"

// The scale of each block, from its largest magnitude, NaN included.
MOR_KERNEL mx_scales(const u32* amax, u64 blocks, MxFormat format, u8* scales) {
  for (u64 i = first_of_thread(); i < blocks; i += threads_of_grid()) scales[i] = u8(mx_scale(amax[i], format));
}
MOR_EXPORT(mx_scales)

#define ELEMENTS(name, Source, TEAM)                                                                             \
  MOR_KERNEL mx_elements_##name##_##TEAM(const Source::Stored* x, Cut cut, const u8* scales, MxFormat format,    \
                                         u8* codes, u32* y) {                                                    \
    for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {                           \
      const Piece piece = piece_of(cut, n);                                                                      \
      const u32 scale = scales[piece.block];                                                                     \
      visit_piece<TEAM, Source>(x, cut, piece, [&](u64 at, Source::Stored stored) {                              \
        const Element element = mx_quantized(Source::binary32(stored), scale, format);                           \
        codes[at] = u8(element.code);                                                                            \
        y[at] = element.y;                                                                                       \
      });                                                                                                        \
    }                                                                                                            \
  }                                                                                                              \
  MOR_EXPORT(mx_elements_##name##_##TEAM)
MOR_FOR_SOURCES_AND_TEAMS(ELEMENTS)
