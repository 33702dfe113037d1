#include "edge/jobs/offline_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace foliot {
namespace {

using ::testing::HasSubstr;

TEST(OfflineRequest, ReadsAllOfIt) {
  const Result<OfflineRequest> request = OfflineRequest::parse(
      R"({"task":"digits","inputs":{"x":"a.npy","y":"b/c.npy"},"output":"answers","accuracy":0.9,"cost":0.01})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->name, "digits");
  EXPECT_TRUE(request->is_task);
  EXPECT_EQ(request->inputs, (std::map<std::string, std::string>{{"x", "a.npy"}, {"y", "b/c.npy"}}));
  EXPECT_EQ(request->output, "answers");
  EXPECT_EQ(request->accuracy, 0.9);
  EXPECT_EQ(request->cost, 0.01);
  EXPECT_FALSE(OfflineRequest::parse(R"({"model":"m","inputs":{"x":"a.npy"},"output":"o"})")->is_task);
}

TEST(OfflineRequest, WhatIsWrongIsNamed) {
  const auto error = [](const std::string& members) {
    return OfflineRequest::parse(R"({"inputs":{"x":"a.npy"},"output":"o")" + members + "}").status().message();
  };
  EXPECT_THAT(error(""), HasSubstr("'task' or 'model' is missing"));
  EXPECT_THAT(error(R"(,"task":"t","model":"m")"), HasSubstr("not both"));
  EXPECT_THAT(error(R"(,"task":7)"), HasSubstr("'task' must be a text"));
  EXPECT_THAT(error(R"(,"task":"t","accuracy":1.5)"), HasSubstr("'accuracy' must be a number from 0 to 1, not 1.5"));
  EXPECT_THAT(error(R"(,"task":"t","accuracy":-0.1)"), HasSubstr("'accuracy' must be"));
  EXPECT_THAT(error(R"(,"task":"t","accuracy":"high")"), HasSubstr("not \"high\""));
  EXPECT_THAT(error(R"(,"task":"t","cost":0)"), HasSubstr("'cost' must be a number of dollars above 0"));
  EXPECT_THAT(error(R"(,"model":"m","accuracy":0.5)"), HasSubstr("'accuracy' is for tasks"));
  EXPECT_THAT(error(R"(,"model":"m","outputs":["y"])"), HasSubstr("'outputs' is unknown"));
  EXPECT_THAT(OfflineRequest::parse(R"({"model":"m","output":"o"})").status().message(),
              HasSubstr("'inputs' is missing"));
  EXPECT_THAT(OfflineRequest::parse(R"({"model":"m","inputs":{},"output":"o"})").status().message(),
              HasSubstr("1 to 256"));
  EXPECT_THAT(OfflineRequest::parse(R"({"model":"m","inputs":{"x":5},"output":"o"})").status().message(),
              HasSubstr("'inputs.x'"));
  EXPECT_THAT(OfflineRequest::parse(R"({"model":"m","inputs":{"x":"a"}})").status().message(),
              HasSubstr("'output' is missing"));
}

}  // namespace
}  // namespace foliot
