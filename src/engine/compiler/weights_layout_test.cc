#include "engine/compiler/weights_layout.h"

#include <gtest/gtest.h>

namespace foliot {
namespace {

Tensor weights_tensor(uint32_t constant, uint64_t bytes) {
  Tensor tensor;
  tensor.place = Place::kWeights;
  tensor.constant = constant;
  tensor.bytes = bytes;
  return tensor;
}

TEST(WeightsLayoutTest, KeepsOneCopyForAllPlansAndLeavesOutWhatIsUnused) {
  LoweredProgram program;
  program.constants = {std::vector<std::byte>(100, std::byte{1}), std::vector<std::byte>(9000, std::byte{2}),
                       std::vector<std::byte>(50000, std::byte{3})};
  program.plans.resize(2);
  program.plans[0].tensors = {weights_tensor(1, 9000), weights_tensor(0, 100)};
  program.plans[1].tensors = {weights_tensor(0, 100)};
  const std::vector<std::byte> weights = lay_out_weights(program);
  EXPECT_EQ(weights.size(), 12288u);
  const Tensor& large = program.plans[0].tensors[0];
  const Tensor& small = program.plans[0].tensors[1];
  EXPECT_EQ(large.offset, 0u);
  EXPECT_EQ(small.offset, 9024u);
  EXPECT_EQ(program.plans[1].tensors[0].offset, small.offset);
  EXPECT_EQ(weights[large.offset + 8999], std::byte{2});
  EXPECT_EQ(weights[small.offset], std::byte{1});
}

TEST(WeightsLayoutTest, GivesAProgramWithoutWeightsOneBlock) {
  LoweredProgram program;
  program.plans.resize(1);
  EXPECT_EQ(lay_out_weights(program).size(), 4096u);
}

}  // namespace
}  // namespace foliot
