#include "answer/selection/combiner.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "answer/selection/tensor_values.h"

namespace foliot {
namespace {

using ::testing::DoubleNear;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

// One output of `rows` rows.
Prediction prediction_of(DataType type, std::vector<double> values, int64_t rows = 1) {
  const auto count = static_cast<int64_t>(values.size());
  Shape shape{rows};
  if (count != rows) shape.push_back(count / rows);
  return {{{{"y", type, {count / rows}, {""}}, shape, false, from_doubles(type, values)}}};
}
Prediction labels(std::vector<double> values) {
  const auto rows = static_cast<int64_t>(values.size());
  return prediction_of(DataType::kInt64, std::move(values), rows);
}
Prediction numbers(std::vector<double> values, int64_t rows = 1) {
  return prediction_of(DataType::kFloat32, std::move(values), rows);
}
std::vector<double> values_of(const Combination& combination) {
  const Prediction::Output& output = combination.prediction.outputs.front();
  return to_doubles(output.spec.type, output.bytes);
}

TEST(CombinerTest, LabelsAreElectedByWeightRowByRow) {
  const Prediction a = labels({7, 1});
  const Prediction b = labels({3, 1});
  const Prediction c = labels({3, 2});
  const Combination equal = combine({}, true, std::vector<MemberAnswer>{{1, &a}, {1, &b}, {1, &c}});
  EXPECT_THAT(values_of(equal), ElementsAre(3, 1));
  EXPECT_THAT(equal.confidence, ElementsAre(DoubleNear(2.0 / 3, 1e-9), DoubleNear(2.0 / 3, 1e-9)));
  const Combination heavy = combine({}, true, std::vector<MemberAnswer>{{0.6, &a}, {0.2, &b}, {0.2, &c}});
  EXPECT_THAT(values_of(heavy), ElementsAre(7, 1));
  EXPECT_NEAR(heavy.confidence[0], 1.0 / 3, 1e-9) << "models count, not weights";
}

TEST(CombinerTest, OfEqualVotesTheFirstModelWins) {
  const Prediction a = labels({7});
  const Prediction b = labels({3});
  EXPECT_THAT(values_of(combine({}, true, std::vector<MemberAnswer>{{0.5, &a}, {0.5, &b}})), ElementsAre(7));
}

TEST(CombinerTest, NumbersAreWeightedMeans) {
  const Prediction a = numbers({1, 10});
  const Prediction b = numbers({2, 20});
  const Combination combined = combine({}, true, std::vector<MemberAnswer>{{0.75, &a}, {0.25, &b}});
  EXPECT_THAT(values_of(combined), ElementsAre(1.25, 12.5));
  EXPECT_THAT(combined.confidence, ElementsAre(0.0));
  EXPECT_THAT(combine({.tolerance = 3}, true, std::vector<MemberAnswer>{{0.75, &a}, {0.25, &b}}).confidence,
              ElementsAre(0.5));
}

TEST(CombinerTest, RowsOfClassesAgreeByTheirLargest) {
  const Prediction a = numbers({0.9, 0.1, 0.2, 0.8}, 2);
  const Prediction b = numbers({0.6, 0.4, 0.7, 0.3}, 2);
  const Combination combined = combine({.classes = true}, true, std::vector<MemberAnswer>{{0.5, &a}, {0.5, &b}});
  EXPECT_THAT(combined.confidence, ElementsAre(1.0, 0.5));
}

TEST(CombinerTest, MissingVotesDoNotCountAndDoNotAgree) {
  const Prediction a = labels({7});
  const Combination combined = combine({}, true, std::vector<MemberAnswer>{{0.1, &a}, {0.9, nullptr}});
  EXPECT_THAT(values_of(combined), ElementsAre(7));
  EXPECT_THAT(combined.confidence, ElementsAre(0.5));
}

TEST(CombinerTest, MissingNumbersAreTheModelsMean) {
  RunningMeans means;
  means.add(numbers({4, 2, 6}, 3), 3);
  const Prediction a = numbers({0, 1}, 2);
  const Combination combined = combine({}, true, std::vector<MemberAnswer>{{0.5, &a}, {0.5, nullptr, &means}});
  EXPECT_THAT(values_of(combined), ElementsAre(2, 2.5)) << "4 is the mean";
  const RunningMeans unknown;
  EXPECT_THAT(values_of(combine({}, true, std::vector<MemberAnswer>{{0.5, &a}, {0.5, nullptr, &unknown}})),
              ElementsAre(0, 1));
}

TEST(CombinerTest, WhatIsNotFiniteIsLeftOut) {
  const Prediction a = numbers({NAN, NAN});
  const Prediction b = numbers({3, NAN});
  const std::vector<double> values = values_of(combine({}, true, std::vector<MemberAnswer>{{0.5, &a}, {0.5, &b}}));
  EXPECT_EQ(values[0], 3);
  EXPECT_TRUE(std::isnan(values[1]));
  RunningMeans means;
  means.add(a, 1);
  EXPECT_EQ(means.find("y", 2), nullptr);
}

TEST(CombinerTest, AnswersOfAnotherShapeAreAsIfMissing) {
  const Prediction a = labels({7});
  const Prediction b = labels({7, 7});
  EXPECT_THAT(combine({}, true, std::vector<MemberAnswer>{{0.5, &a}, {0.5, &b}}).confidence, ElementsAre(0.5));
}

TEST(CombinerTest, OneModelsAnswerIsTheResultWhateverItsType) {
  Prediction a = numbers({1});
  a.outputs[0].spec.type = DataType::kFloat16;
  a.outputs[0].bytes = "ab";
  const Combination combined = combine({}, true, std::vector<MemberAnswer>{{0, &a}});
  EXPECT_EQ(combined.prediction.outputs[0].bytes, "ab");
  EXPECT_THAT(combined.confidence, ElementsAre(1.0));
  EXPECT_FALSE(can_combine(a.outputs[0].spec));
}

TEST(CombinerTest, LossesAreSharesOfWrongLabels) {
  const Prediction a = labels({7, 3, 1, 1});
  EXPECT_EQ(*loss_of({}, a.outputs[0], std::vector<double>{7, 3, 1, 2}), 0.25);
  EXPECT_THAT(loss_of({}, a.outputs[0], std::vector<double>{7}).status().message(),
              HasSubstr("has 1 values; output 'y' of the call needs 4"));
  EXPECT_FALSE(loss_of({}, a.outputs[0], std::vector<double>{7, 3, 1, NAN}).ok());
}

TEST(CombinerTest, LossesOfNumbersAreDifferences) {
  const Prediction a = numbers({1, 2});
  EXPECT_EQ(*loss_of({.loss_scale = 10}, a.outputs[0], std::vector<double>{3, 100}), 0.6);
  EXPECT_EQ(*loss_of({}, numbers({NAN}).outputs[0], std::vector<double>{3}), 1);
}

TEST(CombinerTest, LossesOfClassesAreWrongRows) {
  const Prediction a = numbers({0.9, 0.1, 0.2, 0.8}, 2);
  EXPECT_EQ(*loss_of({.classes = true}, a.outputs[0], std::vector<double>{0, 0}), 0.5);
}

TEST(TensorValuesTest, LabelsAreClipped) {
  EXPECT_THAT(to_doubles(DataType::kInt8, from_doubles(DataType::kInt8, std::vector<double>{-3, 300, -300, NAN})),
              ElementsAre(-3, 127, -128, 0));
  EXPECT_EQ(from_doubles(DataType::kUint64, std::vector<double>{1e300}), std::string(8, '\xff'));
}

}  // namespace
}  // namespace foliot
