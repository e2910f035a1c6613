// Shared memory: each declaration has its place in the memory of the block, with a gap after it.
#pragma once
#include <atomic>
#include <cstddef>
#include <cstring>

#if defined(__SANITIZE_ADDRESS__)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif

namespace mor_host {

constexpr size_t MOST_SHARED = 256 * 1024, GAP = 128;

inline std::atomic<size_t> shared_so_far{0};

// Where a declaration lies, for all blocks alike; it is asked for once.
inline size_t reserve_shared(size_t size) {
  return shared_so_far.fetch_add((size + 2 * GAP - 1) / GAP * GAP);
}

// What a block begins with: old values are not there, and nothing outside of a declaration is.
inline void forget_shared(char* shared, int filling) {
  ASAN_UNPOISON_MEMORY_REGION(shared, MOST_SHARED);
  memset(shared, filling, shared_so_far);
  ASAN_POISON_MEMORY_REGION(shared, MOST_SHARED);
}

inline void* declare_shared(char* shared, size_t place, size_t size) {
  ASAN_UNPOISON_MEMORY_REGION(shared + place, size);
  return shared + place;
}

}  // namespace mor_host
