#include "answer/cache/prediction_key.h"

#include <gtest/gtest.h>

#include <array>
#include <span>
#include <vector>

namespace foliot {
namespace {

class PredictionKeyTest : public testing::Test {
 protected:
  static ModelInfo model(const char* content) {
    ModelInfo model;
    model.name = "m";
    model.content = content;
    return model;
  }
  TensorView tensor(std::string_view name, Shape shape, size_t floats) const {
    return {name, "FP32", std::move(shape), std::as_bytes(std::span(values_).first(floats))};
  }
  Query query() const { return {.name = "m", .inputs = {tensor("x", {1, 4}, 4), tensor("y", {1, 2}, 2)}}; }
  PredictionKey key(const Query& query) const { return prediction_key(secret_, model("abc"), query); }

  const HashSecret secret_;
  const std::array<float, 4> values_{1, 2, 3, 4};
};

TEST_F(PredictionKeyTest, IsOfContentInputsAndOutputs) {
  const PredictionKey same = key(query());
  EXPECT_EQ(key(query()), same);
  EXPECT_NE(prediction_key(secret_, model("abd"), query()), same);
  Query other = query();
  other.inputs[0].shape = {2, 2};
  EXPECT_NE(key(other), same);
  other = query();
  other.inputs[0].datatype = "INT32";
  EXPECT_NE(key(other), same);
  other = query();
  other.inputs[0].name = "z";
  EXPECT_NE(key(other), same);
  other = query();
  const std::array<float, 4> others{1, 2, 3, 5};
  other.inputs[0].bytes = std::as_bytes(std::span(others));
  EXPECT_NE(key(other), same);
  other = query();
  other.outputs = {"a"};
  EXPECT_NE(key(other), same);
  Query two = query();
  two.outputs = {"a", "b"};
  other.outputs = {"b", "a"};
  EXPECT_NE(key(other), key(two)) << "answers have them in this order";
}

TEST_F(PredictionKeyTest, IsNotOfNameVersionAndOrderOfInputs) {
  Query other = query();
  other.version = "1";
  other.id = "seven";
  other.deadline = TimePoint();
  std::swap(other.inputs[0], other.inputs[1]);
  EXPECT_EQ(key(other), key(query()));
}

TEST_F(PredictionKeyTest, BytesDoNotMoveBetweenInputs) {
  Query first{.name = "m", .inputs = {tensor("x", {3}, 3), tensor("y", {1}, 1)}};
  Query second{.name = "m", .inputs = {tensor("x", {1}, 1), tensor("y", {3}, 3)}};
  EXPECT_NE(key(first), key(second));
}

TEST_F(PredictionKeyTest, CannotBeKnownFromOutside) {
  EXPECT_NE(prediction_key(HashSecret(), model("abc"), query()), key(query()));
}

}  // namespace
}  // namespace foliot
