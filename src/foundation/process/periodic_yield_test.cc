#include "foundation/process/periodic_yield.h"

#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>

#include <atomic>
#include <csignal>
#include <ctime>
#include <thread>

#include "foundation/process/child_process.h"

namespace foliot {
namespace {

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kYieldSignal);
  return set;
}

class PeriodicYieldTest : public testing::Test {
 protected:
  static void SetUpTestSuite() { handle_yield_signal(); }
};

TEST_F(PeriodicYieldTest, TheThreadIsInterruptedAgainAndAgainWhileItLasts) {
  std::thread([] {
    const sigset_t blocked = signals();
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    siginfo_t why{};
    {
      const PeriodicYield courtesy;
      for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(sigwaitinfo(&blocked, &why), kYieldSignal);
        EXPECT_EQ(why.si_code, SI_TIMER);
      }
    }
    const timespec at_once{};
    sigtimedwait(&blocked, &why, &at_once);  // one that came meanwhile
    const timespec long_enough{.tv_sec = 0, .tv_nsec = 20'000'000};
    EXPECT_EQ(sigtimedwait(&blocked, &why, &long_enough), -1);
  }).join();
}

TEST_F(PeriodicYieldTest, ItsSignalIsHandledAndSystemCallsGoOn) {
  const PeriodicYield courtesy;
  struct sigaction action {};
  ASSERT_EQ(sigaction(kYieldSignal, nullptr, &action), 0);
  EXPECT_NE(action.sa_handler, SIG_DFL);
  EXPECT_NE(action.sa_flags & SA_RESTART, 0);
}

// Kernels of oneDNN use the stack pointer for their buffers.
TEST_F(PeriodicYieldTest, TheHandlerHasAStackOfItsOwn) {
  struct sigaction action {};
  ASSERT_EQ(sigaction(kYieldSignal, nullptr, &action), 0);
  EXPECT_NE(action.sa_flags & SA_ONSTACK, 0);
  stack_t before{};
  ASSERT_EQ(sigaltstack(nullptr, &before), 0);
  {
    const PeriodicYield yield;
    stack_t now{};
    ASSERT_EQ(sigaltstack(nullptr, &now), 0);
    EXPECT_EQ(now.ss_flags, 0);
    EXPECT_NE(now.ss_sp, before.ss_sp);
    EXPECT_GE(now.ss_size, size_t{64} << 10);
  }
  stack_t after{};
  ASSERT_EQ(sigaltstack(nullptr, &after), 0);
  EXPECT_EQ(after.ss_flags, before.ss_flags);
  EXPECT_EQ(after.ss_sp, before.ss_sp);
}

// Where another thread always wants the processor, too.
TEST_F(PeriodicYieldTest, AYieldingThreadMakesProgress) {
  cpu_set_t allowed, one;
  ASSERT_EQ(sched_getaffinity(0, sizeof allowed, &allowed), 0);
  CPU_ZERO(&one);
  for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) CPU_SET(cpu, &one);
  }
  std::atomic<bool> done{false};
  std::thread busy([&] {
    sched_setaffinity(0, sizeof one, &one);
    while (!done) {
    }
  });
  std::thread([&] {
    sched_setaffinity(0, sizeof one, &one);
    setpriority(PRIO_PROCESS, 0, 19);
    const PeriodicYield courtesy;
    timespec used{};
    while (used.tv_nsec < 5'000'000) clock_gettime(CLOCK_THREAD_CPUTIME_ID, &used);
  }).join();
  done = true;
  busy.join();
}

TEST_F(PeriodicYieldTest, ReadingFromAChildIsNotInterrupted) {
  const PeriodicYield courtesy;
  Result<ChildProcess> child =
      ChildProcess::start({.command = {"/bin/sh", "-c", "sleep 0.05; echo word; sleep 1000"}, .environment = {}});
  ASSERT_TRUE(child.ok());
  std::string said, complained;
  child->listen(Duration::seconds(100), said, complained);
  EXPECT_EQ(said, "word\n");
}

}  // namespace
}  // namespace foliot
