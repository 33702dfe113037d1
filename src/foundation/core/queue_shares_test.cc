#include "foundation/core/queue_shares.h"

#include <gtest/gtest.h>

#include <map>

#include "foundation/base/random.h"
#include "foundation/base/test_time.h"

namespace foliot {
namespace {

constexpr int64_t kNever = -1;

class QueueSharesTest : public ::testing::Test {
 protected:
  // The next one, due at `deadline` (ms). The result: whether it was admitted, and what
  // it evicted.
  bool admit(int64_t deadline, uint32_t tenant = 0, uint32_t weight = 1, QueueShares::Amount amount = {1, 0},
             bool offline = false) {
    const uint64_t id = next_++;
    const QueueShares::Entry entry{.id = id,
                                   .sequence = id,
                                   .amount = amount,
                                   .arrival = at(static_cast<int64_t>(id)),
                                   .deadline = deadline == kNever ? TimePoint::infinite_future() : at(deadline),
                                   .tenant = TenantId(tenant),
                                   .weight = weight,
                                   .offline = offline};
    evicted_.clear();
    if (!shares_.admit(entry, evicted_)) {
      EXPECT_TRUE(evicted_.empty());
      return false;
    }
    for (const QueueShares::Entry& evicted : evicted_) EXPECT_EQ(waiting_.erase(evicted.id), 1u);
    waiting_.emplace(id, entry);
    return true;
  }
  bool admit_offline() { return admit(kNever, 0, 1, {1, 0}, true); }
  void remove(uint64_t id) {
    const QueueShares::Entry entry = waiting_.at(id);
    waiting_.erase(id);
    shares_.remove(entry);
  }
  // The id of the only one that was evicted.
  uint64_t evicted() const { return evicted_.size() == 1 ? evicted_[0].id : 0; }

  uint64_t next_ = 1;
  std::map<uint64_t, QueueShares::Entry> waiting_;
  std::vector<QueueShares::Entry> evicted_;
  QueueShares shares_{{16, 1000}, [this](const QueueShares::Entry& entry) { return waiting_.contains(entry.id); }};
};

TEST_F(QueueSharesTest, EvictsBestEffortFirstThenTheLatestDeadlines) {
  for (int64_t i = 0; i < 12; ++i) EXPECT_TRUE(admit(i == 4 ? 9000 : 1000 + i));
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(admit(kNever));
  EXPECT_TRUE(evicted_.empty());
  EXPECT_TRUE(admit(5000));
  EXPECT_EQ(evicted(), 16u) << "the last without a deadline";
  EXPECT_TRUE(admit(5000));
  EXPECT_EQ(evicted(), 15u);
  EXPECT_TRUE(admit(4000)) << "the eighth that is best effort's own stays";
  EXPECT_EQ(evicted(), 5u) << "the latest deadline, not the last to come";
  EXPECT_EQ(shares_.amount().rows, 16u);
}

TEST_F(QueueSharesTest, NothingUrgentMakesRoomForWhatCanWait) {
  for (int i = 0; i < 16; ++i) EXPECT_EQ(admit(1000), i < 14);
  EXPECT_FALSE(admit(2000));
  EXPECT_FALSE(admit(1000)) << "equal, and later";
  EXPECT_TRUE(admit(kNever));
  EXPECT_TRUE(admit(kNever));
  EXPECT_FALSE(admit(kNever));
  EXPECT_TRUE(admit(500));
  EXPECT_EQ(evicted(), 14u);
}

TEST_F(QueueSharesTest, BestEffortMayFillWhatOthersLeave) {
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(admit(kNever));
  EXPECT_FALSE(admit(kNever));
  remove(3);
  EXPECT_TRUE(admit(kNever));
  for (int i = 0; i < 14; ++i) EXPECT_TRUE(admit(1000));
  EXPECT_FALSE(admit(1000));
  EXPECT_TRUE(waiting_.contains(1) && waiting_.contains(2)) << "those that have waited longest";
}

TEST_F(QueueSharesTest, OfflineIsEvictedFirst) {
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(admit_offline());
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(admit(kNever));
  EXPECT_FALSE(admit_offline());
  EXPECT_TRUE(admit(1000));
  EXPECT_EQ(evicted(), 12u) << "the last of the offline ones, not of those without a deadline";
  EXPECT_TRUE(admit(kNever));
  EXPECT_EQ(evicted(), 11u);
}

TEST_F(QueueSharesTest, EachClassHasItsOwnShare) {
  for (int i = 0; i < 16; ++i) EXPECT_TRUE(admit(kNever));
  EXPECT_TRUE(admit_offline()) << "a sixteenth is offline's own";
  EXPECT_EQ(evicted(), 16u) << "of best effort's";
  EXPECT_FALSE(admit_offline()) << "and no more";
  for (int i = 0; i < 14; ++i) EXPECT_TRUE(admit(1000));
  EXPECT_TRUE(waiting_.contains(1)) << "a sixteenth is best effort's own";
  EXPECT_TRUE(waiting_.contains(17)) << "of offline's nothing was evicted";
  EXPECT_FALSE(admit(1000));
  EXPECT_FALSE(admit_offline());
  EXPECT_FALSE(admit(kNever));
  EXPECT_EQ(shares_.amount().rows, 16u);
}

TEST_F(QueueSharesTest, TheHeaviestTenantGivesUpItsLaxest) {
  for (int64_t i = 0; i < 14; ++i) EXPECT_TRUE(admit(100 + i, 1));
  EXPECT_TRUE(admit(9000, 2)) << "laxer, but of a tenant that has nothing";
  EXPECT_EQ(evicted(), 14u);
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(admit(9000, 2));
  EXPECT_FALSE(admit(9000, 2)) << "each has half";
  EXPECT_TRUE(admit(50, 2)) << "urgent among its own";
  EXPECT_GT(evicted(), 14u);
  EXPECT_TRUE(admit(9000, 3, 6)) << "a weight of 6 of 8";
  for (int i = 0; i < 9; ++i) EXPECT_TRUE(admit(9000, 3, 6));
}

TEST_F(QueueSharesTest, BytesAreSharedLikeRows) {
  EXPECT_TRUE(admit(kNever, 0, 1, {1, 600}));
  EXPECT_TRUE(admit(kNever, 0, 1, {1, 300}));
  EXPECT_FALSE(admit(kNever, 0, 1, {1, 200}));
  EXPECT_TRUE(admit(100, 0, 1, {2, 500}));
  EXPECT_EQ(evicted_.size(), 2u);
  EXPECT_FALSE(admit(50, 0, 1, {1, 900})) << "more than there is";
  EXPECT_EQ(shares_.amount().bytes, 500u);
}

// A call of many rows that is turned down in the end leaves all as it was.
TEST_F(QueueSharesTest, EvictsNothingInVain) {
  for (int64_t i = 0; i < 14; ++i) EXPECT_TRUE(admit(100 + i));
  EXPECT_FALSE(admit(105, 0, 1, {12, 0}));
  EXPECT_EQ(waiting_.size(), 14u);
  EXPECT_EQ(shares_.amount().rows, 14u);
  EXPECT_TRUE(admit(105, 0, 1, {3, 0}));
  EXPECT_EQ(evicted_.size(), 3u);
}

TEST_F(QueueSharesTest, IsNeverWrongAboutWhatWaits) {
  Random random(7);
  for (int step = 0; step < 20'000; ++step) {
    if (random.below(3) == 0 && !waiting_.empty()) {
      remove(std::next(waiting_.begin(), static_cast<std::ptrdiff_t>(random.below(waiting_.size())))->first);
    } else {
      const int64_t deadline = random.below(3) == 0 ? kNever : static_cast<int64_t>(random.below(1000));
      const QueueShares::Amount wanted{1 + random.below(3), random.below(100)};
      admit(deadline, static_cast<uint32_t>(random.below(400)), 1, wanted, deadline == kNever && wanted.bytes % 2 == 0);
    }
    QueueShares::Amount amount{0, 0};
    for (const auto& [id, entry] : waiting_) {
      amount.rows += entry.amount.rows;
      amount.bytes += entry.amount.bytes;
    }
    ASSERT_EQ(shares_.amount().rows, amount.rows);
    ASSERT_EQ(shares_.amount().bytes, amount.bytes);
    ASSERT_LE(amount.rows, 16u);
    ASSERT_LE(amount.bytes, 1000u);
  }
}

}  // namespace
}  // namespace foliot
