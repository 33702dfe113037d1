// What linear models, support vector machines and encoders of ai.onnx.ml refuse.
#include <gtest/gtest.h>

#include "engine/compiler/test_model.h"
#include "engine/compiler/translate.h"

namespace foliot {
namespace {

using ClassicAttributes = std::map<std::string, OnnxAttribute, std::less<>>;

Status translate_classic(const char* type, ClassicAttributes attributes, DataType input = DataType::kFloat32) {
  TestModel model;
  model.input("x", {fixed(2), fixed(3)}, input).output("y").node(type, {"x"}, "y", std::move(attributes));
  model.model().nodes[0].domain = "ai.onnx.ml";
  ConstantPool pool;
  return translate(model.model(), {{2, 3}}, {}, pool).status();
}

void expect_message(const Status& status, const char* part) {
  EXPECT_FALSE(status.ok()) << part;
  EXPECT_NE(status.message().find(part), std::string::npos) << status.message();
  EXPECT_NE(status.message().find("node_y"), std::string::npos) << status.message();
}

TEST(LinearModelTest, NamesListsOfTheWrongLength) {
  using Floats = std::vector<float>;
  using Numbers = std::vector<int64_t>;
  expect_message(translate_classic("LinearRegressor", {{"coefficients", Floats(4)}}),
                 "'coefficients' has 4 values instead of 3, for 3 features and 1 scores");
  expect_message(translate_classic("LinearRegressor", {{"coefficients", Floats(3)}, {"intercepts", Floats(2)}}),
                 "'intercepts' has 2 values instead of 1");
  expect_message(translate_classic("LinearRegressor", {{"targets", int64_t{0}}}), "targets is 0");
  expect_message(translate_classic("LinearClassifier", {{"coefficients", Floats(9)}}), "'classlabels_ints'");
  expect_message(translate_classic("LinearClassifier", {{"coefficients", Floats(7)}, {"classlabels_ints", Numbers(3)}}),
                 "'coefficients' has 7 values instead of 9");
  expect_message(translate_classic("Scaler", {{"offset", Floats(2)}, {"scale", Floats(3)}}), "'offset' has 2 values");
  expect_message(translate_classic("Imputer", {{"imputed_value_floats", Floats(2)}}), "has 2 values for 3 features");
  expect_message(translate_classic("OneHotEncoder", {}), "'cats_int64s' is missing");
  expect_message(translate_classic("Normalizer", {{"norm", std::string("L3")}}), "'L3'");
  expect_message(translate_classic("SVMRegressor", {{"coefficients", Floats(3)}}), "'rho' has 0 values");
  expect_message(translate_classic("SVMRegressor", {{"rho", Floats(1)}, {"n_supports", int64_t{2}}}),
                 "'support_vectors' has 0 values instead of 6");
  expect_message(translate_classic("SVMRegressor", {{"rho", Floats(1)}, {"kernel_type", std::string("CUBE")}}),
                 "'CUBE'");
  expect_message(
      translate_classic("SVMClassifier", {{"vectors_per_class", Numbers{1, -1}}, {"classlabels_ints", Numbers{0, 1}}}),
      "'vectors_per_class' has -1");
  expect_message(translate_classic("LabelEncoder", {{"keys_int64s", Numbers{1, 2}}, {"values_floats", Floats{1}}},
                                   DataType::kInt64),
                 "2 keys and 1 values");
}

TEST(LinearModelTest, RefusesTheProbitOfASingleScore) {
  ClassicAttributes attributes{{"coefficients", std::vector<float>(3)},
                               {"classlabels_ints", std::vector<int64_t>{0, 1}},
                               {"post_transform", std::string("PROBIT")}};
  expect_message(translate_classic("LinearClassifier", attributes), "PROBIT of a single score");
}

TEST(LinearModelTest, RefusesStringsAndMaps) {
  using Names = std::vector<std::string>;
  expect_message(translate_classic("OneHotEncoder", {{"cats_strings", Names{"a"}}}), "strings");
  expect_message(translate_classic("LabelEncoder", {{"keys_strings", Names{"a"}}}), "strings");
  expect_message(translate_classic("ZipMap", {}), "maps");
}

}  // namespace
}  // namespace foliot
