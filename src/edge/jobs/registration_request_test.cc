#include "edge/jobs/registration_request.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(RegistrationRequest, WhatIsLeftOutHasDefaults) {
  const auto request = RegistrationRequest::parse(R"({"task":"digits","file":"d.onnx","validation":"d.npz"})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->name, "digits");
  EXPECT_THAT(request->models(), ElementsAre("digits-float32", "digits-bfloat16", "digits-int8"));
  EXPECT_THAT(request->batch_sizes, ElementsAre(1, 2, 4, 8));
  EXPECT_EQ(request->labels, "labels");
  EXPECT_FALSE(request->accuracy);
}

TEST(RegistrationRequest, HasAllMembers) {
  const auto request = RegistrationRequest::parse(
      R"({"task":"digits","name":"net","file":"a/d.onnx","validation":"d.npz","precisions":["int8"],)"
      R"("batch_sizes":[1,16],"labels":"y","output":"scores","calibration":0.5,"accuracy":0.9,"default_slo":"20ms"})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_THAT(request->models(), ElementsAre("net-int8"));
  EXPECT_THAT(request->batch_sizes, ElementsAre(1, 16));
  EXPECT_EQ(request->output, "scores");
  EXPECT_EQ(request->calibration, 0.5);
  EXPECT_EQ(request->accuracy, 0.9);
  EXPECT_EQ(request->default_slo, "20ms");
}

TEST(RegistrationRequest, ErrorsNameMemberAndValue) {
  const auto error = [](const std::string& more) {
    return RegistrationRequest::parse(
               fmt::format(R"({{"task":"digits","file":"d.onnx","validation":"d.npz"{}}})", more))
        .status()
        .message();
  };
  EXPECT_EQ(error(""), "");
  EXPECT_THAT(error(R"(,"accuracy":1.5)"), HasSubstr("'accuracy' must be a number from 0 to 1, not 1.5"));
  EXPECT_THAT(error(R"(,"calibration":1)"), HasSubstr("'calibration' must be a number between 0 and 1, not 1"));
  EXPECT_THAT(error(R"(,"precisions":["int4"])"), HasSubstr("'precisions' must be a list of"));
  EXPECT_THAT(error(R"(,"precisions":["int8","int8"])"), HasSubstr("each once at most"));
  EXPECT_THAT(error(R"(,"precisions":[])"), HasSubstr("'precisions'"));
  EXPECT_THAT(error(R"(,"batch_sizes":[4,2])"), HasSubstr("ascending, not [4,2]"));
  EXPECT_THAT(error(R"(,"batch_sizes":[0])"), HasSubstr("'batch_sizes'"));
  EXPECT_THAT(error(R"(,"default_slo":"soon")"), HasSubstr("'default_slo' must be a duration above 0"));
  EXPECT_THAT(error(R"(,"sizes":3)"), HasSubstr("'sizes' is unknown"));
  EXPECT_THAT(error(R"(,"name":".hidden")"), HasSubstr("'name' must have 1 to 64"));
  EXPECT_THAT(error(R"(,"name":"a/b")"), HasSubstr("'name' must have 1 to 64"));
  EXPECT_THAT(RegistrationRequest::parse("[]").status().message(), HasSubstr("must be a JSON object"));
  EXPECT_THAT(RegistrationRequest::parse(R"({"task":"t","file":"m.onnx"})").status().message(),
              HasSubstr("'validation' is missing"));
  EXPECT_THAT(RegistrationRequest::parse(R"({"task":"t","file":"m.pt","validation":"v.npz"})").status().message(),
              HasSubstr("ends in .onnx, not 'm.pt'"));
  EXPECT_THAT(RegistrationRequest::parse(R"({"task":"t-int8","name":"t","file":"m.onnx","validation":"v.npz"})")
                  .status()
                  .message(),
              HasSubstr("'t-int8' would name both"));
}

}  // namespace
}  // namespace foliot
