#include "engine/device/vulkan/hazards.h"

#include <gtest/gtest.h>

#include "engine/device/vulkan/prepared_plan.h"

namespace foliot {
namespace {

PlaceRange bytes(uint64_t offset, uint64_t count, Place place = Place::kWorkspace) { return {place, offset, count}; }

Dispatch touching(std::vector<PlaceRange> reads, std::vector<PlaceRange> writes) {
  Dispatch dispatch;
  dispatch.reads = std::move(reads);
  dispatch.writes = std::move(writes);
  return dispatch;
}

TEST(Hazards, WhatIsReadAfterItWasWrittenNeedsABarrier) {
  const Dispatch first = touching({}, {bytes(0, 64)}), second = touching({bytes(63, 1)}, {bytes(64, 64)});
  EXPECT_EQ(find_hazard(std::vector<Recorded>{{&first}, {&second}}), "dispatch 1 (vulkan:move)");
  EXPECT_FALSE(find_hazard(std::vector<Recorded>{{&first}, {}, {&second}}));
}

TEST(Hazards, WhatIsWrittenAfterItWasReadOrWrittenNeedsABarrier) {
  const Dispatch reads = touching({bytes(0, 64)}, {bytes(128, 64)}), writes = touching({}, {bytes(32, 64)});
  EXPECT_TRUE(find_hazard(std::vector<Recorded>{{&reads}, {&writes}}));
  EXPECT_TRUE(find_hazard(std::vector<Recorded>{{&writes}, {&writes}}));
  // The barrier between the first two does not order the last behind the second.
  EXPECT_TRUE(find_hazard(std::vector<Recorded>{{&reads}, {}, {&reads}, {&writes}}));
}

TEST(Hazards, OtherBytesAndOtherPlacesAreNone) {
  const Dispatch first = touching({}, {bytes(0, 64)});
  const Dispatch beside = touching({bytes(64, 64)}, {bytes(128, 64)});
  const Dispatch elsewhere = touching({bytes(0, 64, Place::kInput)}, {bytes(0, 64, Place::kOutput)});
  EXPECT_FALSE(find_hazard(std::vector<Recorded>{{&first}, {&beside}, {&elsewhere}}));
}

TEST(Hazards, BarriersAreWhereTheyAreNeededOnly) {
  const std::vector<Dispatch> dispatches{touching({}, {bytes(0, 64)}), touching({}, {bytes(64, 64)}),
                                         touching({bytes(0, 128)}, {bytes(128, 64)}),
                                         touching({bytes(128, 64)}, {bytes(0, 64)})};
  const std::vector<Recorded> recording = with_barriers(dispatches);
  ASSERT_EQ(recording.size(), 6u);
  EXPECT_EQ(recording[2].dispatch, nullptr);
  EXPECT_EQ(recording[4].dispatch, nullptr);
  EXPECT_FALSE(find_hazard(recording));
}

}  // namespace
}  // namespace foliot
