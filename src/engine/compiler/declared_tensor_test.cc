#include "engine/compiler/declared_tensor.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>
#include <string>
#include <vector>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

DeclaredTensor declare(std::string name, std::optional<DataType> type, std::optional<std::vector<int64_t>> dimensions,
                       bool is_output = false) {
  return {.name = std::move(name),
          .is_output = is_output,
          .type = type,
          .dimensions = std::move(dimensions),
          .where = "config.pbtxt:7"};
}

// x: FP32 [N, 3]; mask: BOOL of any rank; y: INT64 [N].
OnnxModel model_of_two_inputs() {
  OnnxModel model;
  model.inputs = {{.name = "x", .type = DataType::kFloat32, .dimensions = {{{-1, "N"}, {3, ""}}}, .labels = {}},
                  {.name = "mask", .type = DataType::kBool, .dimensions = {}, .labels = {}}};
  model.outputs = {{.name = "y", .type = DataType::kInt64, .dimensions = {{{-1, "N"}}}, .labels = {}}};
  return model;
}

std::string error_of(const std::vector<DeclaredTensor>& declared) {
  return check_declared_tensors(declared, model_of_two_inputs()).message();
}

TEST(DeclaredTensorTest, AgreesWithWhatIsSaidAlike) {
  const DeclaredTensor mask = declare("mask", DataType::kBool, {{5, 5}});
  EXPECT_EQ(error_of({}), "");
  EXPECT_EQ(error_of({declare("x", DataType::kFloat32, {{-1, 3}}), mask}), "");
  EXPECT_EQ(error_of({declare("x", {}, {{4, -1}}), mask}), "") << "what varies on one side";
  EXPECT_EQ(error_of({declare("x", {}, {}), mask, declare("y", DataType::kInt64, {{-1}}, true)}), "");
  EXPECT_EQ(error_of({declare("y", {}, {}, true)}), "") << "no input is declared";
}

TEST(DeclaredTensorTest, NamesBothSidesOfWhatDiffers) {
  EXPECT_THAT(error_of({declare("x", DataType::kFloat64, {})}),
              HasSubstr("config.pbtxt:7: input 'x' is declared as FP64, and the model has it as FP32"));
  EXPECT_THAT(error_of({declare("x", {}, {{-1, 4}})}), HasSubstr("with the shape [-1,4], the batch included, and the "
                                                                 "model has it with [-1,3]"));
  EXPECT_THAT(error_of({declare("x", {}, {{3}})}), HasSubstr("with the shape [3]")) << "of another rank";
  EXPECT_THAT(error_of({declare("z", {}, {})}), HasSubstr("input 'z' is none of the model's, which are 'x', 'mask'"));
  EXPECT_THAT(error_of({declare("x", {}, {}, true)}), HasSubstr("output 'x' is none of the model's, which are 'y'"));
  EXPECT_THAT(error_of({declare("x", {}, {})}), HasSubstr("the model's input 'mask' is not among"));
}

TEST(DeclaredTensorTest, FixedExtentsTakeThePlaceOfOnesThatVary) {
  OnnxModel model;
  model.inputs = {
      {.name = "ids", .type = DataType::kInt64, .dimensions = {{{-1, "N"}, {-1, "length"}, {-1, "k"}}}, .labels = {}},
      {.name = "mask", .type = DataType::kInt64, .dimensions = {{{-1, "N"}, {-1, "length"}}}, .labels = {}},
      {.name = "x", .type = DataType::kFloat32, .dimensions = {{{-1, "N"}, {-1, ""}, {-1, ""}}}, .labels = {}}};
  model.outputs = {
      {.name = "y", .type = DataType::kFloat32, .dimensions = {{{-1, "N"}, {-1, "length"}}}, .labels = {}}};
  fix_declared_extents({declare("ids", {}, {{4, 128, 7}}), declare("x", {}, {{-1, 3, -1}}),
                        declare("mask", {}, {{-1, 64}}), declare("z", {}, {{-1, 5}})},
                       {{"k", {1, 2}}}, model);
  const auto extents = [](const OnnxValueInfo& value) {
    std::vector<int64_t> all;
    for (const OnnxDimension& dimension : *value.dimensions) all.push_back(dimension.value);
    return all;
  };
  EXPECT_THAT(extents(model.inputs[0]), ElementsAre(-1, 128, -1)) << "the batch and buckets stay as they are";
  EXPECT_THAT(extents(model.inputs[1]), ElementsAre(-1, 128)) << "of one symbol";
  EXPECT_THAT(extents(model.inputs[2]), ElementsAre(-1, 3, -1)) << "without a symbol it is the one place";
  EXPECT_THAT(extents(model.outputs[0]), ElementsAre(-1, 128));
  EXPECT_THAT(check_declared_tensors({declare("mask", {}, {{-1, 64}})}, model).message(), HasSubstr("[-1,128]"))
      << "a second extent of it is a contradiction";
}

TEST(DeclaredTensorTest, TheFingerprintHasWhatIsChecked) {
  const std::string one = fingerprint_of({declare("x", DataType::kFloat32, {{-1, 3}})});
  EXPECT_EQ(fingerprint_of({}), "") << "what was compiled before is found";
  EXPECT_NE(fingerprint_of({declare("x", DataType::kFloat64, {{-1, 3}})}), one);
  EXPECT_NE(fingerprint_of({declare("x", DataType::kFloat32, {{-1, 4}})}), one);
  EXPECT_NE(fingerprint_of({declare("x", DataType::kFloat32, {{-1, 3}}, true)}), one);
  DeclaredTensor moved = declare("x", DataType::kFloat32, {{-1, 3}});
  moved.where = "config.pbtxt:8";
  EXPECT_EQ(fingerprint_of({moved}), one);
}

}  // namespace
}  // namespace foliot
