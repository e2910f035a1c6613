// Shared memory of a block, byte by byte: its races, and reads of bytes that nothing wrote.
#pragma once
#include <algorithm>
#include <vector>

#include "instructions.h"
#include "launch.h"

namespace ptx {
namespace {

inline mor_host::Where at(u32 line) { return {"ptx", line}; }

[[noreturn]] inline void fail_at(u32 line, const char* what) { mor_host::fail(what, at(line)); }

[[noreturn]] inline void fail_race(u32 line, const char* first, u32 thread, bool is_thread, u32 other) {
  thread_local char what[160];
  snprintf(what, sizeof what, "a race: %s %u %s in line %u, and no barrier lies between", is_thread ? "thread" : "warp", thread, first, other);
  fail_at(line, what);
}

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

// Accesses of a kind to each byte since the last barrier of its block (`epoch`): all warps that made one, and the lanes of
// the one that came last.
struct Accesses {
  struct Seen {
    u32 epoch, line, warps, lanes, last;
  };
  std::vector<Seen> seen;
  std::vector<u32> times;  // of each byte and lane

  void prepare(u64 size) {
    seen.assign(size, Seen{});
    if (times.size() < 32 * size) times.resize(32 * size);
  }

  void add(const Machine& m, u64 offset, u32 epoch, u32 now, u32 line) {
    Seen& one = seen[offset];
    if (one.epoch != epoch) one.warps = 0;
    if (one.last != m.warp || one.epoch != epoch) one.lanes = 0;
    one.epoch = epoch, one.line = line, one.last = m.warp;
    one.warps |= 1u << m.warp, one.lanes |= 1u << m.lane;
    times[offset * 32 + m.lane] = now;
  }

  // Refuses an access that no barrier orders after these.
  void check(const Machine& m, u64 offset, u32 epoch, const WarpTime& time, u32 line, const char* what) const {
    if (seen.empty() || seen[offset].epoch != epoch) return;
    const Seen& one = seen[offset];
    const u32 others = one.warps & ~(1u << m.warp);
    if (others) fail_race(line, what, u32(__builtin_ctz(others)), false, one.line);
    for (u32 lanes = one.last == m.warp ? one.lanes : 0; lanes; lanes &= lanes - 1) {
      const u32 lane = u32(__builtin_ctz(lanes));
      if (!time.knows(m.lane, lane, times[offset * 32 + lane])) fail_race(line, what, m.warp * 32 + lane, true, one.line);
    }
  }

  // After a plain write: who knows of it knows of these.
  void forget_lanes(u64 offset) {
    if (!seen.empty()) seen[offset].lanes = 0;
  }
};

// Copies to a byte that were begun and not waited for: how many, the last one, and the byte that all of them write.
struct Flying {
  u32 count, line, thread;
  u8 byte;
};

// Accesses that are plain, and strong ones: atomic, volatile, or with an order. Strong ones race with plain ones only.
struct SharedBytes {
  std::vector<u8> exists;  // of each byte
  Accesses reads, writes, strong_reads, strong_writes;
  std::vector<Flying> flying;  // of each byte
  u64 size = 0;
  u32 epoch = 0, first = 0;       // the epoch in which the block began
  u32 unwritten = 0, reader = 0;  // the first line that read what nothing wrote, and its thread
  u8 filling = 0;
  WarpTime times[mor_host::MOST_WARPS] = {};

  void prepare(u64 of, u8 filled) {
    size = of, filling = filled, epoch = 0;
    exists.assign(size + 1, false);
    reads.prepare(size), writes.prepare(size);
    strong_reads.seen.clear(), strong_writes.seen.clear(), flying.clear();  // few kernels have any
  }

  void declare(u32 begin, u32 count) {
    for (u32 k = begin; k < begin + count; k++) exists[k] = true;
  }

  void begin_block() { first = ++epoch, unwritten = 0; }

  void touch(Machine& m, u64 offset, u32 count, Touch kind, u32 line, const void* fresh) {
    if (offset > size || size - offset < count) fail(m, line, "it is outside of shared memory");
    const bool is_plain_write = kind == Touch::write || kind == Touch::begun_copy;
    const bool is_write = is_plain_write || kind == Touch::strong_write;
    const bool strong = kind == Touch::strong_read || kind == Touch::strong_write;
    if (strong && strong_reads.seen.empty()) strong_reads.prepare(size), strong_writes.prepare(size);
    const WarpTime& time = times[m.warp];
    for (u64 k = offset; k < offset + count; k++) {
      if (!exists[k]) fail(m, line, "it is outside of its variable in shared memory");
      // If several threads write equal bytes, the byte is the same whoever comes last.
      const u8* byte = is_plain_write && fresh ? static_cast<const u8*>(fresh) + (k - offset) : nullptr;
      const bool is_equal = byte && writes.seen[k].epoch == epoch && *byte == reinterpret_cast<const u8*>(m.shared)[k];
      if (!flying.empty()) check_flying(k, byte, line);
      if (!is_equal) writes.check(m, k, epoch, time, line, "writes to it");
      if (!strong) strong_writes.check(m, k, epoch, time, line, "writes to it");
      if (is_write) reads.check(m, k, epoch, time, line, "reads it");
      if (is_write && !strong) strong_reads.check(m, k, epoch, time, line, "reads it");
      if (kind == Touch::begun_copy) continue;
      if (kind == Touch::write) {
        for (Accesses* each : {&reads, &strong_reads, &strong_writes}) each->forget_lanes(k);
        if (!is_equal) writes.forget_lanes(k);
        writes.add(m, k, epoch, time.now, line);
        continue;
      }
      if (!is_write && !is_written(k)) read_unwritten(m, k, line);
      (is_write ? strong_writes : strong ? strong_reads : reads).add(m, k, epoch, time.now, line);
    }
  }

  // A copy writes at any time from its begin on until its thread has waited for it.
  void begin_copy(Machine& m, u64 offset, u32 count, u32 line, const u8* fresh) {
    if (flying.empty()) flying.resize(size + 1);
    touch(m, offset, count, Touch::begun_copy, line, fresh);
    for (u32 k = 0; k < count; k++) flying[offset + k] = {flying[offset + k].count + 1, line, m.thread, fresh[k]};
  }
  void end_copy(Machine& m, u64 offset, u32 count, u32 line, const u8* fresh) {
    for (u32 k = 0; k < count; k++) flying[offset + k].count--;
    touch(m, offset, count, Touch::write, line, fresh);
  }

 private:
  void check_flying(u64 offset, const u8* byte, u32 line) const {
    const Flying& one = flying[offset];
    if (!one.count || (byte && *byte == one.byte)) return;
    thread_local char what[160];
    snprintf(what, sizeof what, "a race: thread %u copies to it in line %u, and has not waited for the copy", one.thread, one.line);
    fail_at(line, what);
  }

  bool is_written(u64 offset) const {
    return writes.seen[offset].epoch >= first || (!strong_writes.seen.empty() && strong_writes.seen[offset].epoch >= first);
  }

  // It is refused at the end of the block: if another thread writes later, that is a race.
  void read_unwritten(Machine& m, u64 offset, u32 line) {
    note(m, line, Noted::shared);
    if (!unwritten) unwritten = line, reader = m.thread;
    u8& byte = reinterpret_cast<u8*>(m.shared)[offset];
    byte = u8(end_at(m, line, offset) == End::below ? ~filling : filling);
  }
};

}  // namespace
}  // namespace ptx
