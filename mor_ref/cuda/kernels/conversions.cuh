// The instructions of GPUs that convert two numbers at once to a small format, and back.
//
// They round to nearest, ties to even; they saturate, infinity included, and there is one NaN. Kernels use them where a rule
// asks for this, and write the rule out for all other formats, and for GPUs and CPUs without them.
#pragma once
#include "numbers.cuh"
#include "vectors.cuh"

enum Conversion : u32 { WRITTEN_OUT, OF_E4M3, OF_E5M2, OF_E3M2, OF_E2M3, OF_E2M1, OF_POWERS_UP, OF_POWERS_DOWN };

#if defined(__CUDA_ARCH__) && __CUDA_ARCH__ >= 890
#define MOR_CONVERTS_BYTES
#if __CUDA_ARCH__ >= 1000 && defined(__CUDA_ARCH_SPECIFIC__)
#define MOR_CONVERTS_ALL
#endif
#endif

// `codes` has the first of two codes in its lower bits. The numbers that codes stand for are exact in binary16.
template <u32 OF> struct Instruction;
#define MOR_INSTRUCTION(OF, BITS, TO, FROM)                                                          \
  template <> struct Instruction<OF> {                                                               \
    static constexpr u32 bits = BITS;                                                                \
    static MOR_MEMBER u32 codes(float first, float second) {                                         \
      u16 both;                                                                                      \
      asm(TO : "=h"(both) : "f"(first), "f"(second));                                                \
      return both;                                                                                   \
    }                                                                                                \
    static MOR_MEMBER void numbers(u32 codes, float& first, float& second) {                         \
      asm("{ .reg .b16 low, high; .reg .b32 both; " FROM " mov.b32 {low, high}, both; "              \
          "cvt.f32.f16 %0, low; cvt.f32.f16 %1, high; }"                                             \
          : "=f"(first), "=f"(second) : "h"(u16(codes)));                                            \
    }                                                                                                \
  };
#define MOR_BYTES(OF, name)                                                                          \
  MOR_INSTRUCTION(OF, 8, "cvt.rn.satfinite." name "x2.f32 %0, %2, %1;", "cvt.rn.f16x2." name "x2 both, %2;")
#if defined(MOR_CONVERTS_BYTES)
MOR_BYTES(OF_E4M3, "e4m3")
MOR_BYTES(OF_E5M2, "e5m2")
#endif
#if defined(MOR_CONVERTS_ALL)
MOR_BYTES(OF_E3M2, "e3m2")
MOR_BYTES(OF_E2M3, "e2m3")
MOR_INSTRUCTION(OF_E2M1, 4,
                "{ .reg .b8 two; cvt.rn.satfinite.e2m1x2.f32 two, %2, %1; cvt.u16.u8 %0, two; }",
                ".reg .b8 two; cvt.u8.u16 two, %2; cvt.rn.f16x2.e2m1x2 both, two;")
#endif
// Magnitudes as powers of two, which are rounded up or toward zero.
#define MOR_POWERS(OF, mode)                                                                          \
  template <> struct Instruction<OF> {                                                               \
    static constexpr u32 bits = 8;                                                                   \
    static MOR_MEMBER u32 codes(float first, float second) {                                         \
      u16 both;                                                                                      \
      asm("cvt." mode ".satfinite.ue8m0x2.f32 %0, %2, %1;" : "=h"(both) : "f"(first), "f"(second));  \
      return both;                                                                                   \
    }                                                                                                \
  };
#if defined(MOR_CONVERTS_ALL)
MOR_POWERS(OF_POWERS_UP, "rp")
MOR_POWERS(OF_POWERS_DOWN, "rz")
#endif

// Calls `use` with the instructions of a conversion, or else `write_out`.
template <class Use, class WriteOut>
MOR_DEVICE void convert_by([[maybe_unused]] u32 conversion, [[maybe_unused]] Use use, WriteOut write_out) {
  switch (conversion) {
#if defined(MOR_CONVERTS_BYTES)
    case OF_E4M3: return use(Instruction<OF_E4M3>());
    case OF_E5M2: return use(Instruction<OF_E5M2>());
#endif
#if defined(MOR_CONVERTS_ALL)
    case OF_E3M2: return use(Instruction<OF_E3M2>());
    case OF_E2M3: return use(Instruction<OF_E2M3>());
    case OF_E2M1: return use(Instruction<OF_E2M1>());
#endif
    default: return write_out();
  }
}

template <class Use, class WriteOut>
MOR_DEVICE void convert_powers_by([[maybe_unused]] u32 conversion, [[maybe_unused]] Use use, WriteOut write_out) {
#if defined(MOR_CONVERTS_ALL)
  if (conversion == OF_POWERS_UP) return use(Instruction<OF_POWERS_UP>());
  if (conversion == OF_POWERS_DOWN) return use(Instruction<OF_POWERS_DOWN>());
#endif
  write_out();
}

// The codes of numbers, and the numbers that they stand for.
template <class Of, u32 COUNT> MOR_DEVICE void convert_to(Of, const float (&x)[COUNT], Words<u8, COUNT>& codes) {
  MOR_UNROLL
  for (u32 k = 0; k < COUNT; k += 2) {
    const u32 both = Of::codes(x[k], x[k + 1 < COUNT ? k + 1 : k]), mask = (1u << Of::bits) - 1;
    codes.put_two(k, Of::bits == 8 ? both : (both & mask) | (both & ~mask) << (8 - Of::bits));
  }
}
template <class Of, u32 COUNT> MOR_DEVICE void convert_from(Of, const Words<u8, COUNT>& codes, float (&numbers)[COUNT]) {
  MOR_UNROLL
  for (u32 k = 0; k < COUNT; k += 2) {
    const u32 next = k + 1 < COUNT ? k + 1 : k;
    float first, second;
    Of::numbers(codes.number(k) | u32(codes.number(next)) << Of::bits, first, second);
    numbers[next] = second;
    numbers[k] = first;
  }
}
