// Shared memory: each declaration has its place in the memory of a block, with gaps around it.
#pragma once
#include <cstddef>
#include <cstring>

#include "sanitizers.h"

namespace mor_host {

constexpr size_t GAP = 128, MOST_SHARED = 48 * 1024;

inline size_t shared_size = GAP;  // of all declarations of the library

inline size_t reserve_shared(size_t size) {
  const size_t place = shared_size;
  shared_size += (size + 2 * GAP - 1) / GAP * GAP;
  return place;
}

// Where a declaration lies, for all blocks alike. Places are given while the library is loaded: then
// every block knows the size, and no thread orders others by being the first to ask.
template <class Type, size_t COUNT, class Declaration> struct Shared {
  static_assert(sizeof(Type) * COUNT <= MOST_SHARED, "a block has at most 48 KiB of shared memory");
  static inline const size_t place = reserve_shared(sizeof(Type) * COUNT);
  static Type* of(char* memory) {
    ASAN_UNPOISON_MEMORY_REGION(memory + place, sizeof(Type) * COUNT);
    return reinterpret_cast<Type*>(memory + place);
  }
};

// What a block begins with: old values are not there, and nothing outside of a declaration is.
inline void forget_shared(char* memory, int filling) {
  ASAN_UNPOISON_MEMORY_REGION(memory, shared_size);
  memset(memory, filling, shared_size);
  ASAN_POISON_MEMORY_REGION(memory, shared_size);
}

}  // namespace mor_host
