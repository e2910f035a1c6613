// Finite magnitudes as significand * 2^unit.
#pragma once
#include "numbers.cuh"

MOR_DEVICE u32 significand_of(u32 bits) {
  const u32 fraction = bits & (Binary<u32>::hidden - 1);
  return bits >> 23 & 255 ? fraction | Binary<u32>::hidden : fraction;
}

MOR_DEVICE i32 unit_of(u32 bits) { return i32(most(bits >> 23 & 255, 1u)) - 150; }
