#include "node/threads/executor_thread.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <functional>
#include <map>
#include <set>
#include <thread>
#include <utility>
#include <vector>

#include "foundation/base/check.h"
#include "foundation/platform/clock.h"

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr bool kSanitized = true;
#else
constexpr bool kSanitized = false;
#endif

namespace foliot {
namespace {

// Begins an action of each of these widths, one after the other.
class WideExecutor : public Executor {
 public:
  explicit WideExecutor(
      std::vector<uint32_t> widths, std::function<void(size_t)> body = [](size_t) {})
      : widths_(std::move(widths)), body_(std::move(body)) {}

  const char* name() const override { return "exec"; }
  Step poll(TimePoint) override {
    EXPECT_FALSE(inside_.exchange(true));
    const size_t next = begun_;
    if (next < offered_.load()) ++begun_;
    inside_ = false;
    if (next == begun_) return {.wake = TimePoint::infinite_future()};
    action_.lanes.count = static_cast<uint32_t>(widths_[next]);
    return {.run = true, .action = &action_};
  }
  Status perform() override {
    EXPECT_FALSE(inside_.exchange(true));
    body_(done_);
    inside_ = false;
    return Status();
  }
  void finish(TimePoint start, TimePoint end, const Status&) override {
    EXPECT_LE(start, end);
    ++done_;
    done_.notify_all();
  }

  // Further ones of them; returns when all are done.
  void run(size_t count, Waker& waker) {
    const size_t all = offered_ += count;
    waker.wake();
    for (size_t done = done_; done < all; done = done_) done_.wait(done);
  }

 private:
  const std::vector<uint32_t> widths_;
  const std::function<void(size_t)> body_;
  Action action_;
  std::atomic<bool> inside_ = false;
  std::atomic<size_t> offered_ = 0, done_ = 0;
  size_t begun_ = 0;
};

const std::vector<IntervalThread> kOneAndTwoLanes{{.lane_count = 2}, {.lane_count = 1}};

TEST(ExecutorThread, EachWidthHasAThreadOfItsOwn) {
  const std::vector<uint32_t> widths{1, 2, 2, 1, 1, 2, 1, 2, 2, 2, 1, 1};
  std::map<uint32_t, std::set<std::thread::id>> threads;
  WideExecutor executor(widths, [&](size_t i) { threads[widths[i]].insert(std::this_thread::get_id()); });
  ExecutorThread driver;
  ASSERT_TRUE(driver.start(executor, kOneAndTwoLanes).ok());
  // All at once, and each on its own: the thread that has the executor sleeps meanwhile.
  executor.run(6, driver);
  for (int i = 0; i < 6; ++i) executor.run(1, driver);
  driver.stop();
  EXPECT_EQ(threads[1].size(), 1u);
  EXPECT_EQ(threads[2].size(), 1u);
  EXPECT_NE(threads[1], threads[2]);
}

TEST(ExecutorThread, EachThreadBeginsBeforeWhatItRuns) {
  std::array<std::atomic<std::thread::id>, 2> begun{};
  std::vector<IntervalThread> intervals = kOneAndTwoLanes;
  for (size_t i = 0; i < 2; ++i) intervals[i].begin = [&begun, i] { begun[i] = std::this_thread::get_id(); };
  const std::vector<uint32_t> widths{2, 1};
  WideExecutor executor(widths, [&](size_t i) { EXPECT_EQ(begun[i].load(), std::this_thread::get_id()); });
  ExecutorThread driver;
  ASSERT_TRUE(driver.start(executor, intervals).ok());
  executor.run(2, driver);
}

TEST(ExecutorThread, OneThreadTakesAllWidthsIfThereIsNoOther) {
  WideExecutor executor({1, 2, 1});
  ExecutorThread driver;
  ASSERT_TRUE(driver.start(executor).ok());
  executor.run(3, driver);
}

TEST(ExecutorThread, EndsWhicheverThreadHasTheExecutor) {
  for (const uint32_t width : {1u, 2u}) {
    WideExecutor executor({width});
    ExecutorThread driver;
    ASSERT_TRUE(driver.start(executor, kOneAndTwoLanes).ok());
    executor.run(1, driver);
    driver.stop();
  }
}

// From here on this thread makes no system call but to wait, to wake another and to end: any
// other ends the process.
void only_wait_and_wake() {
  std::array<sock_filter, 5> filter{
      {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
       BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_futex, 1, 0), BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit, 0, 1),
       BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW), BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_KILL_PROCESS)}};
  const sock_fprog program{filter.size(), filter.data()};
  FOLIOT_CHECK(::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
  FOLIOT_CHECK(::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

// Whether two threads that hand an executor to each other only wait and wake, in a fork of
// this process. `body` runs within each EXEC.
bool hands_over_without_system_calls(const std::function<void()>& body) {
  const pid_t child = ::fork();
  if (child == 0) {
    WideExecutor executor({1, 2, 1, 2, 1, 1, 2, 2, 1, 2}, [&](size_t i) {
      if (i == 0 || i == 1) only_wait_and_wake();
      if (i > 1) body();
    });
    ExecutorThread driver;
    if (!driver.start(executor, kOneAndTwoLanes).ok()) ::_exit(2);
    for (int i = 0; i < 10; ++i) executor.run(1, driver);
    ::_exit(0);
  }
  int status = 0;
  return ::waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

TEST(ExecutorThread, HandingOverOnlyWaitsAndWakes) {
  if (kSanitized) GTEST_SKIP() << "the sanitizer makes system calls";
  EXPECT_FALSE(hands_over_without_system_calls([] { ::getppid(); }));
  EXPECT_TRUE(hands_over_without_system_calls([] {}));
}

// Performs pieces that are short or not, in the order in which they are offered.
class PieceExecutor : public Executor {
 public:
  explicit PieceExecutor(
      std::vector<bool> is_short, std::function<void(size_t)> body = [](size_t) {})
      : is_short_(std::move(is_short)), body_(std::move(body)), threads_(is_short_.size()) {}

  const char* name() const override { return "pieces"; }
  Step poll(TimePoint) override {
    EXPECT_FALSE(inside_.exchange(true));
    const size_t next = begun_;
    if (next < offered_.load()) ++begun_;
    inside_ = false;
    if (next == begun_) return {.wake = TimePoint::infinite_future()};
    return {.run = true, .is_short = is_short_[next]};
  }
  Status perform() override {
    EXPECT_FALSE(inside_.exchange(true));
    threads_[done_] = std::this_thread::get_id();
    body_(done_);
    inside_ = false;
    return Status();
  }
  void finish(TimePoint start, TimePoint end, const Status&) override {
    EXPECT_LE(start, end);
    ++done_;
    done_.notify_all();
  }

  void offer(size_t count) { offered_ += count; }
  size_t done() const { return done_; }
  void await(size_t count) {
    for (size_t done = done_; done < count; done = done_) done_.wait(done);
  }
  // That performed a piece which is done.
  std::thread::id thread_of(size_t piece) const { return threads_[piece]; }

 private:
  const std::vector<bool> is_short_;
  const std::function<void(size_t)> body_;
  std::vector<std::thread::id> threads_;
  std::atomic<bool> inside_{false};
  std::atomic<size_t> offered_{0}, done_{0};
  size_t begun_ = 0;
};

TEST(ExecutorThreadVolunteers, PerformsShortPiecesOnTheThreadThatBringsThem) {
  PieceExecutor executor({true, true, true});
  ExecutorThread driver(true);
  ASSERT_TRUE(driver.start(executor).ok());
  for (size_t piece = 0; piece < 3; ++piece) {
    executor.offer(1);
    driver.wake();
    ASSERT_EQ(executor.done(), piece + 1);
    EXPECT_EQ(executor.thread_of(piece), std::this_thread::get_id());
  }
}

TEST(ExecutorThreadVolunteers, PerformsLongPiecesOnAThreadOfItsOwn) {
  std::atomic<bool> may_end{false};
  PieceExecutor executor({false, true, true}, [&](size_t piece) {
    if (piece == 0) may_end.wait(false);
  });
  ExecutorThread driver(true);
  ASSERT_TRUE(driver.start(executor).ok());
  executor.offer(1);
  driver.wake();
  EXPECT_EQ(executor.done(), 0u);
  // What comes meanwhile is left to the thread.
  executor.offer(1);
  driver.wake();
  EXPECT_EQ(executor.done(), 0u);
  may_end = true;
  may_end.notify_all();
  executor.await(2);
  EXPECT_NE(executor.thread_of(0), std::this_thread::get_id());
  EXPECT_EQ(executor.thread_of(1), executor.thread_of(0));
  driver.stop();
}

TEST(ExecutorThreadVolunteers, PerformsWhatWasBroughtBeforeTheStart) {
  PieceExecutor executor({true});
  ExecutorThread driver(true);
  executor.offer(1);
  driver.wake();
  EXPECT_EQ(executor.done(), 0u);
  ASSERT_TRUE(driver.start(executor).ok());
  executor.await(1);
}

// A piece that may begin at an instant begins on the thread, also when another thread has asked before it came.
TEST(ExecutorThreadVolunteers, TheThreadPerformsWhatWaitsForAnInstant) {
  class LaterExecutor : public Executor {
   public:
    const char* name() const override { return "later"; }
    Step poll(TimePoint now) override {
      if (due.load().is_infinite() || performed) return {.wake = TimePoint::infinite_future()};
      if (now < due.load()) return {.wake = due};
      return {.run = true, .is_short = true};
    }
    Status perform() override {
      by = std::this_thread::get_id();
      return Status();
    }
    void finish(TimePoint start, TimePoint, const Status&) override {
      EXPECT_GE(start, due.load());
      performed = true;
      performed.notify_all();
    }
    std::atomic<TimePoint> due{TimePoint::infinite_future()};
    std::atomic<bool> performed{false};
    std::thread::id by;
  };
  LaterExecutor executor;
  ExecutorThread driver(true);
  ASSERT_TRUE(driver.start(executor).ok());
  executor.due = monotonic_now() + Duration::milliseconds(100);
  driver.wake();
  executor.performed.wait(false);
  EXPECT_NE(executor.by, std::this_thread::get_id());
}

TEST(ExecutorThreadVolunteers, PerformsNothingAfterStop) {
  PieceExecutor executor({true, false});
  ExecutorThread driver(true);
  ASSERT_TRUE(driver.start(executor).ok());
  driver.stop();
  executor.offer(2);
  driver.wake();
  EXPECT_EQ(executor.done(), 0u);
  driver.stop();
}

TEST(ExecutorThreadVolunteers, LosesNothingThatManyThreadsBring) {
  constexpr size_t kThreads = 4, kPieces = 2'000;
  std::vector<bool> is_short(kThreads * kPieces);
  for (size_t i = 0; i < is_short.size(); ++i) is_short[i] = i % 7 != 0;
  PieceExecutor executor(is_short);
  ExecutorThread driver(true);
  ASSERT_TRUE(driver.start(executor).ok());
  std::vector<std::thread> threads;
  for (size_t i = 0; i < kThreads; ++i) {
    threads.emplace_back([&] {
      for (size_t piece = 0; piece < kPieces; ++piece) {
        executor.offer(1);
        driver.wake();
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  executor.await(kThreads * kPieces);
}

}  // namespace
}  // namespace foliot
