// Kernels that are wrong on purpose, and small ones that show what barriers and warps do.
#include "prelude.cuh"

#define KERNEL extern "C" __global__ void

// ---------------------------------------------------------------------- misuse

KERNEL different_barriers() {
  if (threadIdx.x < 32)
    __syncthreads();
  else
    __syncthreads();
}
MOR_EXPORT(different_barriers)

KERNEL barrier_for_some() {  // the others wait for the whole warp
  if (threadIdx.x % 32 < 16)
    __syncthreads();
  else
    __syncwarp();
}
MOR_EXPORT(barrier_for_some)

KERNEL lanes_that_have_ended(u32* out) {  // others are not waited for
  if (threadIdx.x % 32 >= 16) return;
  __syncwarp();
  out[threadIdx.x] = __ballot_sync(MOR_ALL_LANES, 1) + __shfl_xor_sync(MOR_ALL_LANES, threadIdx.x, 1);
}
MOR_EXPORT(lanes_that_have_ended)

KERNEL shuffle_from_the_ended(u32* out) {
  if (threadIdx.x % 32 >= 16) return;
  out[threadIdx.x] = __shfl_xor_sync(MOR_ALL_LANES, threadIdx.x, 16);
}
MOR_EXPORT(shuffle_from_the_ended)

KERNEL different_calls(u32* out) {
  if (threadIdx.x % 2)
    out[threadIdx.x] = __ballot_sync(MOR_ALL_LANES, 1);
  else
    out[threadIdx.x] = __shfl_xor_sync(MOR_ALL_LANES, threadIdx.x, 1);
}
MOR_EXPORT(different_calls)

KERNEL different_masks(u32* out) {
  out[threadIdx.x] = __ballot_sync(threadIdx.x % 2 ? MOR_ALL_LANES : MOR_ALL_LANES >> 1, 1);
}
MOR_EXPORT(different_masks)

KERNEL not_in_its_mask(u32* out) { out[threadIdx.x] = __ballot_sync(1, 1); }
MOR_EXPORT(not_in_its_mask)

KERNEL shuffle_from_outside(u32* out) {
  if (threadIdx.x < 16) out[threadIdx.x] = __shfl_xor_sync(0xFFFFu, threadIdx.x, 16);
}
MOR_EXPORT(shuffle_from_outside)

KERNEL old_values(u32* out) {
  MOR_SHARED(u32, first, 32);
  MOR_SHARED(u32, second, 32);
  out[(blockIdx.x * 2 + 0) * 32 + threadIdx.x] = first[threadIdx.x];
  out[(blockIdx.x * 2 + 1) * 32 + threadIdx.x] = second[threadIdx.x];
  first[threadIdx.x] = second[threadIdx.x] = 1;
}
MOR_EXPORT(old_values)

// ---------------------------------------------------------------------- races

KERNEL race_without_barrier(u32* out) {
  MOR_SHARED(u32, shared, 64);
  shared[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = shared[threadIdx.x ^ 33];
}
MOR_EXPORT(race_without_barrier)

KERNEL race_between_barriers(u32* out) {
  MOR_SHARED(u32, shared, 64);
  __syncthreads();
  shared[threadIdx.x] = threadIdx.x;
  const u32 other = shared[threadIdx.x ^ 33];
  __syncthreads();
  out[threadIdx.x] = other;
}
MOR_EXPORT(race_between_barriers)

KERNEL race_between_barriers_of_warps(u32* out) {
  MOR_SHARED(u32, shared, 64);
  __syncwarp();
  shared[threadIdx.x] = threadIdx.x;
  const u32 other = shared[threadIdx.x ^ 1];
  __syncwarp();
  out[threadIdx.x] = other;
}
MOR_EXPORT(race_between_barriers_of_warps)

KERNEL race_across_a_shuffle(u32* out) {  // which orders no memory
  MOR_SHARED(u32, shared, 64);
  shared[threadIdx.x] = threadIdx.x;
  const u32 lane = __shfl_xor_sync(MOR_ALL_LANES, threadIdx.x, 1);
  out[threadIdx.x] = shared[lane];
}
MOR_EXPORT(race_across_a_shuffle)

KERNEL race_between_blocks(u32* out) { out[threadIdx.x] = blockIdx.x; }
MOR_EXPORT(race_between_blocks)

// ---------------------------------------------------------------------- overruns

KERNEL beyond_an_array(u32* out, u32 count) {
  if (threadIdx.x <= count) out[threadIdx.x] = 1;
}
MOR_EXPORT(beyond_an_array)

KERNEL beyond_shared(u32* out, i32 offset, i32 in_second) {
  MOR_SHARED(u32, first, 32);
  MOR_SHARED(u32, second, 32);
  first[threadIdx.x] = second[threadIdx.x] = threadIdx.x;
  out[threadIdx.x] = (in_second ? second : first)[i32(threadIdx.x) + offset];
}
MOR_EXPORT(beyond_shared)

KERNEL shared_of_another_kernel(u32* out, u32 distance) {
  MOR_SHARED(u32, shared, 64);
  shared[threadIdx.x] = 1;
  out[threadIdx.x] = shared[threadIdx.x + distance];
}
MOR_EXPORT(shared_of_another_kernel)

KERNEL shifted_too_far(u32* out) { out[threadIdx.x] = 1u << (threadIdx.x + 1); }
MOR_EXPORT(shifted_too_far)

// ---------------------------------------------------------------------- right

KERNEL ended_threads_leave_barriers(u32* out, u32 count) {
  if (threadIdx.x >= count) return;
  __syncthreads();
  atomicAdd(out, 1u);
}
MOR_EXPORT(ended_threads_leave_barriers)

KERNEL order_of_threads(u32* count, u32* out) {
  const u32 before = atomicAdd(count, 1u);
  out[before] = blockIdx.x * blockDim.x + threadIdx.x;
  __syncthreads();
}
MOR_EXPORT(order_of_threads)

KERNEL ordered_by_barriers(u32* out) {
  MOR_SHARED(u32, shared, 64);
  shared[threadIdx.x] = threadIdx.x;
  __syncwarp();
  u32 sum = shared[threadIdx.x ^ 1];
  __syncthreads();
  shared[threadIdx.x] = sum;
  __syncthreads();
  sum += shared[threadIdx.x ^ 33];
  if (threadIdx.x >= 32) return;
  __syncthreads();
  shared[threadIdx.x + 32] = sum;
  __syncthreads();
  atomicAdd(out + threadIdx.x, sum + shared[63 - threadIdx.x]);
}
MOR_EXPORT(ordered_by_barriers)

KERNEL meetings(u64* out) {
  const u32 lane = threadIdx.x % 32;
  u64* own = out + threadIdx.x * 6;
  own[0] = __ballot_sync(MOR_ALL_LANES, lane % 3 == 0);
  own[1] = __any_sync(MOR_ALL_LANES, threadIdx.x == 40);
  own[2] = __shfl_xor_sync(MOR_ALL_LANES, u64(lane) << 40 | lane, 5);
  own[3] = __shfl_xor_sync(MOR_ALL_LANES, lane, 6, 4);
  own[4] = __syncthreads_or(threadIdx.x == 63) + 2 * __syncthreads_or(0);
  own[5] = lane < 16 ? __ballot_sync(0xFFFFu, 1) : __ballot_sync(0xFFFF0000u, lane % 2);
}
MOR_EXPORT(meetings)

KERNEL integer_atomics(u32* sum, u32* bits, u32* largest, u32* smallest) {
  atomicAdd(sum, threadIdx.x);
  atomicOr(bits, 1u << threadIdx.x % 32);
  atomicMax(largest, threadIdx.x);
  atomicMin(smallest, threadIdx.x);
}
MOR_EXPORT(integer_atomics)

KERNEL plain_arithmetic(const float* x, float* out) {
  out[0] = __fmul_rn(x[0], x[1]);
  out[1] = __fadd_rn(__fmul_rn(x[2], x[3]), x[4]);
}
MOR_EXPORT(plain_arithmetic)

// As another library may have left it: 0x9FC0 reads and writes no subnormal numbers.
#if defined(__x86_64__)
extern "C" __attribute__((visibility("default"))) u32 set_control(u32 control) {
  const u32 before = _mm_getcsr();
  _mm_setcsr(control);
  return before;
}
#endif
