// lock_into_memory(): keeps memory in RAM.
#ifndef FOLIOT_BASE_MEMORY_LOCK_H_
#define FOLIOT_BASE_MEMORY_LOCK_H_

#include <cstdint>

namespace foliot {

// Locks these bytes, whose address is a multiple of 4096, until they are unmapped.
// The limit on locked memory is lifted where this process may; false where it may
// not, and the memory stays as it was.
bool lock_into_memory(const void* address, uint64_t bytes);

}  // namespace foliot

#endif  // FOLIOT_BASE_MEMORY_LOCK_H_
