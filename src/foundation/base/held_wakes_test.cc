#include "foundation/base/held_wakes.h"

#include <gtest/gtest.h>

#include <thread>

namespace foliot {
namespace {

struct CountingSleeper final : public Sleeper {
  void wake() override { ++wakes; }

  int wakes = 0;
};

TEST(HeldWakesTest, WakesAtOnceWhereNoneAreHeld) {
  CountingSleeper sleeper;
  HeldWakes::wake(sleeper);
  EXPECT_EQ(sleeper.wakes, 1);
}

TEST(HeldWakesTest, WakesOnceWhenReleased) {
  CountingSleeper sleeper;
  HeldWakes wakes;
  HeldWakes::wake(sleeper);
  HeldWakes::wake(sleeper);
  EXPECT_EQ(sleeper.wakes, 0);
  wakes.release();
  EXPECT_EQ(sleeper.wakes, 1);
  wakes.release();
  EXPECT_EQ(sleeper.wakes, 1);
  HeldWakes::wake(sleeper);
  EXPECT_EQ(sleeper.wakes, 1) << "it is held again";
}

TEST(HeldWakesTest, WakesWhenDestroyed) {
  CountingSleeper sleeper;
  {
    HeldWakes wakes;
    HeldWakes::wake(sleeper);
  }
  EXPECT_EQ(sleeper.wakes, 1);
  HeldWakes::wake(sleeper);
  EXPECT_EQ(sleeper.wakes, 2);
}

TEST(HeldWakesTest, HoldsOneAndWakesOthersAtOnce) {
  CountingSleeper held;
  CountingSleeper other;
  HeldWakes wakes;
  HeldWakes::wake(held);
  HeldWakes::wake(other);
  EXPECT_EQ(held.wakes, 0);
  EXPECT_EQ(other.wakes, 1);
}

TEST(HeldWakesTest, HoldsThoseOfItsThreadOnly) {
  CountingSleeper sleeper;
  HeldWakes wakes;
  std::thread([&] { HeldWakes::wake(sleeper); }).join();
  EXPECT_EQ(sleeper.wakes, 1);
}

}  // namespace
}  // namespace foliot
