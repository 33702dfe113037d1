#include "answer/personal/items/item_input.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "foundation/core/serialized_string.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

std::string bytes_of(std::vector<float> values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)};
}

ItemTensor numbers(const std::string& name, Shape shape, std::vector<float> values) {
  return {.name = name, .datatype = "FP32", .shape = std::move(shape), .bytes = bytes_of(std::move(values))};
}

TEST(ItemInputTest, EachItemHasItsRows) {
  const auto inputs =
      encode_inputs({numbers("x", {2, 2}, {1, 2, 3, 4}), {"name", "BYTES", {2}, serialized({"a", "longer"})}}, 2);
  ASSERT_TRUE(inputs.ok()) << inputs.status().message();
  ASSERT_EQ(inputs->size(), 2U);
  const auto rows = decode_input(inputs->at(1));
  ASSERT_TRUE(rows.has_value());
  ASSERT_EQ(rows->size(), 2U);
  EXPECT_EQ(rows->at(0).name, "name");
  EXPECT_EQ(rows->at(0).bytes, serialized({"longer"}));
  EXPECT_TRUE(rows->at(0).shape.empty());
  EXPECT_EQ(rows->at(1).datatype, "FP32");
  EXPECT_THAT(rows->at(1).shape, ElementsAre(2));
  EXPECT_EQ(rows->at(1).bytes, bytes_of({3, 4}));
  EXPECT_TRUE(rows->at(1).is_like(decode_input(inputs->at(0))->at(1)));
}

TEST(ItemInputTest, TheOrderOfTensorsDoesNotCount) {
  const ItemTensor x = numbers("x", {1, 1}, {1});
  const ItemTensor y = numbers("y", {1, 1}, {2});
  EXPECT_EQ(*encode_inputs({x, y}, 1), *encode_inputs({y, x}, 1));
  EXPECT_NE(*encode_inputs({x}, 1), *encode_inputs({y}, 1));
}

TEST(ItemInputTest, ErrorsNameTheTensor) {
  const auto error = [](const ItemTensors& tensors, size_t rows) {
    return encode_inputs(tensors, rows).status().message();
  };
  EXPECT_THAT(error({}, 1), HasSubstr("0 inputs of items"));
  EXPECT_THAT(error({numbers("x", {2, 2}, {1, 2, 3, 4})}, 3), HasSubstr("'x': its shape [2,2] must begin with 3"));
  EXPECT_THAT(error({numbers("x", {}, {1})}, 1), HasSubstr("must begin with 1"));
  EXPECT_THAT(error({numbers("x", {1, 2}, {1})}, 1), HasSubstr("'x': 4 bytes are not [1,2] FP32"));
  EXPECT_THAT(error({numbers("x", {1, 2}, {1, 2, 3})}, 1), HasSubstr("'x': 12 bytes are not [1,2] FP32"));
  EXPECT_THAT(error({numbers("x", {1, -2}, {1})}, 1), HasSubstr("cannot be"));
  EXPECT_THAT(error({numbers("x", {1, int64_t{1} << 62, 8}, {1})}, 1), HasSubstr("cannot be"));
  EXPECT_THAT(error({numbers("x", {1}, {1}), numbers("x", {1}, {1})}, 1), HasSubstr("'x': is there twice"));
  EXPECT_THAT(error({{"x", "FP33", {1}, ""}}, 1), HasSubstr("unknown datatype 'FP33'"));
  EXPECT_THAT(error({{"x", "BYTES", {1}, "\x05"}}, 1), HasSubstr("1 bytes are not [1] BYTES"));
  EXPECT_THAT(error({numbers("x", {1, 300'000}, std::vector<float>(300'000))}, 1), HasSubstr("at most 1000000"));
}

TEST(ItemInputTest, WhatIsCutOffIsNoInput) {
  const std::string input = encode_inputs({numbers("x", {1, 2}, {1, 2})}, 1)->at(0);
  for (size_t size = 0; size < input.size(); ++size) EXPECT_FALSE(decode_input(input.substr(0, size))) << size;
  EXPECT_FALSE(decode_input(input + "x"));
}

}  // namespace
}  // namespace foliot
