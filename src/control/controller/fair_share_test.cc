#include "control/controller/fair_share.h"

#include <gtest/gtest.h>

#include <memory>

namespace foliot {
namespace {

TimePoint after(double seconds) { return TimePoint() + Duration::seconds(100) + Duration::from_seconds(seconds); }

// One device that holds one model: a row takes 1 ms, and 1,000 rows a second are all
// that it can do. Requests have 100 ms.
class FairShareTest : public ::testing::Test {
 protected:
  FairShareTest() {
    auto model = std::make_shared<ModelInfo>();
    model->only().batch_sizes = {1};
    model->buckets.resize(1);
    model->only().seed_exec = {{Duration::milliseconds(1)}};
    cluster_.add_device(KindId(), 4);
    cluster_.add_model(model);
    cluster_.copies = {1};
    shares_.on_model_added(*model);
  }

  bool let_in(uint32_t tenant, double when, uint32_t weight = 1) {
    return !shares_.turn_away({.id = {},
                               .model = ModelId(0),
                               .payload = {},
                               .arrival = after(when),
                               .deadline = after(when + 0.1),
                               .tenant = TenantId(tenant),
                               .tenant_weight = weight},
                              after(when));
  }
  // So many milliseconds of work wait for the device.
  void wait(int milliseconds) {
    for (int i = 0; i < milliseconds; ++i) shares_.on_waiting({.model = ModelId(0)});
  }
  // Both ask for so much, evenly, for a while; how often each was let in.
  std::pair<int, int> run(double from, double seconds, int rate_one, int rate_two, uint32_t weight_one = 1) {
    std::pair<int, int> counts;
    constexpr int kStepsPerSecond = 10'000;
    for (int step = 0; step < static_cast<int>(seconds * kStepsPerSecond); ++step) {
      const double when = from + static_cast<double>(step) / kStepsPerSecond;
      const auto due = [&](int rate) { return step * rate / kStepsPerSecond != (step + 1) * rate / kStepsPerSecond; };
      if (due(rate_one)) counts.first += let_in(1, when, weight_one);
      if (due(rate_two)) counts.second += let_in(2, when);
    }
    return counts;
  }

  Cluster cluster_;
  FairShare shares_{cluster_};
};

TEST_F(FairShareTest, ATenantAloneIsAdmitted) {
  wait(1000);
  EXPECT_EQ(run(0, 2, 5000, 0).first, 10'000);
}

TEST_F(FairShareTest, WhatWaitsLittleIsNoReasonToRefuse) {
  const auto [greedy, modest] = run(0, 2, 5000, 200);
  EXPECT_EQ(greedy, 10'000);
  EXPECT_EQ(modest, 400);
}

TEST_F(FairShareTest, WhatTheModestLeaveGoesToTheGreedy) {
  run(0, 2, 5000, 200);
  wait(60);  // more than leaves a request time enough
  const auto [greedy, modest] = run(2, 2, 5000, 200);
  EXPECT_EQ(modest, 400);
  EXPECT_NEAR(greedy, 2 * 700, 100);  // 900 are divided
}

TEST_F(FairShareTest, SharesFollowWeights) {
  run(0, 2, 5000, 5000, 3);
  wait(60);
  const auto [three, one] = run(2, 2, 5000, 5000, 3);
  EXPECT_NEAR(three, 2 * 675, 100);
  EXPECT_NEAR(one, 2 * 225, 50);
}

TEST_F(FairShareTest, ANewTenantIsAdmittedAtOnce) {
  run(0, 2, 5000, 0);
  wait(200);
  EXPECT_TRUE(let_in(2, 2));
  int greedy = 0;
  for (int i = 0; i < 1000; ++i) greedy += let_in(1, 2);
  EXPECT_LT(greedy, 200);
}

TEST_F(FairShareTest, ReportsWhenItCouldBeAnswered) {
  run(0, 2, 5000, 200);
  wait(200);
  std::optional<TimePoint> answer;
  for (int i = 0; i < 1000 && !answer; ++i) {
    answer = shares_.turn_away({.model = ModelId(0), .deadline = after(2.1), .tenant = TenantId(1)}, after(2));
  }
  EXPECT_EQ(answer, after(2.2));
}

TEST_F(FairShareTest, WhatWaitedAndWasTakenCountsNoMore) {
  run(0, 2, 5000, 200);
  const Duration work = shares_.on_waiting({.model = ModelId(0)});
  wait(199);
  for (int i = 0; i < 200; ++i) shares_.on_taken({.model = ModelId(0)}, work);
  EXPECT_EQ(run(2, 1, 5000, 200).first, 5000);
}

TEST_F(FairShareTest, BestEffortBeyondAShareWaitsLikeADeadlineOfASecond) {
  run(0, 2, 5000, 200);
  const auto best_effort = [&] {
    bool all = true;
    for (int i = 0; i < 1000; ++i)
      all = all && !shares_.turn_away({.model = ModelId(0), .tenant = TenantId(1)}, after(2));
    return all;
  };
  wait(333);
  EXPECT_TRUE(best_effort());
  wait(2);
  EXPECT_FALSE(best_effort());
}

TEST_F(FairShareTest, BeyondSoManyTenantsOthersShareOneShare) {
  run(0, 2, 5000, 0);
  wait(200);
  for (uint32_t tenant = 2; tenant <= FairShare::kTenantsMax; ++tenant) EXPECT_TRUE(let_in(tenant, 2));
  int others = 0;
  for (uint32_t tenant = 10'000; tenant < 11'000; ++tenant) others += let_in(tenant, 2);
  EXPECT_LT(others, 200);
}

TEST_F(FairShareTest, WithoutTenantsNothingIsDone) {
  wait(1000);
  for (int i = 0; i < 1000; ++i) EXPECT_TRUE(let_in(0, 0));
  EXPECT_EQ(shares_.on_waiting({.model = ModelId(0)}), Duration());
}

}  // namespace
}  // namespace foliot
