#include "platform/courtesy.h"

#include <gtest/gtest.h>
#include <pthread.h>

#include <csignal>
#include <thread>

#include "platform/child_process.h"

namespace foliot {
namespace {

sigset_t signals() {
  sigset_t set;
  sigemptyset(&set);
  sigaddset(&set, kCourtesySignal);
  return set;
}

TEST(CourtesyTest, TheThreadIsInterruptedAgainAndAgainWhileItLasts) {
  std::thread([] {
    const sigset_t blocked = signals();
    pthread_sigmask(SIG_BLOCK, &blocked, nullptr);
    siginfo_t why{};
    {
      const Courtesy courtesy;
      for (int i = 0; i < 3; ++i) {
        ASSERT_EQ(sigwaitinfo(&blocked, &why), kCourtesySignal);
        EXPECT_EQ(why.si_code, SI_TIMER);
      }
    }
    const timespec at_once{};
    sigtimedwait(&blocked, &why, &at_once);  // one that came meanwhile
    const timespec long_enough{.tv_sec = 0, .tv_nsec = 20'000'000};
    EXPECT_EQ(sigtimedwait(&blocked, &why, &long_enough), -1);
  }).join();
}

TEST(CourtesyTest, ItsSignalIsHandledAndSystemCallsGoOn) {
  const Courtesy courtesy;
  struct sigaction action {};
  ASSERT_EQ(sigaction(kCourtesySignal, nullptr, &action), 0);
  EXPECT_NE(action.sa_handler, SIG_DFL);
  EXPECT_NE(action.sa_flags & SA_RESTART, 0);
}

TEST(CourtesyTest, WhoListensToAChildIsNotInterrupted) {
  const Courtesy courtesy;
  Result<ChildProcess> child =
      ChildProcess::start({.command = {"/bin/sh", "-c", "sleep 0.05; echo word; sleep 1000"}, .environment = {}});
  ASSERT_TRUE(child.ok());
  std::string said, complained;
  child->listen(Duration::seconds(100), said, complained);
  EXPECT_EQ(said, "word\n");
}

}  // namespace
}  // namespace foliot
