// Runs a translated kernel: its blocks, its barriers, and its copies to shared memory.
#include <signal.h>

#include <algorithm>
#include <vector>

#include "contraction.h"
#include "launch.h"
#include "shared_bytes.h"

namespace ptx {

// A copy to shared memory that a thread has begun, and all of them; groups are numbered as they end.
struct Copy {
  u64 to, from;
  u32 size, taken, line, group;
  struct Bytes { u8 of[16]; } begun;  // of the source
};
struct Copies {
  std::vector<Copy> waiting;
  u32 group = 0;
};

namespace {

struct SharedRange { u32 begin, size; };

struct Job {
  void (*kernel)(Machine&);
  u64 globals;
  const void* parameters;
  u64 parameters_size;
  const Region* regions;
  u64 region_count;
  const SharedRange* shared;
  u64 shared_count, shared_size, dynamic_shared;
  const End* ends;
  Noted* noted;
  u8* options;
  u64 seed, products;
  u32 filling, refuses;
  u64 executed;  // instructions, of all threads
  u64 patience;
};

// The shared memory of the block that runs on this thread of the CPU.
struct Arena {
  std::vector<u64> memory;
  SharedBytes bytes;
  u32 number = 0;  // of the barrier that threads wait at
  u64 vain = 0;  // looks at memory
  bool counted = false;  // it has a number of threads
  mor_host::Where waits[mor_host::MOST_THREADS];  // of each thread at the barrier
  u32 fragments[mor_host::MOST_WARPS][32][FRAGMENT];
  std::vector<Products> products;  // of each thread
  const Job* job = nullptr;
  mor_host::Place place{};
  bool begun = false;
};
thread_local Arena arena;

// A barrier of all threads does not wait for those that have ended; one with a number of threads does.
void barrier_at(const char* call, bool aligned, bool counted, u32 line, u32 number, bool vote, u32 (&result)[2]) {
  mor_host::Thread* self = mor_host::current;
  mor_host::Block* block = self->block;
  thread_local char what[160];
  if (number > 15) fail_at(line, "a block has the barriers 0 to 15");
  if (counted && block->alive != block->count) {
    snprintf(what, sizeof what, "%u of %u threads ended before they came to this barrier, which has a count of threads", block->count - block->alive, block->count);
    fail_at(line, what);
  }
  if (block->waiting && arena.number != number) {
    snprintf(what, sizeof what, "other threads wait at barrier %u, in line %u", arena.number, block->barrier.line);
    fail_at(line, what);
  }
  const mor_host::Where own = {"ptx", line, call};
  for (u32 k = 0; aligned && k < block->waiting; k++) {
    const mor_host::Where& other = arena.waits[block->parked[k]];
    if (block->parked[k] / 32 == self->number / 32 && !(other == own)) {
      snprintf(what, sizeof what, "thread %u of the same warp waits at another barrier, in line %u", block->parked[k], other.line);
      fail_at(line, what);
    }
  }
  block->barrier = arena.waits[self->number] = own;
  arena.number = number, arena.counted = (block->waiting && arena.counted) || counted;
  block->votes += vote;
  block->voters++;
  block->parked[block->waiting++] = self->number;
  if (block->waiting == block->alive) {
    arena.bytes.epoch++;
    mor_host::open_barrier(block, self->number);
  } else {
    mor_host::go_on_with_another(self);
  }
  result[0] = block->result, result[1] = block->results;
}

// The lanes that are left have seen each other's writes. If all of them meet, they need not know those that have ended.
void note_meeting(const mor_host::Thread* self, u32 lanes, u32 mask) {
  if (!mor_host::not_there(self->warp, mask, 1u << self->lane)) arena.bytes.times[self->number / 32].meet(mask & lanes, self->warp->exist);
}

// Others may wait for a thread that ends, and meet without it.
void leave_warp(const mor_host::Thread* self) {
  const mor_host::Warp* warp = self->warp;
  const u32 left = warp->alive & ~(1u << self->lane);
  for (u32 lane = 0; lane < 32; lane++) {
    const mor_host::Request& request = warp->requests[lane];
    const bool waits = warp->arrived >> lane & 1 && request.kind == mor_host::Meeting::sync;
    if (waits && request.mask >> self->lane & 1) return note_meeting(self, left, request.mask);
  }
}

u64 meet_at(const char* call, Meeting kind, u32 mask, u64 value, u32 from, u32 line) {
  const mor_host::Thread* self = mor_host::current;
  if (kind == Meeting::sync) note_meeting(self, self->warp->alive, mask);
  return mor_host::meet(mor_host::Meeting(u32(kind)), mask, value, from, {"ptx", line, call});
}

void touch_at(Machine& m, u64 offset, u32 size, Touch kind, u32 line, const void* fresh) {
  arena.bytes.touch(m, offset, size, kind, line, fresh);
}

constexpr u64 OF_CALLS = 28 * 1024;  // bytes of the stack; with as many below them for the last function
constexpr u64 MOST_LOCAL = 1 << 20;  // more than a stack has
constexpr u64 ALIGNED = 1024;  // as far as any declaration asks for

Copy::Bytes copied(const Copy& one) {
  Copy::Bytes found = {};
  if (one.taken) memcpy(found.of, reinterpret_cast<const void*>(one.from), one.taken);
  return found;
}

void copy_later_at(Machine& m, u64 to, u64 from, u32 size, u32 taken, u32 line) {
  Copy one = {to, from, size, taken, line, m.copies->group, {}};
  one.begun = copied(one);
  arena.bytes.begin_copy(m, to, size, line, one.begun.of);
  m.copies->waiting.push_back(one);
}

void commit_at(Machine& m) { m.copies->group++; }

// Copies of a group that was not ended are waited for only with all others.
void wait_at(Machine& m, u32 groups, bool all) {
  std::vector<Copy> later;
  for (const Copy& copy : m.copies->waiting) {
    if (!all && copy.group + groups >= m.copies->group) {
      later.push_back(copy);
      continue;
    }
    const Copy::Bytes now = copied(copy);
    if (memcmp(now.of, copy.begun.of, sizeof now.of)) fail_at(copy.line, "a race: its source is written before the copy was waited for");
    arena.bytes.end_copy(m, copy.to, copy.size, copy.line, now.of);
    memcpy(reinterpret_cast<void*>(m.shared + copy.to), now.of, copy.size);
  }
  m.copies->waiting.swap(later);
}

void yield_at() { mor_host::yield(mor_host::current); }

constexpr Calls CALLS = {fail_at, barrier_at, meet_at, touch_at, copy_later_at, commit_at, wait_at, yield_at};

// An interrupt ends all launches; what the process does with one is done when they have ended.
volatile u8 interrupted;
std::mutex interrupts;
u32 launches;
struct sigaction before;

void interrupt(int) { interrupted = 1; }

struct Interruptible {
  Interruptible() {
    std::lock_guard<std::mutex> guard(interrupts);
    if (launches++) return;
    sigaction(SIGINT, nullptr, &before);
    if (before.sa_handler == SIG_DFL || before.sa_handler == SIG_IGN) return;
    struct sigaction own = {};
    own.sa_handler = interrupt;
    sigaction(SIGINT, &own, nullptr);
  }
  ~Interruptible() {
    std::lock_guard<std::mutex> guard(interrupts);
    if (--launches) return;
    sigaction(SIGINT, &before, nullptr);
    if (interrupted) raise(SIGINT);
    interrupted = 0;
  }
};

void prepare_arena(const Job& job) {
  arena.memory.resize((job.shared_size + 2 * ALIGNED) / 8);
  arena.bytes.prepare(job.shared_size, u8(job.filling));
  for (u64 k = 0; k < job.shared_count; k++) arena.bytes.declare(job.shared[k].begin, job.shared[k].size);
}

// The first thread of a block that runs has to forget what the block before it left.
void begin_block(const Job& job, const mor_host::Block* block) {
  const bool same = arena.place.x == block->place.x && arena.place.y == block->place.y && arena.place.z == block->place.z;
  if (arena.begun && same && arena.job == &job) return;
  if (arena.job != &job || !arena.begun) prepare_arena(job);
  arena.job = &job;
  arena.place = block->place;
  arena.begun = true;
  arena.bytes.begin_block();
  memset(arena.memory.data(), int(job.filling), 8 * arena.memory.size());
  if (job.products) arena.products.assign(job.products * block->count, Products{});
}

void copy(u32 (&to)[3], mor_host::Place from) { to[0] = from.x, to[1] = from.y, to[2] = from.z; }

void run_thread(void* pointer) {
  Job& job = *static_cast<Job*>(pointer);
  mor_host::Thread* self = mor_host::current;
  mor_host::Block* block = self->block;
  begin_block(job, block);
  static const Region none = {0, 0, 0};
  Machine m = {};
  Copies copies;
  m.calls = &CALLS;
  copy(m.tid, self->place), copy(m.ntid, block->size), copy(m.ctaid, block->place), copy(m.nctaid, block->grid);
  m.thread = self->number, m.lane = self->lane, m.warp = self->number / 32, m.warps = (block->count + 31) / 32;
  m.shared = (u64(arena.memory.data()) + ALIGNED - 1) / ALIGNED * ALIGNED;
  m.local = u64(__builtin_frame_address(0)) / ALIGNED * ALIGNED - MOST_LOCAL;
  m.shared_size = job.shared_size, m.dynamic_shared = job.dynamic_shared;
  m.parameters = u64(job.parameters), m.parameters_size = job.parameters_size, m.globals = job.globals;
  m.interrupted = &interrupted, m.vain = &arena.vain, m.patience = job.patience, *m.vain = 0;
  go_round(m, 0);
  m.fragments = arena.fragments[m.warp], m.copies = &copies;
  m.stack_end = u64(__builtin_frame_address(0)) - OF_CALLS;
  m.regions = job.regions, m.last = &none, m.region_count = u32(job.region_count);
  m.ends = job.ends, m.noted = job.noted, m.options = job.options, m.refuses = job.refuses;
  m.products = arena.products.data() + job.products * self->number;
  m.seed = job.seed;
  job.kernel(m);
  *m.vain = 0;
  wait_at(m, 0, true);
  __atomic_fetch_add(&job.executed, m.executed, __ATOMIC_RELAXED);
  thread_local char what[160];
  if (job.refuses && arena.bytes.unwritten && block->alive == 1) {
    mor_host::current->number = arena.bytes.reader;  // the error names the thread that read, not the last one
    fail_at(arena.bytes.unwritten, "it reads shared memory that was not written, and PTX leaves its bits open");
  }
  leave_warp(self);
  if (!block->waiting) return;
  if (!arena.counted) {
    if (block->waiting == block->alive - 1) arena.bytes.epoch++;  // this thread was the last one that is waited for
    return;
  }
  snprintf(what, sizeof what, "thread %u ends, and %u threads wait at this barrier for it", self->number, block->waiting);
  fail_at(block->barrier.line, what);
}

}  // namespace
}  // namespace ptx

extern "C" __attribute__((visibility("default"))) int mor_ptx_run(mor_host::Launch* launch, ptx::Job* job) {
  ptx::arena.begun = false;
  const ptx::Interruptible until_the_end;
  return mor_host::run(*launch, ptx::run_thread, job);
}
