#include "engine/compiler/memory_planner.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "foundation/base/random.h"

namespace foliot {
namespace {

TensorIndex add_tensor(Plan& plan, uint64_t bytes, Place place = Place::kWorkspace) {
  Tensor tensor;
  tensor.bytes = bytes;
  tensor.place = place;
  tensor.shape = {static_cast<int64_t>(bytes)};
  tensor.type = DataType::kUint8;
  plan.tensors.push_back(tensor);
  return static_cast<TensorIndex>(plan.tensors.size() - 1);
}

void add_operator(Plan& plan, std::vector<TensorIndex> inputs, TensorIndex output, TensorIndex scratchpad = kNoTensor) {
  Operator step;
  step.kind = OperatorKind::kUnary;
  step.inputs = std::move(inputs);
  step.outputs = {output};
  step.scratchpad = scratchpad;
  plan.operators.push_back(step);
}

// A chain input -> hidden... -> output.
Plan make_chain(const std::vector<uint64_t>& sizes) {
  Plan plan;
  plan.inputs = {add_tensor(plan, 100, Place::kInput)};
  TensorIndex previous = plan.inputs[0];
  for (uint64_t size : sizes) {
    const TensorIndex next = add_tensor(plan, size);
    add_operator(plan, {previous}, next);
    previous = next;
  }
  plan.outputs = {add_tensor(plan, 100, Place::kOutput)};
  add_operator(plan, {previous}, plan.outputs[0]);
  return plan;
}

TEST(MemoryPlannerTest, ReusesMemoryAlongAChain) {
  Plan plan = make_chain({1024, 1024, 1024, 1024, 1024});
  plan_memory(plan);
  EXPECT_EQ(plan.workspace_bytes, 2048u);
  EXPECT_EQ(workspace_bytes_min(plan), 2048u);
  EXPECT_EQ(plan.input_bytes, 128u);
  EXPECT_EQ(plan.output_bytes, 128u);
}

TEST(MemoryPlannerTest, KeepsSharedStorageAliveForItsLastAlias) {
  Plan plan = make_chain({256, 256, 256});
  const TensorIndex view = add_tensor(plan, 128);
  plan.tensors[view].alias_of = 1;
  plan.tensors[view].alias_offset = 64;
  plan.operators.back().inputs.push_back(view);
  plan_memory(plan);
  EXPECT_EQ(plan.tensors[view].offset, plan.tensors[1].offset + 64);
  // All three are alive when the last operator runs or while the others are made.
  EXPECT_EQ(plan.workspace_bytes, 3 * 256u);
}

TEST(MemoryPlannerTest, GivesAliasesThePlaceOfWhatTheyShare) {
  Plan plan = make_chain({64});
  const TensorIndex view = add_tensor(plan, 64);
  plan.tensors[view].alias_of = plan.inputs[0];
  plan.operators.back().inputs.push_back(view);
  plan_memory(plan);
  EXPECT_EQ(plan.tensors[view].place, Place::kInput);
  EXPECT_EQ(plan.workspace_bytes, 64u);
}

TEST(MemoryPlannerTest, KeepsAScratchpadForItsOperatorOnly) {
  Plan plan = make_chain({64, 64, 64});
  plan.operators[0].scratchpad = add_tensor(plan, 4096);
  plan.operators[3].scratchpad = add_tensor(plan, 4096);
  plan_memory(plan);
  EXPECT_EQ(plan.tensors[plan.operators[0].scratchpad].offset, plan.tensors[plan.operators[3].scratchpad].offset);
}

// Largest first puts one of 320 bytes upon the other, and the first of 192 at the
// bottom; between those too little is left for the second.
TEST(MemoryPlannerTest, ImprovesOnLargestFirst) {
  struct Part {
    uint64_t bytes;
    size_t first;
    size_t last;
  };
  const std::vector<Part> parts{{320, 4, 4}, {192, 0, 1}, {320, 2, 4}, {192, 0, 2}};
  Plan plan;
  plan.outputs = {add_tensor(plan, 64, Place::kOutput)};
  for (const Part& part : parts) add_tensor(plan, part.bytes);
  for (size_t i = 0; i < 5; ++i) {
    std::vector<TensorIndex> alive;
    for (size_t j = 0; j < parts.size(); ++j) {
      if (parts[j].first <= i && i <= parts[j].last) alive.push_back(static_cast<TensorIndex>(j + 1));
    }
    add_operator(plan, alive, plan.outputs[0]);
  }
  plan_memory(plan);
  EXPECT_EQ(workspace_bytes_min(plan), 640u);
  EXPECT_EQ(plan.workspace_bytes, 640u);
}

// Whatever the graph, tensors that are alive together lie apart.
TEST(MemoryPlannerTest, NeverOverlapsWhatIsAliveTogether) {
  Random random(7);
  for (int round = 0; round < 50; ++round) {
    Plan plan = make_chain({64});
    for (int i = 0; i < 30; ++i) {
      const auto count = static_cast<uint64_t>(plan.tensors.size());
      std::vector<TensorIndex> inputs{static_cast<TensorIndex>(random.below(count)),
                                      static_cast<TensorIndex>(random.below(count))};
      const TensorIndex output = add_tensor(plan, 1 + random.below(5000));
      const TensorIndex scratchpad = random.below(2) == 0 ? kNoTensor : add_tensor(plan, 1 + random.below(5000));
      add_operator(plan, inputs, output, scratchpad);
    }
    plan_memory(plan);
    EXPECT_GE(plan.workspace_bytes, workspace_bytes_min(plan));
    std::vector<std::pair<size_t, size_t>> alive(plan.tensors.size(), {1000, 0});
    for (size_t i = 0; i < plan.operators.size(); ++i) {
      const auto touch = [&](TensorIndex t) {
        if (t != kNoTensor) alive[t] = {std::min(alive[t].first, i), std::max(alive[t].second, i)};
      };
      for (TensorIndex t : plan.operators[i].inputs) touch(t);
      touch(plan.operators[i].outputs[0]);
      touch(plan.operators[i].scratchpad);
    }
    for (size_t a = 0; a < plan.tensors.size(); ++a) {
      const Tensor& one = plan.tensors[a];
      if (one.place != Place::kWorkspace) continue;
      EXPECT_EQ(one.offset % kTensorAlignment, 0u);
      EXPECT_LE(one.offset + one.bytes, plan.workspace_bytes);
      for (size_t b = a + 1; b < plan.tensors.size(); ++b) {
        const Tensor& other = plan.tensors[b];
        if (other.place != Place::kWorkspace) continue;
        if (alive[a].second < alive[b].first || alive[b].second < alive[a].first) continue;
        EXPECT_TRUE(one.offset + one.bytes <= other.offset || other.offset + other.bytes <= one.offset);
      }
    }
  }
}

}  // namespace
}  // namespace foliot
