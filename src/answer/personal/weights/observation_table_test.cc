#include "answer/personal/weights/observation_table.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(ObservationTableTest, EachIdAndEachRecordCountsOnce) {
  ObservationTable table;
  const std::vector<UserObservation> one = {{1, 10, 3}, {1, 20, 4}};
  table.add(5, 7, one);
  EXPECT_EQ(table.observations(5).size(), 1u);
  EXPECT_TRUE(table.has(5, 1));
  EXPECT_FALSE(table.has(6, 1));
  const std::vector<UserObservation> other = {{2, 10, 3}};
  table.add(5, 7, other);  // it is in the snapshot already
  EXPECT_EQ(table.observations(5).size(), 1u);
  table.remove(5, 6);
  EXPECT_EQ(table.observations(5).size(), 1u);
  table.remove(5, 8);
  EXPECT_EQ(table.observations(5).size(), 0u);
  EXPECT_EQ(table.users(), 0u);
}

TEST(ObservationTableTest, AUserThatComesAgainIsAnother) {
  ObservationTable table;
  const std::vector<UserObservation> one = {{1, 10, 3}};
  const uint32_t place = table.add(5, 7, one);
  EXPECT_EQ(table.user(place).first_number, 7u);
  EXPECT_EQ(table.remove(5, 8), place);
  EXPECT_EQ(table.remove(5, 9), std::nullopt);
  EXPECT_EQ(table.add(5, 9, one), place);
  EXPECT_EQ(table.user(place).first_number, 9u);
}

}  // namespace
}  // namespace foliot
