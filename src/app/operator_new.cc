// The program's `operator new`, which counts (foundation/base/heap.h) and otherwise does what the
// standard library's does. C++ lets a program define it; memory is malloc()'s, and goes
// back through the library's own `operator delete` and free(), so that any allocator
// that stands in for malloc() still can. The array and nothrow forms call this one.
//
// Sanitizers distinguish objects of `new` from those of malloc(), so they keep their
// own.
#include <algorithm>
#include <cstdlib>
#include <new>

#include "foundation/base/heap.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define FOLIOT_SANITIZED 1
#elif defined(__has_feature)
#define FOLIOT_SANITIZED (__has_feature(address_sanitizer) || __has_feature(thread_sanitizer))
#else
#define FOLIOT_SANITIZED 0
#endif

#if !FOLIOT_SANITIZED

void* operator new(size_t bytes) {
  foliot::count_heap_allocation();
  while (true) {
    if (void* object = std::malloc(std::max(bytes, size_t{1}))) return object;
    const std::new_handler handler = std::get_new_handler();
    if (handler == nullptr) throw std::bad_alloc();
    handler();
  }
}

#endif
