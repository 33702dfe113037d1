#include "cluster/election/election.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <string>

#include "cluster/election/memory_leader_store.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

// One controller: makes each call of its election at once, unless the store cannot be reached.
class Candidate {
 public:
  Candidate(std::string address, uint64_t instance, MemoryLeaderStore& store)
      : election({.address = std::move(address), .instance = instance}), store_(store) {}

  // Until this instant, call after call.
  void run(TimePoint& now, TimePoint end) {
    for (; now < end; now += ms(10)) step(now);
  }
  void step(TimePoint now) {
    for (int calls = 0; calls < 4; ++calls) {
      const auto call = election.next(now);
      if (!call) return;
      answer(*call, now);
    }
  }
  void answer(const Election::Call& call, TimePoint now) {
    const Status gone = Status::unavailable("no answer");
    if (call.kind == Election::Kind::kRead) {
      return election.on_read(reachable ? store_.read() : Result<StoredLeader>(gone), now);
    }
    election.on_swap(reachable ? store_.swap(call.version, call.record) : Result<std::optional<std::string>>(gone),
                     now);
  }
  uint64_t epoch() const { return election.epoch().value_or(0); }

  Election election;
  bool reachable = true;

 private:
  MemoryLeaderStore& store_;
};

class ElectionTest : public testing::Test {
 protected:
  ElectionTest() {
    a.election.on_workers(1, now);
    b.election.on_workers(1, now);
  }
  // Both, one after the other, for so long.
  void run(Duration length, bool with_a = true, bool with_b = true) {
    for (const TimePoint end = now + length; now < end; now += ms(10)) {
      if (with_a) a.step(now);
      if (with_b) b.step(now);
    }
  }
  void let_a_lead() {
    run(ms(1500), true, false);
    ASSERT_EQ(a.epoch(), 1u);
    run(ms(500));
    ASSERT_EQ(b.epoch(), 0u);
  }

  TimePoint now = at(1'000'000);
  MemoryLeaderStore store;
  Candidate a{"a:8100", 1, store};
  Candidate b{"b:8100", 2, store};
};

TEST_F(ElectionTest, OneOfThemLeadsAndStaysTheLeader) {
  run(ms(20'000));
  EXPECT_EQ(a.epoch() + b.epoch(), 1u);
  EXPECT_EQ(store.read()->record->epoch, 1u);
  EXPECT_GT(store.read()->record->renewal, 70u);
}

TEST_F(ElectionTest, AStandbyTakesOverWhenNothingWasRenewedForTheTimeout) {
  let_a_lead();
  run(ms(700), false);
  EXPECT_EQ(b.epoch(), 0u);
  run(ms(600), false);
  EXPECT_EQ(b.epoch(), 2u);
  // What led before finds out with its next call.
  run(ms(300));
  EXPECT_EQ(a.epoch(), 0u);
  run(ms(5000));
  EXPECT_EQ(b.epoch(), 2u);
}

TEST_F(ElectionTest, ARestartedLeaderLeadsAtOnce) {
  let_a_lead();
  Candidate again("a:8100", 3, store);
  again.step(now);
  EXPECT_EQ(again.epoch(), 2u);
}

TEST_F(ElectionTest, AStandbyWithWorkersTakesOverFromALeaderThatHasNone) {
  Candidate alone("c:8100", 3, store);
  alone.run(now, now + ms(2000));
  ASSERT_EQ(alone.epoch(), 1u);
  for (const TimePoint end = now + ms(20'000); now < end; now += ms(10)) {
    alone.step(now);
    b.step(now);
    if (end - now > ms(18'500)) {
      ASSERT_EQ(b.epoch(), 0u) << "it may have been restarted";
    }
  }
  EXPECT_EQ(b.epoch(), 2u);
  EXPECT_EQ(alone.epoch(), 0u);
}

TEST_F(ElectionTest, WithoutWorkersTheFirstStaysTheLeader) {
  a.election.on_workers(0, now);
  b.election.on_workers(0, now);
  run(ms(20'000));
  EXPECT_EQ(a.epoch() + b.epoch(), 1u);
}

// The second of two processes with one address takes over once, and not by turns with the first.
TEST_F(ElectionTest, TwoProcessesWithOneAddressDoNotTakeOverByTurns) {
  let_a_lead();
  Candidate other("a:8100", 3, store);
  other.election.on_workers(1, now);
  other.step(now);
  for (const TimePoint end = now + ms(10'000); now < end; now += ms(10)) {
    a.step(now);
    other.step(now);
  }
  EXPECT_EQ(other.epoch(), 2u);
  EXPECT_EQ(a.epoch(), 0u);
  EXPECT_TRUE(a.election.shares_address());
  EXPECT_FALSE(b.election.shares_address());
}

TEST_F(ElectionTest, ACopiedAddressThatNoWorkerKnowsLosesTheLeadAgain) {
  let_a_lead();
  Candidate other("a:8100", 3, store);
  other.step(now);
  ASSERT_EQ(other.epoch(), 2u);
  for (const TimePoint end = now + ms(10'000); now < end; now += ms(10)) {
    a.step(now);
    other.step(now);
  }
  EXPECT_EQ(other.epoch(), 0u);
  EXPECT_EQ(a.epoch(), 3u);
}

TEST_F(ElectionTest, ALeaderServesOnWithoutItsStore) {
  let_a_lead();
  a.reachable = b.reachable = false;
  run(ms(60'000));
  EXPECT_EQ(a.epoch(), 1u);
  EXPECT_EQ(b.epoch(), 0u);
  // When it is back, the leader has the time that it always has to renew, though the record is old.
  a.reachable = b.reachable = true;
  b.step(now);
  run(ms(5000));
  EXPECT_EQ(a.epoch(), 1u);
}

TEST_F(ElectionTest, ALeaderThatIsCutOffFromTheStoreAloneIsReplaced) {
  let_a_lead();
  a.reachable = false;
  run(ms(1300));
  EXPECT_EQ(b.epoch(), 2u);
  EXPECT_EQ(a.epoch(), 1u);  // it cannot know; workers do
  a.election.on_epoch_seen(2, now);
  EXPECT_EQ(a.epoch(), 0u);
}

TEST_F(ElectionTest, AStandbyThatStoodStillCountsAnew) {
  let_a_lead();
  now += ms(5000);  // both did
  b.step(now);
  run(ms(2000));
  EXPECT_EQ(a.epoch(), 1u);
}

TEST_F(ElectionTest, ALeaderWritesItsRecordAgainWhereTheStoreForgotIt) {
  let_a_lead();
  store.clear();
  run(ms(2000));
  EXPECT_EQ(a.epoch(), 1u);
  EXPECT_EQ(store.read()->record->address, "a:8100");
}

TEST_F(ElectionTest, EpochsGrowBeyondWhatPeersHaveObeyed) {
  a.election.on_epoch_seen(41, now);
  run(ms(1500), true, false);
  EXPECT_EQ(a.epoch(), 42u);
  a.election.on_epoch_seen(57, now);
  EXPECT_EQ(a.epoch(), 0u);
  run(ms(100));
  EXPECT_EQ(a.epoch(), 58u);
}

TEST_F(ElectionTest, OneThatResignsIsReplacedAtOnceAndDoesNotStandAgain) {
  let_a_lead();
  a.election.resign(now);
  EXPECT_EQ(a.epoch(), 0u);
  run(ms(200));
  EXPECT_EQ(b.epoch(), 2u);
  run(ms(5000), true, false);
  EXPECT_EQ(a.epoch(), 0u);
}

TEST_F(ElectionTest, ALeaderThatHasLostAllWorkersLetsAnotherLead) {
  let_a_lead();
  a.election.on_workers(0, now);
  run(ms(900));
  EXPECT_EQ(a.epoch(), 1u);
  run(ms(400));
  EXPECT_EQ(b.epoch(), 2u);
  // Where no controller has any, the last one that had keeps trying, and then stays.
  b.election.on_workers(0, now);
  run(ms(10'000));
  const uint64_t epoch = a.epoch() + b.epoch();
  EXPECT_GE(epoch, 3u);
  run(ms(10'000));
  EXPECT_EQ(a.epoch() + b.epoch(), epoch);
}

// The answer to a renewal comes when the leader has resigned already.
TEST_F(ElectionTest, ARenewalThatEndsLateDoesNotLeadAgain) {
  let_a_lead();
  std::optional<Election::Call> call;
  for (; !call; now += ms(10)) call = a.election.next(now);
  ASSERT_EQ(call->kind, Election::Kind::kRenew);
  a.election.resign(now);
  a.answer(*call, now);
  EXPECT_EQ(a.epoch(), 0u);
  a.step(now);
  EXPECT_EQ(store.read()->record->address, "");
}

// The swap is made, and its answer is lost.
TEST_F(ElectionTest, ATakeoverOfUnknownEndIsTakenAgain) {
  std::optional<Election::Call> call;
  while (!call || call->kind != Election::Kind::kTake) {
    now += ms(10);
    call = a.election.next(now);
    if (call && call->kind == Election::Kind::kRead) a.answer(*call, now);
  }
  ASSERT_TRUE(store.swap(call->version, call->record)->has_value());
  a.election.on_swap(Status::unavailable("no answer"), now);
  EXPECT_EQ(a.epoch(), 0u);
  run(ms(300));
  EXPECT_EQ(a.epoch(), 2u);
}

TEST(LeaderRecordTest, IsTextAndBack) {
  const LeaderRecord record{"[::1]:8100", 7, 41, UINT64_MAX};
  EXPECT_EQ(*LeaderRecord::parse(record.text()), record);
}

TEST(LeaderRecordTest, WhatIsNoneIsQuoted) {
  for (const char* text :
       {"", "hello", "[]", R"({"epoch":1})", R"({"address":"","epoch":0,"instance":"1","renewal":0})",
        R"({"address":"","epoch":1,"instance":"1x","renewal":0})",
        R"({"address":"","epoch":1,"instance":1,"renewal":0})"}) {
    const auto record = LeaderRecord::parse(text);
    ASSERT_FALSE(record.ok()) << text;
    EXPECT_NE(record.status().message().find("name a key that nothing else uses"), std::string::npos);
  }
}

}  // namespace
}  // namespace foliot
