#include "answer/pipelines/resolve.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "answer/pipelines/test_models.h"

namespace foliot {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

class ResolveTest : public testing::Test {
 protected:
  ResolveTest() {
    for (ModelInfo model :
         {test_decode("animals.decode"), test_classifier("mobilenet"), test_classifier("resnet"), test_bert("bert")}) {
      put(std::move(model));
    }
  }

  void put(ModelInfo model) {
    const std::string name = model.name;
    models_[name] = std::make_shared<const ModelInfo>(std::move(model));
  }
  ModelInfo model(const std::string& name) const { return *models_.at(name); }

  std::shared_ptr<const ModelInfo> made(const PipelineSpec& spec) {
    const auto result = resolve(spec, models_, PipelineId(7));
    EXPECT_TRUE(result.ok()) << result.status().message();
    return result.ok() ? *result : std::make_shared<const ModelInfo>();
  }
  std::string error_of(const PipelineSpec& spec) { return resolve(spec, models_, PipelineId(7)).status().message(); }

  // Of stages that take "ids" and "mask" of the call.
  PipelineSpec text(std::map<std::string, std::vector<TensorName>> inputs = {{"ids", {{"", "ids"}}},
                                                                             {"mask", {{"", "mask"}}}}) {
    PipelineSpec spec;
    spec.name = "text";
    spec.file = "text/pipeline.toml";
    spec.stages = {test_stage("bert", "bert", std::move(inputs))};
    spec.outputs = {{.name = "score", .from = {{"bert", "score"}}}};
    return spec;
  }

  ModelsByName models_;
};

TEST_F(ResolveTest, ClientsSeeInputsOfTheCallAndOutputsOfStages) {
  const auto info = made(test_cascade());
  EXPECT_EQ(info->name, "animals");
  EXPECT_EQ(info->version, "1");
  EXPECT_TRUE(info->batching);
  EXPECT_EQ(info->default_slo, Duration::milliseconds(150));
  EXPECT_FALSE(info->cache);
  EXPECT_EQ(info->batch_size_max(), 2u) << "that of the decoding stage";
  ASSERT_EQ(info->inputs.size(), 1u);
  EXPECT_EQ(info->inputs[0].name, "photo");
  EXPECT_EQ(info->inputs[0].type, DataType::kUint8);
  EXPECT_THAT(info->inputs[0].shape, ElementsAre(-1));
  EXPECT_THAT(info->inputs[0].dimension_names, ElementsAre("bytes"));
  ASSERT_EQ(info->outputs.size(), 1u);
  EXPECT_EQ(info->outputs[0].name, "answer");
  EXPECT_THAT(info->outputs[0].shape, ElementsAre(1000));
  ASSERT_EQ(info->buckets.size(), 2u);
  EXPECT_EQ(info->buckets[1].dimensions.at("bytes"), 4000);
}

TEST_F(ResolveTest, TheFileSaysWhatItIsWorthAndWhetherItIsKept) {
  PipelineSpec spec = test_cascade();
  spec.cache = true;
  EXPECT_TRUE(made(spec)->cache);
}

TEST_F(ResolveTest, StagesTakeTheirSourcesAndAskForTheirConditions) {
  const auto info = made(test_cascade());
  const PipelineInfo& pipeline = *info->pipeline;
  EXPECT_EQ(pipeline.id, PipelineId(7));
  EXPECT_EQ(pipeline.name, "animals");
  ASSERT_EQ(pipeline.stages.size(), 3u);
  EXPECT_EQ(pipeline.stages[0].model, models_.at("animals.decode"));
  EXPECT_EQ(pipeline.stages[0].bucket, std::nullopt) << "the call's size chooses";
  EXPECT_EQ(pipeline.stages[1].bucket, BucketId(0));
  EXPECT_THAT(pipeline.stages[0].inputs, ElementsAre(ElementsAre(TensorSource{std::nullopt, 0})));
  EXPECT_THAT(pipeline.stages[1].inputs, ElementsAre(ElementsAre(TensorSource{0, 0})));
  EXPECT_THAT(pipeline.stages[2].inputs, ElementsAre(ElementsAre(TensorSource{0, 0})));
  ASSERT_EQ(pipeline.stages[1].conditions.size(), 1u);
  EXPECT_EQ(pipeline.stages[1].conditions[0].limit, 0.8);
  ASSERT_EQ(pipeline.stages[2].requires_all.size(), 1u);
  EXPECT_EQ(pipeline.stages[2].requires_all[0].stage, 1u);
  EXPECT_EQ(pipeline.stages[2].requires_all[0].condition, 0u);
  ASSERT_EQ(pipeline.outputs.size(), 1u);
  EXPECT_THAT(pipeline.outputs[0].sources, ElementsAre(TensorSource{2, 0}, TensorSource{1, 0}));
}

TEST_F(ResolveTest, EqualConditionsOfSeveralStagesAreOne) {
  PipelineSpec spec = test_cascade();
  spec.stages.push_back(test_stage("finer", "resnet", {{"image", {{"decode", "image"}}}}));
  StageSpec::When other = spec.stages[2].when[0];
  other.condition.limit = 0.4;
  spec.stages[3].when = {other, spec.stages[2].when[0]};
  const auto info = made(spec);
  EXPECT_EQ(info->pipeline->stages[1].conditions.size(), 2u);
  ASSERT_EQ(info->pipeline->stages[3].requires_all.size(), 2u);
  EXPECT_EQ(info->pipeline->stages[3].requires_all[0].condition, 1u);
  EXPECT_EQ(info->pipeline->stages[3].requires_all[1].condition, 0u);
}

TEST_F(ResolveTest, ContentFollowsFromTheFileAndTheModels) {
  const std::string content = made(test_cascade())->content;
  EXPECT_EQ(content.size(), 32u);
  PipelineSpec other_file = test_cascade();
  other_file.content = "other";
  EXPECT_NE(made(other_file)->content, content);
  ModelInfo other = model("resnet");
  other.content = "other";
  put(other);
  EXPECT_NE(made(test_cascade())->content, content);
  other.content = "";
  put(other);
  EXPECT_EQ(made(test_cascade())->content, "");
}

TEST_F(ResolveTest, NamesModelsThatDoNotFitTheirStages) {
  PipelineSpec spec = test_cascade();
  spec.stages[1].model = "mobilnet";
  EXPECT_EQ(error_of(spec), "animals/pipeline.toml:20: stage 'cheap': there is no model 'mobilnet'");

  spec = test_cascade();
  spec.stages[1].inputs = {{"picture", {{"decode", "image"}}}};
  EXPECT_THAT(error_of(spec),
              HasSubstr(":20: stage 'cheap': model 'mobilenet' has no input 'picture'; its inputs are image"));
  spec.stages[1].inputs = {};
  EXPECT_THAT(error_of(spec), HasSubstr(":20: stage 'cheap': input 'image' of model 'mobilenet' has no source"));

  ModelInfo unbatched = test_classifier("mobilenet");
  unbatched.batching = false;
  put(unbatched);
  EXPECT_THAT(error_of(test_cascade()), HasSubstr(":20: stage 'cheap': model 'mobilenet' has no batch dimension"));

  ModelInfo pipeline = test_classifier("mobilenet");
  pipeline.pipeline = std::make_shared<const PipelineInfo>();
  put(pipeline);
  EXPECT_THAT(error_of(test_cascade()), HasSubstr(":20: stage 'cheap': 'mobilenet' is a pipeline"));
}

TEST_F(ResolveTest, NamesTensorsThatDiffer) {
  PipelineSpec spec = test_cascade();
  spec.stages[1].inputs["image"] = {{"decode", "picture"}};
  EXPECT_THAT(error_of(spec), HasSubstr(":20: stage 'cheap': the input 'image' has 'decode.picture', and model "
                                        "'animals.decode' has no output 'picture'; its outputs are image"));

  ModelInfo other = test_classifier("mobilenet");
  other.inputs[0].shape = {3, 192, 192};
  put(other);
  EXPECT_EQ(error_of(test_cascade()),
            "animals/pipeline.toml:20: stage 'cheap': input 'image' of model 'mobilenet' is FP32 [3,192,192], and "
            "'decode.image' of model 'animals.decode' is FP32 [3,224,224]; they must be equal");
  other = test_classifier("mobilenet");
  other.inputs[0].type = DataType::kUint8;
  put(other);
  EXPECT_THAT(error_of(test_cascade()),
              HasSubstr("is UINT8 [3,224,224], and 'decode.image' of model 'animals.decode' is FP32"));

  put(test_classifier("mobilenet"));
  other = test_classifier("resnet");
  other.outputs[0].shape = {100};
  put(other);
  EXPECT_EQ(error_of(test_cascade()),
            "animals/pipeline.toml:40: output 'answer' has 'fine.scores', FP32 [100], and 'cheap.scores', FP32 [1000]; "
            "they must be equal");
}

TEST_F(ResolveTest, TheBucketFollowsFromTheSources) {
  put(test_model("tokens", {test_tensor("text", DataType::kUint8, {64})},
                 {test_tensor("ids", DataType::kInt64, {32})}));
  PipelineSpec spec = text({{"ids", {{"tokens", "ids"}}}, {"mask", {{"", "mask"}}}});
  spec.stages.insert(spec.stages.begin(), test_stage("tokens", "tokens", {{"text", {{"", "text"}}}}));
  spec.outputs.push_back({.name = "hidden", .from = {{"bert", "hidden"}}, .fill = {}});
  const auto info = made(spec);
  EXPECT_EQ(info->pipeline->stages[1].bucket, BucketId(1));
  ASSERT_EQ(info->outputs.size(), 2u);
  EXPECT_THAT(info->outputs[1].shape, ElementsAre(32, 8));
  // What the call feeds may be smaller, as for the model.
  ASSERT_EQ(info->inputs.size(), 2u);
  EXPECT_EQ(info->inputs[1].name, "mask");
  EXPECT_THAT(info->inputs[1].shape, ElementsAre(-1));
  ASSERT_EQ(info->buckets.size(), 1u);
  EXPECT_EQ(info->buckets[0].dimensions.at("sequence"), 32);

  put(test_model("tokens", {test_tensor("text", DataType::kUint8, {64})},
                 {test_tensor("ids", DataType::kInt64, {24})}));
  EXPECT_THAT(error_of(spec),
              HasSubstr("input 'ids' of model 'bert' is INT64 [-1], and 'tokens.ids' of model 'tokens' is "
                        "INT64 [24]; they must be equal in one bucket of [sequence = 16], [sequence = 32]"));
}

TEST_F(ResolveTest, TheCallChoosesTheBucketOfOneStage) {
  const auto info = made(text());
  EXPECT_EQ(info->pipeline->stages[0].bucket, std::nullopt);
  EXPECT_EQ(info->buckets.size(), 2u);
  EXPECT_THAT(info->inputs[0].dimension_names, ElementsAre("sequence"));

  PipelineSpec two = test_cascade();
  two.stages.push_back(test_stage("again", "animals.decode", {{"bytes", {{"", "photo"}}}}));
  EXPECT_THAT(error_of(two), HasSubstr("stage 'again': its model 'animals.decode' has several buckets ([bytes = 1000], "
                                       "[bytes = 4000]), among which the size of the call's inputs chooses, and stage "
                                       "'decode' has such already"));

  PipelineSpec variable = text();
  put(test_model("head", {test_tensor("hidden", DataType::kFloat32, {16, 8})},
                 {test_tensor("y", DataType::kFloat32, {1})}));
  variable.stages.push_back(test_stage("head", "head", {{"hidden", {{"bert", "hidden"}}}}));
  EXPECT_THAT(error_of(variable),
              HasSubstr("stage 'head': the input 'hidden' takes 'bert.hidden' of shape [-1,8], which "
                        "depends on the size of the call's inputs"));

  // Clients may see what varies.
  PipelineSpec shown = text();
  shown.outputs.push_back({.name = "hidden", .from = {{"bert", "hidden"}}, .fill = {}});
  EXPECT_THAT(made(shown)->outputs[1].shape, ElementsAre(-1, 8));
  EXPECT_THAT(made(shown)->outputs[1].dimension_names, ElementsAre("sequence", ""));
}

TEST_F(ResolveTest, StagesWithOneBucketTakeSmallerInputsOfTheCall) {
  ModelInfo one = test_decode("one");
  one.buckets.resize(1);
  put(one);
  one.name = "other";
  put(one);
  PipelineSpec spec = test_cascade();
  spec.stages.push_back(test_stage("one", "one", {{"bytes", {{"", "left"}}}}));
  spec.stages.push_back(test_stage("other", "other", {{"bytes", {{"", "right"}}}}));
  const auto info = made(spec);
  EXPECT_EQ(info->pipeline->stages[0].bucket, std::nullopt);
  EXPECT_EQ(info->pipeline->stages[3].bucket, BucketId(0));
  ASSERT_EQ(info->inputs.size(), 3u);
  EXPECT_THAT(info->inputs[0].dimension_names, ElementsAre("bytes"));
  EXPECT_THAT(info->inputs[1].dimension_names, ElementsAre("one.bytes"));
  EXPECT_THAT(info->inputs[2].dimension_names, ElementsAre("other.bytes"));
  ASSERT_EQ(info->buckets.size(), 2u);
  for (const Bucket& bucket : info->buckets) {
    EXPECT_EQ(bucket.dimensions.at("one.bytes"), 1000);
    EXPECT_EQ(bucket.dimensions.at("other.bytes"), 1000);
  }

  // One input of the call may feed both: their buckets are equal.
  spec.stages[4].inputs["bytes"] = {{"", "left"}};
  EXPECT_THAT(made(spec)->pipeline->stages[4].inputs, ElementsAre(ElementsAre(TensorSource{std::nullopt, 1})));
  // But not this: the bucket of one is that of the run.
  spec.stages[4].inputs["bytes"] = {{"", "photo"}};
  EXPECT_THAT(error_of(spec),
              HasSubstr("'photo' of the call feeds input 'bytes' of model 'other', UINT8 [1000], and input "
                        "'bytes' of model 'animals.decode' in stage 'decode', UINT8 [-1]; they must be "
                        "equal, in their buckets, too"));
}

TEST_F(ResolveTest, OneInputOfTheCallVariesWithOneDimension) {
  const PipelineSpec spec = text({{"ids", {{"", "ids"}}}, {"mask", {{"", "ids"}}}});
  EXPECT_THAT(made(spec)->inputs, testing::SizeIs(1));
  ModelInfo other = test_bert("bert");
  other.inputs[1].dimension_names = {"other"};
  other.buckets = {Bucket{{{"sequence", 16}, {"other", 1}}}, Bucket{{{"sequence", 32}, {"other", 2}}}};
  put(other);
  EXPECT_THAT(error_of(spec), HasSubstr("'ids' of the call feeds input 'mask' of model 'bert', INT64 [-1], and"));
}

TEST_F(ResolveTest, BucketsMustNotBeAmbiguous) {
  ModelInfo two = test_bert("bert");
  two.inputs[1] = test_tensor("mask", DataType::kInt64, {-1}, {"other"});
  two.buckets = {Bucket{{{"sequence", 16}, {"other", 1}}}, Bucket{{{"sequence", 16}, {"other", 2}}}};
  put(two);
  put(test_model("tokens", {test_tensor("text", DataType::kUint8, {64})},
                 {test_tensor("ids", DataType::kInt64, {16})}));
  PipelineSpec spec = text({{"ids", {{"tokens", "ids"}}}, {"mask", {{"", "mask"}}}});
  spec.stages.insert(spec.stages.begin(), test_stage("tokens", "tokens", {{"text", {{"", "text"}}}}));
  EXPECT_THAT(error_of(spec), HasSubstr("stage 'bert': several buckets of model 'bert' fit its sources; take all"));
}

TEST_F(ResolveTest, NamesConditionsThatCannotBe) {
  using Value = StageCondition::Value;
  const auto error_with = [&](const TensorName& output, StageCondition condition) {
    PipelineSpec spec = test_cascade();
    spec.stages[2].when[0].output = output;
    spec.stages[2].when[0].condition = condition;
    return error_of(spec);
  };
  const TensorName scores{"cheap", "scores"};
  EXPECT_THAT(
      error_with({"cheap", "score"}, {}),
      StartsWith("animals/pipeline.toml:31: stage 'fine': a condition has 'cheap.score', and model 'mobilenet' has "
                 "no output 'score'; its outputs are scores"));
  EXPECT_THAT(error_with(scores, {.value = Value::kElement, .element = 999}), IsEmpty());
  EXPECT_THAT(error_with(scores, {.value = Value::kElement, .element = 1000}),
              HasSubstr("compares element 1000 of 'cheap.scores', FP32 [1000], which has 1000: write 0 to 999"));
  EXPECT_THAT(error_with(scores, {.value = Value::kArgmax, .limit = 999}), IsEmpty());
  EXPECT_THAT(error_with(scores, {.value = Value::kArgmax, .limit = 1000}),
              HasSubstr(":31: stage 'fine': a condition compares 'cheap.scores', FP32 [1000] with 1000; its values are "
                        "from 0 to 999"));
  EXPECT_THAT(error_with(scores, {.value = Value::kArgmax, .limit = -1}),
              HasSubstr("with -1; its values are from 0 to"));
  EXPECT_THAT(error_with(scores, {.limit = 1e300}), HasSubstr("with 1e+300; its values are from -3.4"));

  ModelInfo other = test_classifier("mobilenet");
  other.outputs.push_back(test_tensor("none", DataType::kFloat32, {0}));
  other.outputs.push_back(test_tensor("class", DataType::kUint8, {}));
  put(other);
  EXPECT_THAT(error_with({"cheap", "none"}, {}), HasSubstr("compares 'cheap.none', FP32 [0], which has no elements"));
  EXPECT_THAT(error_with({"cheap", "class"}, {.limit = 255}), IsEmpty());
  EXPECT_THAT(error_with({"cheap", "class"}, {.limit = 256}), HasSubstr("with 256; its values are from 0 to 255"));

  PipelineSpec variable = text();
  variable.stages.push_back(test_stage("more", "bert", {{"ids", {{"", "ids"}}}, {"mask", {{"", "mask"}}}}));
  ModelInfo one = test_bert("one");
  one.buckets.resize(1);
  put(one);
  variable.stages[1].model = "one";
  variable.stages[1].inputs = {{"ids", {{"", "more ids"}}}, {"mask", {{"", "more mask"}}}};
  variable.stages[1].when = {{.output = {"bert", "hidden"}, .condition = {}, .line = 9}};
  EXPECT_THAT(error_of(variable),
              HasSubstr(":9: stage 'more': a condition compares 'bert.hidden', FP32 [-1,8], whose size "
                        "depends on that of the call's inputs"));
}

TEST_F(ResolveTest, WhatFillsAnOutputIsOfItsType) {
  const auto error_with = [&](DataType type, double fill) {
    ModelInfo other = test_classifier("resnet");
    other.outputs[0].type = type;
    put(other);
    PipelineSpec spec = test_cascade();
    spec.outputs[0].from = {{"fine", "scores"}};
    spec.outputs[0].fill = fill;
    return error_of(spec);
  };
  for (const DataType type :
       {DataType::kBool, DataType::kUint64, DataType::kInt8, DataType::kFloat16, DataType::kFloat64})
    EXPECT_THAT(error_with(type, 0), IsEmpty());
  EXPECT_THAT(error_with(DataType::kFloat32, -1.5), IsEmpty());
  EXPECT_THAT(
      error_with(DataType::kUint8, -1),
      HasSubstr(
          ":40: output 'answer' is UINT8, which 'fill' = -1 is none of; it must be a whole number from 0 to 255"));
  EXPECT_THAT(error_with(DataType::kInt32, 0.5), HasSubstr("it must be a whole number from -2147483648 to"));
  EXPECT_THAT(error_with(DataType::kUint64, 0x1p64), HasSubstr("is UINT64, which 'fill'"));
  EXPECT_THAT(error_with(DataType::kInt64, 0x1p63), HasSubstr("is INT64, which 'fill'"));
  EXPECT_THAT(error_with(DataType::kFloat32, 1e39), HasSubstr("it must be a number from"));
  EXPECT_THAT(error_with(DataType::kBfloat16, 1), HasSubstr("it must be 0"));
}

TEST_F(ResolveTest, RowsThatVaryAreRefusedByName) {
  ModelInfo varying = model("resnet");
  varying.outputs.push_back(
      {.name = "words", .type = DataType::kBytes, .shape = {-1}, .dimension_names = {""}, .bound = RowBound{{3}, 100}});
  put(varying);
  EXPECT_THAT(error_of(test_cascade()),
              HasSubstr(":30: stage 'fine': 'words' of model 'resnet' is BYTES [-1], of which each row has a size"));
}

// ---- Stages that are visited for each element ----

class ResolveElementsTest : public ResolveTest {
 protected:
  // An image -> up to four images, their number, and features of the whole.
  ResolveElementsTest() {
    put(test_model(
        "detector", {test_tensor("image", DataType::kFloat32, {3, 448, 448})},
        {test_tensor("count", DataType::kInt64, {1}), test_tensor("crops", DataType::kFloat32, {4, 3, 224, 224}),
         test_tensor("sure", DataType::kBool, {1})}));
    put(test_model("average", {test_tensor("scores", DataType::kFloat32, {4, 1000})},
                   {test_tensor("mean", DataType::kFloat32, {1000})}));
    spec_.name = "street";
    spec_.file = "street/pipeline.toml";
    spec_.stages = {test_stage("detect", "detector", {{"image", {{"", "photo"}}}}),
                    test_stage("classify", "resnet", {{"image", {{"detect", "crops", true}}}}),
                    test_stage("average", "average", {{"scores", {{"classify", "scores"}}}})};
    spec_.stages[1].for_each = {{"detect", "count"}, 4, 9};
    for (size_t i = 0; i < 3; ++i) spec_.stages[i].line = static_cast<int>(i + 1) * 10;
    spec_.outputs = {{.name = "scores", .from = {{"classify", "scores"}}, .line = 40},
                     {.name = "mean", .from = {{"average", "mean"}}, .line = 41}};
  }
  PipelineSpec spec_;
};

TEST_F(ResolveElementsTest, OutsideOfItsStageAnOutputHasTheElementsAsAFurtherDimension) {
  const auto info = made(spec_);
  EXPECT_THAT(info->outputs[0].shape, ElementsAre(4, 1000));
  EXPECT_THAT(info->outputs[0].dimension_names, ElementsAre("", ""));
  EXPECT_THAT(info->outputs[1].shape, ElementsAre(1000));
  const std::vector<PipelineStage>& stages = info->pipeline->stages;
  EXPECT_EQ(stages[0].count, (StageCount{.output = 0, .at_most = 4}));
  ASSERT_TRUE(stages[1].for_each.has_value());
  EXPECT_EQ(stages[1].for_each->stage, 0u);
  EXPECT_EQ(stages[1].for_each->at_most, 4u);
  EXPECT_EQ(stages[1].inputs[0][0], (TensorSource{.stage = 0, .tensor = 1, .each = true}));
  EXPECT_EQ(stages[2].inputs[0][0], (TensorSource{.stage = 1, .tensor = 0}));
}

TEST_F(ResolveElementsTest, TheCallMayFeedElements) {
  spec_.stages[1].inputs["image"] = {{"", "crops", true}};
  const auto info = made(spec_);
  ASSERT_EQ(info->inputs.size(), 2u);
  EXPECT_EQ(info->inputs[1].name, "crops");
  EXPECT_THAT(info->inputs[1].shape, ElementsAre(4, 3, 224, 224));
  EXPECT_TRUE(info->pipeline->stages[1].inputs[0][0].each);
}

TEST_F(ResolveElementsTest, ElementsOfACallMayHaveVariableDimensions) {
  spec_.stages[1] = test_stage("classify", "bert", {{"ids", {{"", "ids", true}}}, {"mask", {{"", "mask", true}}}});
  spec_.stages[1].for_each = {{"detect", "count"}, 4, 9};
  spec_.stages.resize(2);
  spec_.outputs = {{.name = "hidden", .from = {{"classify", "hidden"}}, .line = 40}};
  const auto info = made(spec_);
  EXPECT_THAT(info->inputs[1].shape, ElementsAre(4, -1));
  EXPECT_THAT(info->inputs[1].dimension_names, ElementsAre("", "sequence"));
  EXPECT_THAT(info->outputs[0].shape, ElementsAre(4, -1, 8));
  EXPECT_THAT(info->outputs[0].dimension_names, ElementsAre("", "sequence", ""));
}

TEST_F(ResolveElementsTest, NamesWhatDoesNotFit) {
  PipelineSpec wrong = spec_;
  wrong.stages[1].for_each->count.tensor = "boxes";
  EXPECT_THAT(error_of(wrong),
              HasSubstr(":9: stage 'classify': for_each has 'detect.boxes', and model 'detector' has no "
                        "output 'boxes'; its outputs are count, crops, sure"));
  wrong = spec_;
  wrong.stages[1].for_each->count.tensor = "crops";
  EXPECT_THAT(error_of(wrong),
              HasSubstr(":9: stage 'classify': for_each counts by 'detect.crops', FP32 [4,3,224,224]; a count "
                        "is one number in a row"));
  wrong.stages[1].for_each->count.tensor = "sure";
  EXPECT_THAT(error_of(wrong), HasSubstr("counts by 'detect.sure', BOOL [1]"));
  wrong = spec_;
  wrong.stages[1].for_each->at_most = 5;
  EXPECT_THAT(error_of(wrong),
              HasSubstr(":20: stage 'classify': the input 'image' takes 'detect.crops[]' element by element, of "
                        "shape [4,3,224,224]; its first dimension must be 5, the at_most of for_each"));
  wrong = spec_;
  wrong.stages[1].inputs["image"] = {{"detect", "crops"}, {"", "crops", true}};
  EXPECT_THAT(error_of(wrong),
              HasSubstr("'detect.crops' of model 'detector' is FP32 [4,3,224,224]; they must be equal"));
  wrong = spec_;
  wrong.stages[2].model = "resnet";
  wrong.stages[2].inputs = {{"image", {{"classify", "scores"}}}};
  EXPECT_THAT(error_of(wrong), HasSubstr("'classify.scores' of model 'resnet' is FP32 [4,1000]; they must be equal"));
}

}  // namespace
}  // namespace foliot
