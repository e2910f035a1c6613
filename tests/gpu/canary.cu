// Plain arithmetic, which the options of the compiler decide about: as it is meant, nothing is fused,
// flushed or approximated.
extern "C" __global__ void canary(const float* x, const float* y, unsigned count, float* out) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i >= count) return;
  out[3 * i] = x[i] * y[i];
  out[3 * i + 1] = x[i] * y[i] - x[i];
  out[3 * i + 2] = x[i] / y[i];
}
