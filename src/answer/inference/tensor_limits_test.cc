#include "answer/inference/tensor_limits.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

namespace foliot {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;

class TensorLimitsTest : public ::testing::Test {
 protected:
  TensorLimitsTest() {
    query_.inputs = {{.name = "image", .datatype = "UINT8", .shape = {1, 2, 2}, .bytes = bytes_}};
    query_.outputs = {"label"};
  }
  std::string wrong(const TensorLimits& limits) const { return check(limits, query_).message(); }

  std::vector<std::byte> bytes_ = std::vector<std::byte>(4096);
  Query query_;
};

TEST_F(TensorLimitsTest, WhatIsWithinThemPasses) {
  EXPECT_TRUE(check({}, query_).ok());
  EXPECT_TRUE(check({.tensors_max = 1, .rank_max = 3, .tensor_bytes_max = 4096}, query_).ok());
}

TEST_F(TensorLimitsTest, NamesTheLimitAndItsFlag) {
  EXPECT_THAT(wrong({.rank_max = 2}),
              AllOf(HasSubstr("'image' has 3"), HasSubstr("2 are"), HasSubstr("--tensor-rank-max")));
  EXPECT_THAT(wrong({.tensor_bytes_max = 2048}),
              AllOf(HasSubstr("'image' has 4.0 KiB"), HasSubstr("2.0 KiB"), HasSubstr("--tensor-max")));
  query_.inputs.resize(3);
  EXPECT_THAT(wrong({.tensors_max = 2}), AllOf(HasSubstr("3 inputs"), HasSubstr("2 are"), HasSubstr("--tensors-max")));
  query_.inputs.clear();
  query_.outputs.resize(3);
  EXPECT_THAT(wrong({.tensors_max = 2}), AllOf(HasSubstr("3 outputs"), HasSubstr("--tensors-max")));
}

}  // namespace
}  // namespace foliot
