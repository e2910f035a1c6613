// Encoding, from the input's own bits (ENC-001), element by element.
#include "elementwise.cuh"
#include "encoding.cuh"
#include "kernels.cuh"

template <class Source, class Code, class Encoding>
MOR_DEVICE void encode(const typename Source::Stored* x, u64 count, const Encoding& to, Code* codes) {
  convert_all(x, count, codes, [&](u64, const auto& numbers, auto& run_codes) { encode_run<Source>(numbers, to, run_codes); });
}

template <class Source, class Code>
MOR_DEVICE void encode_at_random(const typename Source::Stored* x, const u32* random_words, i32 random_bits, u64 count,
                                 const Encoding& to, Code* codes) {
  convert_all(x, count, codes, [&](u64 i, const auto& numbers, auto& run_codes) {
    for (u32 k = 0; k < length(run_codes); k++)
      run_codes[k] = Code(encoded(Source::word(numbers[k]), to, random_words[i + k], random_bits));
  });
}

#define ENCODE(name, Source, code, Code)                                                                     \
  MOR_KERNEL encode_##name##_##code(const Source::Stored* x, u64 count, Encoding to, Code* codes) {              \
    encode<Source>(x, count, to, codes);                                                                     \
  }                                                                                                          \
  MOR_KERNEL encode_at_random_##name##_##code(const Source::Stored* x, const u32* random_words, i32 random_bits, \
                                          u64 count, Encoding to, Code* codes) {                             \
    encode_at_random<Source>(x, random_words, random_bits, count, to, codes);                                \
  }                                                                                                          \
  MOR_EXPORT(encode_##name##_##code)                                                                         \
  MOR_EXPORT(encode_at_random_##name##_##code)
#define FROM(name, Source)                                                                      \
  ENCODE(name, Source, u8, u8)                                                                  \
  ENCODE(name, Source, u16, u16)                                                                \
  ENCODE(name, Source, u32, u32)                                                                \
  MOR_KERNEL encode_as_powers_##name(const Source::Stored* x, u64 count, PowerEncoding to, u8* codes) { \
    encode<Source>(x, count, to, codes);                                                        \
  }                                                                                             \
  MOR_EXPORT(encode_as_powers_##name)
FROM(f32, F32)
FROM(bf16, Bf16)
FROM(f16, F16)
FROM(f64, F64)
