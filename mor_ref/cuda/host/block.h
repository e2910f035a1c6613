// A block of CUDA threads on one thread of the CPU: they run in turn, and wait for one another at
// barriers and in the functions of warps. Undefined behaviour on a GPU is an error here.
#pragma once
#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <utility>

#include "fibers.h"
#include "memory.h"

namespace mor_host {

typedef uint32_t u32;
typedef unsigned long long u64;

struct Place { u32 x, y, z; };

// A line of a kernel. Calls of equal names are the same call wherever they are; without names they are if their lines are.
struct Where {
  const char* file;
  u32 line;
  const char* call = nullptr;
  static constexpr Where here(const char* file = __builtin_FILE(), u32 line = __builtin_LINE()) {
    return {file, line};
  }
  bool operator==(const Where& other) const {
    if (call && other.call) return !strcmp(call, other.call);
    return line == other.line && !strcmp(file, other.file);
  }
};

constexpr u32 MOST_THREADS = 1024, WARP = 32, MOST_WARPS = MOST_THREADS / WARP;

enum class Meeting : u32 { sync, shuffle, ballot };

struct Request {  // of one lane: what it asks for, with which mask, and from which lane
  Meeting kind;
  u32 mask, from;
  Where where;
  u64 value;
};

struct Warp {
  u32 exist, alive, arrived;  // lanes; `exist` is as the warp began
  Request requests[WARP];
  u64 answers[WARP];
};

struct Block;
struct Thread {
  Fiber fiber;
  Place place;
  u32 number, lane;
  Warp* warp;
  Block* block;
};

struct Block {
  Place place, size, grid;
  u32 count, alive, waiting;  // threads
  Where barrier;              // that some wait at
  u32 votes, voters, result, results;
  u32 parked[MOST_THREADS], ready[MOST_THREADS], first, last;
  Thread threads[MOST_THREADS];
  Warp warps[MOST_WARPS];
  Fiber home;
  HomeStack home_stack;
  Memory memory;
  void (*body)(void*);
  void* arguments;
  char error[200];
  Block* next_free;
};

inline thread_local Thread* current;

MOR_NOT_WATCHED inline void make_ready(Block* block, u32 number) {
  block->ready[block->last++ % MOST_THREADS] = number;
}

MOR_NOT_WATCHED inline void write_error(const Thread* self, const char* what, Where where) {
  Block* block = self->block;
  const char* slash = strrchr(where.file, '/');
  snprintf(block->error, sizeof block->error, "%s (%s:%u, block %u,%u,%u, thread %u)", what,
           slash ? slash + 1 : where.file, where.line, block->place.x, block->place.y, block->place.z,
           self->number);
}

// Lanes of a mask that do not wait, but for one that arrives or ends, else those that wait under another mask. Those that have
// ended are not waited for.
MOR_NOT_WATCHED inline u32 not_there(const Warp* warp, u32 mask, u32 but = 0) {
  u32 missing = mask & warp->alive & ~warp->arrived;
  if (missing & ~but) return missing & ~but;  // most come before others have
  for (u32 lane = 0; lane < WARP; lane++)
    if ((mask & warp->arrived) >> lane & 1 && ((warp->requests[lane].mask ^ mask) & warp->exist)) missing |= 1u << lane;
  return missing & ~but;
}

// All threads that are left wait. If some wait in a function of warps, the first of them whose mask
// has lanes that did not come is named.
MOR_NOT_WATCHED inline void report_waiting(Block* block) {
  const Thread* first = nullptr;
  u32 missing = 0;
  for (u32 k = 0; k < block->count && !missing; k++) {
    const Thread& thread = block->threads[k];
    if (!(thread.warp->arrived >> thread.lane & 1)) continue;
    missing = not_there(thread.warp, thread.warp->requests[thread.lane].mask);
    first = !first || missing ? &thread : first;
  }
  char what[160];
  int size = snprintf(what, sizeof what, "%u of %u threads wait for ever, %u of them at a barrier", block->alive,
                      block->count, block->waiting);
  if (first) snprintf(what + size, sizeof what - size, "; lanes %#x of its mask do not come to this call", missing);
  const Where where = first ? first->warp->requests[first->lane].where : block->barrier;
  write_error(first ? first : &block->threads[block->parked[0]], what, where);
}

// Leaves a thread that waits or has ended, for the next that can go on.
MOR_NOT_WATCHED __attribute__((noinline)) inline void go_on_with_another(Thread* self) {
  Block* block = self->block;
  if (block->first == block->last || block->error[0]) {
    if (!block->error[0] && block->alive) report_waiting(block);
    MOR_WATCHER(__tsan_release(&block->home);)
    switch_to(self->fiber, block->home);
  }
  Thread* next = &block->threads[block->ready[block->first++ % MOST_THREADS]];
  if (next == self) return;
  current = next;
  switch_to(self->fiber, next->fiber);
}

MOR_NOT_WATCHED [[noreturn]] inline void fail(const char* what, Where where) {
  write_error(current, what, where);
  go_on_with_another(current);
  __builtin_unreachable();
}

// For ThreadSanitizer, who arrives releases `waiting`, who completes the barrier takes that and
// releases `results`, and who wakes takes `results`: with one of them for both, a fast thread's next arrival
// would seem to come before a slow thread's wake, and races between two barriers would be hidden.
MOR_NOT_WATCHED inline void open_barrier(Block* block, u32 but) {
  MOR_WATCHER(__tsan_acquire(&block->waiting); __tsan_release(&block->results);)
  for (u32 k = 0; k < block->waiting; k++)
    if (block->parked[k] != but) make_ready(block, block->parked[k]);
  block->result = block->votes;
  block->results = block->voters;
  block->waiting = block->votes = block->voters = 0;
}

// Lets the other threads that can go on do so first, as a thread that waits for memory has to.
MOR_NOT_WATCHED inline void yield(Thread* self) {
  make_ready(self->block, self->number);
  go_on_with_another(self);
}

MOR_NOT_WATCHED inline void barrier(bool vote, Where where) {
  Thread* self = current;
  Block* block = self->block;
  if (block->waiting && !(block->barrier == where))
    fail("threads of a block wait at different barriers", where);
  block->barrier = where;
  block->votes += vote;
  block->voters++;
  block->parked[block->waiting++] = self->number;
  MOR_WATCHER(__tsan_release(&block->waiting);)
  if (block->waiting == block->alive) {
    open_barrier(block, self->number);
  } else {
    go_on_with_another(self);
    MOR_WATCHER(__tsan_acquire(&block->results);)
  }
}

MOR_NOT_WATCHED inline void answer(Warp* warp, const Request& own, u32 needed) {
  u32 votes = 0;
  for (u32 lane = 0; lane < WARP; lane++) {
    if (!(needed >> lane & 1)) continue;
    const Request& request = warp->requests[lane];
    const bool is_alike = own.kind == Meeting::sync || request.where == own.where;
    if (request.kind != own.kind || !is_alike) fail("lanes of a warp meet in different calls", own.where);
    votes |= u32(request.value != 0) << lane;
  }
  for (u32 lane = 0; lane < WARP; lane++) {
    if (!(needed >> lane & 1)) continue;
    u32 from = warp->requests[lane].from;
    if (own.kind == Meeting::shuffle && !(needed >> from & 1))
      fail(own.mask >> from & 1 ? "a shuffle reads a lane that has ended" : "a shuffle reads a lane that is not in its mask", own.where);
    warp->answers[lane] = own.kind == Meeting::shuffle ? warp->requests[from].value : votes;
  }
}

// All lanes have come to a call: they have its results, and those but one that goes on by itself are woken.
MOR_NOT_WATCHED inline void complete(Block* block, Warp* warp, const Request& own, u32 but) {
  const u32 needed = own.mask & warp->alive, first = u32(warp - block->warps) * WARP;
  MOR_WATCHER(if (own.kind == Meeting::sync) __tsan_acquire(warp);)
  answer(warp, own, needed);
  for (u32 lane = 0; lane < WARP; lane++) {
    if (!(needed >> lane & 1)) continue;
    MOR_WATCHER(if (own.kind == Meeting::sync) __tsan_release(&warp->answers[lane]);)
    if (lane != but) make_ready(block, first + lane);
  }
  warp->arrived &= ~needed;
}

// A lane has ended: others may have waited for it alone.
MOR_NOT_WATCHED inline void complete_without(Block* block, Warp* warp) {
  for (u32 lane = 0; lane < WARP; lane++)
    if (warp->arrived >> lane & 1 && !not_there(warp, warp->requests[lane].mask))
      complete(block, warp, warp->requests[lane], WARP);
}

// The functions of warps. Of these only __syncwarp orders memory, and lanes may come to it in different lines. A warp may
// wait under several masks at once.
MOR_NOT_WATCHED inline u64 meet(Meeting kind, u32 mask, u64 value, u32 from, Where where) {
  Thread* self = current;
  Warp* warp = self->warp;
  const u32 lane_bit = 1u << self->lane;
  if (!(mask & lane_bit)) fail("a lane is not in its own mask", where);
  warp->requests[self->lane] = {kind, mask, from, where, value};
  warp->arrived |= lane_bit;
  MOR_WATCHER(if (kind == Meeting::sync) __tsan_release(warp);)
  if (not_there(warp, mask)) go_on_with_another(self);
  else complete(self->block, warp, warp->requests[self->lane], self->lane);
  MOR_WATCHER(if (kind == Meeting::sync) __tsan_acquire(&warp->answers[self->lane]);)
  return warp->answers[self->lane];
}

MOR_NOT_WATCHED inline void run_thread() {
  Thread* self = current;
  Block* block = self->block;
  come_from(block->home);
  MOR_WATCHER(__tsan_acquire(&block->place);)
  block->body(block->arguments);
  MOR_WATCHER(__tsan_release(&block->home);)
  block->alive--;
  self->warp->alive &= ~(1u << self->lane);
  complete_without(block, self->warp);
  if (block->alive && block->waiting == block->alive) open_barrier(block, ~0u);
  go_on_with_another(self);
  __builtin_unreachable();
}

// Blocks keep their memory from launch to launch: to map it takes longer than most kernels.
inline Block* free_blocks;
inline std::mutex free_blocks_lock;

// None if there is no memory.
inline Block* take_block() {
  {
    std::lock_guard<std::mutex> guard(free_blocks_lock);
    if (Block* block = free_blocks) {
      free_blocks = block->next_free;
      return block;
    }
  }
  Block* block = static_cast<Block*>(calloc(1, sizeof(Block)));
  return block && map_memory(block->memory, MOST_THREADS) ? block : nullptr;
}

inline void give_back(Block* block) {
  std::lock_guard<std::mutex> guard(free_blocks_lock);
  block->next_free = free_blocks;
  free_blocks = block;
}

}  // namespace mor_host
