#include "base/memory_lock.h"

#include <sys/mman.h>
#include <sys/resource.h>

namespace foliot {

bool lock_into_memory(const void* address, uint64_t bytes) {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  ::setrlimit(RLIMIT_MEMLOCK, &unlimited);
  return ::mlock(address, bytes) == 0;
}

}  // namespace foliot
