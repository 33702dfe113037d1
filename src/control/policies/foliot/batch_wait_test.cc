#include "control/policies/foliot/batch_wait.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace foliot::foliot_policy {
namespace {

constexpr Duration kDelay = Duration::milliseconds(10);

TimePoint at(double milliseconds) { return TimePoint() + Duration::from_seconds(milliseconds / 1e3); }

class BatchWaitTest : public testing::Test {
 protected:
  // A batch could start at `start`, where its first request came; others follow at `gaps` in ms. Returns for how long
  // it waits, and how many rows it then has.
  struct Batch {
    double waited;
    double rows;
  };
  Batch run(double start, const std::vector<double>& gaps) {
    const RequestId first(++requests_);
    double now = start;
    size_t rows = 1;
    wait_.begin({first, at(start), kDelay}, rows, at(now));
    for (const double gap : gaps) {
      const auto until = wait_.look(rows, at(now));
      if (!until) return {now - start, static_cast<double>(rows)};
      if (*until <= at(now + gap)) return end(start, rows, *until);
      now += gap;
      ++rows;
    }
    const auto until = wait_.look(rows, at(now));
    return until ? end(start, rows, *until) : Batch{now - start, static_cast<double>(rows)};
  }
  // Means of so many batches, one every 12 ms, each with these gaps.
  Batch run_often(int count, const std::vector<double>& gaps) {
    Batch sum{};
    for (int i = 0; i < count; ++i, now_ += 12) {
      const Batch batch = run(now_, gaps);
      sum.waited += batch.waited / count;
      sum.rows += batch.rows / count;
    }
    return sum;
  }

  BatchWait wait_;

 private:
  Batch end(double start, size_t rows, TimePoint until) {
    EXPECT_FALSE(wait_.look(rows, until));
    return {(until - at(start)).to_milliseconds(), static_cast<double>(rows)};
  }

  uint64_t requests_ = 0;

 protected:
  double now_ = 0;
};

TEST_F(BatchWaitTest, TheFirstBatchesWaitForTheDelay) {
  const Batch batch = run_often(2, {0.1, 0.1, 0.1});
  EXPECT_NEAR(batch.waited, 10, 1e-6);
  EXPECT_EQ(batch.rows, 4);
}

TEST_F(BatchWaitTest, OfClientsThatWaitForTheirAnswersItAwaitsAll) {
  const std::vector<double> gaps(7, 0.1);
  run_often(10, gaps);
  const Batch batch = run_often(170, gaps);  // of which ten are trials
  EXPECT_NEAR(batch.rows, 8, 1e-9);
  EXPECT_NEAR(batch.waited, (160 * (0.7 + 0.2) + 10 * 10) / 170, 0.1);
}

// And less and less often, down to once a second.
TEST_F(BatchWaitTest, AClientThatIsAloneIsWaitedForInTrialsOnly) {
  run_often(200, {});
  EXPECT_NEAR(run_often(850, {}).waited, 10.0 * 10 / 850, 0.02);
}

TEST_F(BatchWaitTest, AndIsNoLongerAloneOnceOthersCome) {
  run_often(200, {});
  run_often(150, {0.1, 0.1, 0.1, 0.1});
  EXPECT_NEAR(run_often(100, {0.1, 0.1, 0.1, 0.1}).rows, 5, 1e-9);
}

TEST_F(BatchWaitTest, AClientThatIsLeftAloneWaitsForAFewTrials) {
  run_often(100, {0.1, 0.1, 0.1});
  EXPECT_LT(run_often(100, {}).waited, (20 * 0.2 + 8 * 10) / 100.0);
}

TEST_F(BatchWaitTest, OnceRowsComeToATrialTheNextOneFollowsAtOnce) {
  run_often(200, {});
  int batches = 0;
  while (run_often(1, {0.1, 0.1}).rows < 3) ++batches;
  EXPECT_LE(batches, 1000 / 12 + 1) << "a second after the last trial";
  EXPECT_NEAR(run_often(20, {0.1, 0.1}).rows, 3, 1e-9) << "another trial, and from then on all";
}

// Batches begin with several rows where several clients wait for a device.
TEST_F(BatchWaitTest, WhereSeveralRowsWaitTheNextTrialComesSooner) {
  run_often(200, {});
  wait_.begin({RequestId(1u << 20), at(now_), kDelay}, 2, at(now_));
  EXPECT_TRUE(wait_.look(2, at(now_))) << "200 ms after the last one, or later";
}

TEST_F(BatchWaitTest, ArrivalsThatBecomeRareAreAwaitedAsBefore) {
  run_often(100, std::vector<double>(31, 0.02));
  run_often(100, {3, 3, 3});  // six trials
  EXPECT_NEAR(run_often(100, {3, 3, 3}).rows, 4, 1e-9);
}

// As where the thread that reads them shares a core.
TEST_F(BatchWaitTest, RowsThatComeInGroupsAreAwaitedPastTheGapsBetweenGroups) {
  std::vector<double> gaps;
  for (int group = 0; group < 3; ++group) {
    gaps.insert(gaps.end(), 9, 0.02);
    gaps.push_back(1.2);
  }
  gaps.pop_back();
  run_often(10, gaps);
  EXPECT_NEAR(run_often(100, gaps).rows, 30, 1e-9);
}

TEST_F(BatchWaitTest, OneStallOfAClientDoesNotHaveTheOthersWait) {
  const std::vector<double> gaps(7, 0.1);
  run_often(17 * 5, gaps);
  std::vector<double> stall = gaps;
  stall.back() = 8;
  run_often(17, stall);  // one of them is a trial
  EXPECT_LT(run_often(170, gaps).waited, 1.6);
}

// Rows that come by chance come as long as is waited.
TEST_F(BatchWaitTest, ArrivalsOfAPoissonProcessAreAwaitedForMostOfTheDelay) {
  std::mt19937 random(7);
  for (const double mean : {0.3, 1.0, 3.0}) {
    std::exponential_distribution<double> gap(1 / mean);
    double waited = 0;
    for (int i = 0; i < 2000; ++i, now_ += 12) {
      std::vector<double> gaps(100);
      for (double& each : gaps) each = gap(random);
      const Batch batch = run(now_, gaps);
      if (i >= 1000) waited += batch.waited / 1000;
    }
    EXPECT_GT(waited, 7) << mean;
  }
}

// Else each half of them would wait while the other half is served.
TEST_F(BatchWaitTest, ClientsThatWereJustAnsweredAreAwaited) {
  run_often(17 * 5, {0.1, 0.1, 0.1});
  wait_.begin({RequestId(1u << 20), at(now_), kDelay}, 1, at(now_));
  ASSERT_TRUE(wait_.look(2, at(now_ + 0.1)));
  EXPECT_FALSE(wait_.look(2, at(now_ + 1))) << "though its device may be busy";
  wait_.answered(DeviceId(0), at(now_ + 5));
  ASSERT_TRUE(wait_.look(2, at(now_ + 5)));
  EXPECT_NEAR((*wait_.look(2, at(now_ + 5)) - at(now_)).to_milliseconds(), 5.2, 1e-4);
  wait_.answered(DeviceId(0), at(now_ + 9.9));
  EXPECT_EQ(wait_.look(2, at(now_ + 9.9)), at(now_) + kDelay) << "for no longer than the delay";
}

TEST_F(BatchWaitTest, ForAsLongAsTheyTookOfLate) {
  run_often(17 * 5, {0.1, 0.1, 0.1});
  for (int i = 0; i < 40; ++i, now_ += 12) {
    wait_.answered(DeviceId(0), at(now_ - 1.5));
    run(now_, {0.1, 0.1, 0.1});
  }
  wait_.begin({RequestId(1u << 20), at(now_), kDelay}, 3, at(now_));
  wait_.answered(DeviceId(0), at(now_ + 2));
  ASSERT_TRUE(wait_.look(3, at(now_ + 2)));
  EXPECT_NEAR((*wait_.look(3, at(now_ + 2)) - at(now_)).to_milliseconds(), 2 + 2 * 1.5, 0.01);
}

// As where a client of many connections pauses between them.
TEST_F(BatchWaitTest, MostOfTheRowsOfTheLastBatchAreAwaited) {
  run_often(17 * 5, {0.1, 0.1, 0.1});
  wait_.sent(DeviceId(0), 8);
  EXPECT_EQ(run(now_, {0.1, 0.1, 0.1, 0.1, 5, 0.1, 0.1}).rows, 8);
  wait_.sent(DeviceId(0), 8);
  EXPECT_EQ(run(now_ + 12, {0.1, 0.1, 0.1, 0.1, 0.1, 5, 0.1}).rows, 6) << "and not all";
  wait_.sent(DeviceId(0), 6);
  EXPECT_NEAR(run(now_ + 24, {0.1, 0.1, 0.1}).waited, 10, 1e-4) << "for no longer than the delay";
  wait_.sent(DeviceId(0), 4);
  EXPECT_LT(run(now_ + 36, {0.1, 0.1, 0.1}).waited, 1);
}

TEST_F(BatchWaitTest, OneBatchIsDecidedOnce) {
  run_often(10, {0.1, 0.1, 0.1});
  wait_.begin({RequestId(1u << 20), at(now_), kDelay}, 1, at(now_));
  ASSERT_TRUE(wait_.look(1, at(now_)));
  EXPECT_FALSE(wait_.look(1, at(now_ + 9)));
  EXPECT_FALSE(wait_.look(2, at(now_ + 9.1)));  // another model went first
}

TEST_F(BatchWaitTest, TheLastBatchIsOverOnceItsOwnDeviceHasAnswered) {
  wait_.begin({RequestId(1), at(0), kDelay}, 1, at(0));
  EXPECT_FALSE(wait_.computes_on(DeviceId(0)));
  wait_.sent(DeviceId(0), 1);
  wait_.answered(DeviceId(1), at(1));
  EXPECT_TRUE(wait_.computes_on(DeviceId(0)));
  EXPECT_FALSE(wait_.computes_on(DeviceId(1)));
  wait_.answered(DeviceId(0), at(2));
  EXPECT_FALSE(wait_.computes_on(DeviceId(0)));
}

TEST_F(BatchWaitTest, ABatchWithoutADelayDoesNotWait) {
  wait_.begin({RequestId(1), at(0), Duration()}, 1, at(0));
  EXPECT_TRUE(wait_.is_of(RequestId(1)));
  EXPECT_FALSE(wait_.look(1, at(0)));
}

// The last one's delay is over when its device is free.
TEST_F(BatchWaitTest, BatchesThatHadToWaitForTheDeviceTeachNothing) {
  run_often(10, {0.1, 0.1, 0.1});
  for (uint64_t i = 0; i < 100; ++i, now_ += 12) {
    wait_.begin({RequestId(1000 + i), at(now_ - 12), kDelay}, 5, at(now_));
    EXPECT_FALSE(wait_.look(5, at(now_)));
  }
  EXPECT_NEAR(run_often(16, {0.1, 0.1, 0.1}).rows, 4, 1e-9);
}

}  // namespace
}  // namespace foliot::foliot_policy
