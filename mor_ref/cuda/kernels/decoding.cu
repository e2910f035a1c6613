// Decoding, element by element.
#include "decoding.cuh"
#include "elementwise.cuh"
#include "kernels.cuh"

#define DECODE(code, Code)                                                                             \
  MOR_KERNEL decode_##code(const Code* codes, u64 count, Decoding from, u32* numbers) {                \
    convert_all(codes, count, numbers,                                                                 \
                [&](u64, const auto& run, auto& run_numbers) { decode_run(run, from, run_numbers); }); \
  }                                                                                                    \
  MOR_EXPORT(decode_##code)
DECODE(u8, u8)
DECODE(u16, u16)
DECODE(u32, u32)
