// The memory of a block of threads: a stack for each, and their shared memory.
#pragma once
#include <sys/mman.h>

#include "shared.h"

namespace mor_host {

constexpr size_t STACK = 64 * 1024, PAGE = 4096;

struct Memory {
  char *stacks, *shared;
  size_t guarded;  // stacks that have a page below them that nothing may touch
};

inline char* mapped(size_t size) {
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE;
  void* pages = mmap(nullptr, size, PROT_READ | PROT_WRITE, flags, -1, 0);
  return pages == MAP_FAILED ? nullptr : static_cast<char*>(pages);
}

inline bool map_memory(Memory& memory, size_t stacks) {
  memory = {mapped(stacks * STACK), mapped(shared_size), 0};
  return memory.stacks && memory.shared;
}

// No more than are needed: each is two of the 65530 mappings that a process can have.
inline void guard_stacks(Memory& memory, size_t stacks) {
  for (; memory.guarded < stacks; memory.guarded++) mprotect(memory.stacks + memory.guarded * STACK, PAGE, PROT_NONE);
}

// AddressSanitizer keeps the marks of functions that never returned.
inline void forget_stack(const Memory& memory, size_t number) {
  ASAN_UNPOISON_MEMORY_REGION(memory.stacks + number * STACK + PAGE, STACK - PAGE);
}

}  // namespace mor_host
