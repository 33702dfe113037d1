#include "edge/jobs/lease_thread.h"

#include <gtest/gtest.h>

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <utility>

namespace foliot {
namespace {

// Free for every token. `meanwhile` is called within release().
class FreeLease final : public JobLease {
 public:
  FreeLease(std::function<void()> meanwhile, std::string& released)
      : meanwhile_(std::move(meanwhile)), released_(released) {}

  Result<JobLeaseReply> take(const std::string&, Duration) override { return JobLeaseReply{.is_mine = true}; }
  Result<JobLeaseReply> renew(const std::string&, Duration) override { return JobLeaseReply{.is_mine = true}; }
  Status release(const std::string& token) override {
    meanwhile_();
    released_ = token;
    return Status();
  }

 private:
  const std::function<void()> meanwhile_;
  std::string& released_;
};

TEST(LeaseThread, GivesBackWhatItHadThoughItIsYieldedMeanwhile) {
  int tokens = 0;
  std::string released;
  std::promise<void> kept;
  bool is_kept = false;
  std::unique_ptr<LeaseThread> thread;
  thread = std::make_unique<LeaseThread>(
      std::make_unique<FreeLease>([&] { thread->yield(Duration()); }, released), JobKeepingTimes{},
      [&tokens] { return "token " + std::to_string(++tokens); }, [] { return TimePoint() + Duration::seconds(1); },
      [&] {
        if (!std::exchange(is_kept, true)) kept.set_value();
      });
  ASSERT_TRUE(thread->start().ok());
  kept.get_future().wait();
  const std::string token = thread->kept().token;
  thread->stop();
  EXPECT_EQ(released, token);
  EXPECT_NE(thread->kept().token, token);
}

}  // namespace
}  // namespace foliot
