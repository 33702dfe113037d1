#include "edge/requests/json_request.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>

namespace foliot {
namespace {

using ::testing::HasSubstr;

class JsonRequestTest : public ::testing::Test {
 protected:
  Result<JsonRequest> decode(std::string body, std::optional<size_t> json_bytes = {}) {
    body_ = std::move(body);
    return decoder_.decode(body_, json_bytes);
  }
  // The bytes of the only input, whose datatype and data are given.
  Result<std::string> convert(const std::string& datatype, const std::string& data) {
    auto request =
        decode(R"({"inputs":[{"name":"x","shape":[1],"datatype":")" + datatype + R"(","data":)" + data + "}]}");
    if (!request.ok()) return request.status();
    const auto bytes = request->query.inputs.at(0).bytes;
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  }
  template <typename T>
  std::string raw(std::initializer_list<T> values) {
    std::string bytes;
    for (T value : values) bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
    return bytes;
  }
  std::string error_of(std::string body, StatusCode code = StatusCode::kInvalidArgument) {
    const auto request = decode(std::move(body));
    EXPECT_FALSE(request.ok());
    EXPECT_EQ(request.status().code(), code) << request.status().message();
    return request.status().message();
  }

  JsonRequestDecoder decoder_;
  std::string body_;
};

TEST_F(JsonRequestTest, ReadsARequestInAnyOrderOfMembers) {
  const auto request = decode(R"({"outputs":[{"parameters":{"binary_data":true},"name":"y"},{"name":"z"}],
      "inputs":[{"data":[[1,2],[3,4]],"datatype":"INT32","name":"x","shape":[2,2],"parameters":{"other":1}}],
      "parameters":{"timeout":2500,"priority":0},"id":"a\n1","unknown":{"x":[null]}})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  const Query& query = request.value().query;
  EXPECT_EQ(query.id, "a\n1");
  EXPECT_EQ(request.value().parameters.timeout, Duration::microseconds(2500));
  ASSERT_EQ(query.inputs.size(), 1u);
  EXPECT_EQ(query.inputs[0].shape, (Shape{2, 2}));
  EXPECT_EQ(query.outputs, (std::vector<std::string_view>{"y", "z"}));
  EXPECT_EQ(request.value().output_is_binary, (std::vector<bool>{true, false}));
}

// Lists within lists are a tensor if and only if numpy makes one of them: all of one depth have one length.
TEST_F(JsonRequestTest, RowsThatAreRaggedAreRefused) {
  for (const char* regular : {"[1,2,3,4]", "[[1,2],[3,4]]", "[[[1],[2]],[[3],[4]]]", "[[1,2,3,4]]", "[[],[]]", "[]"}) {
    EXPECT_TRUE(convert("INT32", regular).ok()) << regular;
  }
  for (const char* ragged : {"[[1,2],[3]]", "[[1],[2,3]]", "[1,[2]]", "[[1],2]", "[[],[1]]", "[[1],[]]", "[[[1]],[2]]",
                             "[[1],[[2]]]", "[[[1,2],[3,4]],[[5,6]]]"}) {
    EXPECT_THAT(convert("INT32", ragged).status().message(), HasSubstr("input 'x': the rows of 'data' are ragged"))
        << ragged;
  }
  EXPECT_THAT(convert("INT32", R"([[1],["2"]])").status().message(), HasSubstr("not a number within INT32"));
}

TEST_F(JsonRequestTest, ConvertsEveryDatatype) {
  EXPECT_EQ(*convert("BOOL", "[true,false,1,0]"), raw<uint8_t>({1, 0, 1, 0}));
  EXPECT_EQ(*convert("UINT8", "[0,255]"), raw<uint8_t>({0, 255}));
  EXPECT_EQ(*convert("UINT16", "[65535]"), raw<uint16_t>({65535}));
  EXPECT_EQ(*convert("UINT32", "[4294967295]"), raw<uint32_t>({4294967295u}));
  EXPECT_EQ(*convert("UINT64", "[18446744073709551615]"), raw<uint64_t>({18446744073709551615u}));
  EXPECT_EQ(*convert("INT8", "[-128]"), raw<int8_t>({-128}));
  EXPECT_EQ(*convert("INT16", "[-32768]"), raw<int16_t>({-32768}));
  EXPECT_EQ(*convert("INT32", "[-2147483648]"), raw<int32_t>({-2147483647 - 1}));
  EXPECT_EQ(*convert("INT64", "[-9]"), raw<int64_t>({-9}));
  EXPECT_EQ(*convert("FP32", "[0.1,2,-3e5]"), raw<float>({0.1f, 2, -3e5f}));
  EXPECT_EQ(*convert("FP64", "[0.1]"), raw<double>({0.1}));
  EXPECT_EQ(*convert("BYTES", "[[\"ab\"],[\"\"],[\"\u00e9\"]]"), std::string("\2\0\0\0ab\0\0\0\0\2\0\0\0\xc3\xa9", 16));
}

TEST_F(JsonRequestTest, FlattensAnyNesting) {
  EXPECT_EQ(*convert("INT32", "[[[1],[2]],[[3],[4]]]"), raw<int32_t>({1, 2, 3, 4}));
  EXPECT_EQ(*convert("INT32", "[]"), "");
  EXPECT_FALSE(convert("INT32", std::string(200, '[') + std::string(200, ']')).ok());
}

TEST_F(JsonRequestTest, RejectsNumbersOutsideTheDatatype) {
  EXPECT_FALSE(convert("UINT8", "[256]").ok());
  EXPECT_FALSE(convert("UINT8", "[-1]").ok());
  EXPECT_FALSE(convert("INT32", "[2147483648]").ok());
  EXPECT_FALSE(convert("INT32", "[1.5]").ok());
  EXPECT_FALSE(convert("FP32", "[1e39]").ok());
  EXPECT_FALSE(convert("FP32", "[\"1\"]").ok());
  EXPECT_FALSE(convert("BOOL", "[2]").ok());
  EXPECT_FALSE(convert("FP32", "7").ok());
  EXPECT_THAT(convert("FP16", "[1]").status().message(), HasSubstr("binary"));
  EXPECT_THAT(convert("BYTES", "[1]").status().message(), HasSubstr("not a string"));
  EXPECT_THAT(convert("FLOAT", "[1]").status().message(), HasSubstr("'FLOAT'"));
}

TEST_F(JsonRequestTest, ReadsNumbersThatAreNotFinite) {
  const float infinity = std::numeric_limits<float>::infinity();
  EXPECT_EQ(*convert("FP32", "[Infinity,-Infinity,Inf,-Inf,1]"),
            raw<float>({infinity, -infinity, infinity, -infinity, 1}));
  EXPECT_EQ(*convert("FP64", "[[\"-Infinity\"],[2]]"), raw<double>({-infinity, 2}));
  const auto nan = convert("FP32", "[NaN]");
  ASSERT_TRUE(nan.ok()) << nan.status().message();
  float value = 0;
  std::memcpy(&value, nan->data(), sizeof value);
  EXPECT_TRUE(std::isnan(value));
  for (const char* data : {"[NaNa]", "[nan]", "[Infinit]", "[+Inf]", "[-NaN]", "[NaN"})
    EXPECT_FALSE(convert("FP32", data).ok()) << data;
  EXPECT_FALSE(convert("INT32", "[NaN]").ok());
}

TEST_F(JsonRequestTest, LeavesStringsAsTheyAre) {
  const auto request =
      decode(R"({"id":"NaN \" Inf","inputs":[{"name":"-Infinity","shape":[1],"datatype":"FP32","data":[NaN]}]})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_EQ(request->query.id, "NaN \" Inf");
  EXPECT_EQ(request->query.inputs[0].name, "-Infinity");
}

TEST_F(JsonRequestTest, ManyShortInputsKeepTheirBytes) {
  std::string body = R"({"inputs":[)";
  for (int i = 0; i < 50; ++i)
    body += (i > 0 ? "," : "") + std::string(R"({"name":"x","shape":[1],"datatype":"INT8","data":[)") +
            std::to_string(i) + "]}";
  const auto request = decode(body + "]}");
  ASSERT_TRUE(request.ok());
  const JsonRequest moved = std::move(request).value();
  for (size_t i = 0; i < 50; ++i) EXPECT_EQ(moved.query.inputs[i].bytes[0], std::byte(i));
}

TEST_F(JsonRequestTest, BinaryTensorsFollowTheJsonInOrder) {
  const std::string json = R"({"inputs":[{"name":"a","shape":[2],"datatype":"INT8","parameters":{"binary_data_size":2}},
      {"name":"b","shape":[1],"datatype":"INT8","data":[7]},
      {"name":"c","shape":[3],"datatype":"INT8","parameters":{"binary_data_size":3}}],
      "parameters":{"binary_data_output":true}})";
  const auto request = decode(json + "ABCDE", json.size());
  ASSERT_TRUE(request.ok()) << request.status().message();
  const auto& inputs = request.value().query.inputs;
  EXPECT_EQ(std::memcmp(inputs[0].bytes.data(), "AB", 2), 0);
  EXPECT_EQ(inputs[2].bytes.size(), 3u);
  EXPECT_EQ(std::memcmp(inputs[2].bytes.data(), "CDE", 3), 0);
  EXPECT_TRUE(request.value().binary_by_default);
}

TEST_F(JsonRequestTest, BinaryBytesMustAddUp) {
  const std::string json =
      R"({"inputs":[{"name":"a","shape":[2],"datatype":"INT8","parameters":{"binary_data_size":2}}]})";
  EXPECT_THAT(decode(json + "A", json.size()).status().message(), HasSubstr("expected 2 bytes"));
  EXPECT_THAT(decode(json + "ABC", json.size()).status().message(), HasSubstr("belong to no input"));
  EXPECT_FALSE(parse_json_bytes("12", 11).ok());
  EXPECT_FALSE(parse_json_bytes("-1", 11).ok());
  EXPECT_FALSE(parse_json_bytes("1x", 11).ok());
  EXPECT_EQ(parse_json_bytes("", 11).value(), std::nullopt);
  EXPECT_EQ(parse_json_bytes("11", 11).value(), 11u);
}

TEST_F(JsonRequestTest, ReportsWhatIsWrong) {
  EXPECT_THAT(error_of(""), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("{\"inputs\":["), HasSubstr("not valid JSON"));
  EXPECT_THAT(error_of("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(error_of("{}"), HasSubstr("no 'inputs'"));
  EXPECT_THAT(error_of(R"({"inputs":7})"), HasSubstr("'inputs' must be an array"));
  EXPECT_THAT(error_of(R"({"inputs":[{"shape":[1]}]})"), HasSubstr("no 'name'"));
  EXPECT_THAT(error_of(R"({"inputs":[{"name":"x","data":[1],"datatype":"INT8"}]})"), HasSubstr("no 'shape'"));
  EXPECT_THAT(error_of(R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT8"}]})"), HasSubstr("neither 'data'"));
  EXPECT_THAT(error_of(R"({"inputs":[{"name":"x","shape":["1"],"datatype":"INT8","data":[1]}]})"),
              HasSubstr("'shape'"));
  EXPECT_THAT(error_of(R"({"inputs":[],"parameters":{"timeout":"5"}})"), HasSubstr("'timeout'"));
  EXPECT_THAT(error_of(R"({"inputs":[],"parameters":{"timeout":-5}})"), HasSubstr("'timeout'"));
  EXPECT_THAT(error_of(R"({"inputs":[{"name":"x","shape":[1],"datatype":"INT8",
      "parameters":{"shared_memory_region":"r"}}]})",
                       StatusCode::kUnimplemented),
              HasSubstr("shared memory"));
  EXPECT_THAT(error_of(R"({"inputs":[],"outputs":[{"name":"y","parameters":{"classification":3}}]})",
                       StatusCode::kUnimplemented),
              HasSubstr("classification"));
}

TEST_F(JsonRequestTest, NullIsNotANumberAndIsMarked) {
  const auto request = decode(R"({"inputs":[{"name":"x","shape":[2],"datatype":"FP32","data":[1,null]}]})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  EXPECT_TRUE(request->has_nulls);
  EXPECT_TRUE(std::isnan(reinterpret_cast<const float*>(request->query.inputs[0].bytes.data())[1]));
  EXPECT_FALSE(convert("INT32", "[1,null]").ok());
  EXPECT_FALSE(convert("BYTES", "[null]").ok());
}

TEST_F(JsonRequestTest, ContentTypesSayWhatStringsAre) {
  const auto request = decode(R"({"parameters":{"content_type":"pd"},
    "inputs":[{"name":"a","shape":[1],"datatype":"BYTES","parameters":{"content_type":"base64"},"data":["Zm9v"]},
              {"name":"b","shape":[1],"datatype":"BYTES","parameters":{"content_type":"str"},"data":["Zm9v"]}],
    "outputs":[{"name":"y","parameters":{"content_type":"base64"}},{"name":"z"}]})");
  ASSERT_TRUE(request.ok()) << request.status().message();
  const auto text = [&](size_t i) {
    const auto bytes = request->query.inputs[i].bytes.subspan(sizeof(uint32_t));
    return std::string(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  };
  EXPECT_EQ(text(0), "foo");
  EXPECT_EQ(text(1), "Zm9v");
  EXPECT_EQ(request->output_types, (std::vector<ContentType>{ContentType::kBase64, ContentType::kNone}));
  EXPECT_TRUE(request->parameters.unknown.names().empty());
  EXPECT_THAT(
      error_of(
          R"({"inputs":[{"name":"a","shape":[1],"datatype":"BYTES","parameters":{"content_type":1},"data":[""]}]})"),
      HasSubstr("'content_type' must be a string"));
}

}  // namespace
}  // namespace foliot
