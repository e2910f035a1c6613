// States of FP8-LM: windows, shared scales of ranks, and automatic scaling. A thread has a row.
#include "blocks.cuh"
#include "fp8lm.cuh"
#include "kernels.cuh"

enum Fp8lmReduction { OF_PAPER, MSAMP_MIN, MSAMP_MAX, MSAMP_0_4_MAX };

MOR_DEVICE float scale_of(u32 amax, const Fp8lmScaling& how) {
  const float a = number(amax);
  return how.is_exact ? scale_exactly(a, 1.0f, how).scale : scale_of_msamp(a, 1.0f, how).scale;
}

// FLM-006: the largest number of the window after each step. A row has as many steps as numbers in its window.
MOR_KERNEL fp8lm_windows(const u32* amax, const u32* window, u64 rows, u64 steps, u32* largest) {
  for (u64 n = first_of_thread(); n < rows; n += threads_of_grid()) {
    const u32 *own = amax + n * steps, *before = window + n * steps;
    u32 newest = 0;
    for (u64 t = 0; t < steps; t++) {
      newest = most(newest, is_finite(own[t]) ? own[t] : 0u);
      u32 largest_in_window = newest;
      for (u64 k = t + 1; k < steps; k++) largest_in_window = most(largest_in_window, before[k]);
      largest[n * steps + t] = largest_in_window;
    }
  }
}
MOR_EXPORT(fp8lm_windows)

// FLM-007 and FLM-008: the scales of ranks, the shared one, its inverse by their number, and who is requantized.
// `by_root` is RN32(1 / sqrt(ranks)), computed in binary64.
MOR_KERNEL fp8lm_shared_scales(const u32* amax, u64 rows, u64 ranks, Fp8lmScaling how, u32 reduction, float by_root,
                               u32* rank_scale, u32* scale, u32* scale_inv, u8* requantized) {
  for (u64 n = first_of_thread(); n < rows; n += threads_of_grid()) {
    u32 largest = 0;
    float shared = number(Binary<u32>::infinity);
    for (u64 k = n * ranks; k < (n + 1) * ranks; k++) {
      const float own = scale_of(amax[k], how);
      rank_scale[k] = bits_of(own);
      if (own < shared) shared = own;
      largest = most(largest, amax[k]);  // NaN is above all
    }
    const float count = float(i32(ranks));
    if (reduction == MSAMP_MAX) shared = __fdiv_rn(scale_of(largest, how), __fsqrt_rn(count));
    if (reduction == MSAMP_0_4_MAX) shared = __fmul_rn(scale_of(largest, how), by_root);
    scale[n] = bits_of(shared);
    scale_inv[n] = bits_of(__fdiv_rn(__fdiv_rn(1.0f, shared), count));
    for (u64 k = n * ranks; k < (n + 1) * ranks; k++)
      requantized[k] = reduction != MSAMP_MIN || number(rank_scale[k]) != shared;
  }
}
MOR_EXPORT(fp8lm_shared_scales)

// FLM-010.
struct Fp8lmGrowth {
  u32 is_paper;
  float threshold, growth;
};

// FLM-010: mu after each step.
MOR_KERNEL fp8lm_mus(const u32* saturated, const u32* size, const u32* mu, u64 rows, u64 steps, Fp8lmGrowth how,
                     u32* next_mu) {
  for (u64 n = first_of_thread(); n < rows; n += threads_of_grid()) {
    float latest_mu = number(mu[n]);
    for (u64 t = n * steps; t < (n + 1) * steps; t++) {
      const bool too_many = how.is_paper
                                ? u64(saturated[t]) * 100000u > size[n]
                                : __fdiv_rn(float(i32(saturated[t])), float(i32(size[n]))) > how.threshold;
      latest_mu = too_many ? __fdiv_rn(latest_mu, 2.0f) : __fmul_rn(latest_mu, how.growth);
      next_mu[t] = bits_of(latest_mu);
    }
  }
}
MOR_EXPORT(fp8lm_mus)
