#include "answer/personal/weights/drawn_places.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

TEST(DrawnPlacesTest, EachIsTakenOnce) {
  DrawnPlaces places;
  places.add(1, 2, 3, 0.5);
  EXPECT_EQ(places.take(1, 2, 4), 0);
  EXPECT_EQ(places.take(1, 2, 3), 0.5F);
  EXPECT_EQ(places.take(1, 2, 3), 0);
}

TEST(DrawnPlacesTest, KeepsTheLastOnes) {
  DrawnPlaces places;
  for (uint64_t query = 0; query < 2 * DrawnPlaces::kPlacesMax; ++query) {
    places.add(query, 1, 1, 0.5);
    if (query % 2 == 0) {
      EXPECT_EQ(places.take(query, 1, 1), 0.5F);
    }
    EXPECT_LE(places.size(), DrawnPlaces::kPlacesMax);
  }
  EXPECT_EQ(places.take(1, 1, 1), 0);
  EXPECT_EQ(places.take(2 * DrawnPlaces::kPlacesMax - 1, 1, 1), 0.5F);
}

}  // namespace
}  // namespace foliot
