// A launch: the blocks of a grid, one after another or on several threads of the CPU, in an order
// that is asked for. Kernels must not depend on it.
#pragma once
#include <algorithm>
#include <thread>
#include <tuple>
#include <vector>

#if defined(__x86_64__)
#include <xmmintrin.h>
#endif

#include "block.h"

namespace mor_host {

struct Launch {  // as mor_ref.cuda.host has it
  u32 grid[3], block[3];
  u32 order;    // of the threads of a block: 0 ascending, 1 descending, else shuffled by this seed
  u32 filling;  // a byte that shared memory is filled with before each block
  u32 workers;
  char error[200];
};

// Round to nearest, and no flush to zero, whatever another library has set.
struct PlainArithmetic {
#if defined(__x86_64__)
  unsigned before = _mm_getcsr();
  PlainArithmetic() { _mm_setcsr(0x1F80); }
  ~PlainArithmetic() { _mm_setcsr(before); }
#endif
};

MOR_NOT_WATCHED inline Place place_of(u64 number, Place size) {
  return {u32(number % size.x), u32(number / size.x % size.y), u32(number / (u64(size.x) * size.y))};
}

MOR_NOT_WATCHED inline void order_threads(Block* block, u32 order) {
  const u32 count = block->count;
  for (u32 k = 0; k < count; k++) block->ready[k] = order == 1 ? count - 1 - k : k;
  if (order <= 1) return;
  u32 state = order * 2654435761u ^ block->place.x * 40503u ^ block->place.y * 9973u;
  for (u32 k = count - 1; k > 0; k--) {
    state = state * 1664525u + 1013904223u;
    std::swap(block->ready[k], block->ready[(state >> 8) % (k + 1)]);
  }
}

MOR_NOT_WATCHED inline void begin_threads(Block* block) {
  for (u32 k = 0; k < block->count; k++) {
    Thread& thread = block->threads[k];
    thread.place = place_of(k, block->size);
    thread.number = k;
    thread.lane = k % WARP;
    thread.warp = &block->warps[k / WARP];
    thread.block = block;
    if (!thread.lane) {
      const u32 left = block->count - k;
      thread.warp->exist = thread.warp->alive = left >= WARP ? ~0u : (1u << left) - 1;
      thread.warp->arrived = 0;
    }
    forget_stack(block->memory, k);
    // The tops of the stacks are spread, or all of them would share a few lines of the cache.
    char* top = block->memory.stacks + (k + 1) * STACK - k * 5 % 61 * 64;
    prepare(thread.fiber, top, STACK / 2, run_thread);
    MOR_WATCHER(if (!thread.fiber.watched) thread.fiber.watched = __tsan_create_fiber(0);)
  }
  MOR_WATCHER(block->home.watched = __tsan_get_current_fiber();)
}

// After an error, threads are in the middle of functions: ThreadSanitizer has to forget them.
MOR_NOT_WATCHED inline void forget_threads(Block* block) {
  for (u32 k = 0; k < block->count; k++) {
    Fiber& fiber = block->threads[k].fiber;
    MOR_WATCHER(__tsan_switch_to_fiber(fiber.watched, __tsan_switch_to_fiber_no_sync);)
    MOR_WATCHER(__tsan_release(&block->home);)
    MOR_WATCHER(__tsan_switch_to_fiber(block->home.watched, __tsan_switch_to_fiber_no_sync);)
    MOR_WATCHER(__tsan_destroy_fiber(fiber.watched);)
    fiber.watched = nullptr;
  }
}

// Whether all threads came to their end. Blocks on one thread of the CPU follow on one another;
// those of other workers are at the same time, to ThreadSanitizer too.
MOR_NOT_WATCHED inline bool run_block(Block* block, const Launch& launch) {
  block->alive = block->last = block->count;
  block->first = block->waiting = block->votes = block->voters = 0;
  block->error[0] = 0;
  forget_shared(block->memory.shared, int(launch.filling));
  order_threads(block, launch.order);
  begin_threads(block);
  block->home.stack_pointer = home_of(block->home_stack);
  block->home.size = 0;
  current = &block->threads[block->ready[block->first++]];
  MOR_WATCHER(__tsan_release(&block->place);)
  switch_to(block->home, current->fiber);
  if (block->error[0]) forget_threads(block);
  MOR_WATCHER(__tsan_acquire(&block->home);)
  current = nullptr;
  return !block->error[0];
}

struct Job {
  Launch& launch;
  void (*body)(void*);
  void* arguments;
  u64 blocks;  // of the grid
  std::atomic<bool> failed{false};
};

inline void refuse(Job& job, const char* why) {
  if (!job.failed.exchange(true)) snprintf(job.launch.error, sizeof job.launch.error, "%s", why);
}

// Every so many blocks of the grid, from the first on that is this worker's.
MOR_NOT_WATCHED inline void work(Job& job, Block* block, u64 first, u64 every) {
  PlainArithmetic plain;
  const Launch& launch = job.launch;
  block->grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  block->size = {launch.block[0], launch.block[1], launch.block[2]};
  block->count = launch.block[0] * launch.block[1] * launch.block[2];
  block->body = job.body;
  block->arguments = job.arguments;
  for (u64 k = first; k < job.blocks && !job.failed; k += every) {
    block->place = place_of(launch.order == 1 ? job.blocks - 1 - k : k, block->grid);
    if (!run_block(block, launch)) refuse(job, block->error);
  }
}

// The memory of all workers is taken before one of them begins, for locks would order them.
inline int run(Launch& launch, void (*body)(void*), void* arguments) {
  launch.error[0] = 0;
  const u64 threads = u64(launch.block[0]) * launch.block[1] * launch.block[2];
  Job job{launch, body, arguments, u64(launch.grid[0]) * launch.grid[1] * launch.grid[2]};
  if (!job.blocks || !threads || threads > MOST_THREADS)
    refuse(job, "a grid has at least one block, and a block 1 to 1024 threads");
  std::vector<Block*> blocks(job.failed ? 0 : std::max<u64>(1, std::min<u64>(launch.workers, job.blocks)));
  for (Block*& block : blocks) {
    block = take_block();
    if (block) guard_stacks(block->memory, threads);
    else refuse(job, "there is no memory for the stacks of threads");
  }
  std::vector<std::thread> others;
  for (u64 k = 1; k < blocks.size() && !job.failed; k++)
    others.emplace_back(work, std::ref(job), blocks[k], k, blocks.size());
  if (!job.failed) work(job, blocks[0], 0, blocks.size());
  for (std::thread& other : others) other.join();
  for (Block* block : blocks)
    if (block) give_back(block);
  return job.failed;
}

template <class... Types, size_t... Indices>
void call(void (*kernel)(Types...), void** arguments, std::index_sequence<Indices...>) {
  kernel(*static_cast<std::remove_reference_t<Types>*>(arguments[Indices])...);
}

// Each argument is where its value lies, as cuLaunchKernel takes them.
template <class... Types>
int launch_kernel(void (*kernel)(Types...), Launch* launch, void** arguments) {
  std::pair<void (*)(Types...), void**> both{kernel, arguments};
  return run(*launch, [](void* pointer) {
    auto* pair = static_cast<decltype(both)*>(pointer);
    call(pair->first, pair->second, std::index_sequence_for<Types...>{});
  }, &both);
}

}  // namespace mor_host
