#include "load/client/input_generator.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

namespace foliot {
namespace {

using testing::HasSubstr;

ModelDescription model(TensorDescription input) { return {.name = "m", .inputs = {std::move(input)}}; }

TEST(InputGeneratorTest, FillsTheShape) {
  Random random(1);
  const auto inputs = random_inputs(model({"x", "FP32", {-1, 3, 100}}), 4, {}, random);
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  const InputTensor& input = inputs->at(0);
  EXPECT_EQ(input.shape, (std::vector<int64_t>{4, 3, 100}));
  ASSERT_EQ(input.bytes.size(), 4u * 3 * 100 * 4);
  double sum = 0;
  double squares = 0;
  for (size_t i = 0; i < 1200; ++i) {
    float value;
    std::memcpy(&value, input.bytes.data() + 4 * i, 4);
    sum += static_cast<double>(value);
    squares += static_cast<double>(value) * static_cast<double>(value);
  }
  EXPECT_NEAR(sum / 1200, 0, 0.15);
  EXPECT_NEAR(squares / 1200, 1, 0.2);
}

TEST(InputGeneratorTest, SeedDecidesTheBytes) {
  Random a(1);
  Random b(1);
  Random c(2);
  const ModelDescription described = model({"x", "INT64", {8}});
  const std::string first = random_inputs(described, 1, {}, a)->at(0).bytes;
  EXPECT_EQ(first, random_inputs(described, 1, {}, b)->at(0).bytes);
  EXPECT_NE(first, random_inputs(described, 1, {}, c)->at(0).bytes);
}

TEST(InputGeneratorTest, EveryTypeHasItsSize) {
  const std::map<std::string, size_t> sizes{{"BOOL", 1},  {"UINT8", 1},  {"INT8", 1},  {"UINT16", 2}, {"INT16", 2},
                                            {"FP16", 2},  {"BF16", 2},   {"INT32", 4}, {"UINT32", 4}, {"FP32", 4},
                                            {"INT64", 8}, {"UINT64", 8}, {"FP64", 8}};
  for (const auto& [type, size] : sizes) {
    Random random(1);
    const auto inputs = random_inputs(model({"x", type, {5}}), 1, {}, random);
    ASSERT_TRUE(inputs.ok()) << type;
    EXPECT_EQ(inputs->at(0).bytes.size(), 5 * size) << type;
  }
}

TEST(InputGeneratorTest, VariableDimensionsMustBeGiven) {
  Random random(1);
  const ModelDescription described = model({"ids", "INT64", {-1, -1}});
  const auto refused = random_inputs(described, 2, {}, random);
  ASSERT_FALSE(refused.ok());
  EXPECT_THAT(refused.status().message(), HasSubstr("model 'm'"));
  EXPECT_THAT(refused.status().message(), HasSubstr("'ids'"));
  const auto given = random_inputs(described, 2, {{"ids", {2, 16}}}, random);
  ASSERT_TRUE(given.ok());
  EXPECT_EQ(given->at(0).bytes.size(), 2u * 16 * 8);
}

TEST(InputGeneratorTest, ImpossibleInputsAreErrors) {
  Random random(1);
  EXPECT_EQ(random_inputs(model({"x", "STRING", {1}}), 1, {}, random).status().code(), StatusCode::kUnimplemented);
  EXPECT_EQ(random_inputs(model({"x", "FP32", {1 << 20, 1 << 20}}), 1, {}, random).status().code(),
            StatusCode::kInvalidArgument);
  EXPECT_EQ(random_inputs(model({"x", "FP32", {-1}}), 1, {{"x", {-3}}}, random).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace foliot
