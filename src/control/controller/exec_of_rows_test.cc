#include "control/controller/exec_of_rows.h"

#include <gtest/gtest.h>

#include <vector>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

Duration of_rows(const std::vector<uint32_t>& sizes, const std::vector<Duration>& execs, uint32_t rows) {
  return exec_of_rows(sizes, rows, [&](size_t i) { return execs[i]; });
}

TEST(ExecOfRowsTest, ARestIsOneBatchOrSeveralWhicheverIsShorter) {
  const std::vector<uint32_t> sizes{1, 2, 4};
  const std::vector<Duration> execs{ms(3), ms(4), ms(8)};
  EXPECT_EQ(of_rows(sizes, execs, 0), Duration());
  EXPECT_EQ(of_rows(sizes, execs, 1), ms(3));
  EXPECT_EQ(of_rows(sizes, execs, 2), ms(4));
  EXPECT_EQ(of_rows(sizes, execs, 3), ms(7)) << "2 and 1";
  EXPECT_EQ(of_rows(sizes, {ms(3), ms(4), ms(6)}, 3), ms(6)) << "one of 4";
  EXPECT_EQ(of_rows(sizes, execs, 4), ms(8));
  EXPECT_EQ(of_rows(sizes, execs, 9), ms(19));
}

TEST(ExecOfRowsTest, ASizeThatServesRowsSlowerThanASmallerOneIsNotUsed) {
  EXPECT_EQ(of_rows({1, 2, 4, 8}, {ms(4), ms(9), ms(20), ms(48)}, 13), ms(52)) << "one by one";
  EXPECT_EQ(of_rows({1, 2, 4}, {ms(3), ms(4), ms(10)}, 7), ms(15)) << "2, 2, 2 and 1";
  EXPECT_EQ(of_rows({1, 2, 4}, {ms(4), ms(9), ms(17)}, 4), ms(16)) << "denser than 2, not than 1";
  EXPECT_EQ(of_rows({1, 2, 4}, {ms(3), ms(6), ms(12)}, 4), ms(12));
}

TEST(ExecOfRowsTest, ASmallSizeThatIsSlowDoesNotCount) {
  EXPECT_EQ(of_rows({1, 2, 4, 8}, {ms(2), ms(7), ms(9), ms(3)}, 7), ms(3));
  EXPECT_EQ(of_rows({1, 2, 4, 8}, {ms(2), ms(7), ms(9), ms(3)}, 10), ms(6));
}

TEST(ExecOfRowsTest, TheSmallestSizeNeedNotBeOne) {
  EXPECT_EQ(of_rows({4, 8}, {ms(5), ms(8)}, 1), ms(5));
  EXPECT_EQ(of_rows({4, 8}, {ms(5), ms(8)}, 13), ms(16));
}

}  // namespace
}  // namespace foliot
