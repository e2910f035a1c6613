// What the sanitizers of compilers have to be told of fibers, and of the memory of blocks.
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
#define MOR_WATCHER(statement) statement
#else
#define MOR_NOT_WATCHED
#define MOR_WATCHER(statement)
#endif

#if defined(__SANITIZE_ADDRESS__) || MOR_HAS_FEATURE(address_sanitizer)
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#define ASAN_UNPOISON_MEMORY_REGION(address, size) ((void)(address), (void)(size))
#endif
