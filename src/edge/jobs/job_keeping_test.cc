#include "edge/jobs/job_keeping.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <deque>
#include <optional>
#include <vector>

#include "edge/jobs/fake_job_lease.h"
#include "foundation/base/random.h"

namespace foliot {
namespace {

TimePoint instant(double seconds) { return TimePoint() + Duration::from_seconds(seconds); }

class JobKeepingTest : public testing::Test {
 protected:
  // Makes the call that is due at `seconds`; its answer comes after `takes`.
  void call(double seconds, Result<bool> answer, double takes = 0) {
    ASSERT_TRUE(keeping_.next(instant(seconds)));
    keeping_.answered(answer, instant(seconds + takes));
  }

  int tokens_ = 0;
  JobKeeping keeping_{{}, [this] { return fmt::format("token{}", ++tokens_); }};
};

TEST_F(JobKeepingTest, TakesAndRenews) {
  const auto take = keeping_.next(instant(5));
  ASSERT_TRUE(take);
  EXPECT_FALSE(take->renews);
  EXPECT_FALSE(keeping_.keeps(instant(5)));
  keeping_.answered(true, instant(5.5));
  EXPECT_EQ(keeping_.kept_until(), instant(5 + 8)) << "from when the call was sent, less the margin";
  EXPECT_FALSE(keeping_.next(instant(8)));
  const auto renewal = keeping_.next(instant(9));
  ASSERT_TRUE(renewal);
  EXPECT_TRUE(renewal->renews);
  EXPECT_EQ(renewal->token, take->token);
  keeping_.answered(true, instant(9));
  EXPECT_TRUE(keeping_.keeps(instant(16.9)));
}

TEST_F(JobKeepingTest, WhatAnotherHasIsAskedForAgain) {
  call(1, false);
  EXPECT_FALSE(keeping_.keeps(instant(1)));
  EXPECT_EQ(keeping_.next_call(), instant(1.5));
  EXPECT_EQ(keeping_.token(), "token1");
}

TEST_F(JobKeepingTest, AKeeperThatCannotRenewEndsInTime) {
  call(0, true);
  call(4, Status::unavailable("gone"), 1);
  EXPECT_TRUE(keeping_.keeps(instant(7.9))) << "it may be renewed yet";
  call(7, Status::unavailable("gone"), 0.5);
  EXPECT_FALSE(keeping_.keeps(instant(8)));
  const auto next = keeping_.next(instant(8));
  ASSERT_TRUE(next);
  EXPECT_FALSE(next->renews);
  EXPECT_EQ(next->token, "token2");
}

TEST_F(JobKeepingTest, AKeeperThatFindsAnotherEndsAtOnce) {
  call(0, true);
  call(4, false);
  EXPECT_FALSE(keeping_.keeps(instant(4)));
  EXPECT_EQ(keeping_.token(), "token2");
}

TEST_F(JobKeepingTest, ALateAnswerRevivesNothing) {
  call(0, true);
  call(7, true, 2);
  EXPECT_FALSE(keeping_.keeps(instant(9)));
  EXPECT_EQ(keeping_.token(), "token2");
}

TEST_F(JobKeepingTest, ALostAnswerIsFoundByTheNextTake) {
  call(0, Status::unavailable("no answer"), 1);
  const auto again = keeping_.next(instant(2));
  ASSERT_TRUE(again);
  EXPECT_EQ(again->token, "token1") << "the lease may be this one's already";
}

// ---- Several servers, over a store that fails and calls that come late

class Server {
 public:
  Server(Random random, int number) : random_(random), rate_(0.9 + 0.2 * random_.uniform()), number_(number) {}
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

  TimePoint clock(double time) const { return instant(1000.0 * number_ + rate_ * time); }
  bool keeps(double time) const { return keeping_.keeps(clock(time)); }
  const std::string& token() const { return keeping_.token(); }

  // `is_bad`: calls may get lost or come late, and the process may stand still.
  void turn(double time, bool is_bad, FakeJobLease& lease) {
    while (!late_.empty() && late_.front().made_at <= time) {
      make(late_.front(), lease);
      late_.erase(late_.begin());
    }
    if (!is_bad) paused_until_ = std::min(paused_until_, time);
    if (time < paused_until_) return;
    if (is_bad && random_.below(5000) == 0) paused_until_ = time + 15 * random_.uniform();
    if (under_way_) {
      if (!is_made_ && time >= under_way_->made_at) answer_ = make(*under_way_, lease), is_made_ = true;
      if (time < answered_at_) return;
      keeping_.answered(is_made_ && !answer_is_lost_ ? Result<bool>(answer_) : Status::unavailable("no answer"),
                        clock(time));
      if (!is_made_ && !is_lost_) wait_late(*under_way_);
      under_way_.reset();
    }
    if (const auto call = keeping_.next(clock(time))) send(*call, time, is_bad);
  }
  // What is still on its way never arrives.
  void forget() { late_.clear(); }

 private:
  struct Call {
    JobKeeping::Call call;
    double made_at = 0;
  };

  void send(const JobKeeping::Call& call, double time, bool is_bad) {
    under_way_ = Call{call, time + 0.05 * random_.uniform()};
    is_made_ = false;
    is_lost_ = is_bad && random_.below(4) == 0;
    answer_is_lost_ = is_bad && random_.below(4) == 0;
    if (is_lost_) under_way_->made_at = 1e9;
    if (is_bad && !is_lost_ && random_.below(3) == 0) under_way_->made_at = time + 20 * random_.uniform();
    answered_at_ = std::min(under_way_->made_at + 0.05, time + 1);
    if (answer_is_lost_) answered_at_ = time + 1;
  }
  void wait_late(const Call& call) {
    late_.push_back(call);
    std::ranges::sort(late_, {}, &Call::made_at);
  }
  static bool make(const Call& call, FakeJobLease& lease) {
    const Duration length = JobKeepingTimes().lease;
    return (call.call.renews ? lease.renew(call.call.token, length) : lease.take(call.call.token, length))->is_mine;
  }

  Random random_;
  const double rate_;  // of its clock
  const int number_;
  int tokens_ = 0;
  JobKeeping keeping_{{}, [this] { return fmt::format("{}.{}", number_, ++tokens_); }};
  std::optional<Call> under_way_;
  bool is_made_ = false, is_lost_ = false, answer_is_lost_ = false, answer_ = false;
  double answered_at_ = 0, paused_until_ = 0;
  std::vector<Call> late_;  // whose callers wait no longer
};

// In seconds. Afterwards one server keeps within a lease, a retry, and a call.
constexpr double kBadUntil = 120, kGoodUntil = 150, kSettled = 12;

void run_seed(uint64_t seed, int& changes, int& late_ends) {
  Random random(seed);
  FakeJobLease lease;
  std::deque<Server> servers;
  for (int i = 0; i < 3; ++i) servers.emplace_back(random.fork(), i);
  std::string last;
  for (double time = 0; time < kGoodUntil; time += 0.01) {
    const bool is_bad = time < kBadUntil;
    lease.set_now(instant(time));
    int keepers = 0;
    for (Server& server : servers) {
      if (!is_bad) server.forget();
      server.turn(time, is_bad, lease);
      if (!server.keeps(time)) continue;
      ++keepers;
      ASSERT_EQ(lease.holder(), server.token()) << "seed " << seed << " at " << time;
      if (last != server.token()) ++changes;
      last = server.token();
    }
    ASSERT_LE(keepers, 1) << "seed " << seed << " at " << time;
    if (time >= kBadUntil + kSettled) {
      ASSERT_EQ(keepers, 1) << "seed " << seed << " at " << time;
    }
    late_ends += keepers == 0 && !lease.holder().empty() ? 1 : 0;
  }
}

TEST(JobKeepingSeeds, NeverTwoAndSoonOne) {
  int changes = 0, late_ends = 0;
  for (uint64_t seed = 1; seed <= 200; ++seed) {
    run_seed(seed, changes, late_ends);
    if (testing::Test::HasFatalFailure()) return;
  }
  EXPECT_GT(changes, 400) << "keepers come and go, or nothing was tested";
  EXPECT_GT(late_ends, 0) << "keepers end before the store's lease";
}

}  // namespace
}  // namespace foliot
