#include "answer/model_calls/stage_tensors.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

#include "answer/model_calls/inference_call.h"
#include "foundation/core/tensor_part.h"

namespace foliot {
namespace {

// "cheap" and, where its score is below 0.5, "fine": both from two numbers to one. "last" makes
// one of the call's second input and of what "fine" gave, or else "cheap".
std::shared_ptr<const ModelInfo> cascade() {
  const auto model = [](const char* name, std::vector<TensorSpec> inputs) {
    auto info = std::make_shared<ModelInfo>();
    info->name = name;
    info->inputs = std::move(inputs);
    info->outputs = {{.name = "score", .type = DataType::kFloat32, .shape = {1}, .dimension_names = {""}}};
    info->buckets = {{}};
    return info;
  };
  const TensorSpec x{.name = "x", .type = DataType::kFloat32, .shape = {2}, .dimension_names = {""}};
  const TensorSpec y{.name = "y", .type = DataType::kFloat32, .shape = {1}, .dimension_names = {""}};
  auto pipeline = std::make_shared<PipelineInfo>();
  pipeline->id = PipelineId(1);
  const TensorSource of_call;
  pipeline->stages = {{.name = "cheap",
                       .model = model("cheap", {x}),
                       .bucket = BucketId(0),
                       .inputs = {{of_call}},
                       .conditions = {{.comparison = StageCondition::Comparison::kAbove, .limit = 100},
                                      {.comparison = StageCondition::Comparison::kBelow, .limit = 0.5}},
                       .requires_all = {}},
                      {.name = "fine",
                       .model = model("fine", {x}),
                       .bucket = BucketId(0),
                       .inputs = {{of_call}},
                       .conditions = {},
                       .requires_all = {{.stage = 0, .condition = 1}}},
                      {.name = "last",
                       .model = model("last", {y, y}),
                       .bucket = BucketId(0),
                       .inputs = {{{.tensor = 1}}, {{.stage = 1}, {.stage = 0}}},
                       .conditions = {},
                       .requires_all = {}}};
  pipeline->outputs = {{.sources = {{.stage = 2}}}, {.sources = {{.stage = 1}}, .fill = -1}};
  auto info = std::make_shared<ModelInfo>();
  info->name = "cascade";
  info->inputs = {x, y};
  info->outputs = {{.name = "score", .type = DataType::kFloat32, .shape = {1}, .dimension_names = {""}},
                   {.name = "fine", .type = DataType::kFloat32, .shape = {1}, .dimension_names = {""}}};
  info->buckets = {{}};
  info->pipeline = pipeline;
  return info;
}

std::vector<float> floats(std::span<const std::byte> bytes) {
  std::vector<float> values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

void put(std::span<std::byte> to, float value) {
  ASSERT_EQ(to.size(), sizeof(value));
  std::memcpy(to.data(), &value, sizeof(value));
}

class PipelineCallTest : public testing::Test {
 protected:
  Result<std::unique_ptr<InferenceCall>> make(const CallLimits& limits = {}) {
    return InferenceCall::make(cascade(),
                               {.name = "cascade",
                                .inputs = {{"x", "FP32", {2, 2}, std::as_bytes(std::span(x_))},
                                           {"y", "FP32", {2, 1}, std::as_bytes(std::span(y_))}}},
                               limits);
  }
  static std::vector<float> taken(InferenceCall& call, uint32_t output) {
    const std::string bytes = call.take_requested(output);
    return floats(std::as_bytes(std::span(bytes)));
  }

  const std::vector<float> x_ = {1, 2, 3, 4};
  const std::vector<float> y_ = {5, 6};
};

TEST_F(PipelineCallTest, EachRowTakesWhatItsOwnStagesGave) {
  const auto made = make();
  ASSERT_TRUE(made.ok()) << made.status().message();
  InferenceCall& call = **made;
  for (uint32_t row = 0; row < 2; ++row) {
    EXPECT_EQ(floats(call.input_of(0, row, 0)), (row == 0 ? std::vector<float>{1, 2} : std::vector<float>{3, 4}));
  }
  put(call.output_of(0, 0, 0), 0.75F);
  put(call.output_of(0, 1, 0), 0.25F);
  EXPECT_EQ(call.finish(0, 0).conditions, 0b00);
  EXPECT_EQ(call.finish(0, 1).conditions, 0b10);
  EXPECT_EQ(floats(call.input_of(1, 1, 0)), (std::vector<float>{3, 4}));
  put(call.output_of(1, 1, 0), 0.5F);
  EXPECT_EQ(call.finish(1, 1).conditions, 0);
  EXPECT_EQ(floats(call.input_of(2, 0, 0)), std::vector<float>{5});
  EXPECT_EQ(floats(call.input_of(2, 0, 1)), std::vector<float>{0.75F});
  EXPECT_EQ(floats(call.input_of(2, 1, 0)), std::vector<float>{6});
  EXPECT_EQ(floats(call.input_of(2, 1, 1)), std::vector<float>{0.5F});
  put(call.output_of(2, 0, 0), 10);
  put(call.output_of(2, 1, 0), 11);
  call.finish(2, 0);
  call.finish(2, 1);
  EXPECT_FALSE(call.complete({.detail = {}}));
  EXPECT_TRUE(call.complete({.detail = {}}));
  call.collect();
  EXPECT_EQ(taken(call, 0), (std::vector<float>{10, 11}));
  EXPECT_EQ(taken(call, 1), (std::vector<float>{-1, 0.5F}));
}

TEST_F(PipelineCallTest, WhatStagesComputeCountsForTheCall) {
  const uint64_t body = 24;
  const auto made = make();
  ASSERT_TRUE(made.ok());
  EXPECT_GE((*made)->body_bytes(), 2 * 3 * sizeof(float));
  const auto refused = make({.output_bytes_max = body});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(refused.status().message().find("'cascade'"), std::string::npos) << refused.status().message();
  EXPECT_NE(refused.status().message().find("24 B"), std::string::npos) << refused.status().message();
}

TEST_F(PipelineCallTest, TensorsOfStagesDoNotOverlap) {
  StageTensors tensors(cascade()->pipeline, BucketId(0), 3);
  const std::byte* last = nullptr;
  for (uint32_t row = 0; row < 3; ++row) {
    for (uint32_t stage = 0; stage < 3; ++stage) {
      const std::span<std::byte> output = tensors.output(row, stage, 0);
      ASSERT_EQ(output.size(), 4u);
      EXPECT_TRUE(last == nullptr || output.data() >= last + 4);
      last = output.data();
    }
  }
}

// "detect" makes a count and three boxes of a number; "classify" makes one number of each box and of the
// call's own part of "hints"; where "detect" says so it is skipped. "last" sums up what all of them made.
std::shared_ptr<const ModelInfo> detector(bool conditional = false) {
  const auto model = [](std::vector<TensorSpec> inputs, std::vector<TensorSpec> outputs) {
    auto info = std::make_shared<ModelInfo>();
    info->inputs = std::move(inputs);
    info->outputs = std::move(outputs);
    info->buckets = {{}};
    return info;
  };
  const auto tensor = [](const char* name, int64_t extent) {
    return TensorSpec{.name = name, .type = DataType::kFloat32, .shape = {extent}, .dimension_names = {""}};
  };
  auto pipeline = std::make_shared<PipelineInfo>();
  pipeline->id = PipelineId(1);
  pipeline->stages = {{.name = "detect",
                       .model = model({tensor("x", 1)}, {tensor("count", 1), tensor("boxes", 3)}),
                       .bucket = BucketId(0),
                       .inputs = {{TensorSource()}},
                       .conditions = {},
                       .requires_all = {},
                       .count = StageCount{.output = 0, .at_most = 3}},
                      {.name = "classify",
                       .model = model({tensor("box", 1), tensor("hint", 1)}, {tensor("score", 1)}),
                       .bucket = BucketId(0),
                       .inputs = {{{.stage = 0, .tensor = 1, .each = true}}, {{.tensor = 1, .each = true}}},
                       .conditions = {},
                       .requires_all = {},
                       .for_each = PipelineStage::ForEach{.stage = 0, .at_most = 3}},
                      {.name = "last",
                       .model = model({tensor("scores", 3)}, {tensor("sum", 1)}),
                       .bucket = BucketId(0),
                       .inputs = {{{.stage = 1}, {.tensor = 1}}},
                       .conditions = {},
                       .requires_all = {}}};
  if (conditional) {
    pipeline->stages[0].conditions = {{.output = 1, .value = StageCondition::Value::kElement, .limit = 0}};
    pipeline->stages[1].requires_all = {{.stage = 0, .condition = 0}};
  }
  pipeline->outputs = {{.sources = {{.stage = 1}}, .fill = -1}, {.sources = {{.stage = 2}}}};
  auto info = std::make_shared<ModelInfo>();
  info->name = "detector";
  info->inputs = {tensor("x", 1), tensor("hints", 3)};
  info->outputs = {tensor("scores", 3), tensor("sum", 1)};
  info->buckets = {{}};
  info->pipeline = pipeline;
  return info;
}

class ForEachCallTest : public testing::Test {
 protected:
  std::unique_ptr<InferenceCall> make(bool conditional = false) {
    auto made = InferenceCall::make(detector(conditional),
                                    {.name = "detector",
                                     .inputs = {{"x", "FP32", {1, 1}, std::as_bytes(std::span(x_))},
                                                {"hints", "FP32", {1, 3}, std::as_bytes(std::span(hints_))}}},
                                    {});
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(*made);
  }
  static VisitReading detect(InferenceCall& call, float count) {
    for (uint32_t slot = 1; slot < 4; ++slot) put(call.output_of(slot, 0, 0), 123);  // left of another call
    const std::vector<float> boxes{10, 20, 30};
    put(call.output_of(0, 0, 0), count);
    std::memcpy(call.output_of(0, 0, 1).data(), boxes.data(), boxes.size() * sizeof(float));
    return call.finish(0, 0);
  }
  static void end(InferenceCall& call) {
    put(call.output_of(4, 0, 0), 99);
    call.finish(4, 0);
    call.complete({.detail = {}});
    call.collect();
  }
  static std::vector<float> scores(InferenceCall& call) {
    const std::string bytes = call.take_requested(0);
    return floats(std::as_bytes(std::span(bytes)));
  }

  const std::vector<float> x_ = {1};
  const std::vector<float> hints_ = {7, 8, 9};
};

TEST_F(ForEachCallTest, EachVisitTakesItsElementAndWhatFollowsTakesAll) {
  const auto call = make();
  EXPECT_EQ(detect(*call, 2).count, 2);
  EXPECT_EQ(floats(call->input_of(1, 0, 0)), std::vector<float>{10});
  EXPECT_EQ(floats(call->input_of(2, 0, 0)), std::vector<float>{20});
  EXPECT_EQ(floats(call->input_of(2, 0, 1)), std::vector<float>{8});
  put(call->output_of(2, 0, 0), 0.5F);
  call->finish(2, 0);
  put(call->output_of(1, 0, 0), 0.25F);
  call->finish(1, 0);
  EXPECT_EQ(floats(call->input_of(4, 0, 0)), (std::vector<float>{0.25F, 0.5F, 0})) << "zero behind the last";
  end(*call);
  EXPECT_EQ(scores(*call), (std::vector<float>{0.25F, 0.5F, -1})) << "and in the answer what it says";
}

TEST_F(ForEachCallTest, AVisitThatIsMadeTwiceCountsOnce) {
  const auto call = make();
  detect(*call, 1);
  for (int i = 0; i < 2; ++i) {
    put(call->output_of(1, 0, 0), 0.25F);
    call->finish(1, 0);
  }
  end(*call);
  EXPECT_EQ(scores(*call), (std::vector<float>{0.25F, -1, -1}));
}

TEST_F(ForEachCallTest, OfNoElementsWhatFollowsTakesZeros) {
  const auto call = make();
  detect(*call, 0);
  EXPECT_EQ(floats(call->input_of(4, 0, 0)), (std::vector<float>{0, 0, 0}));
  end(*call);
  EXPECT_EQ(scores(*call), (std::vector<float>{-1, -1, -1}));
}

TEST_F(ForEachCallTest, AStageThatIsSkippedIsNotOneOfNoElements) {
  const auto call = make(true);
  EXPECT_EQ(detect(*call, 0).conditions, 0);
  EXPECT_EQ(floats(call->input_of(4, 0, 0)), (std::vector<float>{7, 8, 9})) << "the next source";
  const auto other = make(true);
  put(other->output_of(0, 0, 0), 0);
  for (uint32_t i = 0; i < 3; ++i) put(part_of(other->output_of(0, 0, 1), {i, 3}), -1);
  EXPECT_EQ(other->finish(0, 0).conditions, 1);
  EXPECT_EQ(floats(other->input_of(4, 0, 0)), (std::vector<float>{0, 0, 0}));
}

TEST_F(ForEachCallTest, WhereStagesAreVisitedElsewhereItIsSaidThatOneHasNoElements) {
  const auto call = make();
  EXPECT_EQ(floats(call->input_of(4, 0, 0)), (std::vector<float>{7, 8, 9}));
  call->finish_empty(1, 0);
  EXPECT_NE(floats(call->input_of(4, 0, 0)), (std::vector<float>{7, 8, 9})) << "those of the stage";
  end(*call);
  EXPECT_EQ(scores(*call), (std::vector<float>{-1, -1, -1}));
}

}  // namespace
}  // namespace foliot
