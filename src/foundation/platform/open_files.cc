#include "foundation/platform/open_files.h"

#include <sys/resource.h>

#include "foundation/base/check.h"

namespace foliot {

uint64_t raise_open_files_limit() {
  rlimit limit{};
  FOLIOT_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  FOLIOT_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit.rlim_cur;
}

}  // namespace foliot
