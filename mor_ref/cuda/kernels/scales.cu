// amax and amin of blocks, and the three kinds of scales.
#include "kernels.cuh"
#include "scales.cuh"

// SCL-001 and MOR-004: the largest magnitudes below `end`, and the smallest but zero less one, which
// of zero is the largest word and so counts as nothing. Begin with 0 and with all ones.
template <u32 TEAM, class Source>
MOR_DEVICE void extremes(const typename Source::Stored* x, const Cut& cut, u32 end, u32* amax, u32* below_amin) {
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    u32 high = 0, low = ~0u;
    visit_piece<TEAM, 4>(x, cut, piece, [&](const auto& run, u64, u64) {
      for (u32 k = 0; k < run.count; k++) {
        const u32 magnitude = magnitude_of(Source::binary32(run.numbers[k]));
        if (magnitude < end) {
          high = most(high, magnitude);
          low = least(low, magnitude - 1);
        }
      }
    });
    high = reduced<TEAM, Larger>(high);
    low = reduced<TEAM, Smaller>(low);
    if (Team<TEAM>::rank() == 0) {
      atomicMax(amax + piece.block, high);
      atomicMin(below_amin + piece.block, low);
    }
  }
}

#define EXTREMES(name, Source, TEAM)                                                                               \
  MOR_KERNEL extremes_##name##_##TEAM(const Source::Stored* x, Cut cut, u32 end, u32* amax, u32* below_amin) {     \
    extremes<TEAM, Source>(x, cut, end, amax, below_amin);                                                         \
  }                                                                                                                \
  MOR_EXPORT(extremes_##name##_##TEAM)
MOR_FOR_SOURCES_AND_TEAMS(EXTREMES)

// amin from the result of `extremes`.
MOR_KERNEL add_one(u32* words, u64 count) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) words[i]++;
}
MOR_EXPORT(add_one)

// The mantissa of each group, GAM-001.
MOR_KERNEL shared_mantissas(const u32* group_amax, u64 groups, u32 largest, u32* mantissas) {
  for (u64 i = first_of_thread(); i < groups; i += threads_of_grid()) mantissas[i] = shared_mantissa_of(group_amax[i], largest);
}
MOR_EXPORT(shared_mantissas)

// The scale of each block, and its stored fields.
MOR_KERNEL scales(const u32* amax, const u32* mantissas, Cut cut, u32 scaling, u32 largest, u32* scale, u8* stored) {
  for (u64 i = first_of_thread(); i < cut.grid_rows * cut.grid_columns; i += threads_of_grid()) {
    const Scale block_scale = scale_of(scaling, amax[i], largest, mantissas[group_of(cut, i)]);
    scale[i] = block_scale.bits;
    stored[i] = u8(block_scale.stored);
  }
}
MOR_EXPORT(scales)

// A scale from the amax of a group and of a block in it.
MOR_KERNEL scale_steps(const u32* group_amax, const u32* block_amax, u64 count, u32 scaling, u32 largest,
                       u32* mantissas, u8* stored, u32* scale) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    mantissas[i] = scaling == GAM ? shared_mantissa_of(group_amax[i], largest) : 0;
    const Scale block_scale = scale_of(scaling, block_amax[i], largest, mantissas[i]);
    scale[i] = block_scale.bits;
    stored[i] = u8(block_scale.stored);
  }
}
MOR_EXPORT(scale_steps)
