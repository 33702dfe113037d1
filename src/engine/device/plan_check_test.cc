// A device of its own layouts: one byte that says how many elements there are.
#include "engine/device/plan_check.h"

#include <gtest/gtest.h>

#include <functional>
#include <utility>
#include <vector>

#include "engine/device/block_weights.h"
#include "engine/device/tree_node.h"

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

// One tree of three nodes over 8 features, to 2 columns.
Plan tree_plan() {
  Plan plan{.batch_size = 1};
  const auto weights = [&](const char* name, DataType type, Shape shape, uint64_t offset) {
    plan.tensors.push_back({.name = name,
                            .type = type,
                            .shape = shape,
                            .bytes = byte_size(type, shape),
                            .place = Place::kWeights,
                            .offset = offset});
  };
  plan.tensors = {{.name = "x", .shape = {1, 8}, .bytes = 32, .place = Place::kInput}};
  weights("nodes", DataType::kUint8, {3, 16}, 0);
  weights("values", DataType::kFloat32, {2, 1}, 64);
  weights("targets", DataType::kInt32, {2}, 128);
  plan.tensors.push_back({.name = "y", .shape = {1, 2}, .bytes = 8, .place = Place::kOutput});
  Operator trees{.kind = OperatorKind::kTreeEnsemble, .name = "trees", .inputs = {0, 1, 2, 3}, .outputs = {4}};
  trees.attributes.set("function", Function::kSum);
  for (const char* one : {"trees", "depth"}) trees.attributes.set(one, int64_t{1});
  plan.operators = {trees};
  plan.inputs = {0};
  plan.outputs = {4};
  plan.input_bytes = 32;
  plan.output_bytes = 8;
  return plan;
}

// Weights of 4 bits [40, 20] in blocks of 16, with zero points and a bias.
Plan block_plan() {
  const BlockWeights form{.depth = 40, .columns = 20, .block = 16, .bits = 4};
  Plan plan;
  uint64_t offset = 0;
  const auto weights = [&](const char* name, DataType type, const Shape& shape) {
    const uint64_t bytes = byte_size(type, shape);
    plan.tensors.push_back(
        {.name = name, .type = type, .shape = shape, .bytes = bytes, .place = Place::kWeights, .offset = offset});
    offset += (bytes + 63) / 64 * 64;
  };
  plan.tensors = {{.name = "x", .shape = {3, 40}, .bytes = 480, .place = Place::kInput}};
  weights("codes", DataType::kUint8, form.codes_shape());
  weights("scales", DataType::kFloat32, form.scales_shape());
  weights("zero points", DataType::kUint8, form.scales_shape());
  weights("bias", DataType::kFloat32, {20});
  plan.tensors.push_back({.name = "y", .shape = {3, 20}, .bytes = 240, .place = Place::kOutput});
  Operator product{.kind = OperatorKind::kBlockMatMul, .name = "product", .inputs = {0, 1, 2, 3, 4}, .outputs = {5}};
  product.attributes.set("bits", int64_t{4});
  product.attributes.set("block", int64_t{16});
  product.attributes.set("rounds", int64_t{0});
  plan.operators = {product};
  plan.inputs = {0};
  plan.outputs = {5};
  plan.input_bytes = 480;
  plan.output_bytes = 240;
  return plan;
}

TEST(PlanCheckTest, WeightsInBlocksHaveTheirShapes) {
  constexpr uint64_t kWeightsBytes = 1 << 20;
  const Status sound = check_plan(block_plan(), kWeightsBytes, one_byte);
  EXPECT_TRUE(sound.ok()) << sound.message();
  const auto set = [](Plan& plan, const char* name, int64_t value) { plan.operators[0].attributes.set(name, value); };
  std::vector<std::function<void(Plan&)>> damages{
      [&](Plan& plan) { set(plan, "bits", 0); },           [&](Plan& plan) { set(plan, "bits", 8); },
      [&](Plan& plan) { set(plan, "block", 0); },          [&](Plan& plan) { set(plan, "block", 12); },
      [&](Plan& plan) { set(plan, "block", 32); },         [&](Plan& plan) { set(plan, "block", int64_t{1} << 40); },
      [](Plan& plan) { plan.tensors[5].shape = {4, 15}; }, [](Plan& plan) { plan.tensors[0].shape = {5, 24}; },
  };
  for (size_t i = 0; i <= 5; ++i) {
    damages.emplace_back([i](Plan& plan) { plan.tensors[i].type = DataType::kInt8; });
    // One depth less has the same words.
    damages.emplace_back([i](Plan& plan) { plan.tensors[i].shape.back() -= i == 0 ? 8 : 1; });
  }
  for (size_t i = 0; i < damages.size(); ++i) {
    Plan plan = block_plan();
    damages[i](plan);
    EXPECT_FALSE(check_plan(plan, kWeightsBytes, one_byte).ok()) << i;
  }
}

TEST(PlanCheckTest, TreesStayWithinTheirLimits) {
  constexpr uint64_t kWeightsBytes = 1 << 20;
  const Status sound = check_plan(tree_plan(), kWeightsBytes, one_byte);
  EXPECT_TRUE(sound.ok()) << sound.message();
  const auto set = [](Plan& plan, const char* name, int64_t value) { plan.operators[0].attributes.set(name, value); };
  const std::vector<std::function<void(Plan&)>> damages{
      [&](Plan& plan) { set(plan, "trees", 0); },
      [&](Plan& plan) { set(plan, "trees", 4); },
      [&](Plan& plan) { set(plan, "depth", -1); },
      [&](Plan& plan) { set(plan, "depth", kTreeDepthMax + 1); },
      [](Plan& plan) { plan.tensors[0].type = DataType::kInt32; },
      [](Plan& plan) {
        plan.tensors[0].shape = {1, 0};
      },
      [](Plan& plan) {
        plan.tensors[0].shape = {2, 4};
      },
      [](Plan& plan) { plan.tensors[0].shape = {8}; },
      [](Plan& plan) { plan.tensors[1].type = DataType::kInt8; },
      [](Plan& plan) {
        plan.tensors[1].shape = {6, 8};
      },
      [](Plan& plan) {
        plan.tensors[1].shape = {0, 16};
      },
      [](Plan& plan) { plan.tensors[2].type = DataType::kInt32; },
      [](Plan& plan) {
        plan.tensors[2].shape = {1, 2};
      },
      [](Plan& plan) {
        plan.tensors[2].shape = {0, 1};
      },
      [](Plan& plan) { plan.tensors[3].type = DataType::kFloat32; },
      [](Plan& plan) { plan.tensors[3].shape = {1}; },
      [](Plan& plan) { plan.tensors[4].type = DataType::kInt32; },
      [](Plan& plan) {
        plan.tensors[2].shape = {1, 2}, plan.tensors[4].shape = {2, 1};
      },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Plan plan = tree_plan();
    damages[i](plan);
    const Status status = check_plan(plan, kWeightsBytes, one_byte);
    EXPECT_NE(status.message().find("do not agree"), std::string::npos) << "damage " << i << ": " << status.message();
  }
}

// y = x normalised over its last dimension, with a scale and a bias for each of 3 channels.
Plan norm_plan() {
  Plan plan{.batch_size = 1};
  plan.tensors = {{.name = "x", .shape = {2, 3, 4}, .bytes = 96, .place = Place::kInput},
                  {.name = "scale", .shape = {3, 1}, .bytes = 12, .place = Place::kWeights},
                  {.name = "bias", .shape = {3, 1}, .bytes = 12, .place = Place::kWeights, .offset = 64},
                  {.name = "y", .shape = {2, 3, 4}, .bytes = 96, .place = Place::kOutput}};
  Operator norm{.kind = OperatorKind::kLayerNorm, .name = "norm", .inputs = {0, 1, 2}, .outputs = {3}};
  norm.attributes.set("axis", int64_t{2});
  norm.attributes.set("epsilon", 1e-5);
  plan.operators = {norm};
  plan.inputs = {0};
  plan.outputs = {3};
  plan.input_bytes = plan.output_bytes = 96;
  return plan;
}

TEST(PlanCheckTest, NormalisationsStayWithinTheirTensors) {
  constexpr uint64_t kWeightsBytes = 1 << 10;
  const Status sound = check_plan(norm_plan(), kWeightsBytes, one_byte);
  EXPECT_TRUE(sound.ok()) << sound.message();
  const auto axis = [](Plan& plan, int64_t value) { plan.operators[0].attributes.set("axis", value); };
  const std::vector<std::function<void(Plan&)>> damages{
      [&](Plan& plan) { axis(plan, -1); },
      [&](Plan& plan) { axis(plan, 3); },
      [](Plan& plan) {
        plan.tensors[3].shape = {2, 4, 3};
      },
      [](Plan& plan) {
        plan.tensors[1].shape = plan.tensors[2].shape = {2, 1};
      },
      [](Plan& plan) {
        plan.tensors[2].shape = {1, 1};
      },
      [](Plan& plan) {
        plan.operators[0].inputs = {0, 1};
      },
      [](Plan& plan) {
        plan.operators[0].inputs = {0, kNoTensor, 2};
      },
      [](Plan& plan) { plan.tensors[1].type = DataType::kInt32; },
      [](Plan& plan) { plan.tensors[3].type = DataType::kInt32; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Plan plan = norm_plan();
    damages[i](plan);
    const Status status = check_plan(plan, kWeightsBytes, one_byte);
    EXPECT_NE(status.message().find("do not agree"), std::string::npos) << "damage " << i << ": " << status.message();
  }
}

TEST(PlanCheckTest, TooManyTreeNodesAreRefused) {
  Plan plan = tree_plan();
  const uint64_t bytes = (kTreeNodesMax + 1) * sizeof(TreeNode);
  plan.tensors[1].shape[0] = kTreeNodesMax + 1;
  plan.tensors[1].bytes = bytes;
  EXPECT_FALSE(check_plan(plan, bytes, one_byte).ok());
  plan.tensors[1].shape[0] = kTreeNodesMax;
  EXPECT_TRUE(check_plan(plan, bytes, one_byte).ok());
}

TEST(PlanCheckTest, BlocksOfDepthToSpaceFillTheResult) {
  Plan plan{.batch_size = 1};
  plan.tensors = {{.name = "deep", .shape = {1, 12, 2, 5}, .bytes = 480, .place = Place::kInput},
                  {.name = "wide", .shape = {1, 2, 4, 15}, .bytes = 480, .place = Place::kOutput}};
  Operator operation{.kind = OperatorKind::kDepthToSpace, .name = "rearrange", .inputs = {0}, .outputs = {1}};
  operation.attributes.set("rows", int64_t{2});
  operation.attributes.set("columns", int64_t{3});
  plan.operators = {operation};
  plan.inputs = {0};
  plan.outputs = {1};
  plan.input_bytes = plan.output_bytes = 480;
  ASSERT_TRUE(check_plan(plan, 0, one_byte).ok()) << check_plan(plan, 0, one_byte).message();
  const auto blocks = [](Plan& of, int64_t rows, int64_t columns) {
    of.operators[0].attributes.set("rows", rows);
    of.operators[0].attributes.set("columns", columns);
  };
  const std::vector<std::function<void(Plan&)>> damages{
      [&](Plan& of) { blocks(of, 0, 3); },
      [&](Plan& of) { blocks(of, -2, -3); },
      [&](Plan& of) { blocks(of, 3, 2); },
      [&](Plan& of) { blocks(of, int64_t{1} << 62, 3); },
      [](Plan& of) {
        of.tensors[1].shape = {1, 4, 2, 15};
      },
      [](Plan& of) {
        of.tensors[1].shape = {2, 2, 4, 15};
        of.tensors[1].bytes = of.output_bytes = 960;
      },
      [&](Plan& of) {  // agrees but for what is beyond 64 bits
        of.tensors[0].shape = {1, 24, 4, 5};
        of.tensors[1].shape = {1, 4, 8, 15};
        of.tensors[0].bytes = of.tensors[1].bytes = of.input_bytes = of.output_bytes = 1920;
        blocks(of, (int64_t{1} << 62) + 2, 3);
      },
      [](Plan& of) {
        of.tensors[0].shape = {1, 12, 10};
      },
      [](Plan& of) { of.tensors[0].type = of.tensors[1].type = DataType::kInt32; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Plan damaged = plan;
    damages[i](damaged);
    EXPECT_FALSE(check_plan(damaged, 0, one_byte).ok()) << "damage " << i;
  }
}

TEST(PlanCheckTest, ImagesStayWithinTheirLimits) {
  Plan plan{.batch_size = 2};
  plan.tensors = {
      {.name = "bytes", .type = DataType::kUint8, .shape = {2, 64}, .bytes = 128, .place = Place::kInput},
      {.name = "image", .type = DataType::kUint8, .shape = {2, 4, 5, 3}, .bytes = 120, .place = Place::kOutput}};
  Operator decode{.kind = OperatorKind::kDecodeJpeg, .name = "decode", .inputs = {0}, .outputs = {1}};
  decode.attributes.set("fit", std::string("crop"));
  decode.attributes.set("pad_value", int64_t{255});
  decode.attributes.set("pixels_max", int64_t{1000});
  plan.operators = {decode};
  plan.inputs = {0};
  plan.outputs = {1};
  plan.input_bytes = 128;
  plan.output_bytes = 120;
  ASSERT_TRUE(check_plan(plan, 0, one_byte).ok()) << check_plan(plan, 0, one_byte).message();
  const std::vector<std::function<void(Plan&)>> damages{
      [](Plan& of) { of.operators[0].attributes.set("fit", std::string("fill")); },
      [](Plan& of) { of.operators[0].attributes.set("pad_value", int64_t{256}); },
      [](Plan& of) { of.operators[0].attributes.set("pixels_max", int64_t{0}); },
      [](Plan& of) { of.operators[0].attributes.set("pixels_max", kImagePixelsMax + 1); },
      [](Plan& of) {
        of.tensors[0].shape = {1, 128};
      },
      [](Plan& of) {
        of.tensors[1].shape = {2, 5, 3, 4};
      },
      [](Plan& of) {
        of.tensors[1].shape = {2, 0, 5, 3};
      },
      [](Plan& of) { of.tensors[0].type = DataType::kInt8; },
  };
  for (size_t i = 0; i < damages.size(); ++i) {
    Plan damaged = plan;
    damages[i](damaged);
    EXPECT_FALSE(check_plan(damaged, 0, one_byte).ok()) << i;
  }
}

}  // namespace
}  // namespace foliot
