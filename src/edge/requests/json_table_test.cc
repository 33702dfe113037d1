#include "edge/requests/json_table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <memory>

#include "edge/requests/json_request.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

class JsonTableTest : public ::testing::Test {
 protected:
  // a [1], b [2], as ONNX exports of tables have them: a column each.
  static std::shared_ptr<ModelInfo> pair() {
    auto info = std::make_shared<ModelInfo>();
    info->name = "pair";
    info->inputs = {{"a", DataType::kInt64, {1}, {""}}, {"b", DataType::kFloat32, {2}, {""}}};
    return info;
  }
  static std::shared_ptr<ModelInfo> single(Shape shape, DataType type = DataType::kFloat32) {
    auto info = std::make_shared<ModelInfo>();
    info->name = "single";
    info->inputs = {{"x", type, std::move(shape), {}}};
    return info;
  }
  Result<JsonRequest> decode(const std::shared_ptr<ModelInfo>& model, std::string body,
                             TableForm form = TableForm::kInvocations) {
    body_ = std::move(body);
    return decoder_.decode_table(body_, form, model);
  }
  std::string error_of(const std::shared_ptr<ModelInfo>& model, std::string body,
                       TableForm form = TableForm::kInvocations) {
    const auto request = decode(model, std::move(body), form);
    EXPECT_EQ(request.status().code(), StatusCode::kInvalidArgument);
    return request.status().message();
  }
  template <typename T>
  static std::vector<T> values(const TensorView& input) {
    std::vector<T> all(input.bytes.size() / sizeof(T));
    std::memcpy(all.data(), input.bytes.data(), input.bytes.size());
    return all;
  }
  void expect_pair(std::string body) {
    const auto request = decode(pair(), body);
    ASSERT_TRUE(request.ok()) << request.status().message() << " of " << body;
    const std::vector<TensorView>& inputs = request->query.inputs;
    ASSERT_EQ(inputs.size(), 2u);
    EXPECT_EQ(inputs[0].name, "a");
    EXPECT_EQ(inputs[0].datatype, "INT64");
    EXPECT_EQ(inputs[0].shape, (Shape{2, 1})) << body;
    EXPECT_EQ(inputs[1].shape, (Shape{2, 2})) << body;
    EXPECT_THAT(values<int64_t>(inputs[0]), ElementsAre(1, 2)) << body;
    EXPECT_THAT(values<float>(inputs[1]), ElementsAre(3, 4, 5, 6)) << body;
  }

  JsonRequestDecoder decoder_;
  std::string body_;
};

TEST_F(JsonTableTest, AllFormsAreTheSameTensors) {
  expect_pair(R"({"instances":[{"a":1,"b":[3,4]},{"b":[5,6],"a":2}]})");
  expect_pair(R"({"dataframe_records":[{"a":1,"b":[3,4]},{"b":[5,6],"a":2}]})");
  expect_pair(R"({"inputs":{"b":[[3,4],[5,6]],"a":[1,2]}})");
  expect_pair(R"({"dataframe_split":{"index":[0,1],"columns":["b","a"],"data":[[[3,4],1],[[5,6],2]]}})");
}

TEST_F(JsonTableTest, RowsOfOneInputNeedNoNames) {
  for (const char* member : {"instances", "inputs"}) {
    const auto request =
        decode(single({2}), std::string(R"({")") + member + R"(":[[1,2],[3,4.5],[5,-6]]})", TableForm::kV1);
    ASSERT_TRUE(request.ok()) << request.status().message();
    EXPECT_EQ(request->query.inputs[0].shape, (Shape{3, 2}));
    EXPECT_THAT(values<float>(request->query.inputs[0]), ElementsAre(1, 2, 3, 4.5, 5, -6));
  }
  EXPECT_EQ(decode(single({}), R"({"instances":[1,2]})")->query.inputs[0].shape, (Shape{2}));
  EXPECT_EQ(decode(single({}, DataType::kBytes), R"({"instances":["one","two"]})")->query.inputs[0].bytes.size(), 14u);
}

TEST_F(JsonTableTest, ColumnsOfValuesWithoutNamesCountByTheirOrder) {
  const auto request = decode(single({2}), R"({"dataframe_split":{"columns":["q","p"],"data":[[1,2],[3,4]]}})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_THAT(values<float>(request->query.inputs[0]), ElementsAre(1, 2, 3, 4));
  // Objects have no order.
  EXPECT_THAT(error_of(single({2}), R"({"dataframe_records":[{"q":1,"p":2}]})"), HasSubstr("has the column 'q'"));
}

TEST_F(JsonTableTest, AModelWithoutABatchDimensionTakesOneRow) {
  auto whole = single({2, 2});
  whole->batching = false;
  EXPECT_EQ(decode(whole, R"({"instances":[[[1,2],[3,4]]]})")->query.inputs[0].shape, (Shape{2, 2}));
  EXPECT_THAT(error_of(whole, R"({"instances":[[[1,2],[3,4]],[[1,2],[3,4]]]})"), HasSubstr("has 2 rows"));
}

TEST_F(JsonTableTest, ErrorsNameColumnAndRow) {
  const auto error = [&](const char* rows) {
    return error_of(pair(), std::string(R"({"dataframe_records":[{"a":1,"b":[3,4]},)") + rows + "]}");
  };
  EXPECT_THAT(error(R"({"a":1})"), HasSubstr("dataframe_records[1] lacks the column 'b'; model 'pair' has 'a', 'b'"));
  EXPECT_THAT(error(R"({"a":1,"b":[3,4],"c":5})"), HasSubstr("dataframe_records[1] has the column 'c', which model"));
  EXPECT_THAT(error(R"({"a":1,"b":[3,4],"a":5})"), HasSubstr("dataframe_records[1] has the column 'a' twice"));
  EXPECT_THAT(error(R"({"a":null,"b":[3,4]})"), HasSubstr("[1] has null in column 'a', which must be a number"));
  EXPECT_THAT(error(R"({"a":1,"b":null})"),
              HasSubstr("[1] has null in column 'b', where the rows before it have a list"));
  EXPECT_THAT(error(R"({"a":1,"b":[3,"x"]})"),
              HasSubstr("[1] has 'x' in column 'b', which must be a number within FP32"));
  EXPECT_THAT(error(R"({"a":1.5,"b":[3,4]})"),
              HasSubstr("[1] has 1.5 in column 'a', which must be a number within INT64"));
  EXPECT_THAT(error(R"({"a":1,"b":[3]})"), HasSubstr("[1] has another shape in column 'b'"));
  EXPECT_THAT(error("[1,2]"), HasSubstr("dataframe_records[1] is no object; model 'pair' has the inputs 'a', 'b'"));
  EXPECT_THAT(error_of(pair(), R"({"inputs":{"a":[1],"b":[[1,2],[3,4]]}})"),
              HasSubstr("2 rows in the column 'b' and 1 in 'a'"));
  EXPECT_THAT(error_of(pair(), R"({"inputs":{"a":[1]}})"), HasSubstr("no list for the column 'b'"));
  EXPECT_THAT(error_of(pair(), R"({"dataframe_split":{"columns":["a","b"],"data":[[1]]}})"),
              HasSubstr("dataframe_split[0] of 'data' must be a list of 2 values"));
}

TEST_F(JsonTableTest, TakesExactlyOneTable) {
  EXPECT_THAT(error_of(pair(), "{}", TableForm::kV1), HasSubstr("no 'instances' or 'inputs'"));
  EXPECT_THAT(error_of(pair(), R"({"dataframe_records":[]})", TableForm::kV1), HasSubstr("no 'instances' or 'inputs'"));
  EXPECT_THAT(error_of(pair(), R"({"instances":[],"inputs":[]})"), HasSubstr("both 'instances' and 'inputs'"));
  EXPECT_THAT(error_of(pair(), R"({"instances":[]})"), HasSubstr("'instances' has no rows"));
  EXPECT_THAT(error_of(pair(), R"({"instances":{"a":[1]}})"), HasSubstr("must be a list of rows"));
  EXPECT_THAT(error_of(pair(), R"({"dataframe_split":[1]})"), HasSubstr("must be an object such as"));
  EXPECT_THAT(error_of(single({1}, DataType::kFloat16), R"({"instances":[[1]]})"),
              HasSubstr("/v2/models/single/infer"));
}

TEST_F(JsonTableTest, ParametersAreThoseOfV2) {
  const auto request = decode(single({}), R"({"instances":[1],"parameters":{"timeout":2500},"params":{"a":1}})");
  ASSERT_TRUE(request.ok());
  EXPECT_EQ(request->parameters.timeout, Duration::microseconds(2500));
  ASSERT_EQ(request->parameters.unknown.names().size(), 1u);
  EXPECT_EQ(request->parameters.unknown.names()[0].name, "params");
  EXPECT_THAT(error_of(single({}), R"({"instances":[1],"parameters":{"timeout":-1}})"), HasSubstr("timeout"));
}

TEST_F(JsonTableTest, ColumnsOfTheOnlyInputCountByTheirNames) {
  const auto model = single({2}, DataType::kFloat64);
  model->inputs[0].labels = {"a", "b"};
  for (const char* const body :
       {R"({"dataframe_split": {"columns": ["b", "a"], "data": [[2, 1], [4, 3]]}})",
        R"({"dataframe_split": {"columns": ["p", "q"], "data": [[1, 2], [3, 4]]}})",
        R"({"instances": [[1, 2], [3, 4]]})", R"({"dataframe_records": [{"b": 2, "a": 1}, {"a": 3, "b": 4}]})",
        R"({"inputs": {"b": [2, 4], "a": [1, 3]}})"}) {
    const auto request = decode(model, body);
    ASSERT_TRUE(request.ok()) << body << ": " << request.status().message();
    EXPECT_EQ(request->query.inputs[0].shape, (Shape{2, 2}));
    EXPECT_THAT(values<double>(request->query.inputs[0]), ElementsAre(1, 2, 3, 4)) << body;
  }
  EXPECT_THAT(error_of(model, R"({"dataframe_records": [{"a": 1}]})"), HasSubstr("lacks the column 'b'"));
  EXPECT_THAT(error_of(model, R"({"instances": [[1, 2, 3]]})"), HasSubstr("must be a list of 2 numbers"));
  EXPECT_THAT(error_of(model, R"({"instances": [[1, "x"]]})"), HasSubstr("has 'x' in column 'b'"));
  EXPECT_THAT(error_of(model, R"({"instances": [[1, null]]})"), HasSubstr("has null in column 'b'"));
  model->runnables[0].kind = "container:single";
  EXPECT_TRUE(std::isnan(values<double>(decode(model, R"({"instances": [[1, null]]})")->query.inputs[0])[1]));
}

}  // namespace
}  // namespace foliot
