// A fiber is a stack that is left and taken up again: each CUDA thread of a block has one.
#pragma once
#include <cstddef>
#if !defined(__x86_64__)
#include <ucontext.h>
#endif

#include "sanitizers.h"

namespace mor_host {

struct Fiber {
  void* stack_pointer;
  void* watched;       // ThreadSanitizer's name of it
  const void* bottom;  // of its stack, for AddressSanitizer
  size_t size;
};

#if defined(__x86_64__)
// What a function has to keep for its caller goes to the stack that is left, and comes from the one
// that is entered. The rounding mode is the same for all fibers of a thread.
extern "C" void mor_switch_stacks(void** leave, void* enter) __attribute__((visibility("hidden")));
asm(R"(
.text
.hidden mor_switch_stacks
.globl mor_switch_stacks
.type mor_switch_stacks, @function
mor_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size mor_switch_stacks, .-mor_switch_stacks
)");

inline void prepare(Fiber& fiber, char* top, size_t size, void (*run)()) {
  void** stack = reinterpret_cast<void**>(top);
  *--stack = nullptr;  // a return address that is never used keeps the stack aligned
  *--stack = reinterpret_cast<void*>(run);
  for (int k = 0; k < 6; k++) *--stack = nullptr;
  fiber.stack_pointer = stack;
  fiber.bottom = top - size;
  fiber.size = size;
}

struct HomeStack {};
inline void* home_of(HomeStack&) { return nullptr; }
#else
inline void mor_switch_stacks(void** leave, void* enter) {
  swapcontext(static_cast<ucontext_t*>(*leave), static_cast<ucontext_t*>(enter));
}

inline void prepare(Fiber& fiber, char* top, size_t size, void (*run)()) {
  ucontext_t* context = reinterpret_cast<ucontext_t*>(top) - 1;
  getcontext(context);
  context->uc_stack.ss_sp = top - size;
  context->uc_stack.ss_size = size - sizeof(ucontext_t);
  context->uc_link = nullptr;
  makecontext(context, run, 0);
  fiber.stack_pointer = context;
  fiber.bottom = top - size;
  fiber.size = size;
}

struct HomeStack { ucontext_t context; };
inline void* home_of(HomeStack& home) { return &home.context; }
#endif

// To another fiber; what this one wrote may not be read there unless more is stated.
MOR_NOT_WATCHED inline void switch_to(Fiber& from, Fiber& to) {
  MOR_WATCHER(__tsan_switch_to_fiber(to.watched, __tsan_switch_to_fiber_no_sync);)
  MOR_MARKER(void* marks; __sanitizer_start_switch_fiber(&marks, to.bottom, to.size);)
  mor_switch_stacks(&from.stack_pointer, to.stack_pointer);
  MOR_MARKER(__sanitizer_finish_switch_fiber(marks, nullptr, nullptr);)
}

// What a fiber begins with, if it is the first of its block: it comes from the stack of the thread.
MOR_NOT_WATCHED inline void come_from(Fiber& home) {
  (void)home;
  MOR_MARKER(const void* bottom; size_t size; __sanitizer_finish_switch_fiber(nullptr, &bottom, &size);)
  MOR_MARKER(if (!home.size) home.bottom = bottom, home.size = size;)
}

}  // namespace mor_host
