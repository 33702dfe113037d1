#include "virtual/world/virtual_loop.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>
#include <vector>

#include "foundation/base/random.h"

namespace foliot {
namespace {

using testing::ElementsAre;

TimePoint at_nanoseconds(int64_t n) { return TimePoint::from_nanoseconds(n); }

// Notes which events ran, and when.
class VirtualLoopTest : public testing::Test {
 protected:
  void note_at(int64_t when, int event) {
    loop_.at(at_nanoseconds(when), [this, event] { note(event); });
  }
  void note(int event) {
    events_.push_back(event);
    instants_.push_back(loop_.now().nanoseconds());
  }

  VirtualLoop loop_;
  std::vector<int> events_;
  std::vector<int64_t> instants_;
};

TEST_F(VirtualLoopTest, RunsEventsByTimeAndThenAsTheyWereScheduled) {
  note_at(20, 3);
  note_at(10, 1);
  note_at(20, 4);
  note_at(10, 2);
  EXPECT_EQ(loop_.run_until(TimePoint::infinite_future()), 4u);
  EXPECT_THAT(events_, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(instants_, ElementsAre(10, 10, 20, 20));
  EXPECT_EQ(loop_.now(), at_nanoseconds(20));
}

TEST_F(VirtualLoopTest, WhatIsScheduledForThisInstantRunsAfterAllThatWas) {
  loop_.at(at_nanoseconds(10), [this] {
    note(1);
    note_at(11, 7);
    note_at(10, 4);
    loop_.at(loop_.now(), [this] {
      note(5);
      note_at(10, 6);
    });
  });
  note_at(10, 2);
  note_at(10, 3);
  EXPECT_EQ(loop_.run_until(TimePoint::infinite_future()), 7u);
  EXPECT_THAT(events_, ElementsAre(1, 2, 3, 4, 5, 6, 7));
  EXPECT_THAT(instants_, ElementsAre(10, 10, 10, 10, 10, 10, 11));
}

TEST_F(VirtualLoopTest, RunsUpToAndIncludingTheEnd) {
  note_at(0, 1);
  note_at(10, 2);
  note_at(11, 3);
  EXPECT_EQ(loop_.run_until(at_nanoseconds(10)), 2u);
  note_at(10, 4);
  EXPECT_EQ(loop_.run_until(at_nanoseconds(10)), 1u);
  EXPECT_EQ(loop_.run_until(at_nanoseconds(15)), 1u);
  EXPECT_EQ(loop_.now(), at_nanoseconds(15));
  EXPECT_THAT(events_, ElementsAre(1, 2, 4, 3));
  EXPECT_EQ(loop_.run_until(TimePoint::infinite_future()), 0u);
}

// The order is that of (instant, number), where the number counts what was scheduled,
// however many of an instant come from the instant itself.
TEST_F(VirtualLoopTest, AnyMixtureKeepsTheOrder) {
  constexpr int kEvents = 10'000;
  struct Mixture {
    VirtualLoop loop;
    Random random{1};
    int scheduled = 0;
    int handled = 0;
    std::pair<TimePoint, int> last{TimePoint(), -1};

    void schedule() {
      const TimePoint when = loop.now() + Duration::nanoseconds(static_cast<int64_t>(random.below(3)));
      loop.at(when, [this, number = scheduled++] { handle(number); });
    }
    void handle(int number) {
      ++handled;
      EXPECT_LT(last, std::pair(loop.now(), number));
      last = {loop.now(), number};
      for (uint64_t i = random.below(4); i > 0 && scheduled < kEvents; --i) schedule();
    }
  };
  Mixture mixture;
  for (int i = 0; i < 20; ++i) mixture.schedule();
  mixture.loop.run_until(TimePoint::infinite_future());
  EXPECT_EQ(mixture.handled, kEvents);
}

TEST(VirtualLoopDeathTest, ThePastIsOver) {
  VirtualLoop loop;
  loop.run_until(at_nanoseconds(10));
  EXPECT_DEATH(loop.at(at_nanoseconds(9), [] {}), "when >= now_");
  EXPECT_DEATH(loop.run_until(at_nanoseconds(9)), "end >= now_");
}

}  // namespace
}  // namespace foliot
