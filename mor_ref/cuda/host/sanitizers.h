// Informs the sanitizers of compilers about fibers, and about the memory of blocks.
#pragma once
#if defined(__has_feature)
#define MOR_HAS_FEATURE(name) __has_feature(name)
#else
#define MOR_HAS_FEATURE(name) 0
#endif

// ThreadSanitizer sees each fiber as a thread of its own: what orders them is stated where they meet.
#if defined(__SANITIZE_THREAD__) || MOR_HAS_FEATURE(thread_sanitizer)
#include <sanitizer/tsan_interface.h>
#define MOR_NOT_WATCHED __attribute__((no_sanitize("thread"), noinline))
#define MOR_WATCHER(...) __VA_ARGS__
#else
#define MOR_NOT_WATCHED
#define MOR_WATCHER(...)
#endif

// AddressSanitizer has to know which stack is in use.
#if defined(__SANITIZE_ADDRESS__) || MOR_HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#include <sanitizer/common_interface_defs.h>
#define MOR_MARKER(...) __VA_ARGS__
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define MOR_MARKER(...)
#endif
