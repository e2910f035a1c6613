// The conversions of hardware against the integer encoder: how many inputs differ, and the first.
// Each kernel takes inputs from `first` on, and puts each into both halves of a pair.
#include "blocks.cuh"
#include "encoding.cuh"

template <class Convert>
MOR_DEVICE void compare(u64 first, u64 count, const Encoding& to, u32 code_bits, u64* different, u64* at,
                        Convert convert) {
  for (u64 i = first + first_of_thread(); i < first + count; i += threads_of_grid()) {
    const u32 ours = encoded(u32(i), to), pair = convert(number(u32(i)));
    if (pair == (ours | ours << code_bits)) continue;
    atomicAdd(different, 1ull);
    atomicMin(at, i);
  }
}

#define COMPARE(name, code_bits, statement)                                                               \
  extern "C" __global__ void name(u64 first, u64 count, Encoding to, u64* different, u64* at) {           \
    compare(first, count, to, code_bits, different, at, [](float x) {                                     \
      u32 pair;                                                                                           \
      asm(statement : "=r"(pair) : "f"(x));                                                               \
      return pair;                                                                                        \
    });                                                                                                   \
  }
#define PAIR_OF_BYTES(kind) \
  "{ .reg .b16 two; cvt.rn.satfinite." kind "x2.f32 two, %1, %1; cvt.u32.u16 %0, two; }"

#if __CUDA_ARCH__ >= 800
COMPARE(bf16, 16, "cvt.rn.bf16x2.f32 %0, %1, %1;")
#endif
#if __CUDA_ARCH__ >= 890
COMPARE(e4m3, 8, PAIR_OF_BYTES("e4m3"))
COMPARE(e5m2, 8, PAIR_OF_BYTES("e5m2"))
#endif
#if defined(MOR_NARROW)  // architectures whose name ends with an "a", from sm_100a on
COMPARE(e2m3, 8, PAIR_OF_BYTES("e2m3"))
COMPARE(e3m2, 8, PAIR_OF_BYTES("e3m2"))
COMPARE(e2m1, 4, "{ .reg .b8 two; cvt.rn.satfinite.e2m1x2.f32 two, %1, %1; cvt.u32.u8 %0, two; }")

template <class Convert>
MOR_DEVICE void compare_powers(u64 first, u64 count, const PowerEncoding& to, u64* different, u64* at,
                               Convert convert) {
  for (u64 i = first + first_of_thread(); i < first + count; i += threads_of_grid()) {
    const u32 ours = encoded_as_power_of_two(u32(i), to);
    if (convert(number(u32(i))) == (ours | ours << 8)) continue;
    atomicAdd(different, 1ull);
    atomicMin(at, i);
  }
}

#define COMPARE_POWERS(mode)                                                                              \
  extern "C" __global__ void e8m0_##mode(u64 first, u64 count, PowerEncoding to, u64* different, u64* at) { \
    compare_powers(first, count, to, different, at, [](float x) {                                         \
      u32 pair;                                                                                           \
      asm("{ .reg .b16 two; cvt." #mode ".satfinite.ue8m0x2.f32 two, %1, %1; cvt.u32.u16 %0, two; }"      \
          : "=r"(pair)                                                                                    \
          : "f"(x));                                                                                      \
      return pair;                                                                                        \
    });                                                                                                   \
  }
COMPARE_POWERS(rp)
COMPARE_POWERS(rz)
#endif
