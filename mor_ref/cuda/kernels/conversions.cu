// Encoding and decoding, element by element.
#include "decoding.cuh"
#include "encoding.cuh"

constexpr u32 THREADS_OF_A_BLOCK = 256;

// Gives `visit` each element that is this thread's; 16 bytes are loaded at once where they can be.
template <class Stored, class Visit> MOR_DEVICE void visit_all(const Stored* x, u64 count, Visit visit) {
  constexpr u32 each = 16 / sizeof(Stored);
  union Loaded { uint4 whole; Stored numbers[each]; };
  const u64 start = u64(blockIdx.x) * blockDim.x + threadIdx.x, step = u64(gridDim.x) * blockDim.x;
  const u64 wide = reinterpret_cast<u64>(x) % 16 ? 0 : count / each;
  for (u64 i = start; i < wide; i += step) {
    Loaded loaded;
    loaded.whole = reinterpret_cast<const uint4*>(x)[i];
    for (u32 k = 0; k < each; k++) visit(i * each + k, loaded.numbers[k]);
  }
  for (u64 i = wide * each + start; i < count; i += step) visit(i, x[i]);
}

template <class Source, class Code>
MOR_DEVICE void encode(const typename Source::Stored* x, u64 count, const Encoding& to, Code* codes) {
  visit_all(x, count, [&](u64 i, typename Source::Stored bits) { codes[i] = Code(encoded(Source::word(bits), to)); });
}

template <class Source, class Code>
MOR_DEVICE void encode_at_random(const typename Source::Stored* x, const u32* random_words, i32 random_bits, u64 count,
                                 const Encoding& to, Code* codes) {
  visit_all(x, count, [&](u64 i, typename Source::Stored bits) {
    codes[i] = Code(encoded(Source::word(bits), to, random_words[i], random_bits));
  });
}

template <class Source>
MOR_DEVICE void encode_as_powers(const typename Source::Stored* x, u64 count, const PowerEncoding& to, u8* codes) {
  visit_all(x, count, [&](u64 i, typename Source::Stored bits) {
    codes[i] = u8(encoded_as_power_of_two(Source::word(bits), to));
  });
}

#define KERNEL extern "C" __global__ void __launch_bounds__(THREADS_OF_A_BLOCK)
#define ENCODE(name, Source, code, Code)                                                                     \
  KERNEL encode_##name##_##code(const Source::Stored* x, u64 count, Encoding to, Code* codes) {              \
    encode<Source>(x, count, to, codes);                                                                     \
  }                                                                                                          \
  KERNEL encode_at_random_##name##_##code(const Source::Stored* x, const u32* random_words, i32 random_bits, \
                                          u64 count, Encoding to, Code* codes) {                             \
    encode_at_random<Source>(x, random_words, random_bits, count, to, codes);                                \
  }                                                                                                          \
  MOR_EXPORT(encode_##name##_##code)                                                                         \
  MOR_EXPORT(encode_at_random_##name##_##code)
#define FROM(name, Source)                                                                      \
  ENCODE(name, Source, u8, u8)                                                                  \
  ENCODE(name, Source, u16, u16)                                                                \
  ENCODE(name, Source, u32, u32)                                                                \
  KERNEL encode_as_powers_##name(const Source::Stored* x, u64 count, PowerEncoding to, u8* codes) { \
    encode_as_powers<Source>(x, count, to, codes);                                              \
  }                                                                                             \
  MOR_EXPORT(encode_as_powers_##name)
FROM(f32, F32)
FROM(bf16, Bf16)
FROM(f16, F16)
FROM(f64, F64)

#define DECODE(code, Code)                                                                   \
  KERNEL decode_##code(const Code* codes, u64 count, Decoding from, u32* numbers) {          \
    visit_all(codes, count, [&](u64 i, Code bits) { numbers[i] = decoded(bits, from); });    \
  }                                                                                          \
  MOR_EXPORT(decode_##code)
DECODE(u8, u8)
DECODE(u16, u16)
DECODE(u32, u32)
