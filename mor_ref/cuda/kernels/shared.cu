// Tensors in blocks that share an exponent (SHX-001): a thread has a block.
#include "blocks.cuh"
#include "kernels.cuh"
#include "shared.cuh"

// The fields of blocks, of pairs and of numbers, each in its own array.
struct SharedFields {
  u8 *exponent, *tau, *sign, *magnitude, *code;
  u32* y;
};

#define SHARED(name, Source)                                                                                       \
  MOR_KERNEL shared_##name(const Source::Stored* x, u64 rows, u64 columns, SharedRule rule, SharedFields fields) { \
    const u64 across = (columns + SHARED_BLOCK - 1) / SHARED_BLOCK;                                                \
    const u64 pairs = (columns + SHARED_PAIR - 1) / SHARED_PAIR;                                                   \
    for (u64 n = first_of_thread(); n < rows * across; n += threads_of_grid()) {                                   \
      const u64 row = n / across, left = n % across * SHARED_BLOCK, at = row * columns + left;                     \
      const u32 count = u32(least<u64>(SHARED_BLOCK, columns - left));                                             \
      u32 block[SHARED_BLOCK] = {};                                                                                \
      for (u32 k = 0; k < count; k++) block[k] = Source::binary32(x[at + k]);                                      \
      const u32 exponent = shared_exponent(block, count, rule);                                                    \
      fields.exponent[n] = u8(exponent);                                                                           \
      for (u32 k = 0; k < count; k += SHARED_PAIR) {                                                               \
        const u32 tau = shift_of_pair(exponent, block[k], block[k + 1], rule);                                     \
        fields.tau[row * pairs + (left + k) / SHARED_PAIR] = u8(tau);                                              \
        for (u32 j = k; j < k + SHARED_PAIR && j < count; j++) {                                                   \
          const SharedNumber element = shared_number(block[j], exponent, tau, rule);                               \
          fields.sign[at + j] = u8(element.sign);                                                                  \
          fields.magnitude[at + j] = u8(element.magnitude);                                                        \
          fields.code[at + j] = u8(element.code);                                                                  \
          fields.y[at + j] = element.y;                                                                            \
        }                                                                                                          \
      }                                                                                                            \
    }                                                                                                              \
  }                                                                                                                \
  MOR_EXPORT(shared_##name)
MOR_FOR_SOURCES(SHARED)
