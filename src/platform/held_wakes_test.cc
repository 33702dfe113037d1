#include "platform/held_wakes.h"

#include <gtest/gtest.h>

#include <thread>

#include "platform/clock.h"
#include "platform/parker.h"

namespace foliot {
namespace {

bool has_token(Parker& parker) {
  const TimePoint deadline = monotonic_now() + Duration::milliseconds(2);
  parker.park_until(deadline, Duration::seconds(1));
  return monotonic_now() < deadline;
}

TEST(HeldWakesTest, WakesAtOnceWhereNoneAreHeld) {
  Parker parker;
  HeldWakes::unpark(parker);
  parker.park_until(TimePoint::infinite_future());
}

TEST(HeldWakesTest, WakesWhenReleased) {
  Parker parker;
  HeldWakes wakes;
  HeldWakes::unpark(parker);
  HeldWakes::unpark(parker);
  EXPECT_FALSE(has_token(parker));
  wakes.release();
  parker.park_until(TimePoint::infinite_future());

  wakes.release();  // there is nothing left to wake
  EXPECT_FALSE(has_token(parker));
}

TEST(HeldWakesTest, WakesWhenDestroyed) {
  Parker parker;
  {
    HeldWakes wakes;
    HeldWakes::unpark(parker);
  }
  parker.park_until(TimePoint::infinite_future());
}

TEST(HeldWakesTest, HoldsOneAndWakesOthersAtOnce) {
  Parker held;
  Parker other;
  HeldWakes wakes;
  HeldWakes::unpark(held);
  HeldWakes::unpark(other);
  other.park_until(TimePoint::infinite_future());
  EXPECT_FALSE(has_token(held));
}

TEST(HeldWakesTest, HoldsThoseOfItsThreadOnly) {
  Parker parker;
  HeldWakes wakes;
  std::thread([&] { HeldWakes::unpark(parker); }).join();
  parker.park_until(TimePoint::infinite_future());
}

}  // namespace
}  // namespace foliot
