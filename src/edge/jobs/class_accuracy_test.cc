#include "edge/jobs/class_accuracy.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <vector>

#include "edge/jobs/npy_header.h"

namespace foliot {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class ClassAccuracyTest : public testing::Test {
 protected:
  ~ClassAccuracyTest() override { fs::remove_all(root_); }

  template <typename T>
  InputFile file(const std::string& name, DataType type, const Shape& shape, const std::vector<T>& values) {
    std::ofstream out(root_ / name, std::ios::binary);
    out << npy_header(type, shape);
    out.write(reinterpret_cast<const char*>(values.data()), static_cast<std::streamsize>(values.size() * sizeof(T)));
    out.close();
    return InputFile::open(folder_, name).value();
  }
  InputFile labels(const std::vector<int64_t>& values) {
    return file("labels.npy", DataType::kInt64, {static_cast<int64_t>(values.size())}, values);
  }

  const fs::path root_ = fs::path(testing::TempDir()) / fmt::format("foliot_accuracy_{}", ::getpid());
  const JobFolder folder_ = JobFolder::open(root_).value();
};

TEST_F(ClassAccuracyTest, TheLargestElementIsTheClass) {
  const auto scores = file<float>("y.npy", DataType::kFloat32, {4, 3}, {1, 2, 3, 3, 2, 1, 1, 3, 2, -5, -6, -7});
  EXPECT_EQ(*class_accuracy(scores, labels({2, 0, 1, 0})), 1.0);
  EXPECT_EQ(*class_accuracy(scores, labels({2, 0, 1, 1})), 0.75);
  EXPECT_EQ(*class_accuracy(scores, labels({0, 1, 2, 2})), 0.0);
  const auto deep = file<double>("y.npy", DataType::kFloat64, {1, 2, 2}, {0, 0, 0, 1});
  EXPECT_EQ(*class_accuracy(deep, labels({3})), 1.0);
}

TEST_F(ClassAccuracyTest, AWholeNumberIsTheClass) {
  EXPECT_EQ(*class_accuracy(file<int64_t>("y.npy", DataType::kInt64, {2}, {7, 8}), labels({7, 9})), 0.5);
  EXPECT_EQ(*class_accuracy(file<int32_t>("y.npy", DataType::kInt32, {2, 1}, {7, 8}), labels({7, 8})), 1.0);
}

TEST_F(ClassAccuracyTest, WhatNamesNoClassIsAnError) {
  const auto numbers = file<float>("y.npy", DataType::kFloat32, {2}, {1, 2});
  EXPECT_THAT(class_accuracy(numbers, labels({1, 2})).status().message(), HasSubstr("names no class"));
  const auto halves = file<uint16_t>("y.npy", DataType::kFloat16, {1, 2}, {1, 2});
  EXPECT_THAT(class_accuracy(halves, labels({1})).status().message(), HasSubstr("an output of FP16 and shape [2]"));
  const auto scores = file<float>("y.npy", DataType::kFloat32, {1, 2}, {1, 2});
  EXPECT_EQ(class_accuracy(scores, labels({1, 1})).status().message(), "there are 2 labels for 1 rows of answers");
  const auto wrong = file<float>("w.npy", DataType::kFloat32, {1}, {1});
  EXPECT_THAT(class_accuracy(scores, wrong).status().message(), HasSubstr("labels are FP32"));
}

}  // namespace
}  // namespace foliot
