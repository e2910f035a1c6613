// Steps of FP8-LM on arrays of numbers, each with its own state.
#include "blocks.cuh"
#include "fp8lm.cuh"
#include "kernels.cuh"

MOR_KERNEL fp8lm_scales(const u32* amax, const u32* previous, u64 count, Fp8lmScaling how, u32* ratio, u32* exponent,
                        u32* scale, u32* scale_inv) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    const float a = number(amax[i]), p = number(previous[i]);
    const Fp8lmScale new_scale = how.is_exact ? scale_exactly(a, p, how) : scale_of_msamp(a, p, how);
    ratio[i] = bits_of(new_scale.ratio);
    exponent[i] = bits_of(new_scale.exponent);
    scale[i] = bits_of(new_scale.scale);
    scale_inv[i] = bits_of(__fdiv_rn(1.0f, new_scale.scale));
  }
}
MOR_EXPORT(fp8lm_scales)

// FLM-005: each number with a scale of its own.
#define CASTS(name, Code)                                                                                           \
  MOR_KERNEL fp8lm_casts_##name(const u32* x, const u32* scale, u64 count, Encoding to, Decoding from, Code* code,  \
                                u32* scale_inv, u32* y) {                                                           \
    for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {                                            \
      const float s = number(scale[i]), inverse = __fdiv_rn(1.0f, s);                                               \
      const u32 code_bits = encoded(bits_of(__fmul_rn(number(x[i]), s)), to);                                       \
      code[i] = Code(code_bits);                                                                                    \
      scale_inv[i] = bits_of(inverse);                                                                              \
      y[i] = bits_of(__fmul_rn(number(decoded(code_bits, from)), inverse));                                         \
    }                                                                                                               \
  }                                                                                                                 \
  MOR_EXPORT(fp8lm_casts_##name)
CASTS(u8, u8)
CASTS(u16, u16)

// A row has the codes of all ranks.
#define SUMS(name, Code)                                                                                      \
  MOR_KERNEL fp8lm_sums_##name(const Code* codes, u64 count, u64 ranks, Fp8lmSums how, Code* sum) {           \
    for (u64 i = first_of_thread(); i < count; i += threads_of_grid())                                        \
      sum[i] = Code(sum_of_ranks(codes + i * ranks, ranks, how));                                             \
  }                                                                                                           \
  MOR_EXPORT(fp8lm_sums_##name)
SUMS(u8, u8)
SUMS(u16, u16)

// The numbers of a step, an array each, and its results.
struct AdamStep {
  const u8* first;
  const u16 *second, *master;
  const u32 *gradient, *first_inverse, *second_inverse, *master_inverse, *lr, *beta1, *beta2, *eps, *weight_decay, *rate, *root;
  u32 *new_first, *new_second, *new_master;
};

// FLM-012 and FLM-013.
MOR_KERNEL fp8lm_adam(AdamStep step, u64 count, Decoding e4m3, Decoding f16) {
  for (u64 i = first_of_thread(); i < count; i += threads_of_grid()) {
    const float g = number(step.gradient[i]), decay = number(step.weight_decay[i]);
    const float m = moment(number(decoded(step.first[i], e4m3)), number(step.first_inverse[i]), number(step.beta1[i]), g);
    const float v = moment(number(decoded(step.second[i], f16)), number(step.second_inverse[i]), number(step.beta2[i]),
                           __fmul_rn(g, g));
    float w = __fmul_rn(number(decoded(step.master[i], f16)), number(step.master_inverse[i]));
    if (decay != 0.0f) w = __fmul_rn(w, __fsub_rn(1.0f, __fmul_rn(number(step.lr[i]), decay)));
    const float below = __fadd_rn(__fdiv_rn(__fsqrt_rn(v), number(step.root[i])), number(step.eps[i]));
    step.new_first[i] = bits_of(m);
    step.new_second[i] = bits_of(v);
    step.new_master[i] = bits_of(__fsub_rn(w, __fmul_rn(number(step.rate[i]), __fdiv_rn(m, below))));
  }
}
MOR_EXPORT(fp8lm_adam)
