// Runs a translated kernel: its blocks, its barriers, and its shared memory, byte by byte.
#include <signal.h>

#include <algorithm>
#include <vector>

#include "contraction.h"
#include "launch.h"

namespace ptx {

// A copy to shared memory that a thread has begun, and all of them; groups are numbered as they end.
struct Copy {
  u64 to, from;
  u32 size, taken, line, group;
};
struct Copies {
  std::vector<Copy> waiting;
  u32 group = 0;
};

namespace {

// What a byte of shared memory has seen since the last barrier of its block (`epoch`).
struct Byte {
  u32 write_epoch, write_time, write_line, read_epoch, read_line;
  u32 readers;      // warps
  u32 read_lanes;   // of the warp that read last, since the last write
  u16 writer, read_warp;
  u8 is_strong, is_strong_read, exists;
};

// The time of a warp is counted in its barriers. A lane knows what another did if a barrier of both came after it, directly
// or through lanes that met both.
struct WarpTime {
  u32 now = 1, all = 0;  // `all` is the last barrier of all lanes
  u32 known[32][32] = {};
  bool knows(u32 lane, u32 other, u32 time) const { return lane == other || all >= time || known[lane][other] >= time; }
  void meet(u32 lanes, u32 exist) {
    const u32 time = now++;
    if (lanes == exist) {
      all = time;
      return;
    }
    u32 joint[32] = {};
    for (u32 lane = 0; lane < 32; lane++)
      for (u32 k = 0; (lanes >> lane & 1) && k < 32; k++) joint[k] = std::max(joint[k], lanes >> k & 1 ? time : known[lane][k]);
    for (u32 lane = 0; lane < 32; lane++)
      if (lanes >> lane & 1) memcpy(known[lane], joint, sizeof joint);
  }
};

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
  u64 seed, products;
  u32 filling, refuses;
  u64 executed;  // instructions, of all threads
};

// The shared memory of the block that runs on this thread of the CPU.
struct Arena {
  std::vector<u64> memory;
  std::vector<Byte> bytes;
  std::vector<u32> read_times;  // of each byte and lane
  u32 epoch = 0, number = 0, first = 0;  // the epoch in which the block began
  u32 unwritten = 0, reader = 0;  // the first line that read what nothing wrote, and its thread
  WarpTime times[mor_host::MOST_WARPS] = {};
  u32 fragments[mor_host::MOST_WARPS][32][FRAGMENT];
  std::vector<Products> products;  // of each thread
  const Job* job = nullptr;
  mor_host::Place place{};
  bool begun = false;
};
thread_local Arena arena;

mor_host::Where at(u32 line) { return {"ptx", line}; }

[[noreturn]] void fail_at(u32 line, const char* what) { mor_host::fail(what, at(line)); }

void barrier_at(bool aligned, u32 line, u32 number, bool vote, u32* votes) {
  mor_host::Thread* self = mor_host::current;
  mor_host::Block* block = self->block;
  thread_local char what[160];
  if (block->alive != block->count) {
    snprintf(what, sizeof what, "%u of %u threads ended before they came to this barrier", block->count - block->alive, block->count);
    fail_at(line, what);
  }
  if (block->waiting && arena.number != number) {
    snprintf(what, sizeof what, "other threads wait at barrier %u, in line %u", arena.number, block->barrier.line);
    fail_at(line, what);
  }
  for (u32 k = 0; aligned && k < block->waiting; k++)
    if (block->parked[k] / 32 == self->number / 32 && block->barrier.line != line) {
      snprintf(what, sizeof what, "thread %u of the same warp waits at another barrier, in line %u", block->parked[k], block->barrier.line);
      fail_at(line, what);
    }
  block->barrier = at(line);
  arena.number = number;
  block->votes += vote;
  block->voters++;
  block->parked[block->waiting++] = self->number;
  if (block->waiting == block->alive) {
    arena.epoch++;
    mor_host::open_barrier(block, self->number);
  } else {
    mor_host::go_on_with_another(self);
  }
  *votes = block->result;
}

u64 meet_at(Meeting kind, u32 mask, u64 value, u32 from, u32 line) {
  const mor_host::Thread* self = mor_host::current;
  const u32 needed = mask & self->warp->exist, arrived = self->warp->arrived | 1u << self->lane;
  if (kind == Meeting::sync && (arrived & needed) == needed) arena.times[self->number / 32].meet(needed, self->warp->exist);
  return mor_host::meet(mor_host::Meeting(u32(kind)), mask, value, from, at(line));
}

[[noreturn]] void fail_race(u32 line, const char* first, u32 thread, bool is_thread, u32 other) {
  thread_local char what[160];
  snprintf(what, sizeof what, "a race: %s %u %s in line %u, and no barrier lies between", is_thread ? "thread" : "warp", thread, first, other);
  fail_at(line, what);
}

// It is refused at the end of the block: if another thread writes later, that is a race.
void read_unwritten(Machine& m, u64 offset, u32 line) {
  note(m, line, Noted::shared);
  if (!arena.unwritten) arena.unwritten = line, arena.reader = m.thread;
  u8& byte = reinterpret_cast<u8*>(m.shared)[offset];
  byte = u8(end_at(m, line) == End::below ? ~arena.job->filling : arena.job->filling);
}

// A write that no barrier orders, of another thread, is a race with a write and with a read. If threads of a warp
// write to one place in one instruction, one of them does: that is no race if they write the same.
void touch(Machine& m, u64 offset, u32 size, Touch kind, u32 line, const void* fresh) {
  if (offset > m.shared_size || m.shared_size - offset < size) fail(m, line, "it is outside of shared memory");
  const bool writes = kind == Touch::write || kind == Touch::strong_write;
  const bool strong = kind == Touch::strong_read || kind == Touch::strong_write;
  const u32 epoch = arena.epoch;
  const WarpTime& time = arena.times[m.warp];
  for (u32 k = 0; k < size; k++) {
    Byte& byte = arena.bytes[offset + k];
    if (!byte.exists) fail(m, line, "it is outside of its variable in shared memory");
    const bool same = fresh && byte.writer / 32 == m.warp && byte.write_line == line &&
                      static_cast<const u8*>(fresh)[k] == reinterpret_cast<const u8*>(m.shared)[offset + k];
    const bool written = byte.write_epoch == epoch && byte.writer != m.thread && !(strong && byte.is_strong) && !same;
    if (written && (byte.writer / 32 != m.warp || !time.knows(m.lane, byte.writer % 32, byte.write_time)))
      fail_race(line, "writes to it", byte.writer, true, byte.write_line);
    u32* read_times = &arena.read_times[(offset + k) * 32];
    if (writes && byte.read_epoch == epoch && !(strong && byte.is_strong_read)) {
      const u32 others = byte.readers & ~(1u << m.warp);
      if (others) fail_race(line, "reads it", u32(__builtin_ctz(others)), false, byte.read_line);
      for (u32 lanes = byte.read_warp == m.warp ? byte.read_lanes : 0; lanes; lanes &= lanes - 1) {
        const u32 lane = u32(__builtin_ctz(lanes));
        if (!time.knows(m.lane, lane, read_times[lane])) fail_race(line, "reads it", m.warp * 32 + lane, true, byte.read_line);
      }
      byte.read_lanes = 0;  // who knows of this write knows of them
    }
    if (writes) {
      byte.write_epoch = epoch, byte.write_time = time.now, byte.write_line = line;
      byte.writer = u16(m.thread), byte.is_strong = strong;
      continue;
    }
    if (byte.write_epoch < arena.first) read_unwritten(m, offset + k, line);
    if (byte.read_epoch != epoch) byte.readers = 0, byte.is_strong_read = true;
    if (byte.read_warp != m.warp || byte.read_epoch != epoch) byte.read_lanes = 0;
    byte.read_epoch = epoch, byte.read_line = line, read_times[m.lane] = time.now;
    byte.readers |= 1u << m.warp, byte.read_lanes |= 1u << m.lane, byte.read_warp = u16(m.warp);
    byte.is_strong_read = byte.is_strong_read && strong;
  }
}

constexpr u64 OF_CALLS = 28 * 1024;  // bytes of the stack; with as many below them for the last function
constexpr u64 ALIGNED = 1024;  // as far as any declaration asks for

void copy_later_at(Machine& m, u64 to, u64 from, u32 size, u32 taken, u32 line) {
  m.copies->waiting.push_back({to, from, size, taken, line, m.copies->group});
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
    u8 bytes[16] = {};
    if (copy.taken) memcpy(bytes, reinterpret_cast<const void*>(copy.from), copy.taken);
    touch(m, copy.to, copy.size, Touch::write, copy.line, bytes);
    memcpy(reinterpret_cast<void*>(m.shared + copy.to), bytes, copy.size);
  }
  m.copies->waiting.swap(later);
}

void yield_at() { mor_host::yield(mor_host::current); }

constexpr Calls CALLS = {fail_at, barrier_at, meet_at, touch, copy_later_at, commit_at, wait_at, yield_at};

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
  arena.bytes.assign(job.shared_size + 1, Byte{});
  if (arena.read_times.size() < 32 * job.shared_size) arena.read_times.resize(32 * job.shared_size);
  for (u64 k = 0; k < job.shared_count; k++)
    for (u32 j = 0; j < job.shared[k].size; j++) arena.bytes[job.shared[k].begin + j].exists = true;
  arena.epoch = 0;
}

// The first thread of a block that runs has to forget what the block before it left.
void begin_block(const Job& job, const mor_host::Block* block) {
  const bool same = arena.place.x == block->place.x && arena.place.y == block->place.y && arena.place.z == block->place.z;
  if (arena.begun && same && arena.job == &job) return;
  if (arena.job != &job || !arena.begun) prepare_arena(job);
  arena.job = &job;
  arena.place = block->place;
  arena.begun = true;
  arena.first = ++arena.epoch;
  arena.unwritten = 0;
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
  m.shared_size = job.shared_size, m.dynamic_shared = job.dynamic_shared;
  m.parameters = u64(job.parameters), m.parameters_size = job.parameters_size, m.globals = job.globals;
  m.interrupted = &interrupted;
  go_round(m, 0);
  m.fragments = arena.fragments[m.warp], m.copies = &copies;
  m.stack_end = u64(__builtin_frame_address(0)) - OF_CALLS;
  m.regions = job.regions, m.last = &none, m.region_count = u32(job.region_count);
  m.ends = job.ends, m.noted = job.noted, m.refuses = job.refuses;
  m.products = arena.products.data() + job.products * self->number;
  const u64 number = (u64(block->place.z) * block->grid.y + block->place.y) * block->grid.x + block->place.x;
  m.draws = job.seed + (number * block->count + self->number) * 0x9E3779B97F4A7C15u;
  job.kernel(m);
  wait_at(m, 0, true);
  __atomic_fetch_add(&job.executed, m.executed, __ATOMIC_RELAXED);
  thread_local char what[160];
  if (job.refuses && arena.unwritten && block->alive == 1) {
    snprintf(what, sizeof what, "thread %u reads shared memory that was not written, and PTX leaves its bits open", arena.reader);
    fail_at(arena.unwritten, what);
  }
  if (!block->waiting) return;
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
