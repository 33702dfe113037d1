#include "cluster/sessions/batch_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Pointee;

BatchRows two_rows() {
  BatchRows rows;
  rows.add({.request = RequestId(1), .payload = PayloadHandle(10)});
  rows.add({.request = RequestId(2),
            .payload = PayloadHandle(20),
            .input = {.holder = DeviceId(3), .handle = PayloadHandle(30)}});
  return rows;
}

TEST(BatchInputsTest, OfNoRowsIsComplete) { EXPECT_TRUE(BatchInputs().complete()); }

TEST(BatchInputsTest, RowsWaitForTheCallOrForAHolder) {
  const BatchInputs inputs(two_rows(), {});
  ASSERT_EQ(inputs.sources(0).size(), 1u);
  EXPECT_FALSE(inputs.sources(0)[0].holder.has_value());
  EXPECT_EQ(inputs.sources(0)[0].payload, PayloadHandle(10));
  EXPECT_THAT(inputs.sources(0)[0].inputs, IsEmpty());
  ASSERT_EQ(inputs.sources(1).size(), 1u);
  EXPECT_EQ(inputs.sources(1)[0].holder, DeviceId(3));
  EXPECT_EQ(inputs.sources(1)[0].payload, PayloadHandle(30));
  EXPECT_EQ(inputs.sources(1)[0].number(), 0u);
}

TEST(BatchInputsTest, AVisitHasOneSourceForEachStageAndOneForTheCall) {
  const VisitOrder order{.inputs = {{.tensor = 1, .pieces = {{4, DeviceId(7)}}},
                                    {.tensor = 0, .pieces = {{std::nullopt, DeviceId(8)}}},
                                    {.tensor = 0, .pieces = {{4, DeviceId(7)}}}}};
  BatchInputs inputs(two_rows(), {{0, order}});
  ASSERT_EQ(inputs.sources(0).size(), 2u);
  const InputSource* stage = inputs.find(0, 5);
  ASSERT_NE(stage, nullptr);
  EXPECT_EQ(stage->holder, DeviceId(7));
  EXPECT_EQ(stage->payload, PayloadHandle());
  EXPECT_THAT(stage->inputs, ElementsAre(0, 2));
  EXPECT_THAT(stage->tensors, ElementsAre(1, 0));
  const InputSource* call = inputs.find(0, 0);
  ASSERT_NE(call, nullptr);
  EXPECT_FALSE(call->holder.has_value());
  EXPECT_EQ(call->payload, PayloadHandle(10));
  EXPECT_THAT(call->inputs, ElementsAre(1));

  inputs.receive(0, 5);
  EXPECT_TRUE(inputs.waits(0));
  EXPECT_EQ(inputs.find(0, 5), nullptr);
  inputs.receive(0, 0);
  EXPECT_FALSE(inputs.waits(0));
  EXPECT_FALSE(inputs.complete());  // of the other row
}

TEST(BatchInputsTest, EndsWithRowsThatAreDroppedOrStarved) {
  BatchInputs inputs(two_rows(), {});
  inputs.drop(0);
  EXPECT_FALSE(inputs.waits(0));
  EXPECT_FALSE(inputs.complete());
  inputs.starve(1, "its holder is gone");
  EXPECT_TRUE(inputs.complete());
  EXPECT_TRUE(inputs.is_dropped(0));
  EXPECT_FALSE(inputs.is_dropped(1));
  EXPECT_EQ(inputs.dropped_count(), 1u);
  EXPECT_EQ(inputs.starved(0), nullptr);
  EXPECT_THAT(inputs.starved(1), Pointee(std::string("its holder is gone")));
  EXPECT_EQ(inputs.find(1, 0), nullptr);
}

TEST(BatchInputsTest, PiecesOfAnInputHaveTheirPlacesAndParts) {
  const VisitOrder order{.inputs = {{.tensor = 2, .pieces = {{4, DeviceId(7)}, {5, DeviceId(8)}}, .pieces_most = 3},
                                    {.tensor = 0, .taken = {1, 3}, .pieces = {{4, DeviceId(7)}}},
                                    {.tensor = 1, .pieces_most = 3}}};
  BatchInputs inputs(two_rows(), {{0, order}});
  ASSERT_EQ(inputs.sources(0).size(), 2u);
  const InputSource& first = *inputs.find(0, 5);
  EXPECT_EQ(first.holder, DeviceId(7));
  EXPECT_THAT(first.inputs, ElementsAre(0, 1));
  EXPECT_THAT(first.tensors, ElementsAre(2, 0));
  EXPECT_THAT(first.places, ElementsAre(TensorPart{0, 3}, TensorPart{0, 1}));
  EXPECT_THAT(first.taken, ElementsAre(TensorPart{0, 1}, TensorPart{1, 3}));
  const InputSource& second = *inputs.find(0, 6);
  EXPECT_EQ(second.holder, DeviceId(8));
  EXPECT_THAT(second.places, ElementsAre(TensorPart{1, 3}));
}

TEST(BatchInputsTest, AVisitWithoutPiecesWaitsForNothing) {
  const VisitOrder order{.inputs = {{.tensor = 1, .pieces_most = 3}}};
  const BatchInputs inputs(two_rows(), {{0, order}});
  EXPECT_FALSE(inputs.waits(0));
  EXPECT_TRUE(inputs.waits(1));
}

}  // namespace
}  // namespace foliot
