#include "foundation/base/held_wakes.h"

#include <gtest/gtest.h>

#include <thread>

namespace foliot {
namespace {

struct CountingSleeper final : public Sleeper {
  void wake() override { ++wakes; }
  void wake_or_serve() override {
    ++served;
    if (served < served_most) HeldWakes::wake(*this);
  }

  int wakes = 0;
  int served = 0;
  int served_most = 1;
};

TEST(HeldWakesTest, WakesAtOnceWhereNoneAreHeld) {
  CountingSleeper sleeper;
  HeldWakes::wake(sleeper);
  EXPECT_EQ(sleeper.wakes, 1);
}

TEST(HeldWakesTest, WakesOnce) {
  CountingSleeper sleeper;
  HeldWakes wakes;
  HeldWakes::wake(sleeper);
  HeldWakes::wake(sleeper);
  EXPECT_EQ(sleeper.wakes, 0);
  wakes.wake_held();
  EXPECT_EQ(sleeper.wakes, 1);
  wakes.wake_held();
  EXPECT_EQ(sleeper.wakes, 1);
  HeldWakes::wake(sleeper);
  EXPECT_EQ(sleeper.wakes, 1) << "it is held again";
}

TEST(HeldWakesTest, ServesOnceWhenReleased) {
  CountingSleeper sleeper;
  HeldWakes wakes;
  HeldWakes::wake(sleeper);
  HeldWakes::wake(sleeper);
  wakes.release();
  EXPECT_EQ(sleeper.served, 1);
  wakes.release();
  EXPECT_EQ(sleeper.served, 1);
  EXPECT_EQ(sleeper.wakes, 0);
}

TEST(HeldWakesTest, WhatIsPostedWhileItIsServedIsServedUpToABound) {
  CountingSleeper sleeper;
  HeldWakes wakes;
  sleeper.served_most = 3;
  HeldWakes::wake(sleeper);
  wakes.release();
  EXPECT_EQ(sleeper.served, 3);
  EXPECT_EQ(sleeper.wakes, 0);
  sleeper.served_most = 1'000'000;
  HeldWakes::wake(sleeper);
  wakes.release();
  EXPECT_LT(sleeper.served, 100);
  EXPECT_EQ(sleeper.wakes, 1);
}

TEST(HeldWakesTest, WakesWhatTheThreadHoldsWithoutKnowingOfIt) {
  CountingSleeper sleeper;
  HeldWakes::wake_held_of_this_thread();
  HeldWakes wakes;
  HeldWakes::wake(sleeper);
  HeldWakes::wake_held_of_this_thread();
  EXPECT_EQ(sleeper.wakes, 1);
  EXPECT_EQ(sleeper.served, 0);
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
