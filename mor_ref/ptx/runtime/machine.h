// Of a thread of PTX: its numbers, its memory, and the calls to the block that it is in.
#pragma once
#include <cstdint>
#include <cstring>

typedef uint8_t u8;
typedef uint16_t u16;
typedef uint32_t u32;
typedef uint64_t u64;
typedef int8_t s8;
typedef int16_t s16;
typedef int32_t s32;
typedef int64_t s64;
typedef unsigned __int128 u128;
typedef __int128 s128;

namespace ptx {

// Memory of the device: an array of the user, or a variable of the module.
struct Region {
  u64 begin, size;
  u32 writable;
};

// Local memory of a function that has not returned; a bit of `written` is a byte of it.
struct Frame {
  u64 begin, size;
  u8* written;
  Frame* outer;
};

enum class Touch : u32 { read, write, strong_read, strong_write, begun_copy };
enum class Meeting : u32 { sync, shuffle, ballot };
enum class End : u8 { nearest, below, above, drawn };
// What PTX leaves open for some operands only.
enum class Noted : u8 { nothing, quotient, nan, local, shared, made_nan, signed_nan, wide_nan, scaled, atomic_nan };
// Options of the compiler, a bit each.
enum class Option : u8 { fmad = 1, ftz = 2 };
constexpr u32 FRAGMENT = 24;  // words of a lane in a matrix instruction

struct Machine;

// The scheduler is a library of its own, so that a kernel is compiled without it.
struct Calls {
  [[noreturn]] void (*fail)(u32 line, const char* what);
  void (*barrier)(const char* call, bool aligned, bool counted, u32 line, u32 number, bool vote, u32 (&result)[2]);
  u64 (*meet)(const char* call, Meeting kind, u32 mask, u64 value, u32 from, u32 line);
  void (*touch_shared)(Machine& m, u64 offset, u32 size, Touch kind, u32 line, const void* written);
  void (*copy_later)(Machine& m, u64 to, u64 from, u32 size, u32 taken, u32 line);
  void (*commit)(Machine& m);
  void (*wait_for_copies)(Machine& m, u32 groups, bool all);
  void (*yield)();
};

struct Machine {
  const Calls* calls;
  u32 tid[3], ntid[3], ctaid[3], nctaid[3];
  u32 thread, lane, warp, warps;
  u64 shared, shared_size, dynamic_shared;  // the address of shared memory on the host
  u64 local;  // that addresses in local memory count from, so that they fit 32 bits
  u64 parameters, parameters_size;
  u64 globals;
  const Region *regions, *last;
  u32 region_count;
  const End* ends;  // of each line
  Noted* noted;     // of each line, by all threads
  u8* options;      // of each line, those that have changed a result, by all threads
  bool refuses;
  u64 seed;  // of ends that are drawn
  struct Products* products;  // that a sum may be rounded with
  const volatile u8* interrupted;
  u32 looks;  // at memory that other threads may change
  u64 seen_at, seen;  // the place of the last look, and its value
  u64 *vain, patience;  // looks of a block in turn that saw nothing new, and their limit
  Frame* frames;
  u64 executed;  // instructions
  const char* call;  // the instruction that waits for other threads, with all that is the same for those it waits for
  u32 carry;
  u64 stack_end;  // a function that begins below it may need more than there is
  u32 (*fragments)[FRAGMENT];  // what the lanes of the warp show one another
  struct Copies* copies;       // that this thread has begun
};

[[noreturn]] __attribute__((noinline, cold)) inline void fail(Machine& m, u32 line, const char* what) {
  m.calls->fail(line, what);
}

// A loop may have no end.
__attribute__((always_inline)) inline void go_round(Machine& m, u32 line) {
  if (__builtin_expect(*m.interrupted, 0)) fail(m, line, "it was interrupted");
}

// A thread that looks again and again may wait for another one.
inline void look(Machine& m) {
  if (++m.looks % 16 == 0) m.calls->yield();
}

// If nobody sees anything new, all threads that are left in the block wait for ever.
inline void see(Machine& m, const volatile void* at, u64 value, u32 line) {
  if (m.seen_at != u64(at) || m.seen != value) {
    m.seen_at = u64(at), m.seen = value, *m.vain = 0;
  } else if (++*m.vain > m.patience) {
    fail(m, line, "it waits for memory that no thread of its block changes, and later blocks wait until this one ends");
  }
}

// The place of the result of a line within the bounds of PTX. Where it is drawn, it is the same for the same operands: threads
// that compute one number alike have one result, as on a GPU.
template <class... Operands> inline End end_at(Machine& m, u32 line, Operands... operands) {
  const End end = m.ends[line];
  if (end != End::drawn) return end;
  u64 draw = m.seed;
  for (const u64 each : {u64(line), u64(operands)...}) {
    draw = (draw ^ each) * 6364136223846793005u + 1442695040888963407u;
    draw ^= draw >> 32;
  }
  return End((draw >> 33) % 3);
}

__attribute__((noinline, cold)) inline void note(Machine& m, u32 line, Noted what) {
  __atomic_store_n(reinterpret_cast<u8*>(&m.noted[line]), u8(what), __ATOMIC_RELAXED);
  if (!m.refuses) return;
  if (what == Noted::quotient) fail(m, line, "its divisor is 0, and PTX leaves the quotient open");
  if (what == Noted::local) fail(m, line, "it reads local memory that was not written, and PTX leaves its bits open");
}

// A register that nothing writes.
template <class T> inline T unwritten(Machine& m, u32 line) { return end_at(m, line, m.thread) == End::above ? T(~T(0)) : T(0); }

__attribute__((always_inline)) inline void check_stack(Machine& m, u32 line) {
  if (u64(__builtin_frame_address(0)) < m.stack_end) fail(m, line, "its calls need more memory than a thread has");
}

// ---------------------------------------------------------------------- memory of the device

__attribute__((noinline)) inline void find_region(Machine& m, u64 address, u32 size, bool writes, u32 line) {
  for (u32 k = 0; k < m.region_count; k++) {
    const Region& region = m.regions[k];
    const u64 offset = address - region.begin;
    if (offset > region.size || region.size - offset < size) continue;
    if (writes && !region.writable) fail(m, line, "it writes to memory that may only be read");
    m.last = &region;
    return;
  }
  fail(m, line, "it is outside of all arrays");
}

template <class T, u32 ALIGNED> inline T* device(Machine& m, u64 address, bool writes, u32 line) {
  if (address % ALIGNED) fail(m, line, "its address is misaligned");
  const u64 offset = address - m.last->begin;
  if (m.last->size < ALIGNED || offset > m.last->size - ALIGNED || (writes && !m.last->writable))
    find_region(m, address, ALIGNED, writes, line);
  return reinterpret_cast<T*>(address);
}

// `written` are the bytes of a store.
template <class T, u32 ALIGNED> inline T* shared(Machine& m, u64 offset, Touch kind, u32 line, const void* written = nullptr) {
  if (offset % ALIGNED) fail(m, line, "its address is misaligned");
  m.calls->touch_shared(m, offset, ALIGNED, kind, line, written);
  return reinterpret_cast<T*>(m.shared + offset);
}

template <class T, u32 ALIGNED> inline T* inside(Machine& m, u64 address, u64 begin, u64 size, u32 line) {
  if (address % ALIGNED) fail(m, line, "its address is misaligned");
  if (address - begin > size || size - (address - begin) < ALIGNED) fail(m, line, "it is outside of its variable");
  return reinterpret_cast<T*>(address);
}

// Bytes that nothing has written are what the end of the line says.
template <u32 SIZE> inline void touch_local(Machine& m, const Frame& frame, u64 offset, bool writes, u32 line) {
  for (u64 k = offset; k < offset + SIZE; k += 8) {
    u8& bits = frame.written[k / 8];
    const u8 wanted = u8(SIZE < 8 ? ((1u << SIZE % 8) - 1) << k % 8 : 0xFF);
    if (!writes && (bits & wanted) != wanted) {
      note(m, line, Noted::local);
      const u8 found = end_at(m, line) == End::above ? 0xFF : 0;
      for (u32 j = 0; j < 8; j++)
        if ((wanted & ~bits) >> j & 1) *reinterpret_cast<u8*>(frame.begin + k / 8 * 8 + j) = found;
    }
    bits |= wanted;
  }
}

template <class T, u32 ALIGNED> inline T* local(Machine& m, u64 offset, bool writes, u32 line) {
  const u64 address = m.local + offset;
  if (address % ALIGNED) fail(m, line, "its address is misaligned");
  for (const Frame* frame = m.frames; frame; frame = frame->outer)
    if (address - frame->begin <= frame->size && frame->size - (address - frame->begin) >= ALIGNED) {
      touch_local<ALIGNED>(m, *frame, address - frame->begin, writes, line);
      return reinterpret_cast<T*>(address);
    }
  fail(m, line, "it is outside of local memory");
}

inline bool is_local(const Machine& m, u64 address) {
  for (const Frame* frame = m.frames; frame; frame = frame->outer)
    if (address - frame->begin < frame->size) return true;
  return false;
}
inline bool is_shared(const Machine& m, u64 address) { return address - m.shared < m.shared_size; }
inline bool is_parameter(const Machine& m, u64 address) { return address - m.parameters < m.parameters_size; }

template <class T, u32 ALIGNED> inline T* parameter(Machine& m, u64 address, u32 line) {
  return inside<T, ALIGNED>(m, address, m.parameters, m.parameters_size, line);
}

template <class T, u32 ALIGNED> inline T* generic(Machine& m, u64 address, Touch kind, u32 line, const void* written = nullptr) {
  const bool writes = kind == Touch::write || kind == Touch::strong_write;
  if (is_shared(m, address)) return shared<T, ALIGNED>(m, address - m.shared, kind, line, written);
  if (is_local(m, address)) return local<T, ALIGNED>(m, address - m.local, writes, line);
  if (!writes && is_parameter(m, address)) return parameter<T, ALIGNED>(m, address, line);
  return device<T, ALIGNED>(m, address, writes, line);
}

// ---------------------------------------------------------------------- blocks and warps

struct Votes { u32 yes, all; };

inline Votes barrier(Machine& m, bool aligned, bool counted, u32 number, bool vote, u32 line) {
  u32 result[2];
  m.calls->barrier(m.call, aligned, counted, line, number, vote, result);
  return {result[0], result[1]};
}

inline void check_count(Machine& m, u32 count, u32 line) {
  if (count != m.ntid[0] * m.ntid[1] * m.ntid[2]) fail(m, line, "a barrier of some threads of a block is not supported");
}

inline void sync_warp(Machine& m, u32 mask, u32 line) { m.calls->meet(m.call, Meeting::sync, mask, 0, 0, line); }

inline u32 ballot(Machine& m, bool vote, u32 mask, u32 line) {
  return u32(m.calls->meet(m.call, Meeting::ballot, mask, vote, 0, line));
}

// Shows the words of each lane to all lanes, until they have left.
template <class Use> inline void with_fragments(Machine& m, const u32* words, u32 count, u32 line, Use use) {
  if (m.ntid[0] * m.ntid[1] * m.ntid[2] < 32 * (m.warp + 1)) fail(m, line, "its warp has fewer than 32 threads, and PTX defines it for whole warps");
  for (u32 k = 0; k < count; k++) m.fragments[m.lane][k] = words[k];
  m.calls->meet(m.call, Meeting::ballot, ~0u, 0, 0, line);
  use();
  m.calls->meet(m.call, Meeting::ballot, ~0u, 1, 0, line);
}

// A copy from an array to shared memory, which is there when the thread has waited for it.
template <u32 SIZE> inline void copy_later(Machine& m, u64 to, u64 from, u32 taken, u32 line) {
  if (to % SIZE) fail(m, line, "its address is misaligned");
  if (taken > SIZE) fail(m, line, "it takes more bytes than it writes");
  if (taken) device<u8, 1>(m, from + taken - 1, false, line);
  const u64 source = taken ? u64(device<u8, SIZE>(m, from, false, line)) : 0;
  m.calls->copy_later(m, to, source, SIZE, taken, line);
}

// PTX leaves open which lane leads; here it is the lowest.
struct Shuffled {
  u32 value;
  bool in_range;
};
inline Shuffled elected(Machine& m, u32 mask, u32 line) {
  ballot(m, true, mask, line);
  const u32 leader = u32(__builtin_ctz(mask));
  return {leader, m.lane == leader};
}

enum class Shuffle { up, down, bfly, idx };

template <Shuffle MODE> inline Shuffled shuffle(Machine& m, u32 value, u32 b, u32 c, u32 mask, u32 line) {
  const u32 lane = m.lane, segment = c >> 8 & 31, clamp = c & 31, bits = b & 31;
  const u32 last = (lane & segment) | (clamp & ~segment), first = lane & segment;
  s32 from = 0;
  bool in_range = false;
  switch (MODE) {
    case Shuffle::up: from = s32(lane) - s32(bits); in_range = from >= s32(last); break;
    case Shuffle::down: from = s32(lane + bits); in_range = from <= s32(last); break;
    case Shuffle::bfly: from = s32(lane ^ bits); in_range = from <= s32(last); break;
    case Shuffle::idx: from = s32(first | (bits & ~segment)); in_range = from <= s32(last); break;
  }
  if (!in_range) from = s32(lane);
  return {u32(m.calls->meet(m.call, Meeting::shuffle, mask, value, u32(from), line)), in_range};
}

// The values of all lanes of the mask that come, one after another. Returns these lanes: others have ended, or do not exist.
inline u32 gather(Machine& m, u64 value, u32 mask, u64 (&all)[32], u32 line) {
  const u32 lanes = u32(m.calls->meet(m.call, Meeting::ballot, mask, 1, 0, line));
  for (u32 lane = 0; lane < 32; lane++)
    all[lane] = lanes >> lane & 1 ? m.calls->meet(m.call, Meeting::shuffle, mask, value, lane, line) : 0;
  return lanes;
}

inline u32 lanes_with(u64 value, const u64 (&all)[32], u32 lanes) {
  u32 same = 0;
  for (u32 lane = 0; lane < 32; lane++) same |= u32((lanes >> lane & 1) && all[lane] == value) << lane;
  return same;
}

inline u32 match_any(Machine& m, u64 value, u32 mask, u32 line) {
  u64 all[32];
  const u32 lanes = gather(m, value, mask, all, line);
  return lanes_with(value, all, lanes);
}

inline Shuffled match_all(Machine& m, u64 value, u32 mask, u32 line) {
  u64 of[32];
  const u32 lanes = gather(m, value, mask, of, line);
  const bool all = lanes_with(value, of, lanes) == lanes;
  return {all ? lanes : 0, all};
}

template <class T, class Operation> inline T reduced(Machine& m, T value, u32 mask, u32 line, Operation operation) {
  u64 all[32];
  const u32 lanes = gather(m, value, mask, all, line);
  bool is_first = true;
  T found = 0;
  for (u32 lane = 0; lane < 32; lane++) {
    if (!(lanes >> lane & 1)) continue;
    found = is_first ? T(all[lane]) : operation(found, T(all[lane]));
    is_first = false;
  }
  return found;
}

// ---------------------------------------------------------------------- atomics

// A block runs on one thread of the CPU, and blocks on several.
template <class T, class Operation> inline T atomic(T* at, Operation operation) {
  T old = __atomic_load_n(at, __ATOMIC_SEQ_CST);
  T wanted = operation(old);
  while (!__atomic_compare_exchange_n(at, &old, wanted, false, __ATOMIC_SEQ_CST, __ATOMIC_SEQ_CST)) wanted = operation(old);
  return old;
}
// Not every CPU has atomic operations of 128 bits: these wait for one another, and not for narrower ones.
inline bool& wide_lock() {
  static bool lock = false;
  return lock;
}
template <class Operation> inline u128 atomic(u128* at, Operation operation) {
  while (__atomic_test_and_set(&wide_lock(), __ATOMIC_SEQ_CST)) {}
  const u128 old = *at;
  *at = operation(old);
  __atomic_clear(&wide_lock(), __ATOMIC_SEQ_CST);
  return old;
}

}  // namespace ptx
