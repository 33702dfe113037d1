#include "models/foreign/triton_settings.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <string_view>

#include "foundation/core/action.h"

namespace foliot {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

// As the documents of Triton write one for an image classifier.
constexpr std::string_view kClassifier = R"(name: "classifier"
platform: "onnxruntime_onnx"
max_batch_size: 8
input [
  {
    name: "data"
    data_type: TYPE_FP32
    format: FORMAT_NCHW
    dims: [ 3, 224, 224 ]
  }
]
output {
  name: "prob"
  data_type: TYPE_FP32
  dims: [ -1 ]
  label_filename: "labels.txt"
}
version_policy: { latest { num_versions: 1 } }
dynamic_batching {
  preferred_batch_size: [ 4, 8 ]
  max_queue_delay_microseconds: 100
  default_queue_policy {
    timeout_action: REJECT
    default_timeout_microseconds: 50000
    allow_timeout_override: true
    max_queue_size: 10
  }
}
instance_group [ { count: 2 kind: KIND_CPU } ]
response_cache { enable: true }
)";

Result<ForeignSettings> parse(std::string_view text) {
  return parse_triton_settings(text, "models/m/config.pbtxt", "m");
}

std::string error_of(std::string_view text) {
  const auto settings = parse(text);
  return settings.ok() ? "" : settings.status().message();
}

TEST(TritonSettingsTest, ReadsWhatFoliotHas) {
  const auto settings = parse_triton_settings(kClassifier, "models/classifier/config.pbtxt", "classifier");
  ASSERT_TRUE(settings.ok()) << settings.status().message();
  EXPECT_EQ(settings->file, "config.pbtxt");
  EXPECT_THAT(settings->batch_sizes->value, ElementsAre(1, 4, 8));
  EXPECT_EQ(settings->batch_sizes->where, "config.pbtxt:20: preferred_batch_size");
  EXPECT_EQ(settings->batch_delay->value, Duration::microseconds(100));
  EXPECT_EQ(settings->default_slo->value, Duration::milliseconds(50));
  EXPECT_EQ(settings->default_slo->where, "config.pbtxt:24: default_timeout_microseconds");
  EXPECT_TRUE(settings->cache->value);
  EXPECT_FALSE(settings->name) << "it is the folder's";
  ASSERT_THAT(settings->tensors, SizeIs(2));
  EXPECT_EQ(settings->tensors[0].name, "data");
  EXPECT_FALSE(settings->tensors[0].is_output);
  EXPECT_EQ(settings->tensors[0].type, DataType::kFloat32);
  EXPECT_THAT(*settings->tensors[0].dimensions, ElementsAre(-1, 3, 224, 224)) << "with the batch";
  EXPECT_EQ(settings->tensors[0].where, "config.pbtxt:6");
  EXPECT_TRUE(settings->tensors[1].is_output);
}

TEST(TritonSettingsTest, NamesFieldsThatItDoesNotHeedWithTheirLines) {
  const auto settings = parse_triton_settings(kClassifier, "models/classifier/config.pbtxt", "classifier");
  ASSERT_TRUE(settings.ok());
  EXPECT_THAT(settings->notes, ElementsAre(HasSubstr("config.pbtxt:8: 'format' is not read: the order"),
                                           HasSubstr("config.pbtxt:16: 'label_filename' is not read"),
                                           HasSubstr("config.pbtxt:26: 'max_queue_size' is not read"),
                                           HasSubstr("config.pbtxt:29: 'instance_group' is not read: one instance")));
  EXPECT_THAT(parse("no_such_field { a { b: 1 } }")->notes, ElementsAre("config.pbtxt:1: 'no_such_field' is not read"));
}

TEST(TritonSettingsTest, BatchSizesGoUpToTheLargest) {
  EXPECT_FALSE(parse("")->batch_sizes) << "nothing is said";
  EXPECT_THAT(parse("max_batch_size: 0")->batch_sizes->value, ElementsAre(1));
  EXPECT_THAT(parse("input { name: 'x' dims: 3 }")->batch_sizes->value, ElementsAre(1)) << "as Triton reads it";
  EXPECT_THAT(parse("max_batch_size: 1")->batch_sizes->value, ElementsAre(1));
  EXPECT_THAT(parse("max_batch_size: 6")->batch_sizes->value, ElementsAre(1, 2, 4, 6));
  const auto large = parse("max_batch_size: 500");
  EXPECT_EQ(large->batch_sizes->value.back(), kCompiledBatchSizeMax);
  EXPECT_THAT(large->notes, ElementsAre(HasSubstr("max_batch_size is 500, and models are compiled for at most 64")));
  EXPECT_THAT(error_of("\nmax_batch_size: -1"), HasSubstr("models/m/config.pbtxt:2: max_batch_size is -1"));
  EXPECT_THAT(error_of("max_batch_size: 8\ndynamic_batching { preferred_batch_size: [ 4, 16 ] }"),
              HasSubstr("config.pbtxt:2: preferred_batch_size has 16, and must be from 1 to max_batch_size, 8"));
}

TEST(TritonSettingsTest, ShapesAreWholeWithoutBatches) {
  const auto whole = parse("input { name: 'x' data_type: TYPE_STRING dims: [ -1, 3 ] }");
  EXPECT_THAT(*whole->tensors.at(0).dimensions, ElementsAre(-1, 3));
  EXPECT_EQ(whole->tensors[0].type, DataType::kBytes);
  const auto reshaped = parse("max_batch_size: 4\ninput { name: 'x' dims: 1\nreshape { shape: [] } }");
  EXPECT_THAT(*reshaped->tensors.at(0).dimensions, ElementsAre(-1));
  EXPECT_THAT(reshaped->notes, ElementsAre(HasSubstr("config.pbtxt:3: 'x' is not reshaped")));
  EXPECT_FALSE(parse("output { name: 'y' }")->tensors.at(0).dimensions);
  EXPECT_FALSE(parse("output { name: 'y' }")->tensors.at(0).type);
}

TEST(TritonSettingsTest, ATimeoutThatDoesNotRejectIsNoDeadline) {
  const auto delayed =
      parse("dynamic_batching { default_queue_policy {\ntimeout_action: DELAY\ndefault_timeout_microseconds: 5000 } }");
  EXPECT_FALSE(delayed->default_slo);
  EXPECT_THAT(delayed->notes, ElementsAre(HasSubstr("config.pbtxt:2: timeout_action DELAY")));
  const auto unsaid = parse("dynamic_batching { default_queue_policy { default_timeout_microseconds: 5000 } }");
  EXPECT_EQ(unsaid->default_slo->value, Duration::milliseconds(5)) << "REJECT is Triton's default";
}

TEST(TritonSettingsTest, AVersionPolicyIsAChoiceOfVersions) {
  const auto choice_of = [](const std::string& text) {
    const auto settings = parse(text);
    EXPECT_THAT(settings->notes, IsEmpty()) << text;
    return settings->versions->value;
  };
  EXPECT_EQ(choice_of("version_policy: { latest { num_versions: 1 } }"), VersionChoice());
  EXPECT_EQ(choice_of("version_policy: { latest { } }"), VersionChoice());
  EXPECT_EQ(choice_of("version_policy: { all { } }"), VersionChoice{.all = true});
  EXPECT_EQ(choice_of("version_policy: { latest { num_versions: 2 } }"), VersionChoice{.latest = 2});
  EXPECT_EQ(choice_of("version_policy: { specific { versions: [ 3, 1, 3 ] } }"), (VersionChoice{.listed = {1, 3}}));
  EXPECT_FALSE(parse("max_batch_size: 4")->versions);
  EXPECT_THAT(error_of("version_policy: { specific { } }"), HasSubstr("names no version"));
  EXPECT_THAT(error_of("version_policy: { specific { versions: 0 } }"), HasSubstr("version 0"));
}

TEST(TritonSettingsTest, WhatCannotBeServedIsAnErrorWithWhatToDo) {
  for (const std::string_view line : {"backend: 'onnxruntime'", "platform: 'onnxruntime_onnx'", "platform: ''"}) {
    EXPECT_EQ(error_of(line), "");
  }
  EXPECT_THAT(error_of("\nbackend: 'python'"), HasSubstr("config.pbtxt:2: a model.py of Triton's backend 'python'"));
  EXPECT_THAT(error_of("platform: 'tensorrt_plan'"),
              HasSubstr("platform 'tensorrt_plan' is none that is served; export"));
  EXPECT_THAT(error_of("platform: 'ensemble'"), HasSubstr("pipeline.toml"));
  EXPECT_THAT(error_of("ensemble_scheduling { step [ { model_name: 'a' } ] }"), HasSubstr("pipeline.toml"));
  EXPECT_THAT(error_of("sequence_batching { oldest { max_candidate_sequences: 4 } }"), HasSubstr("no state is kept"));
  EXPECT_THAT(error_of("name: 'other'"), HasSubstr("the name is 'other', and the folder's 'm'"));
  EXPECT_EQ(parse("default_model_filename: 'net.onnx'")->model_file, "net.onnx");
  for (const std::string_view file : {"../net.onnx", "/net.onnx", "model.plan", ".onnx"}) {
    EXPECT_THAT(error_of(fmt::format("default_model_filename: '{}'", file)),
                HasSubstr("must be the name of a .onnx file"));
  }
}

TEST(TritonSettingsTest, BrokenTextIsAnErrorWithLineAndColumn) {
  EXPECT_THAT(error_of("max_batch_size: 8\ninput {\n  dims: }"), HasSubstr("models/m/config.pbtxt:3:9: "));
  EXPECT_THAT(error_of("max_batch_size: 'eight'"), HasSubstr("config.pbtxt:1:17: "));
  EXPECT_THAT(error_of("input { name: 'x'\ndata_type: TYPE_FP8 }"), HasSubstr("TYPE_FP8"));
  EXPECT_THAT(error_of("input {"), HasSubstr("got: the end of the file"));
  EXPECT_THAT(error_of("input { name: 'x' dims: [ 0 ] }"), HasSubstr("'x' has a dimension of 0"));
  EXPECT_THAT(error_of("input { dims: 1 }"), HasSubstr("has no name"));
  EXPECT_THAT(error_of("dynamic_batching { max_queue_delay_microseconds: 10000001 }"), HasSubstr("at most 10 s"));
  EXPECT_THAT(
      error_of("dynamic_batching { default_queue_policy { default_timeout_microseconds: 18446744073709551615 } }"),
      HasSubstr("a day"));
}

TEST(TritonSettingsTest, ListsOfMessagesOfAnyFieldAreSkipped) {
  const auto settings = parse(R"(optimization { execution_accelerators {
  gpu_execution_accelerator : [ { name : "tensorrt" parameters { key: "precision_mode" value: "FP16" } } ] } }
model_warmup [{ # [ no list
  name: "a [ { \" [" batch_size: 1
  inputs { key: "x" value: { data_type: TYPE_FP32 dims: [3] zero_data: true } } }]
new_list[ { rates [ 1, 2 ] }, < inner [ { a: 1 } ] > ]
max_batch_size: 'eight')");
  EXPECT_THAT(settings.status().message(), HasSubstr("config.pbtxt:7:17: ")) << "columns stay";
  EXPECT_EQ(
      error_of(
          "model_metrics { control { buckets: [ # none\n] } }\nstep[]\ninput: []\nmodel_warmup [ { a: 'x' b [] } ]"),
      "");
  EXPECT_THAT(parse("a [ { b [ { c: [ 1 ] } ] } ]\nparameters: { key: 'k' value: { string_value: 'v' } }")->notes,
              ElementsAre(HasSubstr("config.pbtxt:1: 'a' is not read"),
                          HasSubstr("config.pbtxt:2: 'parameters' is not read: options")));
}

TEST(TritonSettingsTest, NestingAndNotesAreBounded) {
  const auto nested = [](int depth, const std::string& open, char close) {
    std::string text = "\na:";
    for (int i = 0; i < depth; ++i) text += open;
    return text + std::string(static_cast<size_t>(depth), close);
  };
  EXPECT_THAT(error_of(nested(32, "{a:", '}')), HasSubstr("config.pbtxt:2:99: "))
      << "it is read, and has no last value";
  EXPECT_THAT(error_of(nested(33, "{a:", '}')), HasSubstr("config.pbtxt:2: messages and lists lie more than 32 deep"));
  EXPECT_THAT(error_of(nested(30'000, "[", ']')),
              HasSubstr("config.pbtxt:2: messages and lists lie more than 32 deep"));
  std::string many;
  for (int i = 0; i < 100; ++i) many += "unknown: 1\n";
  const auto settings = parse(many);
  EXPECT_THAT(settings->notes, SizeIs(kForeignNotesMax));
  EXPECT_EQ(settings->notes.back(), "85 more fields are not read");
}

}  // namespace
}  // namespace foliot
