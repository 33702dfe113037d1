#include "answer/model_calls/refused_inputs.h"

#include <gtest/gtest.h>

#include <limits>

#include "answer/inference/conformance/test_models.h"

namespace foliot {
namespace {

std::string described(ModelInfo model, Query query) {
  const auto call = InferenceCall::make(std::make_shared<const ModelInfo>(std::move(model)), query);
  EXPECT_TRUE(call.ok()) << call.status().message();
  return describe_refused_inputs(**call);
}

TEST(RefusedInputs, NamesTheInputTheValueAndItsPlace) {
  const std::vector<float> numbers{1, 2, 3, std::numeric_limits<float>::quiet_NaN()};
  const Query query{.inputs = {{"x", "FP32", {2, 2}, std::as_bytes(std::span(numbers))}}};
  EXPECT_EQ(described(doubling_model(ModelId(1)), query), "input 'x' holds nan (row 1, element 1)");
}

TEST(RefusedInputs, GivesTheRangeOfIntegers) {
  const std::vector<int64_t> tokens{5, 30523, -1, 8};
  const Query query{.inputs = {{"tokens", "INT64", {1, 4}, std::as_bytes(std::span(tokens))}}};
  EXPECT_EQ(described(sequence_model(ModelId(1)), query), "input 'tokens' holds -1 to 30523");
}

TEST(RefusedInputs, AContainerIsNotCompiled) {
  ModelInfo model = doubling_model(ModelId(1));
  EXPECT_TRUE(is_compiled(model));
  model.only().kind = "container:doubling";
  EXPECT_FALSE(is_compiled(model));
}

}  // namespace
}  // namespace foliot
