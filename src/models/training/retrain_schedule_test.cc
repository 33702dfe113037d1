#include "models/training/retrain_schedule.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/base/random.h"

namespace foliot {
namespace {

using ::testing::HasSubstr;

constexpr Duration kHour = Duration::seconds(3600);

class RetrainScheduleTest : public testing::Test {
 protected:
  bool is_due() const { return !schedule_.why(now_, facts_).empty(); }
  void end(RetrainOutcome outcome, Duration took = Duration::seconds(1)) {
    const TimePoint began = now_;
    now_ += took;
    schedule_.end(began, facts_, now_, outcome);
  }
  // The next moment at which it is due.
  Duration wait() {
    const TimePoint from = now_;
    while (!is_due()) now_ += Duration::seconds(1);
    return now_ - from;
  }
  void use(RetrainTriggers triggers) {
    schedule_.~RetrainSchedule();
    new (&schedule_) RetrainSchedule(std::move(triggers), now_);
  }

  TimePoint now_ = TimePoint() + kHour;
  RetrainSchedule::Facts facts_{.version = "1", .withheld = 30};
  RetrainSchedule schedule_{{}, now_};
};

TEST_F(RetrainScheduleTest, IsNeverDueWithoutTriggers) {
  facts_.quality = "drift";
  facts_.observations = facts_.of_version = 1'000'000;
  now_ += kHour * 1000;
  EXPECT_FALSE(is_due());
}

TEST_F(RetrainScheduleTest, IsDueSoLongAfterTheLastOneBegan) {
  use({.every = kHour});
  EXPECT_EQ(wait(), kHour);
  EXPECT_THAT(schedule_.why(now_, facts_), HasSubstr("3600.000 s ago"));
  end(RetrainOutcome::kNotTaken, Duration::seconds(600));
  EXPECT_EQ(wait(), Duration::seconds(3000));
}

TEST_F(RetrainScheduleTest, IsDueAfterSoManyObservations) {
  use({.after_observations = 100});
  facts_.observations = 99;
  EXPECT_FALSE(is_due());
  facts_.observations = 130;
  EXPECT_THAT(schedule_.why(now_, facts_), HasSubstr("130 observations"));
  end(RetrainOutcome::kTaken);
  facts_.observations = 229;
  EXPECT_FALSE(is_due());
  facts_.observations = 230;
  EXPECT_TRUE(is_due());
}

TEST_F(RetrainScheduleTest, WaitsUntilAVersionCouldBeJudged) {
  use({.on_drift = true, .every = kHour, .after_observations = 1});
  facts_ = {.version = "1", .quality = "drift", .observations = 500, .of_version = 500, .withheld = 29};
  now_ += kHour * 2;
  EXPECT_FALSE(is_due());
  facts_.withheld = 30;
  EXPECT_EQ(schedule_.why(now_, facts_), "drift");
}

// Ten thousand observations of a drift that no version repairs.
TEST_F(RetrainScheduleTest, DriftThatStaysIsTriedAgainWhenThereIsTwiceAsMuch) {
  use({.on_drift = true});
  std::vector<uint64_t> tried;
  facts_.quality = "drift";
  for (facts_.of_version = 1000; facts_.of_version <= 11'000; ++facts_.of_version) {
    now_ += Duration::seconds(1);
    if (!is_due()) continue;
    tried.push_back(facts_.of_version);
    end(RetrainOutcome::kNotTaken);
  }
  EXPECT_THAT(tried, testing::ElementsAre(1000, 2000, 4000, 8000));
  facts_.version = "2";  // another one is served meanwhile, and drifts
  facts_.of_version = 500;
  EXPECT_TRUE(is_due());
}

TEST_F(RetrainScheduleTest, DriftOfTheVersionThatWasTakenIsNews) {
  use({.on_drift = true});
  facts_.quality = "drift";
  facts_.of_version = 1000;
  end(RetrainOutcome::kTaken);
  facts_ = {.version = "2", .quality = "drift", .of_version = 500, .withheld = 30};
  EXPECT_TRUE(is_due());
}

TEST_F(RetrainScheduleTest, PausesDoubleWithEachFailureUpToADay) {
  use({.after_observations = 1});
  facts_.observations = 1;
  std::vector<int64_t> pauses;
  for (int i = 0; i < 13; ++i) {
    end(RetrainOutcome::kFailed);
    EXPECT_EQ(schedule_.failures(), static_cast<uint32_t>(i + 1));
    pauses.push_back(wait().nanoseconds() / 60'000'000'000);
  }
  EXPECT_THAT(pauses, testing::ElementsAre(1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 1440, 1440));
  end(RetrainOutcome::kNotTaken);
  EXPECT_EQ(schedule_.failures(), 0u);
  facts_.observations = 2;
  end(RetrainOutcome::kFailed, kHour * 30);
  EXPECT_EQ(wait(), kHour * 30) << "as long as the failure took";
}

// Whatever comes, failures take at most half of the time but for the first minutes.
TEST_F(RetrainScheduleTest, FailuresTakeAtMostHalfOfTheTime) {
  Random random(1);
  use({.on_drift = true, .every = Duration::seconds(60), .after_observations = 1});
  facts_.quality = "drift";
  Duration spent;
  const TimePoint from = now_;
  for (int i = 0; i < 200; ++i) {
    ++facts_.observations;
    facts_.of_version = facts_.observations;
    wait();
    const Duration took = Duration::from_seconds(1 + 7200 * random.uniform());
    spent += took;
    end(RetrainOutcome::kFailed, took);
  }
  wait();
  EXPECT_LE(spent, (now_ - from) / 2);
}

}  // namespace
}  // namespace foliot
