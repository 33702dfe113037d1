#include "control/fleet/pools/process_worker_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace foliot {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;

// Says its arguments, and leaves when it is asked to.
const std::vector<std::string> kObedient = {
    "/bin/sh", "-c", "trap 'echo leaving; exit 0' TERM; echo \"with $*\"; sleep 1000 & wait", "worker"};
// Does not.
const std::vector<std::string> kStubborn = {"/bin/sh", "-c", "trap '' TERM; echo here; sleep 1000 & wait", "worker"};

class ProcessWorkerPoolTest : public testing::Test {
 protected:
  ProcessWorkerPool& make(const std::vector<std::string>& command) {
    return pool_.emplace(ProcessWorkerPoolOptions{.commands = {{"cpu", command}}},
                         [this](std::string_view worker, std::string_view line) {
                           lines_.push_back(std::string(worker) + ": " + std::string(line));
                         });
  }
  // Time passes only where the test says so; processes take theirs.
  void attend_until(const std::function<bool()>& done) {
    while (true) {
      pool_->attend(now_);
      if (done()) return;
      pool_->wait(Duration::seconds(10), -1);
    }
  }
  bool said(const std::string& line) const { return std::ranges::count(lines_, line) > 0; }

  std::vector<std::string> lines_;
  TimePoint now_ = TimePoint() + Duration::seconds(100);
  std::optional<ProcessWorkerPool> pool_;
};

TEST_F(ProcessWorkerPoolTest, StartsAsManyAsThereAreToBe) {
  ProcessWorkerPool& pool = make(kObedient);
  EXPECT_EQ(pool.size("cpu").value(), 0u);
  EXPECT_EQ(pool.next_to_leave("cpu"), std::nullopt);
  ASSERT_TRUE(pool.set_size("cpu", 2).ok());
  EXPECT_EQ(pool.size("cpu").value(), 2u);
  EXPECT_EQ(pool.next_to_leave("cpu"), "cpu-1");
  attend_until(
      [&] { return said("cpu-0: with --name cpu-0 --kind cpu") && said("cpu-1: with --name cpu-1 --kind cpu"); });
  EXPECT_EQ(pool.running(), 2u);
}

TEST_F(ProcessWorkerPoolTest, TheLastLeavesWhenItIsAskedTo) {
  ProcessWorkerPool& pool = make(kObedient);
  ASSERT_TRUE(pool.set_size("cpu", 2).ok());
  attend_until(
      [&] { return said("cpu-1: with --name cpu-1 --kind cpu") && said("cpu-0: with --name cpu-0 --kind cpu"); });
  ASSERT_TRUE(pool.set_size("cpu", 1).ok());
  attend_until([&] { return said("cpu-1: has left (exit code 0)"); });
  EXPECT_TRUE(said("cpu-1: leaving"));
  EXPECT_EQ(pool.running(), 1u);
  EXPECT_FALSE(said("cpu-0: leaving"));
}

TEST_F(ProcessWorkerPoolTest, OneThatIsNeededAgainBeforeItHasLeftIsStartedAnew) {
  ProcessWorkerPool& pool = make(kObedient);
  ASSERT_TRUE(pool.set_size("cpu", 1).ok());
  attend_until([&] { return said("cpu-0: with --name cpu-0 --kind cpu"); });
  ASSERT_TRUE(pool.set_size("cpu", 0).ok());
  pool.attend(now_);
  ASSERT_TRUE(pool.set_size("cpu", 1).ok());
  attend_until([&] { return std::ranges::count(lines_, "cpu-0: started") == 2; });
  EXPECT_TRUE(said("cpu-0: has left (exit code 0)"));
}

TEST_F(ProcessWorkerPoolTest, OneThatDoesNotLeaveInTimeIsKilled) {
  ProcessWorkerPool& pool = make(kStubborn);
  ASSERT_TRUE(pool.set_size("cpu", 1).ok());
  attend_until([&] { return said("cpu-0: here"); });
  ASSERT_TRUE(pool.set_size("cpu", 0).ok());
  pool.attend(now_);
  now_ += Duration::seconds(39);
  for (int i = 0; i < 10; ++i) pool.attend(now_);
  EXPECT_EQ(pool.running(), 1u);
  now_ += Duration::seconds(1);
  attend_until([&] { return pool.running() == 0; });
  EXPECT_THAT(lines_, Contains("cpu-0: has left (signal 9 (Killed))"));
}

TEST_F(ProcessWorkerPoolTest, SoIsOneThatIsNeededAgainMeanwhile) {
  ProcessWorkerPool& pool = make(kStubborn);
  ASSERT_TRUE(pool.set_size("cpu", 1).ok());
  attend_until([&] { return said("cpu-0: here"); });
  ASSERT_TRUE(pool.set_size("cpu", 0).ok());
  pool.attend(now_);
  ASSERT_TRUE(pool.set_size("cpu", 1).ok());
  now_ += Duration::seconds(40);
  attend_until([&] { return std::ranges::count(lines_, "cpu-0: started") == 2; });
}

TEST_F(ProcessWorkerPoolTest, OneThatEndsByItselfIsStartedAgainLaterAndLater) {
  ProcessWorkerPool& pool = make({"/bin/sh", "-c", "echo no models >&2; exit 3", "worker"});
  ASSERT_TRUE(pool.set_size("cpu", 1).ok());
  const auto ended = [&](const std::string& wait) {
    return said("cpu-0: ended by itself (exit code 3); it is started again in " + wait + " s");
  };
  attend_until([&] { return ended("1"); });
  EXPECT_TRUE(said("cpu-0: no models"));
  now_ += Duration::milliseconds(999);
  pool.attend(now_);
  EXPECT_EQ(pool.running(), 0u);
  now_ += Duration::milliseconds(1);
  attend_until([&] { return ended("2"); });
  for (const char* wait : {"4", "8", "16", "30"}) {
    now_ += Duration::seconds(30);
    attend_until([&] { return ended(wait); });
  }
}

TEST_F(ProcessWorkerPoolTest, AProgramThatIsNotThereIsNamed) {
  ProcessWorkerPool& pool = make({"/nowhere/foliot"});
  ASSERT_TRUE(pool.set_size("cpu", 1).ok());
  attend_until([&] { return said("cpu-0: ended by itself (exit code 127); it is started again in 1 s"); });
  EXPECT_THAT(lines_, Contains(AllOf(HasSubstr("/nowhere/foliot"), HasSubstr("No such file"))));
}

TEST_F(ProcessWorkerPoolTest, AnotherKindIsNotFound) {
  ProcessWorkerPool& pool = make(kObedient);
  EXPECT_EQ(pool.set_size("gpu", 1).message(), "no command starts workers of kind 'gpu'");
  EXPECT_EQ(pool.size("gpu").status().code(), StatusCode::kNotFound);
  EXPECT_EQ(pool.next_to_leave("gpu"), std::nullopt);
}

}  // namespace
}  // namespace foliot
