#include "engine/container/container_description.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

namespace foliot {
namespace {

std::string description(const std::string& inputs, const std::string& more = "") {
  return R"({"protocol": 1, "inputs": [)" + inputs +
         R"(], "outputs": [{"name": "y", "datatype": "INT64", "shape": []}])" + more + "}";
}
std::string tensor(const std::string& name = "x", const std::string& type = "FP32",
                   const std::string& shape = "[784]") {
  return fmt::format(R"({{"name": "{}", "datatype": "{}", "shape": {}}})", name, type, shape);
}

void expect_wrong(const std::string& json, const std::string& part) {
  const auto parsed = parse_description(json);
  ASSERT_FALSE(parsed.ok()) << json;
  EXPECT_EQ(parsed.status().code(), StatusCode::kInvalidArgument);
  EXPECT_NE(parsed.status().message().find(part), std::string::npos) << parsed.status().message();
}

TEST(ContainerDescriptionTest, ReadsWhatAContainerSends) {
  const auto parsed =
      parse_description(description(tensor() + "," + tensor("z", "BOOL", "[2,0]"), R"(, "batch_size_max": 8)"));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  ASSERT_EQ(parsed->inputs.size(), 2u);
  EXPECT_EQ(parsed->inputs[0].name, "x");
  EXPECT_EQ(parsed->inputs[0].type, DataType::kFloat32);
  EXPECT_EQ(parsed->inputs[0].shape, (Shape{784}));
  EXPECT_EQ(parsed->inputs[0].dimension_names, (std::vector<std::string>{""}));
  EXPECT_EQ(parsed->inputs[1].shape, (Shape{2, 0}));
  EXPECT_EQ(parsed->outputs[0].type, DataType::kInt64);
  EXPECT_TRUE(parsed->outputs[0].shape.empty());
  EXPECT_EQ(parsed->batch_size_max, 8u);
  EXPECT_EQ(parse_description(description(tensor()))->batch_size_max, 64u);
  EXPECT_EQ(parse_description(description(tensor()), 128)->batch_size_max, 128u);
  EXPECT_EQ(parse_description(description(tensor(), R"(, "batch_size_max": 256)"), 128)->batch_size_max, 256u);
}

TEST(ContainerDescriptionTest, TensorsBeginAtMultiplesOfTheAlignment) {
  const auto parsed = parse_description(description(tensor("a", "UINT8", "[3]") + "," + tensor("b", "FP64", "[9]")));
  ASSERT_TRUE(parsed.ok());
  EXPECT_EQ(parsed->input_bytes(1), 64u + 128u);
  EXPECT_EQ(parsed->input_bytes(22), 128u + 1600u);
  EXPECT_EQ(parsed->output_bytes(1), 64u);
  EXPECT_EQ(parsed->output_bytes(9), 128u);
}

TEST(ContainerDescriptionTest, ExamplesAreWrittenInPlaceOfZeros) {
  const auto parsed = parse_description(
      description(R"({"name": "x", "datatype": "FP64", "shape": [2], "example": [1.5, 2], "columns": ["a", "b"]},)"
                  R"({"name": "t", "datatype": "BYTES", "shape": [1], "string_bytes_max": 20, "example": ["Bern"]},)" +
                  tensor("z", "FP32", "[1]")));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->inputs[0].labels, (std::vector<std::string>{"a", "b"}));
  std::vector<std::byte> memory(parsed->input_bytes(2), std::byte{7});
  write_examples(*parsed, 2, memory);
  const double* const numbers = reinterpret_cast<const double*>(memory.data());
  EXPECT_EQ((std::vector<double>(numbers, numbers + 4)), (std::vector<double>{1.5, 2, 1.5, 2}));
  const char* const texts = reinterpret_cast<const char*>(memory.data()) + 64;
  EXPECT_EQ(std::string(texts, 8), std::string("\4\0\0\0Bern", 8));
  EXPECT_EQ(std::string(texts + 24, 8), std::string("\4\0\0\0Bern", 8)) << "of the second row";
  EXPECT_EQ(memory[128], std::byte{0});
}

TEST(ContainerDescriptionTest, ExamplesAndColumnsMustFit) {
  expect_wrong(description(R"({"name": "x", "datatype": "FP64", "shape": [2], "example": [1]})"),
               "has 1 elements; a row has 2");
  expect_wrong(description(R"({"name": "x", "datatype": "FP64", "shape": [1], "example": ["a"]})"),
               "must be of numbers");
  expect_wrong(description(R"({"name": "x", "datatype": "INT64", "shape": [1], "example": [1]})"),
               "is allowed of strings");
  expect_wrong(
      description(R"({"name": "x", "datatype": "BYTES", "shape": [1], "string_bytes_max": 3, "example": ["Bern"]})"),
      "has 4 bytes, and a row has 3 at most");
  expect_wrong(description(R"({"name": "x", "datatype": "FP64", "shape": [2], "columns": ["a"]})"),
               "1 'columns' and the shape [2]");
}

TEST(ContainerDescriptionTest, RowsThatVaryHaveABound) {
  const auto parsed = parse_description(
      description(R"({"name": "t", "datatype": "BYTES", "shape": [2], "string_bytes_max": 100},)"
                  R"({"name": "v", "datatype": "FP32", "shape": [-1, 3], "shape_max": [7, 3]},)"
                  R"({"name": "w", "datatype": "BYTES", "shape": [-1], "shape_max": [4], "string_bytes_max": 10})"));
  ASSERT_TRUE(parsed.ok()) << parsed.status().message();
  EXPECT_EQ(parsed->inputs[0].bound, (RowBound{{2}, 100}));
  EXPECT_EQ(parsed->inputs[1].bound, (RowBound{{7, 3}, 0}));
  EXPECT_EQ(parsed->inputs[1].shape, (Shape{-1, 3}));
  EXPECT_EQ(parsed->inputs[2].bound, (RowBound{{4}, 10}));
  EXPECT_FALSE(parsed->outputs[0].bound);
  EXPECT_EQ(parsed->input_bytes(1), 128u + 128u + 64u);  // 108, 92 and 34, in eights
  std::vector<std::byte> memory(parsed->input_bytes(2), std::byte{0xff});
  write_examples(*parsed, 2, memory);
  EXPECT_EQ(memory[0], std::byte{0});
  EXPECT_EQ(memory[256], std::byte{7});       // the second tensor's extent, of the first row
  EXPECT_EQ(memory[256 + 96], std::byte{7});  // and of the second
  EXPECT_EQ(memory[256 + 192], std::byte{4});
}

TEST(ContainerDescriptionTest, BoundsThatDoNotFitAreNamed) {
  expect_wrong(description(tensor("x", "BYTES", "[]")), "'x' BYTES [] has no 'string_bytes_max'");
  expect_wrong(description(tensor("x", "FP32", "[-1]")), "'x' FP32 [-1] has no 'shape_max'");
  expect_wrong(description(R"({"name": "x", "datatype": "FP32", "shape": [3], "shape_max": [3]})"),
               "'x' FP32 [3] cannot have a 'shape_max'");
  expect_wrong(description(R"({"name": "x", "datatype": "FP32", "shape": [], "string_bytes_max": 3})"),
               "cannot have a 'string_bytes_max'");
  expect_wrong(description(R"({"name": "x", "datatype": "FP32", "shape": [-1, 3], "shape_max": [4, 2]})"),
               "has a bound of another shape");
  expect_wrong(description(R"({"name": "x", "datatype": "FP32", "shape": [-1], "shape_max": [4, 2]})"),
               "has a bound of another rank");
  expect_wrong(description(R"({"name": "x", "datatype": "BYTES", "shape": [], "string_bytes_max": -1})"),
               "is -1; 0 to 67108864 are allowed");
  expect_wrong(description(R"({"name": "x", "datatype": "BYTES", "shape": [1], "string_bytes_max": 67108864})"),
               "too large");
}

TEST(ContainerDescriptionTest, WhatIsMissingOrUnknownIsNamed) {
  expect_wrong("", "not valid JSON");
  expect_wrong("[]", "must be an object");
  expect_wrong(R"({"inputs": [], "outputs": []})", "'inputs' is empty; 1 to 64 tensors");
  expect_wrong(R"({"protocol": 1})", "no 'inputs'");
  expect_wrong(R"({"protocol": 2})", "'protocol' is 2; this server has 1");
  expect_wrong(R"({"protocol": "1"})", "'protocol' must be a whole number");
  expect_wrong(description(tensor(), R"(, "batch": 1)"), "unknown key 'batch'");
  expect_wrong(description(R"({"name": "x", "dtype": "FP32"})"), "unknown key 'dtype' in one of 'inputs'");
  expect_wrong(description(R"({"name": "x", "datatype": "FP32"})"), "no 'shape'");
  expect_wrong(description(R"({"name": "x", "name": "y"})"), "'name' of one of 'inputs' stands there twice");
  expect_wrong(description("7"), "each of 'inputs' must be an object");
}

TEST(ContainerDescriptionTest, NamesAndTypesAreChecked) {
  expect_wrong(description(tensor("")), "has 0 bytes; 1 to 255");
  expect_wrong(description(tensor(std::string(256, 'x'))), "has 256 bytes");
  EXPECT_TRUE(parse_description(description(tensor(std::string(255, 'x')))).ok());
  expect_wrong(description(tensor("a\\u001bb")), "is not printable text");
  expect_wrong(description(tensor() + "," + tensor()), "'inputs' has 'x' twice");
  for (const char* type : {"BF16", "STRING", "fp32", ""}) expect_wrong(description(tensor("x", type)), "is not one of");
}

TEST(ContainerDescriptionTest, SizesAreLimited) {
  expect_wrong(description(tensor("x", "FP32", "[-2]")), "has -2; dimensions are -1 to");
  expect_wrong(description(tensor("x", "FP32", "[1.5]")), "must be a whole number");
  expect_wrong(description(tensor("x", "FP32", "[9223372036854775807]")), "dimensions are");
  expect_wrong(description(tensor("x", "FP32", "[16777216, 2]")), "more than 67108864 bytes");
  expect_wrong(description(tensor("x", "FP32", "[67108864, 67108864, 1024]")), "more than 67108864 bytes");
  EXPECT_TRUE(parse_description(description(tensor("x", "FP32", "[16777216]"))).ok());
  EXPECT_TRUE(parse_description(description(tensor("x", "FP32", "[60000000, 60000000, 0]"))).ok());
  expect_wrong(description(tensor("x", "FP32", "[16777216]") + "," + tensor("z")), "'z' [784]");
  std::string ones = "[1";
  for (int i = 0; i < 32; ++i) ones += ",1";
  expect_wrong(description(tensor("x", "FP32", ones + "]")), "more than 32 dimensions");
  std::string many = tensor("x0");
  for (int i = 1; i < 65; ++i) many += "," + tensor(fmt::format("x{}", i), "FP32", "[]");
  expect_wrong(description(many), "more than 64 tensors");
  for (const char* size : {"0", "-1", "257", "5000000000"}) {
    expect_wrong(description(tensor(), fmt::format(R"(, "batch_size_max": {})", size)), "1 to 256 are allowed");
  }
  expect_wrong(std::string(70'000, ' '), "70000 bytes");
}

TEST(ContainerDescriptionTest, LargeRowsMakeSmallBatches) {
  EXPECT_EQ(parse_description(description(tensor("x", "UINT8", "[67108864]")))->batch_size_max, 4u);
  EXPECT_EQ(parse_description(description(tensor("x", "UINT8", "[4194304]")))->batch_size_max, 64u);
  EXPECT_EQ(parse_description(description(tensor("x", "UINT8", "[4194305]")))->batch_size_max, 63u);
}

}  // namespace
}  // namespace foliot
