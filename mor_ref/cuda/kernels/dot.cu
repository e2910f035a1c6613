// Dot products of rows of codes (DOT-001): a thread has a row.
#include "blocks.cuh"
#include "dot_amd.cuh"
#include "dot_binary32.cuh"
#include "dot_nvidia.cuh"
#include "kernels.cuh"

// The fields of chunks, `count` for each row; nobody asks for them if there is no address.
struct DotFields {
  u32* exponent;
  u64* cut_sum;
  u32* c;
};

// DOT-003: the chunks of a row in order, `length` products each.
#define DOT(family)                                                                                           \
  MOR_KERNEL dot_##family(u64 rows, u64 chunks, u64 length, const u32* first, DotOperands of, DotRule rule,   \
                          DotFields fields, u32* result) {                                                    \
    for (u64 row = first_of_thread(); row < rows; row += threads_of_grid()) {                                 \
      u32 c = first[row];                                                                                     \
      for (u64 k = 0; k < chunks; k++) {                                                                      \
        const DotChunk chunk = next_##family(of, row, k * length, c, rule);                                   \
        c = chunk.c;                                                                                          \
        if (fields.c == nullptr) continue;                                                                    \
        fields.exponent[row * chunks + k] = u32(chunk.exponent);                                              \
        fields.cut_sum[row * chunks + k] = u64(chunk.cut_sum);                                                \
        fields.c[row * chunks + k] = c;                                                                       \
      }                                                                                                       \
      result[row] = bits_of(number(c));                                                                       \
    }                                                                                                         \
  }                                                                                                           \
  MOR_EXPORT(dot_##family)
DOT(exact)
DOT(e_fdpa)
DOT(f32_fma)
DOT(f32_pairwise)
DOT(integers)
DOT(t_fdpa)
DOT(gst_fdpa)
DOT(promoted)
DOT(ftz_mul_add)
DOT(tr_fdpa)
DOT(gtr_fdpa)
