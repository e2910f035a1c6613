// Tensors to codes and back, with their error sums.
#include "kernels.cuh"
#include "measuring.cuh"

#define QUANTIZE(name, Source, TEAM)                                                                          \
  MOR_KERNEL quantize_##name##_##TEAM(const Source::Stored* x, Cut cut, const u32* scales, Scaled to,         \
                                      u8* codes, u64* sum, u64* nonzero, u64* nonfinite) {                    \
    measure<TEAM, Source>(x, cut, ByScale{scales, to}, 1, ErrorSums{sum, nonzero, nonfinite},                 \
                          [&](const auto& run) { store(run, codes); });                                        \
  }                                                                                                           \
  MOR_EXPORT(quantize_##name##_##TEAM)
MOR_FOR_SOURCES_AND_TEAMS(QUANTIZE)

// QNT-002 and QNT-003: numbers of a target, of the block at each place.
#define DEQUANTIZE(name, Target, TEAM)                                                                        \
  MOR_KERNEL dequantize_##name##_codes_##TEAM(const u8* codes, Cut cut, const u32* scales, Decoding from,     \
                                              Target::Stored* y) {                                            \
    for (u64 n = Team<TEAM>::number(); n < pieces_of(cut); n += Team<TEAM>::count()) {                        \
      const Piece piece = piece_of(cut, n);                                                                   \
      const Values<TEAM> values(number(scales[piece.block]), from);                                           \
      visit_piece<TEAM, 1, Target::Stored>(codes, cut, piece, [&](const auto& run, u64, u64) {                \
        auto run_numbers = beside<Target::Stored>(run);                                                       \
        for (u32 k = 0; k < run.count; k++) run_numbers.numbers[k] = Target::stored(values(run.numbers[k]));  \
        store(run_numbers, y);                                                                                \
      });                                                                                                     \
    }                                                                                                         \
  }                                                                                                           \
  MOR_EXPORT(dequantize_##name##_codes_##TEAM)
MOR_FOR_TEAMS(DEQUANTIZE, f32, F32)
MOR_FOR_TEAMS(DEQUANTIZE, bf16, Bf16)

// One number with a scale of its own.
MOR_KERNEL quantize_steps(const u32* x, const u32* scales, u64 count, Scaled to, u32* xs, u8* codes, u32* y) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    const u32 bits[1] = {x[i]};
    Elements<1> element;
    UnderScale<1>(scales[i], to)(bits, element);
    xs[i] = bits_of(element.xs[0]);
    codes[i] = element.codes.number(0);
    y[i] = element.y[0];
  }
}
MOR_EXPORT(quantize_steps)

// The error of one number.
MOR_KERNEL error_steps(const u32* x, const u32* y, u64 count, u32* d, u32* r, u32* u) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    const ErrorTerm term = error_term(x[i], y[i]);
    d[i] = term.d;
    r[i] = term.r;
    u[i] = term.u;
  }
}
MOR_EXPORT(error_steps)
