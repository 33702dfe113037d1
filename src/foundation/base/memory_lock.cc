#include "foundation/base/memory_lock.h"

#include <sys/mman.h>
#include <sys/resource.h>

namespace foliot {

void raise_locked_memory_limit() {
  const rlimit unlimited{RLIM_INFINITY, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_MEMLOCK, &unlimited) == 0) return;
  rlimit limit{};
  if (::getrlimit(RLIMIT_MEMLOCK, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_MEMLOCK, &limit);
}

bool lock_into_memory(const void* address, uint64_t bytes) { return ::mlock2(address, bytes, MLOCK_ONFAULT) == 0; }

}  // namespace foliot
