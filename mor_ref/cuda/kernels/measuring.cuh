// Quantizing the elements of a tensor, block by block, and summing up their errors.
#pragma once
#include "blocks.cuh"
#include "errors.cuh"
#include "quantization.cuh"

// The sums of units, each in an array of its own.
struct ErrorSums {
  u64 *sum, *nonzero, *nonfinite;
};

template <u32 TEAM> MOR_DEVICE void add_unit(const ErrorSums& units, u64 unit, const ErrorSum& own) {
  const u64 sum = reduced<TEAM, Sum>(own.sum), nonzero = reduced<TEAM, Sum>(own.nonzero);
  const u64 nonfinite = reduced<TEAM, Sum>(own.nonfinite);
  if (Team<TEAM>::rank() == 0) {
    atomicAdd(units.sum + unit, sum);
    atomicAdd(units.nonzero + unit, nonzero);
    atomicAdd(units.nonfinite + unit, nonfinite);
  }
}

// `units_per_block` is 1 where each block is a unit, and 0 where the tensor is the only one. `visit` is
// given the codes of each run.
template <u32 TEAM, class Source, class Rule, class Visit>
MOR_DEVICE void measure(const typename Source::Stored* x, const Cut& cut, const Rule& quantized, u64 units_per_block,
                        const ErrorSums& units, Visit visit) {
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    ErrorSum own = {0, 0, 0};
    visit_piece<TEAM>(x, cut, piece, [&](const auto& run) {
      auto codes = beside<u8>(run);
      for (u32 k = 0; k < run.count; k++) {
        const u32 bits = Source::binary32(run.numbers[k]);
        const Element element = quantized(piece.block, run.at + k, bits);
        add_error(own, bits, element.y);
        codes.numbers[k] = u8(element.code);
      }
      visit(codes);
    });
    add_unit<TEAM>(units, piece.block * units_per_block, own);
  }
}
