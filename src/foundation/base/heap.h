// Heap: settings of this process's allocator, the C library's, so that EXEC makes no
// system call, and counts of how often EXEC asks it for memory.
//
// oneDNN makes 7 or 8 small objects in each execution of a primitive, some buffers
// besides, and frees them before it returns. glibc hands small ones out again from a list
// of the thread's own, without a lock. What it does by default beyond that would call the
// system at every EXEC: blocks above 128 KiB are mappings of their own, and free memory at
// the end of an arena is given back.
#ifndef FOLIOT_FOUNDATION_BASE_HEAP_H_
#define FOLIOT_FOUNDATION_BASE_HEAP_H_

#include <cstddef>
#include <cstdint>
#include <span>

namespace foliot {

// From here on, for the whole process: memory that a thread has freed stays the process's
// and is used again, blocks up to 32 MiB included; and each thread has an arena of its own,
// so that none waits for another's. Costs what the process has held at most at a time in
// each arena, and 64 MiB of address space for a thread. Does nothing where malloc is not
// glibc's. REQUIRES: main() has just begun; of programs, not of rooms.
void keep_heap_memory();

// Gives the whole pages of `memory`, of the heap, back to the kernel. Its bytes are lost. That takes some tenths of a
// millisecond for each MiB; other threads can get memory in between, as they cannot while a large mapping ends.
// Nothing is done for less than 1 MiB. Threading: any.
void give_back(std::span<std::byte> memory);

// How many objects the calling thread has made with `operator new`, where the program
// counts them (app/operator_new.cc), else 0. Not counted: what is taken from malloc() or
// posix_memalign() directly.
uint64_t heap_allocations();
void count_heap_allocation();

// Those within EXEC, of all devices of this process, which are counted where EXEC is run:
// as much the process's as its allocator. Threading: any.
uint64_t exec_heap_allocations();
void count_exec_heap_allocations(uint64_t count);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_HEAP_H_
