#include "models/foreign/mlserver_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::UnorderedElementsAre;

Result<ForeignSettings> read(std::string_view text) {
  return parse_mlserver_settings(text, "models/m/model-settings.json");
}

std::string wrong(std::string_view text) {
  const auto settings = read(text);
  return settings.ok() ? "" : settings.status().message();
}

// As the documents of MLServer write one.
constexpr std::string_view kIris = R"({
  "name": "iris",
  "implementation": "mlserver_sklearn.SKLearnModel",
  "max_batch_size": 5,
  "max_batch_time": 0.1,
  "parallel_workers": 2,
  "parameters": { "uri": "./iris.joblib", "version": "v0.1.0", "content_type": "np" },
  "inputs": [ { "name": "x", "datatype": "FP32", "shape": [-1, 4], "parameters": { "content_type": "np" } } ],
  "outputs": [ { "name": "predict", "datatype": "INT64", "shape": [-1] } ]
})";

TEST(MlserverSettingsTest, ReadsWhatFoliotHas) {
  const auto settings = read(kIris);
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_EQ(settings->file, "model-settings.json");
  EXPECT_EQ(settings->name->value, "iris");
  EXPECT_EQ(settings->name->where, "model-settings.json:2: name");
  EXPECT_THAT(settings->batch_sizes->value, ElementsAre(1, 2, 4, 5));
  EXPECT_EQ(settings->batch_delay->value, Duration::milliseconds(100));
  ASSERT_EQ(settings->tensors.size(), 2u);
  EXPECT_EQ(settings->tensors[0].type, DataType::kFloat32);
  EXPECT_THAT(*settings->tensors[0].dimensions, ElementsAre(-1, 4));
  EXPECT_EQ(settings->tensors[0].where, "model-settings.json:8");
  EXPECT_TRUE(settings->tensors[1].is_output);
  EXPECT_EQ(settings->model_file, "iris.joblib");
  EXPECT_EQ(settings->runtime, "mlserver_sklearn");
  EXPECT_THAT(
      settings->otherwise,
      HasSubstr("model-settings.json:3: implementation: \"mlserver_sklearn.SKLearnModel\" is a runtime of MLServer's: "
                "'uri' must be a file beside it that ends with .joblib, .pkl or .skops"));
  EXPECT_THAT(settings->notes, ElementsAre(HasSubstr("model-settings.json:7: version: \"v0.1.0\" is not read"),
                                           HasSubstr("model-settings.json:6: \"parallel_workers\" is not read")));
}

TEST(MlserverSettingsTest, CodecsAndTheMethodAreReadAndOtherFieldsNamed) {
  const auto settings = read(R"({"cache_enabled": true,
    "parameters": {"uri": "m.joblib", "extra": {"predict_fn": "predict_proba", "device": "cpu"}},
    "outputs": [{"name": "predict", "datatype": "BYTES", "tags": [], "parameters": {"content_type": "base64", "unit": "m"}}]})");
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_TRUE(settings->cache->value);
  EXPECT_EQ(settings->predict_fn, "predict_proba");
  EXPECT_THAT(
      settings->notes,
      UnorderedElementsAre(HasSubstr("2: \"device\" is not read"), HasSubstr("3: \"tags\" is not read"),
                           HasSubstr("3: content_type: \"base64\" is not read"), HasSubstr("3: \"unit\" is not read")));
  EXPECT_THAT(wrong(R"({"parameters": {"extra": {"predict_fn": "__class__"}}})"),
              HasSubstr("'predict_fn' must be the name of a method, not \"__class__\""));
  EXPECT_THAT(wrong(R"({"inputs": [{"name": "x", "parameters": {"content_type": 3}}]})"), HasSubstr("must be a name"));
  EXPECT_THAT(wrong(R"({"cache_enabled": "yes"})"), HasSubstr("must be true or false"));
}

TEST(MlserverSettingsTest, AnOnnxFileIsServed) {
  const auto settings = read(R"({"parameters": {"uri": "./sub/net.onnx", "version": "3"}, "max_batch_size": 0})");
  ASSERT_TRUE(settings.ok());
  EXPECT_EQ(settings->model_file, "sub/net.onnx");
  EXPECT_EQ(settings->version, "3");
  EXPECT_FALSE(settings->batch_sizes) << "MLServer takes requests of any size then";
  EXPECT_EQ(settings->otherwise, "");
  EXPECT_FALSE(read(R"({"max_batch_size": 1})")->batch_sizes);
  EXPECT_THAT(read(R"({"implementation": "models.Mine"})")->otherwise, HasSubstr("move its code to a model.py"));
}

TEST(MlserverSettingsTest, WhatIsWrongIsSaidWithItsLine) {
  EXPECT_THAT(wrong("{\n  \"name\": \"x\",\n  \"max_batch_size\": }"),
              HasSubstr("m/model-settings.json:3:21: this is no JSON"));
  EXPECT_THAT(wrong(""), HasSubstr("model-settings.json:1:1: this is no JSON"));
  EXPECT_THAT(wrong("[]"), HasSubstr("must be an object"));
  EXPECT_THAT(wrong("{\n\"name\": 3}"), HasSubstr("model-settings.json:2: 'name' must be a text, not 3"));
  EXPECT_THAT(wrong(R"({"max_batch_size": -1})"),
              HasSubstr("'max_batch_size' must be a whole number from 0 on, not -1"));
  EXPECT_THAT(wrong(R"({"max_batch_time": 11})"), HasSubstr("'max_batch_time' must be in seconds, from 0 to 10"));
  EXPECT_THAT(wrong(R"({"inputs": [{"datatype": "FP32"}]})"), HasSubstr("with a \"name\""));
  EXPECT_THAT(wrong(R"({"inputs": [{"name": "x", "datatype": "FP8"}]})"), HasSubstr("not \"FP8\""));
  EXPECT_THAT(wrong(R"({"inputs": [{"name": "x", "shape": [1.5]}]})"), HasSubstr("a list of whole numbers"));
  for (const std::string_view uri : {"../m.onnx", "/m.onnx", "a/../../m.onnx", ""}) {
    EXPECT_THAT(wrong(fmt::format(R"({{"parameters": {{"uri": "{}"}}}})", uri)),
                HasSubstr("in the folder of the model"));
  }
  std::string many = R"({"outputs": [{})";
  for (int i = 0; i < 256; ++i) many += ",{}";
  EXPECT_THAT(wrong(many + "]}"), HasSubstr("'outputs' has 257 entries, and at most 256"));
  EXPECT_THAT(wrong(std::string(200, '[')), HasSubstr("models/m/model-settings.json: "));
}

}  // namespace
}  // namespace foliot
