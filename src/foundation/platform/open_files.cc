#include "foundation/platform/open_files.h"

#include <fcntl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>

#include "foundation/base/check.h"

namespace foliot {
namespace {

constexpr uint64_t kReservedMax = 65'536;

}  // namespace

uint64_t raise_open_files_limit() {
  rlimit limit{};
  FOLIOT_CHECK(getrlimit(RLIMIT_NOFILE, &limit) == 0);
  limit.rlim_cur = limit.rlim_max;
  FOLIOT_CHECK(setrlimit(RLIMIT_NOFILE, &limit) == 0);
  return limit.rlim_cur;
}

void reserve_open_files(uint64_t count) {
  // The room is as large as the largest number that was ever used needs.
  const int last = static_cast<int>(std::min(count, kReservedMax)) - 1;
  const int any = open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (any < 0) return;
  const int reserved = fcntl(any, F_DUPFD_CLOEXEC, last);
  if (reserved >= 0) close(reserved);
  close(any);
}

}  // namespace foliot
