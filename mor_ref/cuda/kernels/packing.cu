// Codes as bytes: rows of levels (LVL-008), and blocks that share an exponent (SHX-007). A thread has a byte.
#include "blocks.cuh"
#include "kernels.cuh"

constexpr u32 TERNARY_DIGITS = 5, PACKED_BLOCK = 16, PACKED_PAIRS = 8;

// The byte of that number among codes of so many bits each, from the lowest bit up.
MOR_DEVICE u8 byte_of(const u8* codes, u64 count, u32 bits, u64 byte) {
  u32 packed = 0;
  for (u32 k = 0; k < 8; k++) {
    const Division place = divided(8 * byte + k, bits);
    if (place.quotient < count) packed |= (codes[place.quotient] >> place.rest & 1u) << k;
  }
  return u8(packed);
}

// Five digits to the base 3, the lowest first.
MOR_DEVICE u8 ternary_byte(const u8* codes, u64 count, u64 byte) {
  u32 packed = 0, weight = 1;
  for (u64 i = TERNARY_DIGITS * byte; i < least<u64>(count, TERNARY_DIGITS * (byte + 1)); i++, weight *= 3)
    packed += codes[i] * weight;
  return u8(packed);
}

// LVL-008; codes of no bits are digits.
MOR_KERNEL packed_levels(const u8* codes, u64 rows, u64 columns, u64 bytes, u32 bits, u8* packed) {
  for (u64 n = first_of_thread(); n < rows * bytes; n += threads_of_grid()) {
    const Division at = divided(n, bytes);
    const u8* row = codes + at.quotient * columns;
    packed[n] = bits ? byte_of(row, columns, bits, at.rest) : ternary_byte(row, columns, at.rest);
  }
}
MOR_EXPORT(packed_levels)

// SHX-007: the exponent, the shifts of pairs if there are any, and the codes of each block.
MOR_KERNEL packed_blocks(const u8* codes, const u8* tau, const u8* exponent, u64 rows, u64 columns, u32 bits, u32 shifts,
                         u8* packed) {
  const u64 across = (columns + PACKED_BLOCK - 1) / PACKED_BLOCK, pairs = (columns + 1) / 2, head = 1 + shifts;
  const u64 each = head + 2 * bits;
  for (u64 n = first_of_thread(); n < rows * across * each; n += threads_of_grid()) {
    const Division block = divided(n, each), row = divided(block.quotient, across);
    const u64 left = row.rest * PACKED_BLOCK, first = row.rest * PACKED_PAIRS;
    if (block.rest == 0)
      packed[n] = exponent[block.quotient];
    else if (block.rest < head)
      packed[n] = byte_of(tau + row.quotient * pairs + first, least<u64>(PACKED_PAIRS, pairs - first), 1, 0);
    else
      packed[n] = byte_of(codes + row.quotient * columns + left, least<u64>(PACKED_BLOCK, columns - left), bits,
                          block.rest - head);
  }
}
MOR_EXPORT(packed_blocks)
