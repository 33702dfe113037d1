#include "engine/compiler/processor_time.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace foliot {
namespace {

// Of work that took processor time, as the thread's exact clock shows: 100 us, which end
// between two ticks of the kernel almost always.
bool counts_short_work() {
  for (int i = 0; i < 20; ++i) {
    const ProcessorTime time;
    const Duration begin = read_clock(CLOCK_THREAD_CPUTIME_ID);
    while (read_clock(CLOCK_THREAD_CPUTIME_ID) - begin < Duration::microseconds(100)) {
    }
    if (time.elapsed() < Duration::microseconds(100)) return false;
  }
  return true;
}

// In a process of its own, since a limit cannot be taken back.
TEST(ProcessorTimeTest, CountsShortWorkUnderALimit) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{600, 600};
    ::_exit(::setrlimit(RLIMIT_CPU, &limit) == 0 && counts_short_work() ? 0 : 1);
  }
  int status = 1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace foliot
