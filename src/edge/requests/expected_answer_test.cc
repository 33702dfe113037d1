#include "edge/requests/expected_answer.h"

#include <gtest/gtest.h>

#include <memory>
#include <string_view>

namespace foliot {
namespace {

TEST(ExpectedAnswerTest, CountsTheOutputsThatAreAskedForByRow) {
  ModelInfo info{.id = ModelId(0), .name = "wide", .version = "1"};
  info.outputs = {{.name = "large", .type = DataType::kFloat32, .shape = {100, -1}},
                  {.name = "small", .type = DataType::kInt64, .shape = {2}}};
  info.batching = true;
  Catalog catalog;
  catalog.put({.name = "wide",
               .version = "1",
               .state = ModelState::kReady,
               .reason = "",
               .info = std::make_shared<const ModelInfo>(info)});
  const ServedNames names(catalog);
  const auto all = [](std::string_view) { return true; };
  const auto small = [](std::string_view output) { return output == "small"; };
  EXPECT_EQ(expected_answer_bytes(names, "wide", "", 1, all), 400u + 16);
  EXPECT_EQ(expected_answer_bytes(names, "wide", "", 8, all), 8u * (400 + 16));
  EXPECT_EQ(expected_answer_bytes(names, "wide", "", 8, small), 8u * 16);
  EXPECT_EQ(expected_answer_bytes(names, "wide", "", -5, small), 16u) << "an extent of a client's own";
  EXPECT_EQ(expected_answer_bytes(names, "absent", "", 8, all), 1u);
}

}  // namespace
}  // namespace foliot
