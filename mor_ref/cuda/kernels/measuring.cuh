// Quantizing the elements of a tensor, block by block, and summing up their errors.
#pragma once
#include "blocks.cuh"
#include "errors.cuh"
#include "quantization.cuh"

// The sums of units, each in an array of its own.
struct ErrorSums {
  u64 *sum, *nonzero, *nonfinite;
};

// The y of the elements of a run.
struct GivenRun {
  const u32* y;
  MOR_MEMBER Element operator()(u32, u32 k) const { return {0, 0, y[k]}; }
};

// The rule of a representation whose y is given, for the whole tensor.
struct ByValue {
  const u32* y;
  u64 columns;
  template <u32 TEAM> MOR_MEMBER const ByValue& in_block(u64) const { return *this; }
  MOR_MEMBER GivenRun in_run(u64 row, u64 column) const { return {y + row * columns + column}; }
};

MOR_DEVICE void add(ErrorSum& to, const ErrorSum& more) {
  to.sum += more.sum;
  to.nonzero += more.nonzero;
  to.nonfinite += more.nonfinite;
}

// The count of elements that are not finite is mostly zero, and not worth a reduction.
template <u32 TEAM> MOR_DEVICE void add_unit(const ErrorSums& units, u64 unit, const ErrorSum& own) {
  const u64 sum = reduced<TEAM, Sum>(own.sum), nonzero = reduced<TEAM, Sum>(own.nonzero);
  if (Team<TEAM>::rank() == 0) {
    atomicAdd(units.sum + unit, sum);
    atomicAdd(units.nonzero + unit, nonzero);
  }
  if (own.nonfinite) atomicAdd(units.nonfinite + unit, own.nonfinite);
}

// `units_per_block` is 1 where each block is a unit, and 0 where the tensor is the only one: then small
// teams do not add to its sums one by one, but all threads together. `visit` is given the codes of each
// run.
template <u32 TEAM, class Source, class Rule, class Visit>
MOR_DEVICE void measure(const typename Source::Stored* x, const Cut& cut, const Rule& rule, u64 units_per_block,
                        const ErrorSums& units, Visit visit) {
  ErrorSum whole = {0, 0, 0};
  for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {
    const Piece piece = piece_of(cut, n);
    const auto& in_block = rule.template in_block<TEAM>(piece.block);
    PartialSum own = {0, 0, 0};
    visit_piece<TEAM>(x, cut, piece, [&](const auto& run, u64 row, u64 column) {
      const auto& quantized = in_block.in_run(row, column);
      auto codes = beside<u8>(run);
      for (u32 k = 0; k < run.count; k++) {
        const u32 bits = Source::binary32(run.numbers[k]);
        const Element element = quantized(bits, k);
        add_error(own, bits, element.y);
        codes.numbers[k] = u8(element.code);
      }
      visit(codes);
    });
    const ErrorSum of_piece = {own.sum, own.nonzero, own.nonfinite};
    if (units_per_block) add_unit<TEAM>(units, piece.block, of_piece);
    else add(whole, of_piece);
  }
  if (!units_per_block && pieces_of(cut)) add_unit<THREADS>(units, 0, whole);
}
