// lock_into_memory(): keeps memory in RAM.
#ifndef FOLIOT_FOUNDATION_BASE_MEMORY_LOCK_H_
#define FOLIOT_FOUNDATION_BASE_MEMORY_LOCK_H_

#include <cstdint>

namespace foliot {

// Lifts the process's limit on locked memory where it may; of programs, not of rooms.
void raise_locked_memory_limit();

// Locks these bytes, whose address is a multiple of 4096, until they are unmapped, those that were never touched when
// they are; false where the limit on locked memory forbids it, and the memory stays as it was.
bool lock_into_memory(const void* address, uint64_t bytes);

}  // namespace foliot

#endif  // FOLIOT_FOUNDATION_BASE_MEMORY_LOCK_H_
