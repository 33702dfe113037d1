// A device of its own layouts: one byte that says how many elements there are.
#include "device/plan_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

namespace foliot {
namespace {

Result<LayoutSize> one_byte(DataType type, const std::string& layout) {
  if (layout.size() != 1) return Status::invalid_argument("no layout");
  const auto elements = static_cast<uint64_t>(layout[0]);
  return LayoutSize{elements, elements * size_of(type) + 64};
}

// y = relu(x), with the result in a layout of the device's own on the way.
Plan sound_plan() {
  Plan plan{.batch_size = 1};
  plan.tensors = {{.name = "x", .shape = {1, 8}, .bytes = 32, .place = Place::kInput},
                  {.name = "packed", .shape = {1, 8}, .layout = "\x08", .bytes = 96, .place = Place::kWorkspace},
                  {.name = "y", .shape = {1, 8}, .bytes = 32, .place = Place::kOutput}};
  Operator relu{.kind = OperatorKind::kUnary, .name = "relu", .inputs = {0}, .outputs = {1}};
  relu.attributes.set("function", Function::kRelu);
  Operator reorder{.kind = OperatorKind::kReorder, .name = "reorder", .inputs = {1}, .outputs = {2}};
  plan.operators = {relu, reorder};
  plan.inputs = {0};
  plan.outputs = {2};
  plan.input_bytes = plan.output_bytes = 32;
  plan.workspace_bytes = 96;
  return plan;
}

TEST(PlanCheckTest, ASoundPlanIsTaken) {
  const Status status = check_plan(sound_plan(), 0, one_byte);
  EXPECT_TRUE(status.ok()) << status.message();
}

TEST(PlanCheckTest, DamageIsNamed) {
  const std::vector<std::pair<const char*, std::function<void(Plan&)>>> damages{
      {"tensor beyond its place", [](Plan& plan) { plan.tensors[1].offset = 1; }},
      {"tensor smaller than its layout", [](Plan& plan) { plan.tensors[1].bytes = 95; }},
      {"layout of another shape", [](Plan& plan) { plan.tensors[1].layout = "\x07"; }},
      {"no layout", [](Plan& plan) { plan.tensors[1].layout = "long"; }},
      {"impossible shape", [](Plan& plan) { plan.tensors[0].shape = Shape(kPlanRankMax + 1, 1); }},
      {"operator input out of range", [](Plan& plan) { plan.operators[0].inputs = {3}; }},
      {"operator lacks inputs", [](Plan& plan) { plan.operators[0].inputs = {}; }},
      {"attribute 'function' is missing", [](Plan& plan) { plan.operators[0].attributes = {}; }},
      {"shapes of an operator's tensors do not agree",
       [](Plan& plan) { plan.operators[0].inputs = {2}, plan.tensors[2].shape = {4}; }},
      {"input or output that is none", [](Plan& plan) { plan.inputs = {1}; }},
  };
  for (const auto& [expected, damage] : damages) {
    Plan plan = sound_plan();
    damage(plan);
    const Status status = check_plan(plan, 0, one_byte);
    EXPECT_EQ(status.code(), StatusCode::kInvalidArgument) << expected;
    EXPECT_NE(status.message().find(expected), std::string::npos) << status.message();
  }
}

}  // namespace
}  // namespace foliot
