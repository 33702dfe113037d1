#include "control/policies/foliot/worthwhile_delay.h"

#include <gtest/gtest.h>

#include <vector>

namespace foliot::foliot_policy {
namespace {

class WorthwhileDelayTest : public testing::Test {
 protected:
  // In milliseconds, for a model whose batches of 1, 2 and 9 rows take `fixed` and `each` for a row.
  static double delay(double fixed, double each, double rate, double time) {
    const std::vector<uint32_t> sizes{1, 2, 9};
    std::vector<Duration> execs;
    for (const uint32_t rows : sizes) execs.push_back(Duration::from_milliseconds(fixed + each * rows));
    return worthwhile_delay({sizes, execs, rate, Duration::from_milliseconds(time)}).to_milliseconds();
  }
};

// Two batches of 9 rows take 3.8 ms.
TEST_F(WorthwhileDelayTest, IsNoMoreThanASixthOfTheTimeThatTwoBatchesLeave) {
  EXPECT_NEAR(delay(1, 0.1, 10'000, 93.8), 15, 1e-5);
  EXPECT_NEAR(delay(1, 0.1, 10'000, 18.8), 2.5, 1e-5);
  EXPECT_EQ(delay(1, 0.1, 10'000, 3), 0);
}

TEST_F(WorthwhileDelayTest, IsNoMoreThanAMomentHoweverLongTheTimeIs) {
  EXPECT_NEAR(delay(5, 0, 10'000, 1e6), 20, 1e-6);
}

TEST_F(WorthwhileDelayTest, IsShortWhereItSavesLittle) {
  EXPECT_NEAR(delay(0.1, 1, 10'000, 100), 2 * (1.5 - 0.1), 1e-6);
  EXPECT_NEAR(delay(0, 1, 10'000, 100), 0, 1e-6);
}

TEST_F(WorthwhileDelayTest, NothingIsWaitedForThatComesSeldom) {
  EXPECT_NEAR(delay(0.5, 0.1, 200, 100), 2 * (7.5 - 5), 1e-5);
  EXPECT_EQ(delay(0.5, 0.1, 130, 100), 0);
  EXPECT_EQ(delay(0.5, 0.1, 0, 100), 0);
}

TEST_F(WorthwhileDelayTest, BatchesThatTakeMoreThanTheirRowsDoAloneAreNotWaitedFor) {
  EXPECT_EQ(delay(-0.1, 1, 10'000, 100), 0);
}

TEST_F(WorthwhileDelayTest, AModelWithoutBatchesHasNothingToWaitFor) {
  const std::vector<uint32_t> sizes{1};
  const std::vector<Duration> execs{Duration::milliseconds(5)};
  EXPECT_EQ(worthwhile_delay({sizes, execs, 10'000, Duration::milliseconds(100)}), Duration());
}

}  // namespace
}  // namespace foliot::foliot_policy
