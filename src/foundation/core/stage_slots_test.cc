#include "foundation/core/stage_slots.h"

#include <gtest/gtest.h>

#include <vector>

#include "foundation/core/stage_visit.h"

namespace foliot {
namespace {

TEST(StageSlotsTest, StagesFollowEachOtherWithAsManySlotsAsTheyMayHaveVisits) {
  const StageSlots slots(std::vector<uint32_t>{1, 16, 1});
  EXPECT_EQ(slots.size(), 18u);
  EXPECT_EQ(slots.first(1), 1u);
  EXPECT_EQ(slots.count(1), 16u);
  EXPECT_EQ(slots.first(2), 17u);
  EXPECT_EQ(slots.at(16).stage, 1u);
  EXPECT_EQ(slots.at(16).element, 15u);
  EXPECT_EQ(slots.at(17).stage, 2u);
  EXPECT_EQ(slots.at(17).element, 0u);
  EXPECT_FALSE(slots.find(18).has_value());
}

TEST(StageSlotsTest, OfAPipelineWhoseStagesAreVisitedOnceTheyAreThePositions) {
  PipelineInfo pipeline;
  pipeline.stages.resize(3);
  const StageSlots slots(pipeline);
  EXPECT_EQ(slots.size(), 3u);
  for (uint32_t stage = 0; stage < 3; ++stage) EXPECT_EQ(slots.first(stage), stage);
  pipeline.stages[1].for_each = {.stage = 0, .at_most = 5};
  EXPECT_EQ(StageSlots(pipeline).size(), 7u);
}

TEST(StageVisitTest, TheLastSlotHasRoomInAnId) {
  const RequestId run(uint64_t{9} << 32 | 7);
  const RequestId visit = visit_of(run, kSlotsMax - 1);
  EXPECT_EQ(run_of(visit), run);
  EXPECT_EQ(visit_slot(visit), kSlotsMax - 1);
  EXPECT_FALSE(visit_slot(run).has_value());
}

}  // namespace
}  // namespace foliot
