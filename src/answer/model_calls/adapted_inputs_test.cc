#include "answer/model_calls/adapted_inputs.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

template <typename T>
std::span<const std::byte> view_of(const std::vector<T>& values) {
  return std::as_bytes(std::span(values));
}
template <typename T>
std::vector<T> numbers_of(const TensorView& view) {
  std::vector<T> values(view.bytes.size() / sizeof(T));
  std::memcpy(values.data(), view.bytes.data(), view.bytes.size());
  return values;
}

TensorSpec spec(std::string name, DataType type, Shape shape) { return {std::move(name), type, std::move(shape), {}}; }
ModelInfo container_of(std::vector<TensorSpec> inputs) {
  ModelInfo info;
  info.inputs = std::move(inputs);
  info.runnables[0].kind = "container:m";
  return info;
}
std::string refusal_of(const ModelInfo& info, const std::vector<TensorView>& inputs) {
  const auto adapted = adapt_inputs(info, inputs);
  EXPECT_EQ(adapted.status().code(), StatusCode::kInvalidArgument);
  return adapted.status().message();
}

const std::vector<double> kDoubles{1.5, -2, 3, 4};
const std::vector<int64_t> kWhole{1, -2, 3, 4};

TEST(AdaptedInputsTest, NumbersOfAnotherTypeAreConverted) {
  const auto info = container_of({spec("x", DataType::kFloat32, {2})});
  const auto adapted = adapt_inputs(info, {{"x", "FP64", {2, 2}, view_of(kDoubles)}});
  ASSERT_TRUE(adapted.ok()) << adapted.status().message();
  EXPECT_EQ(adapted->views[0].datatype, "FP32");
  EXPECT_THAT(numbers_of<float>(adapted->views[0]), ElementsAre(1.5f, -2, 3, 4));
  EXPECT_THAT(numbers_of<float>(adapt_inputs(info, {{"x", "INT64", {2, 2}, view_of(kWhole)}})->views[0]),
              ElementsAre(1, -2, 3, 4));
}

TEST(AdaptedInputsTest, WhatATypeCannotHoldIsRefused) {
  const auto whole = container_of({spec("x", DataType::kInt64, {4})});
  EXPECT_THAT(refusal_of(whole, {{"x", "FP64", {1, 4}, view_of(kDoubles)}}),
              AllOf(HasSubstr("input 'x'"), HasSubstr("1.5, which is not within INT64")));
  for (const double edge : {9223372036854775808.0, -9223372036854777856.0, std::nan(""), HUGE_VAL}) {
    EXPECT_FALSE(adapt_inputs(whole, {{"x", "FP64", {1, 1}, view_of(std::vector<double>{edge})}}).ok()) << edge;
  }
  EXPECT_THAT(
      numbers_of<int64_t>(
          adapt_inputs(whole, {{"x", "FP64", {1, 1}, view_of(std::vector<double>{-9223372036854775808.0})}})->views[0]),
      ElementsAre(std::numeric_limits<int64_t>::min()));
  const auto small = container_of({spec("x", DataType::kUint8, {1})});
  EXPECT_THAT(refusal_of(small, {{"x", "INT64", {1, 1}, view_of(std::vector<int64_t>{256})}}), HasSubstr("256"));
  EXPECT_FALSE(adapt_inputs(small, {{"x", "INT64", {1, 1}, view_of(std::vector<int64_t>{-1})}}).ok());
  const auto truth = container_of({spec("x", DataType::kBool, {1})});
  EXPECT_FALSE(adapt_inputs(truth, {{"x", "INT64", {1, 1}, view_of(std::vector<int64_t>{2})}}).ok());
  const auto narrow = container_of({spec("x", DataType::kFloat32, {1})});
  EXPECT_FALSE(adapt_inputs(narrow, {{"x", "FP64", {1, 1}, view_of(std::vector<double>{1e300})}}).ok());
  EXPECT_TRUE(adapt_inputs(narrow, {{"x", "FP64", {1, 1}, view_of(std::vector<double>{HUGE_VAL})}}).ok());
}

TEST(AdaptedInputsTest, AnOnlyInputThatHasNoNameOfItsOwnMayHaveAny) {
  const std::vector<TensorView> sent{{"predict", "FP64", {2, 2}, view_of(kDoubles)}};
  EXPECT_EQ(adapt_inputs(container_of({spec("input-0", DataType::kFloat64, {2})}), sent)->views[0].name, "input-0");
  EXPECT_EQ(adapt_inputs(container_of({spec("x", DataType::kFloat64, {2})}), sent)->views[0].name, "predict");
}

// Settings may name the input of a compiled file; its clients name it as those of the library's server do.
TEST(AdaptedInputsTest, ANamedInputOfACompiledFileMayHaveAnyNameButNotThatOfAContainer) {
  ModelInfo file;
  file.from_framework = true;
  file.inputs = {spec("features", DataType::kFloat64, {2})};
  EXPECT_EQ(adapt_inputs(file, {{"predict", "FP64", {2, 2}, view_of(kDoubles)}})->views[0].name, "features");
  const auto container = container_of({spec("features", DataType::kFloat64, {2})});
  EXPECT_EQ(adapt_inputs(container, {{"predict", "FP64", {2, 2}, view_of(kDoubles)}})->views[0].name, "predict");
}

TEST(AdaptedInputsTest, ColumnsStandInPlaceOfTheOnlyInput) {
  TensorSpec x = spec("input-0", DataType::kFloat64, {2});
  const std::vector<double> a{1, 2}, b{3, 4};
  const std::vector<int64_t> c{5, 6};
  const auto in_order =
      adapt_inputs(container_of({x}), {{"p", "FP64", {2, 1}, view_of(a)}, {"q", "INT64", {2}, view_of(c)}});
  ASSERT_TRUE(in_order.ok()) << in_order.status().message();
  EXPECT_EQ(in_order->views[0].shape, (Shape{2, 2}));
  EXPECT_THAT(numbers_of<double>(in_order->views[0]), ElementsAre(1, 5, 2, 6));
  x.labels = {"first", "second"};
  const auto by_name =
      adapt_inputs(container_of({x}), {{"second", "FP64", {2}, view_of(a)}, {"first", "FP64", {2}, view_of(b)}});
  ASSERT_TRUE(by_name.ok()) << by_name.status().message();
  EXPECT_THAT(numbers_of<double>(by_name->views[0]), ElementsAre(3, 1, 4, 2));
  EXPECT_THAT(refusal_of(container_of({x}), {{"second", "FP64", {2}, view_of(a)}, {"third", "FP64", {2}, view_of(b)}}),
              AllOf(HasSubstr("'third'"), HasSubstr("first is 'first'")));
  EXPECT_THAT(refusal_of(container_of({x}), {{"first", "FP64", {2}, view_of(a)}, {"first", "FP64", {2}, view_of(b)}}),
              HasSubstr("sent twice"));
  EXPECT_THAT(refusal_of(container_of({x}), {{"first", "FP64", {2}, view_of(a)}, {"second", "FP64", {1}, view_of(b)}}),
              HasSubstr("a column of 2 rows is expected"));
  EXPECT_THAT(refusal_of(container_of({x}), {{"first", "FP64", {2}, view_of(a)}, {"second", "BYTES", {2}, view_of(b)}}),
              HasSubstr("is BYTES; a column of numbers is expected"));
}

TEST(AdaptedInputsTest, SeveralInputsCountByTheirOrderIfNoneHasAName) {
  const auto info = container_of({spec("input-0", DataType::kFloat64, {1}), spec("b", DataType::kFloat64, {1})});
  const std::vector<double> one{1}, two{2};
  const auto adapted = adapt_inputs(info, {{"0", "FP64", {1}, view_of(one)}, {"1", "FP64", {1, 1}, view_of(two)}});
  ASSERT_TRUE(adapted.ok());
  EXPECT_EQ(adapted->views[0].name, "input-0");
  EXPECT_EQ(adapted->views[0].shape, (Shape{1, 1})) << "[rows] becomes a column";
  EXPECT_EQ(adapted->views[1].name, "b");
  const auto mixed = adapt_inputs(info, {{"b", "FP64", {1}, view_of(one)}, {"c", "FP64", {1}, view_of(two)}});
  EXPECT_EQ(mixed->views[1].name, "c") << "left to the check of names";
}

}  // namespace
}  // namespace foliot
