#include "cluster/sessions/held_payloads.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "foundation/base/test_time.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

constexpr uint16_t kOwner = 3;
constexpr TimePoint kNoEnd = TimePoint::infinite_future();

std::span<const std::byte> tensor(const std::string& text) { return std::as_bytes(std::span(text)); }

std::vector<std::string> texts(const TensorBytes& tensors) {
  std::vector<std::string> texts;
  for (const auto& bytes : tensors) texts.emplace_back(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  return texts;
}

PayloadHandle hold(HeldPayloads& held, const std::string& text, uint16_t consumers = 1, uint16_t client = kOwner,
                   TimePoint until = kNoEnd) {
  const auto place = held.reserve({text.size()});
  EXPECT_TRUE(place);
  return held.hold(place.value(), {tensor(text)}, client, consumers, until);
}

TEST(HeldPayloadsTest, HoldsEachTensorUntilTheLastConsumerIsOver) {
  HeldPayloads held(1024, 4);
  const auto place = held.reserve({3, 5});
  ASSERT_TRUE(place);
  EXPECT_EQ(held.size(), 0u) << "it is only reserved";
  const std::string first = "one";
  const std::string second = "three";
  const PayloadHandle handle = held.hold(*place, {tensor(first), tensor(second)}, kOwner, 3, kNoEnd);
  EXPECT_THAT(texts(held.find(handle, kOwner)), ElementsAre("one", "three"));
  held.consume(handle, kOwner, 2);
  EXPECT_THAT(texts(held.find(handle, kOwner)), ElementsAre("one", "three"));
  held.consume(handle, kOwner, 1);
  EXPECT_THAT(held.find(handle, kOwner), IsEmpty());
  EXPECT_EQ(held.size(), 0u);
  EXPECT_EQ(held.used_bytes(), 0u);
}

TEST(HeldPayloadsTest, MoreConsumersThanWereAnnouncedFreeItOnce) {
  HeldPayloads held(1024, 4);
  const PayloadHandle handle = hold(held, "text", 2);
  held.consume(handle, kOwner, 9);
  held.consume(handle, kOwner, 9);
  EXPECT_EQ(held.size(), 0u);
  EXPECT_EQ(held.used_bytes(), 0u);
}

TEST(HeldPayloadsTest, AStaleHandleIsNeverTakenForItsSuccessor) {
  HeldPayloads held(1024, 1);
  const PayloadHandle stale = hold(held, "old");
  held.consume(stale, kOwner, 1);
  const PayloadHandle next = hold(held, "new");
  EXPECT_THAT(held.find(stale, kOwner), IsEmpty());
  held.consume(stale, kOwner, 1);
  EXPECT_THAT(texts(held.find(next, kOwner)), ElementsAre("new"));
}

TEST(HeldPayloadsTest, HandlesOfTheNextProcessAreNew) {
  const TimePoint began = TimePoint() + Duration::seconds(100);
  HeldPayloads before(1024, 1);
  before.start_handles(began);
  const PayloadHandle stale = hold(before, "old");
  HeldPayloads held(1024, 1);
  held.start_handles(began + Duration::seconds(1));
  const PayloadHandle next = hold(held, "new");
  EXPECT_THAT(held.find(stale, kOwner), IsEmpty());
  held.start_handles(began);
  held.consume(next, kOwner, 1);
  EXPECT_GT(hold(held, "more"), next) << "they only grow";
}

TEST(HeldPayloadsTest, OnlyItsClientFindsAPayload) {
  HeldPayloads held(1024, 4);
  const PayloadHandle handle = hold(held, "mine");
  EXPECT_THAT(held.find(handle, kOwner + 1), IsEmpty());
  held.consume(handle, kOwner + 1, 1);
  EXPECT_THAT(texts(held.find(handle, kOwner)), ElementsAre("mine"));
}

TEST(HeldPayloadsTest, HandlesThatWereMadeUpFindNothing) {
  HeldPayloads held(1024, 2);
  EXPECT_TRUE(held.reserve({4}));
  hold(held, "text", 1, 0);
  for (const uint64_t handle : {uint64_t{0}, uint64_t{1}, uint64_t{2}, uint64_t{1} << 16, UINT64_MAX}) {
    EXPECT_THAT(held.find(PayloadHandle(handle), 0), IsEmpty()) << handle;
  }
}

TEST(HeldPayloadsTest, IsFullByBytesAndByNumber) {
  HeldPayloads few(1024, 2);
  EXPECT_TRUE(few.reserve({1}));
  const auto place = few.reserve({1});
  EXPECT_FALSE(few.reserve({1}));
  few.give_back(place.value());
  EXPECT_TRUE(few.reserve({1}));

  HeldPayloads small(128, 8);
  EXPECT_TRUE(small.reserve({100}));
  EXPECT_FALSE(small.reserve({100}));
}

TEST(HeldPayloadsTest, EndsWithItsClientItsSessionAndItsTime) {
  HeldPayloads held(1024, 8);
  const auto reserved = held.reserve({1});
  const PayloadHandle others = hold(held, "other's", 1, kOwner + 1);
  hold(held, "a");
  hold(held, "b", 9);
  held.free_all_of(kOwner);
  EXPECT_EQ(held.size(), 1u);
  EXPECT_THAT(texts(held.find(others, kOwner + 1)), ElementsAre("other's"));

  const PayloadHandle brief = hold(held, "brief", 1, kOwner, TimePoint() + Duration::seconds(1));
  held.free_expired(TimePoint() + Duration::seconds(1));
  EXPECT_THAT(texts(held.find(brief, kOwner)), ElementsAre("brief"));
  held.free_expired(TimePoint() + Duration::seconds(2));
  EXPECT_THAT(held.find(brief, kOwner), IsEmpty());

  held.free_all();
  EXPECT_EQ(held.size(), 0u);
  held.give_back(reserved.value());
  EXPECT_EQ(held.used_bytes(), 0u);
}

}  // namespace
}  // namespace foliot
