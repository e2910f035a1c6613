// A launch: the blocks of a grid, one after another or on several threads of the CPU, in an order
// that is asked for. Kernels must not depend on it.
#pragma once
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

inline Place place_of(u64 number, Place size) {
  return {u32(number % size.x), u32(number / size.x % size.y), u32(number / (u64(size.x) * size.y))};
}

inline void order_threads(Block* block, u32 order) {
  const u32 count = block->count;
  for (u32 k = 0; k < count; k++) block->ready[k] = order == 1 ? count - 1 - k : k;
  if (order <= 1) return;
  u32 state = order * 2654435761u ^ block->place.x * 40503u ^ block->place.y * 9973u;
  for (u32 k = count - 1; k > 0; k--) {
    state = state * 1664525u + 1013904223u;
    std::swap(block->ready[k], block->ready[(state >> 8) % (k + 1)]);
  }
}

inline void begin_threads(Block* block) {
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
    // The tops of the stacks are spread, or all of them would share a few lines of the cache.
    char* top = block->stacks + (k + 1) * STACK - k * 5 % 61 * 64;
    prepare(thread.fiber, top, STACK / 2, run_thread);
    MOR_WATCHER(thread.fiber.watched = __tsan_create_fiber(0);)
  }
  MOR_WATCHER(block->home.watched = __tsan_get_current_fiber();)
}

// Whether all threads came to their end.
MOR_NOT_WATCHED inline bool run_block(Block* block, const Launch& launch) {
  block->alive = block->last = block->count;
  block->first = block->waiting = block->votes = block->voters = 0;
  block->error[0] = 0;
  forget_shared(block->shared, int(launch.filling));
  order_threads(block, launch.order);
  begin_threads(block);
  block->home.stack_pointer = home_of(block->home_stack);
  MOR_WATCHER(__tsan_release(&block->place);)
  current = &block->threads[block->ready[block->first++]];
  switch_to(block->home, current->fiber, true);
  MOR_WATCHER(__tsan_acquire(&block->home);)
  MOR_WATCHER(for (u32 k = 0; k < block->count; k++) __tsan_destroy_fiber(block->threads[k].fiber.watched);)
  current = nullptr;
  return !block->error[0];
}

struct Job {
  Launch& launch;
  void (*body)(void*);
  void* arguments;
  std::atomic<u64> next{0};
  std::atomic<bool> failed{false};
};

inline void work(Job& job) {
  PlainArithmetic plain;
  const Launch& launch = job.launch;
  Block* block = take_block();
  block->grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  block->size = {launch.block[0], launch.block[1], launch.block[2]};
  block->count = launch.block[0] * launch.block[1] * launch.block[2];
  block->body = job.body;
  block->arguments = job.arguments;
  const u64 blocks = u64(launch.grid[0]) * launch.grid[1] * launch.grid[2];
  for (u64 k; !job.failed && (k = job.next++) < blocks;) {
    block->place = place_of(launch.order == 1 ? blocks - 1 - k : k, block->grid);
    if (!run_block(block, launch) && !job.failed.exchange(true))
      memcpy(job.launch.error, block->error, sizeof block->error);
  }
  give_back(block);
}

inline int run(Launch& launch, void (*body)(void*), void* arguments) {
  launch.error[0] = 0;
  Job job{launch, body, arguments};
  std::vector<std::thread> others;
  for (u32 k = 1; k < launch.workers; k++) others.emplace_back(work, std::ref(job));
  work(job);
  for (std::thread& other : others) other.join();
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
